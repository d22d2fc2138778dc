#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/suite keeps and tells of its turns, with one scenario that has no hosts."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

TOP = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = """
import os
import pathlib
import sys
import unittest
sys.path[:0] = ["{top}/tests/vm", "{top}/scripts"]
from ternlab import paths
paths.BUILD = pathlib.Path("{build}")
paths.CHECKOUT = paths.BUILD
import report

class Case(unittest.TestCase):
    def test_turn(self):
        self.assertNotEqual(os.environ["TERN_TURN"], "turn2")

report.main()
"""
TESTS = """add_test(vm.case "{python}" "-B" "{script}")
set_tests_properties(vm.case PROPERTIES LABELS vm ENVIRONMENT "TERN_SCENARIO=vm.case;TERN_STACK=")
foreach(name unit sim qtest)
  add_test(${{name}} sh -c "echo ${{name}} >>{build}/ran")
  set_tests_properties(${{name}} PROPERTIES LABELS ${{name}})
endforeach()
"""


def load():
    loader = importlib.machinery.SourceFileLoader("suite", str(TOP / "scripts/suite"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("suite", loader))
    loader.exec_module(module)
    return module


class Suite(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tern-suite-")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.suite = load()
        self.suite.TOP = self.suite.TESTS = self.build
        self.suite.COSTS, self.suite.FAILED = self.build / "costs", self.build / "failed"


class Budgets(Suite):
    def test_a_scenario_above_its_budget_is_named(self):
        for name, seconds in (("vm.slow", 201), ("vm.quick", 199)):
            (self.build / f"{name}.json").write_text(json.dumps({
                "tests": 1, "seconds": seconds, "starting": 1, "commands": 1, "guests_cpu": 1,
                "parts": {}, "budget": 200}), encoding="ascii")
        self.assertEqual([line for line in self.suite.costs_table(self.build).splitlines()
                          if "budget" in line],
                         ["vm.slow took 201 s, more than its budget of 200 s here"])


class Stress(Suite):
    def test_a_turn_that_passes_keeps_what_an_earlier_one_has_left(self):
        script = self.build / "case.py"
        script.write_text(SCENARIO.format(top=TOP, build=self.build), encoding="ascii")
        (self.build / "CTestTestfile.cmake").write_text(
            TESTS.format(python=sys.executable, script=script, build=self.build), encoding="ascii")
        stale = self.build / "failed/turn5/vm.other"
        stale.mkdir(parents=True)
        self.suite.BUSY_TURNS = (False, True, False)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.dict(os.environ):
            os.environ.pop("TERN_TURN", None)
            status = self.suite.stress()
        self.assertTrue(status)
        self.assertEqual([path.name for path in (self.build / "failed").glob("turn*/*")],
                         ["vm.case"])
        self.assertIn("test_turn", (self.build / "failed/turn2/vm.case/repeat").read_text("utf-8"))
        self.assertRegex(out.getvalue(), "turn 1: passed.*\n"
                         "turn 2, beside two busy processes: FAILED.*\n"
                         "  see failed/turn2/vm.case\nturn 3: passed")
        self.assertEqual((self.build / "ran").read_text("ascii").split(),
                         ["unit", "sim", "qtest"] * 3)
        failed = {turn: json.loads((self.build / f"costs/turn{turn}/vm.case.json").read_bytes())[
            "failed"] for turn in (1, 2, 3)}
        self.assertEqual(failed, {1: 0, 2: 1, 3: 0})


if __name__ == "__main__":
    unittest.main()
