// SPDX-License-Identifier: GPL-2.0-or-later
// A library needs a source file; this one exists for its precompiled header.
