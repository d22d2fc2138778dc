#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What ends `lab up` before its hosts are up."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab.process import Process  # noqa: E402
from test_lab import Stateful  # noqa: E402

# `lab up 2` with processes that sleep in place of a switch and of hosts. It prints these, and a
# line when a host boots. argv[2]: it starts so many processes, and hangs when it is to start
# another; argv[3]: the seconds that a boot takes. A process takes a second to end, so that signals
# can come meanwhile. SIGINT may be ignored where the tests run.
UP = """
import json, os, pathlib, signal, sys, time
from unittest import mock
from ternlab import cli, paths
from ternlab.host import Host
from ternlab.image import Image
from ternlab.process import Process
from ternlab.wire import Wire

base, starts = pathlib.Path(sys.argv[1]), iter(range(int(sys.argv[2])))

def start(self, *_):
    if next(starts, None) is None:
        print("hangs", flush=True)
        time.sleep(600)
    self.process = Process.start("sleep", ["sh", "-c", "trap 'sleep 1; exit' TERM; "
                                           "while :; do sleep 0.1; done"], base / "log", False)
    print(json.dumps(self.process.to_json()), flush=True)

def boot(host):
    os.write(1, b"boots\\n")  # a line, also if the other host boots at the same time
    host.process.wait(float(sys.argv[3]))

signal.signal(signal.SIGINT, signal.default_int_handler)
with mock.patch.object(paths, "BUILD", base / "build"), mock.patch("ternlab.stack.enter"), \\
        mock.patch.object(Image, "get", lambda **_: Image("/nowhere")), \\
        mock.patch.object(Wire, "start", start), mock.patch.object(Host, "start", start), \\
        mock.patch.object(Host, "wait_ready", boot), mock.patch.object(Host, "configure"), \\
        mock.patch("ternlab.lab.parts"):
    sys.exit(cli.main(["--lab", "lab", "up", "2"]))
"""


class Signals(Stateful):
    """What ends `lab up` ends all that it has started."""

    def up(self, *before, starts=3, boot=100, **how):
        """Returns the process when its hosts boot, or after so many starts: those of the switch and
        of two hosts."""
        command = subprocess.Popen(  # pylint: disable=consider-using-with
            [*before, sys.executable, "-B", "-c", UP, self.base, str(starts),
             str(boot)], text=True, start_new_session=True, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": sys.path[0]}, **how)
        self.addCleanup(command.stdout.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        self.started = [Process.from_json(json.loads(command.stdout.readline()))
                        for _ in range(starts)]
        for process in self.started:
            self.addCleanup(process.kill)
        self.assertEqual(command.stdout.readline(), "hangs\n" if starts < 3 else "boots\n")
        return command

    def assert_nothing_left(self):
        for process in self.started:
            self.assertFalse(process.alive())
        self.assertFalse(self.lab.folder.exists())

    def test_interrupted(self):
        """It does not wait for its hosts."""
        command = self.up(stderr=subprocess.DEVNULL)
        command.send_signal(signal.SIGINT)
        self.assertEqual(command.wait(30), 130)
        self.assert_nothing_left()

    def test_ended(self):
        """A second signal does not stop it from cleaning up."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                command = self.up(stderr=subprocess.DEVNULL)
                command.send_signal(number)
                time.sleep(0.2)
                command.send_signal(signal.SIGTERM)
                self.assertEqual(command.wait(30), 128 + number)
                self.assert_nothing_left()

    def kill(self, starts):
        command = self.up(starts=starts)
        command.kill()
        command.wait()

    def test_killed(self):
        """It can end nothing itself, but others know what it has started."""
        for starts in (1, 2, 3):
            with self.subTest(starts=starts):
                self.kill(starts)
                self.assertEqual(self.command("down")[0], 0)
                self.assert_nothing_left()

    def test_up_after_one_that_was_killed(self):
        self.kill(starts=1)
        switch, = self.started
        self.up(stderr=subprocess.DEVNULL)
        self.assertFalse(switch.alive())

    def test_terminal_that_goes(self):
        """Then nothing can be said any more."""
        ours, theirs = os.openpty()
        command = self.up(stderr=theirs, preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0))
        os.close(theirs)
        os.close(ours)
        self.assertEqual(command.wait(30), 128 + signal.SIGHUP)
        self.assert_nothing_left()

    def test_nohup(self):
        command = self.up("nohup", boot=1, stderr=subprocess.DEVNULL)
        command.send_signal(signal.SIGHUP)
        self.assertEqual(command.wait(30), 0)
        self.assertEqual(len(self.state()["hosts"]), 2)


if __name__ == "__main__":
    unittest.main()
