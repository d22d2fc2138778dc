#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tern-sim with the examples, and with files that are wrong.

    test_program.py TERN_SIM [unittest's options]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = sys.argv.pop(1)


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def result(self, scenario, *options):
        """What it prints, and its JSON as text and as a value."""
        file = self.folder / "result.json"
        done = run(scenario, "--json", file, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = file.read_text(encoding="utf-8")
        return done.stdout, text, json.loads(text)

    def example(self, name):
        """The result of an example, which is the same each time."""
        first, again = (self.result(TOP / "examples" / name) for _ in range(2))
        self.assertEqual(first, again)
        for flow in first[2]["flows"]:
            self.assertEqual(flow["status"], 0)
            self.assertGreater(flow["messages"], 0)
        return first[2]

    def test_two_hosts(self):
        result = self.example("two-hosts.toml")
        self.assertGreater(result["flows"][0]["rate"], 90e9)

    def test_incast(self):
        result = self.example("incast.toml")
        self.assertGreater(result["fairness"], 0.99)
        self.assertEqual(sum(queue["dropped"] for queue in result["queues"]), 0)
        self.assertEqual(sum(switch["pfc_dropped"] for switch in result["switches"]), 0)
        self.assertGreater(sum(sum(end["pauses_sent"]) for link in result["links"]
                               for end in link), 0)

    def test_leaf_spine(self):
        result = self.example("leaf-spine.toml")
        self.assertEqual(len(result["flows"]), 8 * 7)
        self.assertGreater(sum(end["lost"] for link in result["links"] for end in link), 0)

    def test_lab_examples(self):
        """What the lab brings up, with flows that take the links."""
        for name, rate in (("lab-two-hosts", 2 * 500e6), ("lab-incast", 200e6),
                           ("lab-leaf-spine", 8 * 200e6)):
            rates = [flow["rate"] for flow in self.example(f"{name}.toml")["flows"]]
            self.assertGreater(sum(rates), 0.9 * rate, name)
            self.assertLess(sum(rates), rate, name)

    def test_faults(self):
        """Each rule acts once, where and on what the file says."""
        result = self.example("faults.toml")
        self.assertEqual([(rule["matched"], rule["hits"]) for rule in result["rules"]],
                         [(1, 1), (10, 1), (15, 1), (1, 1), (1, 1)])
        self.assertEqual([(each["action"], each["link"], each["opcode"])
                          for each in result["faults"]],
                         [("drop", "s1:s2", "RC_WRITE_MIDDLE"), ("count", "s1:a", "RC_NAK"),
                          ("drop", "s2:s1", "RC_ACK"), ("mark", "s2:b", "RC_WRITE_FIRST"),
                          ("count", "s1:a", "CNP")])
        self.assertEqual(result["flows"][0]["messages"], 20)

    def thousand_cards(self, duration, flow):
        """Ten leaves with a hundred hosts each, which all write to hosts of the next leaf. Returns
        the flows of the result; flow: more keys of each [[flow]]."""
        leaves, hosts = 10, 100
        text = [f'duration = "{duration}"']
        text += [f'[[switch]]\nname = "spine{n}"' for n in range(1, 5)]
        for leaf in range(1, leaves + 1):
            text += [f'[[switch]]\nname = "leaf{leaf}"',
                     f'[[host]]\nname = "h{leaf}x"\ncount = {hosts}',
                     f'[[link]]\nends = ["h{leaf}x*", "leaf{leaf}"]\nrate = "25 Gb/s"',
                     f'[[link]]\nends = ["leaf{leaf}", "spine*"]\nrate = "400 Gb/s"']
            text += [f'[[flow]]\nfrom = "h{leaf}x{host}"\nto = "h{leaf % leaves + 1}x{host}"\n'
                     f'{flow}' for host in range(1, hosts + 1)]
        scenario = self.folder / "thousand.toml"
        scenario.write_text("\n".join(text), encoding="ascii")
        return self.result(scenario)[2]["flows"]

    def test_thousand_cards(self):
        for flows, duration, keys in ((1000, "200 us", 'size = "16 KiB"'),
                                      (10_000, "200 us", 'size = "1 KiB"\ndepth = 1\nqps = 10')):
            with self.subTest(flows=flows):
                found = self.thousand_cards(duration, keys)
                self.assertEqual(len(found), flows)
                self.assertEqual({flow["status"] for flow in found}, {0})
                self.assertGreater(min(flow["messages"] for flow in found), 0)

    def test_plots(self):
        done = run(TOP / "examples/incast.toml", "--plot", self.folder)
        self.assertEqual((done.returncode, done.stdout.count("Gb/s") > 0), (0, True), done.stderr)
        for name in ("rates", "queues", "cnps"):
            self.assertIn("</svg>", (self.folder / f"{name}.svg").read_text(encoding="utf-8"))

    def test_another_seed(self):
        scenario = TOP / "examples/leaf-spine.toml"
        self.assertNotEqual(self.result(scenario, "--seed", 1)[1],
                            self.result(scenario, "--seed", 2)[1])

    def test_wrong_file(self):
        file = self.folder / "bad.toml"
        file.write_text("duration = '1 ms'\nhost = [{ name = 'b' }]\n"
                        "[[link]]\nends = ['a', 'tor']\n", encoding="utf-8")
        done = run(file)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"tern-sim: {file}:4: link.ends: "
                                      'there is no host or switch "a"\n')
        self.assertEqual(done.stdout, "")

    def test_wrong_words(self):
        for words in [(), ("a", "b"), ("a", "--seed", "x"), ("a", "--no-such-option")]:
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("usage", done.stderr)

    def test_a_place_that_cannot_be_written(self):
        done = run(TOP / "examples/two-hosts.toml", "--json", self.folder / "none/result.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)

    def test_output_that_cannot_be_written(self):
        for words, place in ((), "standard output"), (("--json", "/dev/full"), "/dev/full"):
            with self.subTest(place), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, TOP / "examples/two-hosts.toml", *words],
                                      stdout=subprocess.DEVNULL if words else full,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"tern-sim: {place}: cannot write\n", done.stderr)

    def test_a_plot_that_cannot_be_written(self):
        for name in ("rates.dat", "queues.gnuplot"):
            with self.subTest(name):
                folder = self.folder / name
                (folder / name).mkdir(parents=True)
                done = run(TOP / "examples/two-hosts.toml", "--plot", folder)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"tern-sim: {folder}: cannot write\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
