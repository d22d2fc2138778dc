#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which names scripts/layers takes for twins."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("layers", str(TOP / "scripts/layers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("layers", loader))
    loader.exec_module(module)
    return module


class Twins(unittest.TestCase):
    def twins(self, *paths):
        return load().twins(list(map(pathlib.PurePosixPath, paths)))

    def test_twins(self):
        self.assertEqual(self.twins("a/fault.h", "a/fault.cc", "a/faults.h"),
                         ["a: fault and faults look alike, rename one of them"])
        self.assertEqual(self.twins("a/page.py", "a/pages.py"),
                         ["a: page and pages look alike, rename one of them"])
        self.assertEqual(self.twins("a/port/port.h", "a/ports.h"),
                         ["a: port and ports look alike, rename one of them"])

    def test_others(self):
        self.assertEqual(self.twins("a/fault.h", "b/faults.h", "a/stack", "a/stacks.txt",
                                    "a/fault_set.h", "a/b/fault.h"), [])


if __name__ == "__main__":
    unittest.main()
