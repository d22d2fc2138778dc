#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests run before the lab reaches them, as far as it needs no guest."""

import os
import pathlib
import subprocess
import tempfile
import unittest

START_UDEVD = pathlib.Path(__file__).resolve().parents[2] / "scripts/guest/start-udevd"
# This udevd opens its netlink socket half a second after its start, and ends when its folder is
# deleted.
UDEVD = """#!/usr/bin/python3
import pathlib, socket, time

folder = pathlib.Path(__file__).parent
time.sleep(0.5)
(folder / "listens").touch()
events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)  # the kernel's events of devices
events.bind((0, 1))
while folder.exists():
    time.sleep(0.05)
"""


class Udevd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, udevd):
        """Runs start-udevd with this program as udevd."""
        program = self.folder / "systemd-udevd"
        program.write_text(udevd, encoding="ascii")
        program.chmod(0o755)
        # start-udevd gets an empty network namespace, as this machine's udevd has a socket in that
        # of this machine.
        return subprocess.run(
            ["timeout", "60", "unshare", "--net", START_UDEVD], capture_output=True, text=True,
            check=False, env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})

    def test_listens_when_it_has_started(self):
        started = self.start(UDEVD)
        self.assertEqual((started.returncode, started.stderr), (0, ""))
        self.assertTrue((self.folder / "listens").exists())

    def test_ends(self):
        started = self.start("#!/bin/sh\nexit 1\n")
        self.assertEqual((started.returncode, started.stderr),
                         (1, "start-udevd: systemd-udevd has ended\n"))


if __name__ == "__main__":
    unittest.main()
