# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are: in a checkout, or where `make install` and the packages put them."""

import contextlib
import hashlib
import os
import pathlib
import stat

from .errors import LabError

TMP = pathlib.Path("/tmp")
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
# Programs that the lab starts in other folders read these, too.
for _variable in ("TERN_CACHE", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
    if os.environ.get(_variable):
        os.environ[_variable] = os.path.abspath(os.environ[_variable])


def _base(variable, default):
    """A folder of the user's by the XDG specification."""
    return pathlib.Path(os.environ.get(variable) or pathlib.Path.home() / default)


def cache():
    """As scripts/cache.sh has it."""
    return pathlib.Path(os.environ.get("TERN_CACHE") or _base("XDG_CACHE_HOME", ".cache") / "tern")


def _own_folder(folder):
    """Makes it if need be. Where all may write, somebody else may have made it first, and could
    then replace the sockets and the state of a lab."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or others_write:
        raise LabError(f"{folder} is no folder into which only you can write: remove it, or set "
                       "XDG_RUNTIME_DIR")
    return folder


def runtime(lab):
    """Sockets and state of a running lab: its path is short, as sockets' paths have to be."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    base = pathlib.Path(given) if given else _own_folder(TMP / f"tern-{os.getuid()}")
    checkout = hashlib.sha256(bytes(CHECKOUT)).hexdigest()[:8]
    return base / f"tern-{checkout}" / lab


def logs(lab):
    """Logs outlive their lab, until its next start."""
    state = _base("XDG_STATE_HOME", ".local/state") / "tern" if INSTALLED else BUILD
    return state / "lab" / lab
