# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario leaves behind: what it cost, and, if it fails, all that tells why in one folder.

CTest names a scenario in TERN_SCENARIO; one that runs by itself has its file's name. `make
stress-test` runs each scenario several times and names the turn in TERN_TURN: each turn has folders
of its own, so that a turn that passes does not remove what a turn that failed has left.
"""

import faulthandler
import fnmatch
import json
import os
import pathlib
import shlex
import shutil
import signal
import sys
import threading
import time
import unittest

from ternlab import pace, paths, stack
from ternlab.channel import Channel
from ternlab.errors import LabError
from ternlab.process import exit_on_signals

NAME = os.environ.get("TERN_SCENARIO", f"vm.{pathlib.Path(sys.argv[0]).stem}")
TURN = os.environ.get("TERN_TURN", "")
FAILED = paths.BUILD / "failed" / TURN / NAME
COSTS = paths.BUILD / "costs" / TURN
SETTINGS = ("TERN_STACK", "TERN_WIRE", "TERN_CELLS", "TERN_TEST_DEVICE")


class Costs:
    """Where a scenario's time goes."""

    def __init__(self):
        self.begun = time.monotonic()
        self.starting = self.guests_cpu = 0.0
        self.logs = []
        self.tables = []
        self.parts = {}  # seconds, and those of the guests' CPUs, by test

    @staticmethod
    def clocks(lab):
        """Returns the time, and the CPU time that the lab's hosts have taken so far."""
        return time.monotonic(), sum(host.process.cpu_time() for host in lab.hosts)

    def tested(self, name, lab, before):
        """Notes what a test has cost. BEFORE is what clocks() returned before the test."""
        # A host that the test has restarted is another process, so the sum may have become less.
        self.parts[name] = [max(0, now - then) for now, then in zip(self.clocks(lab), before)]

    def ending(self, lab):
        """While its processes still are there to ask."""
        self.guests_cpu += self.clocks(lab)[1]

    def save(self, result):
        COSTS.mkdir(parents=True, exist_ok=True)
        cost = {"tests": result.testsRun, "failed": len(result.failures) + len(result.errors),
                "tables": [str(table) for table in self.tables if table],
                "seconds": time.monotonic() - self.begun,
                "starting": self.starting, "commands": Channel.commands,
                "guests_cpu": self.guests_cpu, "parts": self.parts,
                "budget": float(os.environ.get("TERN_BUDGET", "0")) * pace.slowness()}
        (COSTS / f"{NAME}.json").write_text(json.dumps(cost), encoding="ascii")


COST = Costs()


class Tee:
    """A stream that is kept in a file, too."""

    def __init__(self, stream, log):
        self._stream, self._log = stream, log

    def write(self, text):
        self._log.write(text)
        return self._stream.write(text)

    def flush(self):
        self._log.flush()
        self._stream.flush()

    def isatty(self):
        """No line of it turns (ternlab/progress.py)."""
        return False


class Result(unittest.TextTestResult):
    """A result that is known while the tests run, and knows which test has begun last."""

    now = None  # the result of this program

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Result.now = self
        self.last = None  # until all tests have ended

    def startTest(self, test):
        super().startTest(test)
        self.last = test

    def to_repeat(self):
        """The tests that failed, and the one in which the run has ended early."""
        return [test for test, _ in self.failures + self.errors] + [self.last] * bool(self.last)


class Runner(unittest.TextTestRunner):
    resultclass = Result


def repeat_command(failed):
    """What a person types to see these failures again."""
    settings = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    tests = sorted({getattr(test, "test_case", test).id().partition(".")[2]
                    for test in failed if isinstance(
                        getattr(test, "test_case", test), unittest.TestCase)})
    script = os.path.relpath(pathlib.Path(sys.argv[0]).resolve(), paths.CHECKOUT)
    return " ".join([*settings, "/usr/bin/python3", "-B", script, "-v",
                     *map(shlex.quote, tests)])


def collect(output):
    """The logs of all its labs, with what they captured, what it printed, and how to repeat it."""
    command = repeat_command(Result.now.to_repeat() if Result.now else [])
    (FAILED / "repeat").write_text(f"cd {paths.CHECKOUT}\n{command}\n", encoding="utf-8")
    for logs in filter(pathlib.Path.is_dir, COST.logs):
        shutil.copytree(logs, FAILED / logs.name, dirs_exist_ok=True)
    print(f"\n{NAME} failed: logs and captures are in {FAILED}\nto repeat it: {command}",
          file=output, flush=True)


def watch_timeout():
    """At CTest's timeout CTest kills this program with SIGKILL, and then nothing would be left of
    it. So a thread collects at TERN_TIMEOUT, which is earlier (CMakeLists.txt), and ends the tests.
    It collects first, as the tests may not end. Returns its timer."""
    seconds = float(os.environ.get("TERN_TIMEOUT", "0"))

    def expire():
        try:
            print(f"\n{NAME} still runs after {seconds:.0f} s, so it ends. Its threads:",
                  file=sys.stderr, flush=True)
            with open(FAILED / "threads.log", "w+", encoding="utf-8") as log:
                faulthandler.dump_traceback(log)
                log.seek(0)
                print(log.read(), file=sys.stderr)
            collect(sys.stderr)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    watchdog = threading.Timer(seconds, expire)
    watchdog.daemon = True
    if seconds:
        watchdog.start()
    return watchdog


class Ended(KeyboardInterrupt):
    """A signal has ended the tests. unittest takes any other exception for a test's failure."""


class Program(unittest.TestProgram):
    """unittest.main() that refuses to run nothing, or to leave out a name of -k: nobody would
    notice that a test has another name now."""

    def runTests(self):
        names = [test.id() for test in each_test(self.test)]
        for pattern in self.testNamePatterns or ["*"]:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
                sys.exit(f"{NAME}: there is no test {pattern}")
        super().runTests()


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def run_tests():
    """Returns whether they passed. unittest does no cleanups if a signal ends it: here those of
    classes take down labs. What the tests leave is collected however they end."""
    exit_on_signals(Ended)
    watchdog = watch_timeout()
    passed = False
    try:
        result = Program(exit=False, testRunner=Runner).result
        result.last = None
        passed = result.wasSuccessful()
        COST.save(result)
        return passed
    except KeyboardInterrupt:
        if Result.now:
            Result.now.printErrors()
        for case in unittest.TestCase.__subclasses__():
            clean_up(case)
        raise
    finally:
        watchdog.cancel()
        if not passed:
            collect(sys.stderr)


def clean_up(case):
    """Does the class cleanups of CASE after those of the classes that are derived from it."""
    for derived in case.__subclasses__():
        clean_up(derived)
    case.doClassCleanups()


def main():
    """unittest's, with this around it, on the stack's Debian."""
    try:
        stack.enter()
    except LabError as error:
        sys.exit(f"{NAME}: {error}")
    shutil.rmtree(FAILED, ignore_errors=True)
    FAILED.mkdir(parents=True)
    with open(FAILED / "output.log", "w", encoding="utf-8") as log:
        sys.stdout, sys.stderr = Tee(sys.stdout, log), Tee(sys.stderr, log)
        try:
            passed = run_tests()
        except Ended as ended:
            sys.exit(ended.args[0])
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    if passed:
        shutil.rmtree(FAILED)
    sys.exit(not passed)
