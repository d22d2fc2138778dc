#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The soak, with a program in place of the simulation."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

# Ends at the first seed that fails; notes each that it is asked for.
PROGRAM = """#!/bin/sh
test=${1#--gtest_filter=} seed=$3 end=$(($3 + $5))
while [ $seed -lt $end ]; do
    echo "$test $seed" >>%s/ran
    [ "$test $seed" != "Traffic.Faults 1007" ] || { echo "it is broken"; exit 1; }
    seed=$((seed + 1))
done
"""


def load():
    loader = importlib.machinery.SourceFileLoader("soak", str(TOP / "scripts/soak"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    loader.exec_module(module)
    return module


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tern-soak-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = self.folder / "tests/sim/test_sim"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM % self.folder, encoding="ascii")
        program.chmod(0o755)
        self.soak = load()
        self.soak.STATE, self.soak.FAILED = self.folder / "state.json", self.folder / "failed"

    def turn(self):
        """A run of one turn; what it found, and its lines."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            fine = self.soak.Soak().run(0, 2, [self.folder], [])
        return fine, out.getvalue()

    def test_a_failing_seed_prints_its_command_and_does_not_end_the_run(self):
        fine, out = self.turn()
        self.assertFalse(fine)
        self.assertIn("1 failures", out)
        self.assertIn(f"soak: failed: {self.folder}/tests/sim/test_sim "
                      "--gtest_filter=Traffic.Faults --seed 1007 --seeds 1\n", out)
        self.assertEqual((self.folder / "failed/Traffic.Faults-1007.log").read_text("ascii"),
                         "it is broken\n")
        ran = (self.folder / "ran").read_text("ascii").splitlines()
        seeds = range(self.soak.FIRST_SEED, self.soak.FIRST_SEED + self.soak.BATCH)
        self.assertLessEqual({f"{test} {seed}" for test in self.soak.TESTS for seed in seeds},
                             set(ran))

    def test_the_next_run_goes_on(self):
        self.turn()
        (self.folder / "ran").unlink()
        fine, out = self.turn()
        self.assertTrue(fine, "what failed before is not this run's")
        self.assertIn(f"({2 * self.soak.BATCH * len(self.soak.TESTS)} in all)", out)
        ran = (self.folder / "ran").read_text("ascii").splitlines()
        self.assertEqual(min(int(line.split()[1]) for line in ran),
                         self.soak.FIRST_SEED + self.soak.BATCH)

    def test_all_tests_are_in_the_simulation(self):
        cmake = (TOP / "tests/sim/CMakeLists.txt").read_text(encoding="ascii")
        for test in self.soak.TESTS:
            self.assertIn(f"tern_add_seeds({test} ", cmake)


if __name__ == "__main__":
    unittest.main()
