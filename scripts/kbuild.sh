# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What kbuild says with W=1 C=2. From Linux 7.0 on it tries by a script of its tree whether sparse
# knows what the kernel's headers use. If sparse does not, or if there is no such script, as in
# Debian's headers of 7.3, kbuild warns of that and builds without sparse.
# A script that includes this file sets $here to the folder of scripts.

# shellcheck source=scripts/progress.sh disable=SC2154
. "$here/progress.sh"

# findings SAID GREP-OPTION...
#
# Prints the lines of SAID that are findings. The options exclude others. If sparse did not run, the
# reason is in the file no-sparse then.
findings() {
	output=$1
	shift
	without='C=2 specified, but sparse is not available or not up to date$'
	lacking='checker-valid\.sh: \(not found\|No such file or directory\)$'
	if grep -q "$without" "$output"; then
		if grep -q "$lacking" "$output"; then
			echo "the kernel's headers lack scripts/checker-valid.sh" >no-sparse
		else
			echo "sparse $(sparse --version) is too old for this kernel" >no-sparse
		fi
		set -- -e "$without" -e "$lacking" "$@"
	fi
	grep -v "$@" "$output"
}

# tell_of_sparse FOLDER
#
# Says so if sparse did not run for the result in FOLDER, where findings left no-sparse.
tell_of_sparse() {
	[ ! -e "$1/no-sparse" ] ||
		say "sparse did not run, only the compiler with W=1: $(cat "$1/no-sparse")"
}
