# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The cache: what takes long to make and rarely changes, one folder for each
# combination of ingredients, so that nothing in it can ever be stale. What
# nobody has asked for in a month is deleted when something new is made.
# A script that includes this file sets $here to the folder of scripts.

# shellcheck source=scripts/progress.sh disable=SC2154
. "$here/progress.sh"

TERN_CACHE_DAYS=30
TERN_CACHE=${TERN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tern}

# cached NAME MAKER INGREDIENT...
#
# Prints the folder that holds NAME made from the ingredients. If it is not
# there yet, MAKER is called in a new folder, which takes its place ($final)
# only when MAKER has succeeded. Whoever wants the same meanwhile waits for it.
# MAKER sends what nobody wants to read unless it fails to the file "log".
#
# With $TERN_CACHE_ONLY MAKER is not called: what the cache lacks is unavailable.
#
# A command of MAKER that fails ends it, by "set -e". The shell ignores that where the caller tests
# the result, as in "cached ... || exit": cached refuses to be called so. "folder=$(cached ...)" is
# right.
cached() {
	name=$1 maker=$2
	shift 2
	final=$TERN_CACHE/$name-$(printf '%s\n' "$@" | sha256sum | cut -c1-16)
	if ! [ -d "$final" ]; then
		[ -z "${TERN_CACHE_ONLY-}" ] || unavailable "${final##*/} is not in the cache"
		mkdir -p "$TERN_CACHE"
		fill "$maker" 9>"$TERN_CACHE/$name.lock" >&2
		[ -d "$final" ] || return # fill tells nobody else where "set -e" is ignored
	fi
	touch "$final"
	echo "$final"
}

# Deletes folders whose modification time, the last use, is long ago.
delete_unused() {
	find "$TERN_CACHE" -mindepth 1 -maxdepth 1 -type d -name '*-????????????????*' \
		-mtime "+$TERN_CACHE_DAYS" -exec rm -rf {} +
}

give_up() {
	end_turning
	if [ -s "$half/log" ]; then
		tail -n 30 "$half/log"
	fi
	rm -rf "$half"
	say "could not make $name; see above"
}

# With the lock open as descriptor 9: makes $final unless another just did.
# shellcheck disable=SC2030,SC2031  # $half belongs to this subshell, which alone gives up
fill() (
	set +e
	(
		set -e
		false
		true # runs only if set -e is ignored
	)
	# shellcheck disable=SC2181  # a test of the subshell would have it ignore set -e, too
	if [ $? = 0 ]; then
		say "cached $name: its caller must not test the result"
		exit 1
	fi
	set -e
	flock 9
	if [ -d "$final" ]; then
		exit
	fi
	half=$(mktemp -d "$final.XXXXXX")
	trap give_up EXIT
	trap 'exit 1' HUP INT TERM
	chmod 755 "$half"
	cd "$half"
	begin_turning "making $name" 9>&-
	"$1" 9>&-
	end_turning
	say "made $name in $(turned) s"
	cd /
	rm -f "$half/log"
	mv -T "$half" "$final"
	trap - EXIT
	delete_unused
)
