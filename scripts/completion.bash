# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Has bash complete the command line of the lab, by python3-argcomplete. The packages install it;
# in a checkout: . scripts/completion.bash

eval "$(/usr/bin/python3 -c '
import argcomplete
print(argcomplete.shellcode(["tern-lab", "scripts/lab"]))')"
