#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""TIMELY between simulated cards: flows share a link equally, use it, and keep its queue short.

    test_timely.py TERN_SIM [unittest's options]

Zhu et al., ECN or Delay, CoNEXT 2016, section 4.3, give the fixed point: all rates are equal, and
the round-trip time is that at which a step's increase and its decrease are the same.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)

T_LOW = 50e-6  # seconds
ADDITIVE = 40e6  # bits per second
ERROR_GAIN = 0.8 / 32  # what an error of 1 takes of the rate
HEADERS = 14 + 20 + 8 + 12 + 4
WIRE = 24  # what a frame takes on the wire besides
CARD_STEP = 500e-9  # from an event to the card's next step
COUNTS = 2, 4, 8, 16

SCENARIO = """
duration = "{duration} ms"
warmup = "{warmup} ms"
mtu = {mtu}
switch = [{{ name = "tor" }}]
host = [{{ name = "s", count = {flows} }}, {{ name = "r" }}]
[congestion]
algorithm = "timely"
defaults = "sigcomm2015"
[[link]]
ends = ["[sr]*", "tor"]
rate = "{gbps} Gb/s"
delay = "{delay} us"
"""
FLOW = """
[[flow]]
from = "{sender}"
to = "r"
size = "64 KiB"
depth = {depth}
dscp = 26
start = "{start} ms"
"""
PFC = """
[pfc]
priorities = [3]
"""


class Bottleneck:
    """@flows of 64 KiB messages from as many hosts to one, whose link is as fast as theirs."""

    def __init__(self, flows, gbps, delay=1):
        self.flows, self.gbps, self.delay = flows, gbps, delay
        # At 40 Gb/s large packets save the test's time.
        self.mtu = 1024 if gbps < 40 else 4096
        # A depth of 2 is less than two flows need to fill 40 Gb/s for T_low.
        self.depth = 4 if gbps >= 40 and flows == 2 else 2

    def scenario(self, starts=None, duration=130, warmup=100):
        """@starts: when the flows begin, in ms, by their senders."""
        text = SCENARIO.format(**vars(self), duration=duration, warmup=warmup)
        for sender, start in (starts or {"s*": 0}).items():
            text += FLOW.format(sender=sender, depth=self.depth, start=start)
        return text

    def fixed_point(self):
        """Bytes in the queue."""
        frame = self.mtu + HEADERS
        service = (frame + WIRE) * 8 / self.gbps / 1e9
        rate = frame * 8 / service / self.flows
        round_trip = T_LOW * (1 + ADDITIVE / (ERROR_GAIN * rate))
        # A packet is sent twice, and as long as one is still sent it waits besides the queue.
        without_queue = 4 * self.delay * 1e-6 + 2 * service + 2 * CARD_STEP
        return (round_trip - without_queue) / service * frame


class Timely(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def simulate(self, text):
        file, result = self.folder / "scenario.toml", self.folder / "result.json"
        file.write_text(text, encoding="ascii")
        done = subprocess.run([PROGRAM, file, "--json", result], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(result.read_text(encoding="ascii"))

    def check(self, case, result):
        """Returns the mean length of the queue."""
        queue, = [each for each in result["queues"]
                  if each["name"] == "tor to r" and each["priority"] == 3]
        load = result["links"][case.flows][1]["load"]
        print(f"{case.flows} flows at {case.gbps} Gb/s, links of {case.delay} us: "
              f"load {load:.4f}, fairness {result['fairness']:.4f}, "
              f"queue {queue['mean_bytes']:.0f} B, fixed point {case.fixed_point():.0f}")
        self.assertGreaterEqual(load, 0.95)
        self.assertGreaterEqual(result["fairness"], 0.95)
        self.assertLess(queue["mean_bytes"], 1.15 * case.fixed_point())
        return queue["mean_bytes"]

    def check_lossy(self, gbps, counts, delay):
        """The queues of the switch take 1 MiB, which is half of what 16 flows send at first."""
        for flows in counts:
            case = Bottleneck(flows, gbps, delay)
            with self.subTest(flows=flows):
                length = self.check(case, self.simulate(case.scenario()))
                self.assertGreater(length, 0.85 * case.fixed_point())

    def check_lossless(self, gbps, counts, delay):
        """The switch pauses a sender of which it holds more than 96 KiB."""
        for flows in counts:
            case = Bottleneck(flows, gbps, delay)
            with self.subTest(flows=flows):
                result = self.simulate(case.scenario() + PFC)
                self.check(case, result)
                self.assertEqual(sum(each["dropped"] for each in result["queues"]), 0)

    def test_10g(self):
        self.check_lossy(10, COUNTS, delay=1)

    def test_10g_with_pfc(self):
        self.check_lossless(10, COUNTS, delay=1)

    def test_10g_of_long_links(self):
        self.check_lossy(10, COUNTS, delay=10)
        self.check_lossless(10, COUNTS, delay=10)

    def test_40g(self):
        self.check_lossy(40, COUNTS, delay=1)

    def test_40g_with_pfc(self):
        self.check_lossless(40, COUNTS, delay=1)

    def test_40g_of_long_links(self):
        self.check_lossy(40, COUNTS, delay=10)
        self.check_lossless(40, COUNTS, delay=10)

    def test_a_flow_that_joins(self):
        """It gets its share, though the other one had all."""
        for gbps in 10, 40:
            case = Bottleneck(2, gbps)
            with self.subTest(gbps=gbps):
                self.check(case, self.simulate(case.scenario({"s1": 0, "s2": 50}, 80, 60)))


if __name__ == "__main__":
    unittest.main()
