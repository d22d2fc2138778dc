#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What people see of long steps: a line that turns on a terminal, plain lines in a file."""

import os
import pathlib
import pty
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = f". {TOP}/scripts/progress.sh; "
LAB = f"""
import sys, time
sys.path.insert(0, "{TOP}/scripts")
from ternlab import progress
progress.PATIENCE, progress.TURN = 0.3, 0.1
"""
DELETE_LINE = "\r\x1b[K"


def on_terminal(*command):
    """(exit code, what a terminal gets) of a command."""
    child, terminal = pty.fork()
    if not child:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    seen = b""
    with os.fdopen(terminal, "rb", buffering=0) as output:
        try:
            while data := output.read(4096):
                seen += data
        except OSError:  # Linux' way to say that the other end is closed
            pass
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen.decode()


def in_file(*command):
    """(exit code, what it prints)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def left(seen):
    """The lines that a terminal shows in the end."""
    lines = [""]
    for part in seen.replace("\r\n", "\n").replace("\x1b[K", "").split("\n"):
        lines[-1] = part.rpartition("\r")[2]
        lines.append("")
    return [line for line in lines if line]


class Shell(unittest.TestCase):
    WORK = 'begin_turning working; sleep 1; say halfway; sleep 1; end_turning; say "$(turned)"'

    def test_terminal(self):
        code, seen = on_terminal("sh", "-c", SCRIPT + self.WORK, "tool")
        self.assertEqual(code, 0)
        self.assertRegex(seen, r"\rtool: working [|] \d+ s")
        self.assertRegex(seen, r"\rtool: working [/] \d+ s")
        self.assertRegex("\n".join(left(seen)), r"^tool: halfway\ntool: \d+$")

    def test_file(self):
        code, said = in_file("sh", "-c", SCRIPT + self.WORK, "tool")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"^tool: halfway\ntool: \d+\n$")

    def test_failure(self):
        """Its message is the last line."""
        work = "set -e; trap end_turning EXIT; begin_turning working; sleep 0.3; " \
               "echo no room >&2; exit 3"
        code, seen = on_terminal("sh", "-c", SCRIPT + work, "tool")
        self.assertEqual(code, 3)
        self.assertTrue(seen.endswith(DELETE_LINE), seen)

    def test_reader_does_not_wait(self):
        """Of a pipe that the script writes its result to, when it has ended in whatever way."""
        work = SCRIPT + "begin_turning working; echo result"
        code, seen = on_terminal("sh", "-c", f"echo got $(sh -c '{work}')", "tool")
        self.assertEqual(code, 0)
        self.assertIn("got result", seen)


class Lab(unittest.TestCase):
    WORK = LAB + """
with progress.step("outer"):
    with progress.step("inner"):
        time.sleep(0.8)
        progress.say("halfway")
        time.sleep(0.3)
    time.sleep(0.3)
"""

    # As on a busy machine, where other threads run between the end of a step and its line.
    SLOW = """
say = progress.say
def slow(text):
    time.sleep(0.5)
    say(text)
progress.say = slow
"""

    def test_terminal(self):
        for pace in ("", self.SLOW):
            with self.subTest(pace=pace):
                self.check_terminal(self.WORK.replace(LAB, LAB + pace))

    def check_terminal(self, work):
        code, seen = on_terminal(sys.executable, "-c", work)
        self.assertEqual(code, 0)
        for words in ("inner |", "outer "):
            self.assertIn(f"{DELETE_LINE}lab: {words}", seen)
        # While there is an inner step, the line is not the outer one's.
        inner = seen.partition("lab: inner")[2].partition("inner: done")[0]
        self.assertNotIn("lab: outer", inner)
        self.assertEqual([re.sub(r"\d", "n", line) for line in left(seen)],
                         ["lab: halfway", "lab: inner: done in n s", "lab: outer: done in n s"])

    def test_file(self):
        code, said = in_file(sys.executable, "-c", self.WORK)
        self.assertEqual((code, sorted(re.sub(r"\d", "n", said).splitlines())),
                         (0, ["lab: halfway", "lab: inner ...", "lab: inner: done in n s",
                              "lab: outer ...", "lab: outer: done in n s"]))

    def test_short(self):
        """A step that takes no time says nothing."""
        work = LAB + "progress.PATIENCE = 600\nwith progress.step('short'):\n    pass\n"
        self.assertEqual(in_file(sys.executable, "-c", work), (0, ""))
        code, seen = on_terminal(sys.executable, "-c", work)
        self.assertEqual((code, left(seen)), (0, []))

    def test_nowhere(self):
        """What cannot be said stops nothing."""
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([sys.executable, "-c", f"{self.WORK}print('went on')"], text=True,
                                  stdout=subprocess.PIPE, stderr=full, check=False)
        self.assertEqual(done.stdout, "went on\n")


if __name__ == "__main__":
    unittest.main()
