# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of README.md ("Use it"), run as they stand there. Each has to succeed.

The tutorial has tutorial.py, and what any page names is checked by tests/docs/check_commands.py.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from programs import Programs
from scenario import Options, RXE, main
from ternlab.paths import CHECKOUT, SCRIPTS

README = CHECKOUT / "README.md"
BLOCK = re.compile(r"(?:^ {4}\S.*\n)+", re.MULTILINE)
TIMEOUT = 100
# These need a terminal, or another lab: test_watch.py, fabric.py.
ELSEWHERE = ("make lab", "scripts/lab watch", "scripts/lab down", "scripts/lab up",
             "scripts/lab fabric")


def commands(page, begin, end):
    """The lines of the first block of commands between two texts of a page."""
    text = page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    return [line[4:] for line in BLOCK.search(text)[0].splitlines()]


class Pages(Programs):
    # As in see_inside.py: probes and several processors of QEMU 7.2 do not go together.
    HOSTS = (Options(smp=1), Options(smp=1))

    @classmethod
    def setUpClass(cls):
        if RXE:
            raise unittest.SkipTest("the pages are about Tern")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "scripts").symlink_to(SCRIPTS)

    def run_here(self, command):
        """(exit code, what it prints)"""
        done = subprocess.run(
            ["bash", "-ec", command], cwd=self.folder, stdin=subprocess.DEVNULL, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env={**os.environ, "TERN_LAB": self.lab.name}, check=False)
        return done.returncode, done.stdout

    def run_line(self, line, agents, qpns):
        command = line.replace("0x11", hex(qpns[0]))
        code, said = self.run_here(command)
        with self.subTest(command):
            self.assertEqual(code, 0, said)
        if "capture start" in command:
            self.exchange(agents, qpns)  # so that there is something to draw

    def exchange(self, agents, qpns):
        agents[1].receive(local=qpns[1], offset=0, length=100)
        agents[0].send(local=qpns[0], opcode="SEND", length=100)
        agents[0].poll(local=qpns[0], kind="send")

    def test_readme(self):
        """Of the section "Use it", up to another lab."""
        lines = commands(README, "## Use it", "### ")
        self.assertIn("scripts/lab run all -- ibv_devinfo", lines)
        with self.connected() as (agents, qpns):
            for line in lines:
                if not line.startswith(ELSEWHERE):
                    self.run_line(line, agents, qpns)


if __name__ == "__main__":
    main()
