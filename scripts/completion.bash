# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Has bash complete the command line of the lab, by python3-argcomplete. The packages install it;
# in a checkout: . scripts/completion.bash
#
# There "lab" stands for each path that ends so: scripts/lab, ./lab. Where the package is installed
# a program of that name is another one.

# shellcheck disable=SC2046  # the second word may be missing
eval "$(/usr/bin/python3 -c '
import argcomplete, sys
print(argcomplete.shellcode(sys.argv[1:]))' \
	tern-lab $([ ! -d "$(dirname "${BASH_SOURCE[0]}")/ternlab" ] || echo lab))"
