# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Where packages of another Debian than this machine's come from, and the kernel's source. A script
# that includes this file sets $here to the folder of scripts.

archive=http://deb.debian.org/debian

# write_archives SUITE KERNEL_SUITE
#
# Writes sources.list and kernel.pref to the current folder, for an apt that takes the kernel's
# packages from KERNEL_SUITE and all others from SUITE.
write_archives() {
	for each in "$1" "$2"; do
		echo "deb $archive $each main"
	done >sources.list
	cat >kernel.pref <<-PREFERENCES
		Package: src:linux src:linux-signed-*
		Pin: release n=$2
		Pin-Priority: 990
	PREFERENCES
}

# archive_refusal LOG
#
# Prints the first line of LOG by which apt says that the archive does not give it what it takes.
# The status is 0 if there is one.
archive_refusal() {
	grep -m 1 -E \
		-e '^E: Unable to (locate package|fetch|correct problems|satisfy dependencies)' \
		-e '^E: (Package|Version) .* (has no installation candidate|was not found)' \
		-e '^E: (Failed to fetch|The repository|Release file)' \
		-e '^E: Sub-process /usr/bin/dpkg returned an error' "$1"
}

# use_apt_of TYPE SUITE
#
# An apt of our own, which leaves the user's configuration alone and needs no root: lets apt-get see what the SUITE has of this TYPE, deb or deb-src, and nothing else. Its files are
# in apt/ of the current folder. Call this in a subshell, as it changes the environment.
use_apt_of() {
	mkdir -p apt/lists/partial apt/cache/archives/partial
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "$1 [signed-by=$keyring] $archive $2 main" >apt/sources.list
	cat >apt/apt.conf <<-CONF
		Dir::State::Lists "$PWD/apt/lists";
		Dir::Cache "$PWD/apt/cache";
		Dir::Etc::SourceList "$PWD/apt/sources.list";
		Dir::Etc::SourceParts "-";
		APT::Sandbox::User "";
		$(apt-config dump Acquire::Check-Valid-Until)
	CONF
	export APT_CONFIG="$PWD/apt/apt.conf"
	apt-get -qq update
}

# find_kernel_source
#
# Sets package and version to those of the source of the stack's kernel. If that is of another suite
# than this machine, apt-get sees only that suite from here on, until the script ends.
# shellcheck disable=SC2034,SC2154  # version, $here
find_kernel_source() {
	kernel_suite=$("$here/stack" kernel-suite)
	if [ "$kernel_suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]; then
		apt_folder=$(mktemp -d)
		trap 'rm -rf "$apt_folder"' EXIT
		cd "$apt_folder" || exit
		use_apt_of deb "$kernel_suite"
		cd "$OLDPWD" || exit
	fi
	package=linux-source-$("$here/stack" kernel)
	version=$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p')
}
