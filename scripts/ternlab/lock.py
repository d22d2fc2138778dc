# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock between processes. Its file exists for as long as somebody holds it or waits for it."""

import contextlib
import fcntl
import os

from .progress import say


def _acquire(path, waiting):
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock = open(path, "a", encoding="ascii")  # pylint: disable=consider-using-with
        except FileNotFoundError:
            continue  # somebody has just deleted the folder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock.fileno()).st_nlink:
            return lock
        lock.close()  # its holder has deleted it: others lock the next file


@contextlib.contextmanager
def exclusive(path, waiting):
    """Holds the lock. Says @waiting first if somebody else has it."""
    with _acquire(path, waiting):
        try:
            yield
        finally:
            path.unlink()
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # unless something else is there
