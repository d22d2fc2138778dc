#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""When a process that a lab started counts as ended (ternlab/process.py)."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from ternlab.process import Process  # noqa: E402
from ternlab.progress import wait_until  # noqa: E402

# A thread that goes on when the first one has ended, as QEMU's do for a moment when it is killed.
OUTLIVED = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
SYS_EXIT = 60
ctypes.CDLL(None).syscall(SYS_EXIT, 0)
"""


class TestProcess(unittest.TestCase):
    def start(self, program):
        log = tempfile.NamedTemporaryFile()
        self.addCleanup(log.close)
        process = Process.start("it", [sys.executable, "-c", program], log.name, True)
        self.addCleanup(process.kill)
        # As another program that manages the lab knows it.
        return process, Process.from_json(process.to_json())

    def test_ended(self):
        for process in self.start("pass"):
            self.assertTrue(process.wait(30))

    def test_killed(self):
        process, same = self.start("import time; time.sleep(600)")
        self.assertTrue(process.alive() and same.alive())
        process.kill()
        self.assertFalse(process.alive() or same.alive())

    def test_a_thread_outlives_the_first(self):
        """Its sockets are open until the last thread has ended."""
        process, same = self.start(OUTLIVED)
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        self.assertTrue(wait_until(lambda: stat.read_text("ascii").split()[2] == "Z", 30))
        self.assertTrue(process.alive())
        self.assertTrue(same.alive())
        same.kill()
        self.assertFalse(process.alive() or same.alive())

    def test_thread_times(self):
        """A thread that computes is told from one that waits."""
        process, _ = self.start("""
import pathlib, threading, time
def work(name):
    pathlib.Path("/proc/thread-self/comm").write_text(name)
    while name == "busy":
        pass
    time.sleep(600)
for name in ("busy", "idle"):
    threading.Thread(target=work, args=(name,)).start()
""")
        self.assertTrue(wait_until(lambda: process.thread_times().get("busy", 0) > 0.1, 30))
        self.assertLess(process.thread_times()["idle"], 0.1)


if __name__ == "__main__":
    unittest.main()
