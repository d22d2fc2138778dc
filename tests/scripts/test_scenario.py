#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a signal and a timeout leave of a scenario, tests that it does not have
(tests/vm/report.py), and threads that its guests have left blocked (tests/vm/scenario.py)."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "vm"))

import scenario  # noqa: E402 pylint: disable=wrong-import-position
START = f"""
import os
import signal
import sys
import unittest
sys.path[:0] = ["{TESTS}/vm", "{TESTS}/../scripts"]
import report

"""
SCENARIO = START + """
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

# Whoever runs this may have it ignored (nohup, a shell in the background).
signal.signal(signal.{name}, {handler})
report.main()
"""


TWO = START + """
class Two(unittest.TestCase):
    def test_1(self):
        print("ran")

    def test_2(self):
        print("ran")

report.main()
"""


# Its first test fails, its second one never ends.
HANGS = START + """
import pathlib
import time

class Scenario(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        report.COST.logs.append(pathlib.Path("{logs}"))
        cls.addClassCleanup(cls.take_down)

    @classmethod
    def take_down(cls):
        print("lab is down")
        if {cleanup_hangs}:
            time.sleep(600)

    def test_1(self):
        self.fail("the first has failed")

    def test_2(self):
        while True:
            time.sleep(600)

report.main()
"""


class Report(unittest.TestCase):
    def scenario(self, name):
        """A name, of which nothing stays behind."""
        scenario = f"vm.{name}-{os.getpid()}"
        build = TESTS.parent / "build"
        self.addCleanup(shutil.rmtree, build / "failed" / scenario, True)
        self.addCleanup((build / f"costs/{scenario}.json").unlink, True)
        self.failed = build / "failed" / scenario
        return scenario


class Signals(Report):
    def test_in_a_test(self):
        """The tests end, and labs are taken down."""
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "scenario.py")
                script.write_text(SCENARIO.format(
                    name=name, handler="signal.default_int_handler"
                    if name == "SIGINT" else "signal.SIG_DFL"), encoding="ascii")
                scenario = self.scenario("signals")
                done = subprocess.run(
                    [sys.executable, "-B", script], capture_output=True, text=True, check=False,
                    env={**os.environ, "TERN_SCENARIO": scenario, "TERN_STACK": ""})
                code = getattr(signal, name)
                self.assertIn(done.returncode, (128 + code, -code), done.stderr)
                self.assertIn("lab is down", done.stdout)
                self.assertNotIn("went on", done.stdout)
                self.assertIn("Scenario.test_1", (self.failed / "repeat").read_text("utf-8"))


class Budgets(Report):
    def test_budgets_are_of_this_machine(self):
        """TERN_BUDGET has seconds of the reference machine, where a guest starts in 1.5 seconds."""
        for start, budget in ((1, 50), (1.5, 50), (6, 200)):
            with self.subTest(start), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "scenario.py")
                script.write_text(TWO.replace(
                    "import report", f"import report\nreport.pace.measure({start})"),
                    encoding="ascii")
                scenario = self.scenario("budgets")
                subprocess.run([sys.executable, "-B", script], capture_output=True, check=True,
                               env={**os.environ, "TERN_SCENARIO": scenario, "TERN_STACK": "",
                                    "TERN_BUDGET": "50"})
                cost = json.loads((TESTS.parent / f"build/costs/{scenario}.json").read_bytes())
                self.assertAlmostEqual(cost["budget"], budget)


class Timeouts(Report):
    """Of tests that hang: CTest's timeout is too late, as it kills."""

    def run_until(self, folder, cleanup_hangs):
        """Runs a scenario until its timeout, and kills it if it goes on."""
        logs = pathlib.Path(folder, "lab")
        logs.mkdir()
        (logs / "host1.log").write_text("console", encoding="ascii")
        script = pathlib.Path(folder, "scenario.py")
        script.write_text(HANGS.format(logs=logs, cleanup_hangs=cleanup_hangs), encoding="ascii")
        with subprocess.Popen(
                [sys.executable, "-B", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, env={**os.environ, "TERN_SCENARIO": self.scenario("timeouts"),
                                "TERN_STACK": "", "TERN_TIMEOUT": "3"}) as scenario:
            try:
                return scenario.communicate(timeout=15 if cleanup_hangs else 60)[0], \
                    scenario.returncode
            except subprocess.TimeoutExpired:
                scenario.kill()
                return scenario.communicate()[0], None

    def check(self, said):
        self.assertIn("still runs after 3 s", said)
        self.assertIn("lab is down", said)
        self.assertRegex(said, r"line \d+ in test_2\b")
        repeat = (self.failed / "repeat").read_text("utf-8")
        self.assertIn("Scenario.test_1 Scenario.test_2", repeat)
        self.assertEqual((self.failed / "lab/host1.log").read_text("ascii"), "console")
        self.assertIn("still runs", (self.failed / "output.log").read_text("utf-8"))

    def test_a_test_that_hangs(self):
        with tempfile.TemporaryDirectory() as folder:
            said, code = self.run_until(folder, False)
        self.assertEqual(code, 128 + signal.SIGTERM, said)
        self.assertIn("the first has failed", said)
        self.check(said)

    def test_a_cleanup_that_hangs(self):
        with tempfile.TemporaryDirectory() as folder:
            said, code = self.run_until(folder, True)
        self.assertIsNone(code, said)
        self.check(said)


class Names(Report):
    """Of tests that are asked for."""

    def run_tests(self, text, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "scenario.py")
            script.write_text(text, encoding="ascii")
            return subprocess.run(
                [sys.executable, "-B", script, *arguments], capture_output=True, text=True,
                check=False, env={**os.environ, "TERN_SCENARIO": self.scenario("names"),
                                  "TERN_STACK": ""})

    def test_names(self):
        """A name that no test has is an error, also beside one that a test has."""
        self.assertEqual(self.run_tests(TWO, "-k", "test_1", "-k", "test_2").returncode, 0)
        done = self.run_tests(TWO, "-k", "test_1", "-k", "test_3")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("there is no test *test_3*", done.stderr)
        self.assertNotIn("ran", done.stdout)

    def test_none(self):
        done = self.run_tests(START + "report.main()\n")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("there is no test *", done.stderr)


class Blocked(unittest.TestCase):
    """Threads of a guest, as ps shows them."""

    def check(self, *answers):
        """The check of a host whose ps gives the last answer again and again."""
        threads, hosts = list(answers), [types.SimpleNamespace(name="host1", run=None)]

        def run(command, **_):
            out = "where it waits\n" if command == "cat /proc/12/stack" else \
                threads.pop(0) if len(threads) > 1 else threads[0]
            return types.SimpleNamespace(out=out)

        def wait_until(condition, *_):
            return any(condition() for _ in range(3))

        hosts[0].run = run
        guests = type("Guests", (scenario.Scenario,), {
            "lab": types.SimpleNamespace(each=lambda action: [action(host) for host in hosts])})
        with unittest.mock.patch("scenario.wait_until", wait_until):
            guests.check_blocked()

    def test_blocked(self):
        idle, blocked = "I      7 kworker/0:1 worker_thread\n", "D     12 umount nfs_wait\n"
        self.check(idle)
        self.check(idle + blocked, idle)
        with self.assertRaisesRegex(AssertionError, "host1.*\n.*umount.*\nwhere it waits"):
            self.check(idle + blocked)


if __name__ == "__main__":
    unittest.main()
