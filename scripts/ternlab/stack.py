# SPDX-License-Identifier: GPL-2.0-or-later
"""The stack that TERN_STACK names: scripts/stack knows it, scripts/on-stack is where it is."""

import os
import subprocess
import sys

from .errors import LabError
from .paths import INSTALLED, SCRIPTS


def ask(*what):
    """Its name, or what else scripts/stack tells; a LabError if there is no such stack."""
    said = subprocess.run([SCRIPTS / "stack", *what], capture_output=True, text=True, check=False)
    if said.returncode:
        raise LabError(said.stderr.strip().removeprefix("stack: "))
    return said.stdout.strip()


def has_debug_kernel():
    """Whether its kernel is one with the kernel's own checkers."""
    return ask() != ask("stock")


def enter():
    """Begins this program anew on the stack's Debian, unless it is this machine's."""
    suite = ask("--foreign")
    if suite and INSTALLED:
        raise LabError(f"the stack {ask()} takes a Debian {suite}, and this machine is another")
    if INSTALLED and has_debug_kernel():
        raise LabError(f"the stack {ask()} takes Tern's sources, as it builds a debug kernel")
    if suite:
        here = SCRIPTS / "on-stack"
        os.execv(here, [str(here), "python3", "-B", *sys.argv])
