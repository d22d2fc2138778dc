# SPDX-License-Identifier: GPL-2.0-or-later
"""tern-switch as a program: it starts again when it dies. argv[1] is tern-switch."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab.errors import LabError  # noqa: E402
from ternlab.wire import Wire  # noqa: E402

SWITCH = None
TOPOLOGY = """
[[switch]]
name = "tor"
[[host]]
name = "h"
count = 2
[[link]]
ends = ["h*", "tor"]
rate = "1 Gb/s"
"""


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except (LabError, OSError):
            pass  # it does not listen yet
        time.sleep(0.02)
    return False


class Restart(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def start(self, topology=TOPOLOGY):
        """The process that keeps the switch."""
        self.wire = Wire(self.folder)
        self.wire.topology.write_text(topology, encoding="ascii")
        keeper = subprocess.Popen(
            [SWITCH, "--listen", self.wire.path, "--control", self.folder / "wire.ctl",
             "--topology", self.wire.topology, "--restart"],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(keeper.stderr.close)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.kill)
        return keeper

    def await_switch(self, other_than=0):
        self.assertTrue(wait_until(lambda: self.wire.pid() != other_than))
        return self.wire.pid()

    def test_comes_back(self):
        """As often as a signal ends it, with its topology, and until it is told to end."""
        keeper = self.start()
        pid = self.await_switch()
        self.assertNotEqual(pid, keeper.pid)
        for number in (signal.SIGKILL, signal.SIGSEGV):
            os.kill(pid, number)
            pid = self.await_switch(pid)
            self.assertIn('"h1"', self.wire.tell("fabric"))
        keeper.terminate()
        self.assertEqual(keeper.wait(20), 0)
        self.assertEqual(keeper.stderr.read().count("it starts again"), 2)
        self.assertFalse(self.wire.path.exists())

    def test_dies_with_its_keeper(self):
        keeper = self.start()
        pid = self.await_switch()
        keeper.kill()
        keeper.wait()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")))

    def test_an_error_ends_both(self):
        keeper = self.start("[[switch]]\n")
        self.assertEqual(keeper.wait(20), 1)
        self.assertIn("switch.name", keeper.stderr.read())


if __name__ == "__main__":
    SWITCH = sys.argv.pop(1)
    unittest.main()
