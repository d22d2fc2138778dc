# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs modules of rdma-core's own test suite in a guest and says what became of each test, a line
of JSON each: pyverbs_suite.py FOLDER --dev DEVICE [--gid INDEX] MODULE...

The suite's runner is for people; reasons and several lines are hard to tell apart in what it
prints, and a crash would take its list along.
"""

import json
import multiprocessing
import sys
import unittest


class Told(unittest.TestResult):
    def tell(self, test, outcome, why=""):
        sys.__stdout__.write(json.dumps([test.id(), outcome, why]) + "\n")
        sys.__stdout__.flush()

    def addSuccess(self, test):
        self.tell(test, "passed")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addFailure(self, test, err):
        self.tell(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.tell(test, "error", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.tell(subtest, "failed", self._exc_info_to_string(err, test))


def main():
    folder = sys.argv.pop(1)
    sys.path[:0] = [folder, f"{folder}/tests"]
    # pylint: disable=import-error,import-outside-toplevel
    from args_parser import parser
    parser.parse_args()
    # The suite passes open files to its child processes, so they need fork(), which is not the
    # default of Python 3.14 any more.
    multiprocessing.set_start_method("fork")
    loader = unittest.defaultTestLoader
    loader.loadTestsFromNames(sys.argv[1:]).run(Told())


if __name__ == "__main__":
    main()
