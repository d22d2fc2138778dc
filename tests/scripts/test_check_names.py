#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests/docs/check_names.py takes for a declaration of a function."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
from check_names import declares  # noqa: E402 pylint: disable=wrong-import-position

DECLARATIONS = (
    "static int act(void)\n{\n}",
    "void Class::act(int x) const",
    "public:\n\tact_t<int> &act();",
    "[[nodiscard]] virtual bool act() = 0;",
    "std::optional<std::pair<int, int>>\nact(int x)",
    "x = 1;\n/* why */\ninline const char *act(int x)",
    "#include <x>\nint act(int x)",
    "#define act(x) (x)",
    "int (*act)(int x);",
    "const auto act = [&](int x) { return x; };",
    "def act(self):",
    "act() {\n",
)
USES = (
    "act(1);",
    "{\n\treturn act(1);\n}",
    "if (x)\n\tact(1);\nelse\n\tact(2);",
    "x = act(1);",
    "peer->act(1);\npeer.act(1);",
    "case 1: act(1);",
    "/* void act(int x) */",
    "// int act(int x)",
    "other(act(1), !act(2));",
    "void react(int x)",
    "if x:\n    act(1)",
)


class Declares(unittest.TestCase):
    def test_declarations(self):
        for text in DECLARATIONS:
            with self.subTest(text):
                self.assertTrue(declares(text, "act"))

    def test_uses(self):
        for text in USES:
            with self.subTest(text):
                self.assertFalse(declares(text, "act"))


if __name__ == "__main__":
    unittest.main()
