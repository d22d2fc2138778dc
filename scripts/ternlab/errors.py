# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong in a lab, in words for the person in front of it."""

import errno
import os
import pathlib
import subprocess

# What explain() explains.
SYSTEM = (OSError, subprocess.CalledProcessError)


class LabError(Exception):
    """Something could not be done; the message says what and, if known, why."""


class CommandError(LabError):
    """A command in a guest failed or took too long."""


def explain(error):
    """Returns what the system has refused, or which program has failed, in one line. Such a program
    has told why on its own."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{error.cmd[0]} has failed with exit code {error.returncode}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and not error.filename:
        return f"{error}: that of the cache, of XDG_RUNTIME_DIR, of the logs or of the output"
    if not isinstance(error.filename, (str, pathlib.Path)):
        return str(error)
    said = f"{error.filename}: {error.strerror}"
    return f"XDG_RUNTIME_DIR: {said}" if _is_at_runtime_folder(error.filename) else said


def _is_at_runtime_folder(path):
    """Whether this is a file below XDG_RUNTIME_DIR, or a folder that leads there."""
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return bool(folder) and (pathlib.Path(path).is_relative_to(folder)
                             or pathlib.Path(folder).is_relative_to(path))
