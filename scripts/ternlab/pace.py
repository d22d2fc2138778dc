# SPDX-License-Identifier: GPL-2.0-or-later
"""How long to wait. Budgets are stated for the reference machine; this one may be slower, or busy.

Every budget bounds a wait that ends by itself when all is well, so a longer one costs nothing then.
"""

# What it took from QEMU's start to a guest's first answer on the reference machine, in seconds:
# two guests at once on two cores of an EPYC 9005.
REFERENCE = 1.5
LEAST, MOST = 2, 20

_factor = LEAST


def measure(took):
    """Notes what a guest's start took here. The slowest start counts."""
    global _factor  # pylint: disable=global-statement
    _factor = min(MOST, max(_factor, LEAST * took / REFERENCE))


def slowness():
    """How many times as long as the reference machine this one takes; at least 1."""
    return _factor / LEAST


def scaled(seconds):
    return seconds * _factor
