#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests run before the lab reaches them, as far as it needs no guest."""

import os
import pathlib
import subprocess
import tempfile
import unittest

START_UDEVD = pathlib.Path(__file__).resolve().parents[2] / "scripts/guest/start-udevd"
# A daemon that listens a moment after the process that was started has ended. It ends with its
# standard input.
UDEVD = """#!/usr/bin/python3
import os, pathlib, socket, sys, time

started = os.getpid()
if os.fork():
    sys.exit()
while os.getppid() == started:
    time.sleep(0.01)
time.sleep(0.5)
pathlib.Path(__file__).with_name("listens").touch()
events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)  # the kernel's events of devices
events.bind((0, 1))
sys.stdin.read()
"""


class Udevd(unittest.TestCase):
    def test_listens_when_it_has_started(self):
        with tempfile.TemporaryDirectory() as folder:
            udevd = pathlib.Path(folder) / "systemd-udevd"
            udevd.write_text(UDEVD, encoding="ascii")
            udevd.chmod(0o755)
            # In a network of its own, as this machine's udevd listens to that of this machine.
            command = ["timeout", "60", "unshare", "--net", START_UDEVD]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}) \
                    as starting:
                self.assertEqual(starting.wait(), 0)
                self.assertTrue(udevd.with_name("listens").exists())


if __name__ == "__main__":
    unittest.main()
