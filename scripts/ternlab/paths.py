# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are."""

import hashlib
import os
import pathlib

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = CHECKOUT / "scripts"
BUILD = CHECKOUT / "build"
SWITCH = BUILD / "cmake/qemu/wire/tern-switch"


def cache():
    """As scripts/cache.sh has it."""
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("TERN_CACHE") or home / "tern")


def runtime(lab):
    """Sockets and state of a running lab: its path is short, as sockets' paths have to be."""
    base = pathlib.Path(os.environ.get("XDG_RUNTIME_DIR", f"/tmp/tern-{os.getuid()}"))
    checkout = hashlib.sha256(bytes(CHECKOUT)).hexdigest()[:8]
    return base / f"tern-{checkout}" / lab


def logs(lab):
    """Logs outlive their lab, until its next start."""
    return BUILD / "lab" / lab
