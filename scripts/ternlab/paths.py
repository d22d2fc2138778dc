# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are: in a checkout, or where `make install` and the packages put them."""

import hashlib
import os
import pathlib

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
CHECKOUT = SCRIPTS.parent
INSTALLED = not (CHECKOUT / "Makefile").exists()
if INSTALLED:
    PREFIX = CHECKOUT.parents[1]  # of PREFIX/share/tern-lab/scripts
    COMMAND = "tern-lab"
    SWITCH = PREFIX / "bin/tern-switch"
    CARD = PREFIX / "bin/tern-card"
    QEMU = PREFIX / "bin/qemu-system-x86_64-tern"
else:
    COMMAND = "scripts/lab"
    BUILD = CHECKOUT / "build"
    SWITCH = BUILD / "cmake/qemu/wire/tern-switch"
    CARD = BUILD / "cmake/qemu/vfio/tern-card"
    QEMU = SCRIPTS / "tern-qemu"


def _base(variable, default):
    """A folder of the user's by the XDG specification."""
    return pathlib.Path(os.environ.get(variable) or pathlib.Path.home() / default)


def cache():
    """As scripts/cache.sh has it."""
    return pathlib.Path(os.environ.get("TERN_CACHE") or _base("XDG_CACHE_HOME", ".cache") / "tern")


def runtime(lab):
    """Sockets and state of a running lab: its path is short, as sockets' paths have to be."""
    base = pathlib.Path(os.environ.get("XDG_RUNTIME_DIR", f"/tmp/tern-{os.getuid()}"))
    checkout = hashlib.sha256(bytes(CHECKOUT)).hexdigest()[:8]
    return base / f"tern-{checkout}" / lab


def logs(lab):
    """Logs outlive their lab, until its next start."""
    state = _base("XDG_STATE_HOME", ".local/state") / "tern" if INSTALLED else BUILD
    return state / "lab" / lab
