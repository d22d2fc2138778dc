#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a signal leaves of a scenario (tests/vm/report.py)."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SCENARIO = """
import os
import signal
import sys
import unittest
sys.path[:0] = ["{tests}/vm", "{tests}/../scripts"]
import report

class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(print, "lab is down")

class Scenario(Base):
    def test_1(self):
        with self.subTest("part"):
            os.kill(os.getpid(), signal.{name})

    def test_2(self):
        print("went on")

report.main()
"""


class Signals(unittest.TestCase):
    def test_in_a_test(self):
        """The tests end, and labs are taken down."""
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "scenario.py")
                script.write_text(SCENARIO.format(tests=TESTS, name=name), encoding="ascii")
                scenario = f"vm.signals-{os.getpid()}"
                self.addCleanup(shutil.rmtree, TESTS.parent / "build/failed" / scenario, True)
                done = subprocess.run(
                    [sys.executable, "-B", script], capture_output=True, text=True, check=False,
                    env={**os.environ, "TERN_SCENARIO": scenario, "TERN_STACK": ""})
                code = getattr(signal, name)
                self.assertIn(done.returncode, (128 + code, -code), done.stderr)
                self.assertIn("lab is down", done.stdout)
                self.assertNotIn("went on", done.stdout)


if __name__ == "__main__":
    unittest.main()
