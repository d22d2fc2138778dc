#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of `make report`, of results that are written here."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PLOT = '<svg xmlns="http://www.w3.org/2000/svg"/>'


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def put(self, name, contents):
        path = self.build / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents if isinstance(contents, str) else json.dumps(contents),
                        encoding="utf-8")

    def run_it(self, folder=None):
        return subprocess.run([TOP / "scripts/report", "--build", folder or self.build],
                              capture_output=True, text=True, check=False)

    def page(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip()).read_text(encoding="utf-8")

    def test_nothing_yet(self):
        page = self.page()
        for command in ("make bench", "make bench-apps", "make bench-fabric", "make test",
                        "make fuzz", "make soak"):
            self.assertIn(f"<code>{command}</code>", page)
        self.assertIn("<td>test_qpex</td>", page)  # of docs/conformance-bookworm.md

    def test_results(self):
        self.put("bench/table.txt", "ib_write_bw <64 KiB> 38476")
        self.put("bench/bandwidth.svg", PLOT)
        self.put("costs/vm.interop.json", {"tests": 4, "failed": 1, "seconds": 61.4,
                                           "guests_cpu": 80, "tables": ["from rxe  ok"]})
        self.put("costs/vm.wire.json", {"tests": 3, "failed": 0, "seconds": 5, "guests_cpu": 4,
                                        "tables": []})
        self.put("fuzz/state.json", {"guest": {"executions": 7000, "seconds": 9, "edges": 321,
                                               "found": 0}})
        self.put("soak/state.json", {"turns": 2, "seeds": 500, "scenarios": 1,
                                     "failed": ["test_sim --seed 1007"]})
        page = self.page()
        for expected in ("ib_write_bw &lt;64 KiB&gt; 38476", "data:image/svg+xml;base64,PHN2Zy",
                         '<tr class="bad"><td>vm.interop</td><td>4</td><td>1</td><td>61</td>',
                         "<tr><td>vm.wire</td>", "from rxe  ok", "<td>7000</td><td>9</td>",
                         '<tr class="bad"><td>500</td>', "test_sim --seed 1007"):
            self.assertIn(expected, page)
        contents = re.findall(r'<li><a href="#(\d)">([^<]*)</a>(.*)</li>', page)
        self.assertEqual([(title.split()[0], more) for _, title, more in contents],
                         [("Tern", ""), ("Scenarios", ", with failures"), ("Programs,", ""),
                          ("rdma-core&#x27;s", ""), ("Fuzzers", ""), ("Soak", ", with failures")])
        for number, title, _ in contents:
            self.assertIn(f'<h2 id="{number}">{title}</h2>', page)
        self.assertFalse(re.search(r'(src|href)="http', page), "it needs a network")

    def test_turns(self):
        """Of a stress test each turn has its rows."""
        for turn, failed in ((1, 0), (2, 1)):
            self.put(f"costs/turn{turn}/vm.wire.json", {"tests": 3, "failed": failed, "seconds": 5,
                                                        "guests_cpu": 4, "tables": []})
        page = self.page()
        self.assertIn("<tr><td>turn1/vm.wire</td>", page)
        self.assertIn('<tr class="bad"><td>turn2/vm.wire</td>', page)

    def test_bad_input(self):
        done = self.run_it("/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^report: /nowhere is not a folder.*\n$")
        self.put("soak/state.json", "{")
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^report: a result in \S+ cannot be read.*\n$")


if __name__ == "__main__":
    unittest.main()
