# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/tutorial.md, run as written: its commands, in order, print what it says one should see.

Each ```console block is a script of its lines that begin with "$ ", whose other lines are what it
prints. Numbers, runs of blanks and the length of arrows may differ, and "..." stands for any text.
With TERN_PICTURES=write the pictures that the commands make become those of docs/pictures.
"""

import doctest
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from scenario import RXE, Scenario, main
from ternlab.paths import CHECKOUT, SCRIPTS

PAGE = CHECKOUT / "docs/tutorial.md"
PICTURES = CHECKOUT / "docs/pictures"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Not a part of a name, an address or a GID.
NUMBER = re.compile(r"(?<![\w.:])(0x[0-9a-f]+|\d+(\.\d+)?)(?![\w.:])")
SHAFT = re.compile(r"([-=~x])\1+")
OMITTED = re.compile(r"\s*\.\.\.\s*")
RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TIMEOUT = 100
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"


def blocks(page):
    """Yields the line, the commands and the transcript of each block."""
    for block in BLOCK.finditer(page):
        lines = block[1].splitlines(keepends=True)
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        transcript = [line.removeprefix("$ ") for line in lines]
        yield page.count("\n", 0, block.start()) + 1, "".join(commands), "".join(transcript)


def plain(text):
    """What has to be equal of a text."""
    return SHAFT.sub(r"\1", NUMBER.sub("0", text))


class Tutorial(Scenario):
    @classmethod
    def setUpClass(cls):
        if RXE:
            raise unittest.SkipTest("the page is about Tern")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "scripts").symlink_to(SCRIPTS)

    def run_block(self, commands):
        """What a terminal shows: bash -v prints each command before it runs it."""
        script = self.folder / "block"
        script.write_text(commands, encoding="utf-8")
        done = subprocess.run(
            ["bash", "-ev", script], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "TERN_LAB": self.lab.name}, check=False)
        return done.returncode, done.stdout

    def test_page(self):
        """One test, as each lesson may build on those before it."""
        page = PAGE.read_text(encoding="utf-8")
        checker = doctest.OutputChecker()
        for line, commands, wanted in blocks(page):
            code, said = self.run_block(commands)
            expected = OMITTED.sub("...", plain(wanted))  # which may stand for nothing
            same = checker.check_output(expected, plain(said), RULES)
            with self.subTest(f"{PAGE.name}:{line}"):
                self.assertTrue(same and code == 0,
                                f"exit code {code}; the page has\n{wanted}\nbut here it is\n{said}")
        self.check_pictures(page)

    def check_pictures(self, page):
        """The page's pictures are those that its commands have made."""
        made = {path.name: path for path in self.folder.glob("*.svg")}
        self.assertEqual(set(made), set(re.findall(r"\(pictures/(.*?)\)", page)))
        for name, path in made.items():
            if os.environ.get("TERN_PICTURES") == "write":
                (PICTURES / name).write_text(LICENCE + path.read_text(encoding="utf-8"),
                                             encoding="utf-8")


if __name__ == "__main__":
    main()
