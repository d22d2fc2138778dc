# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts with Tern cards on one wire: what scripts/lab and tests/vm are made of."""
