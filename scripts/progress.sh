# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What scripts say while they work. On a terminal the last line turns, with the seconds that have
# passed; elsewhere there are only the lines of say.

# The turning line is deleted first; it comes back below.
say() {
	if [ -t 2 ]; then
		printf '\r\033[K' >&2
	fi
	echo "${0##*/}: $*" >&2
}

# unavailable REASON
#
# Ends the script with status 77: this machine or Debian's archive does not have what it takes, which
# is no fault of Tern's. Nothing else ends with that status. A caller that gives the name of a file in
# $TERN_REASON finds the reason there.
unavailable() {
	say "$*"
	[ -z "${TERN_REASON-}" ] || echo "$*" >"$TERN_REASON"
	exit 77
}

# begin_turning TEXT
#
# The caller's EXIT trap calls end_turning, so that none goes on turning behind a message.
# Descriptor 1 may be a pipe whose reader waits for its end.
begin_turning() {
	begun=$(date +%s)
	turner=
	if [ -t 2 ]; then
		( # exec, as a redirection of the function alone would keep the pipe for later
			exec >&2
			turn "${0##*/}: $1"
		) &
		turner=$!
	fi
}

turn() {
	begun=$(date +%s)
	while kill -0 $$ 2>/dev/null; do
		for mark in '|' '/' '-' "\\"; do
			printf '\r%s %s %s s\033[K' "$1" "$mark" "$(($(date +%s 2>/dev/null) - begun))"
			sleep 0.25
		done
	done
}

end_turning() {
	if [ -n "${turner-}" ]; then
		kill "$turner" 2>/dev/null || :
		wait "$turner" 2>/dev/null || :
		printf '\r\033[K' >&2
	fi
	turner=
}

# Seconds since begin_turning.
turned() {
	echo $(($(date +%s) - begun))
}
