# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An apt of our own for packages of another Debian than this machine's: it leaves the user's
# configuration alone, and needs no root.

# use_apt_of TYPE SUITE
#
# Lets apt-get see what the SUITE has of this TYPE, deb or deb-src, and nothing else. Its files are
# in apt/ of the current folder. Call this in a subshell, as it changes the environment.
use_apt_of() {
	mkdir -p apt/lists/partial apt/cache/archives/partial
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "$1 [signed-by=$keyring] http://deb.debian.org/debian $2 main" >apt/sources.list
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
