// SPDX-License-Identifier: GPL-2.0-or-later
// CMake needs a source file to build the precompiled header of this library.
