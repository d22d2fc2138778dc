# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong in a lab, in words for the person in front of it."""


class LabError(Exception):
    """Something could not be done; the message says what and, if known, why."""


class CommandError(LabError):
    """A command in a guest failed or took too long."""
