#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs of perftest `make test` chooses (tests/vm/perftest.py); none is run."""

import collections
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "vm"))
import perftest  # noqa: E402 pylint: disable=wrong-import-position
from ternlab.errors import LabError  # noqa: E402 pylint: disable=wrong-import-position

MOST = 80  # a run takes more than a second


class Choice(unittest.TestCase):
    def runs(self, every_cell):
        """The runs of each test, of which choices are those of one run of the scenario."""
        of_test = {}
        with mock.patch.object(perftest.programs, "EVERY_CELL", every_cell), \
                mock.patch.object(perftest.Perftest, "tried", set(), create=True):
            for name in unittest.defaultTestLoader.getTestCaseNames(perftest.Perftest):
                test = perftest.Perftest(name)
                test.hosts = [mock.Mock(), mock.Mock()]
                with mock.patch.object(perftest.Perftest, "each",
                                       lambda self, *runs: of_test.update(
                                           {name: self.chosen(runs)})):  # noqa: B023
                    getattr(test, name)()
        return of_test

    def test_each_program_and_option_is_chosen(self):
        everything, chosen = self.runs(True), self.runs(False)
        self.assertEqual(everything.keys(), chosen.keys())

        def all_parts(of_test):
            return set().union(*(perftest.parts(run) for runs in of_test.values() for run in runs))

        self.assertEqual(all_parts(everything), all_parts(chosen))
        for name, runs in chosen.items():
            self.assertTrue(runs, name)
            self.assertLessEqual(set(runs), set(everything[name]))
        self.assertLessEqual(sum(map(len, chosen.values())), MOST)
        self.assertGreater(sum(map(len, everything.values())), 2 * MOST)

    def test_no_option_occurs_twice(self):
        """Nor does a run give one that the scenario gives to all."""
        host = mock.Mock(rdma_device=lambda: "tern0", gid_index=lambda *_: 3)
        common = perftest.Perftest().patient(host)
        for run in {run for runs in self.runs(True).values() for run in runs}:
            program, _, options = run.partition(" ")
            perftest.pair.check_options(f"{program} {common} {options}")
        with self.assertRaisesRegex(LabError, "-u occurs twice"):
            perftest.pair.check_options(f"strace -f -f ib_write_bw {common} -D 4 -u 20 --D")

    def test_runs_are_repeated(self):
        """TERN_TIMES repeats each run of its test, whether every cell is asked for or not."""
        times, name = 25, "test_events_of_many_queue_pairs"
        for every_cell, cells in ((False, 4), (True, 8)):
            with mock.patch.object(perftest, "TIMES", times):
                repeated = self.runs(every_cell)[name]
            counts = collections.Counter(repeated)
            self.assertEqual(len(counts), cells)
            self.assertEqual(set(counts.values()), {times})


if __name__ == "__main__":
    unittest.main()
