# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells of each step that takes longer than a person likes to wait unaware: on a terminal by a line
that turns, with the seconds that have passed, elsewhere by a line for its beginning and its end."""

import contextlib
import itertools
import shutil
import sys
import threading
import time

from . import pace

PATIENCE = 2.0
TURN = 0.25
MARKS = "|/-\\"
DELETE_LINE = "\r\033[K"
_LOCK = threading.Lock()  # of standard error and what follows
_TURNING = []  # steps under way, of which the last has the line


def say(text):
    # A terminal that is gone must not stop what goes on without it.
    with _LOCK, contextlib.suppress(OSError):
        # A line that turns comes back below.
        print(f"{DELETE_LINE if sys.stderr.isatty() else ''}lab: {text}", file=sys.stderr,
              flush=True)


def _turn(text, begun, over):
    """Redraws the progress line until @over is set, then deletes it."""
    for mark in itertools.cycle(MARKS):
        if over.wait(TURN):
            break
        line = f"lab: {text} {mark} {time.monotonic() - begun:.0f} s"
        with _LOCK:
            if _TURNING[-1] is over:
                sys.stderr.write(DELETE_LINE + line[:shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
    with _LOCK:
        _TURNING.remove(over)
        sys.stderr.write(DELETE_LINE)
        sys.stderr.flush()


def _say_done(text, begun):
    took = time.monotonic() - begun
    if took > PATIENCE:
        say(f"{text}: done in {took:.0f} s")


@contextlib.contextmanager
def _turning(text):
    begun, over = time.monotonic(), threading.Event()
    with _LOCK:
        _TURNING.append(over)
    thread = threading.Thread(target=_turn, args=(text, begun, over), daemon=True)
    thread.start()
    try:
        yield
        # Say so before the line of the outer step comes back.
        _say_done(text, begun)
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _announced(text):
    """A line when the step has taken two seconds."""
    begun = time.monotonic()
    announce = threading.Timer(PATIENCE, say, [f"{text} ..."])
    announce.daemon = True
    announce.start()
    try:
        yield
    finally:
        announce.cancel()
        announce.join()
    _say_done(text, begun)


@contextlib.contextmanager
def step(text):
    """Tells of the block; at its end, how long it took, if that was more than two seconds."""
    with (_turning if sys.stderr.isatty() else _announced)(text):
        yield


def wait_until(condition, timeout, interval=0.05):
    """Polls until condition() is true; returns what it gave, or None when time is up.

    The timeout is in seconds of the reference machine: see pace.py.
    """
    deadline = time.monotonic() + pace.scaled(timeout)
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            return None
        time.sleep(interval)
