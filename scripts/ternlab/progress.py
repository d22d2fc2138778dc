# SPDX-License-Identifier: GPL-2.0-or-later
"""A line for each step that takes longer than a person likes to wait unaware."""

import contextlib
import sys
import threading
import time

from . import pace

PATIENCE = 2.0


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text):
    """Names the step when it has taken two seconds, and says at its end how long it took."""
    begun = time.monotonic()
    announce = threading.Timer(PATIENCE, say, [f"{text} ..."])
    announce.daemon = True
    announce.start()
    try:
        yield
    finally:
        announce.cancel()
    took = time.monotonic() - begun
    if took > PATIENCE:
        say(f"{text}: done in {took:.0f} s")


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
