#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""DCQCN between simulated cards, against two models of it.

    test_dcqcn.py TERN_SIM [unittest's options]

The fluid model is that of Zhu et al., Congestion Control for Large-Scale RDMA Deployments, 2015,
section 5.1. In its fixed point all rates are equal, and the queue is as long as marks the share of
packets at which increase and decrease cancel each other. tests/model/dcqcn_packets.py follows the
paper's section 3.1 packet by packet: it tells how far chance takes the mean from that point.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "model"))
import dcqcn_packets  # noqa: E402

PROGRAM = sys.argv.pop(1)

LINE = 40e9  # bits per second
MARKED_FROM, MARKED_TO, MARKED_SHARE = 5e3, 200e3, 0.01
PRIORITIES, LOSSLESS = 8, 3
CNP_INTERVAL, ALPHA_INTERVAL, INCREASE_INTERVAL = 50e-6, 55e-6, 55e-6  # seconds
BYTE_COUNTER = 10e6
FAST_RECOVERY = 5
ADDITIVE = 40e6  # bits per second
# The maximum difference between the mean queue and the fixed point, as a share of the fixed point,
# by the number of flows. The bar is 25 %. Random marks make the queue swing, and it cannot be
# shorter than empty, so its mean is longer than the queue of the fluid model. With 4 flows the
# algorithm itself exceeds 25 %. Over 3 s and three seeds, the means with 2, 4, 8 and 10 flows are
# 1.22, 1.29, 1.21 and 1.14 times the fixed point. In dcqcn_packets.py, which has neither card nor
# switch, they are 1.24, 1.30, 1.23 and 1.14 times the fixed point.
TOLERANCE = {2: 0.25, 4: 0.35, 8: 0.25, 10: 0.25}
FRAME = 1024 + 14 + 20 + 8 + 12 + 4  # bytes
WIRE_FRAME = FRAME + 24

SCENARIO = """
duration = "{duration}"
warmup = "{warmup}"
sample = "100 us"
mtu = 1024
switch = [{{ name = "tor" }}]
host = [{{ name = "sender", count = {flows} }}, {{ name = "receiver" }}]
[queues]
limit = "16 MB"
[[link]]
ends = ["sender*", "tor"]
rate = "40 Gb/s"
delay = "1 us"
[[link]]
ends = ["receiver", "tor"]
rate = "40 Gb/s"
delay = "1 us"
[[flow]]
from = "sender*"
to = "receiver"
size = "256 KiB"
dscp = 26
"""
DCQCN = """
[ecn]
kmin = "5 KB"
kmax = "200 KB"
pmax = 0.01
[congestion]
algorithm = "dcqcn"
defaults = "sigcomm2015"
"""
PFC = """
[pfc]
priorities = [3]
xoff = "96 KB"
xon = "64 KB"
"""


def surplus(share, flows):
    """Decrease less increase of a rate of 1/flows of the line when that share is marked."""
    rate = LINE / (8 * WIRE_FRAME) / flows  # packets per second
    additive = ADDITIVE / (8 * WIRE_FRAME)
    weight = -math.log1p(-share)

    def within(packets):
        """How likely one of so many packets is marked."""
        return -math.expm1(-weight * packets)

    def per_packet(packets):
        """How often, in packets, so many in a row are not marked."""
        return share * math.exp(-weight * packets) / within(packets)

    by_bytes, by_time = BYTE_COUNTER / FRAME, INCREASE_INTERVAL * rate
    recovery = per_packet(by_bytes) + per_packet(by_time)
    increase = (per_packet(by_bytes) * math.exp(-weight * FAST_RECOVERY * by_bytes)
                + per_packet(by_time) * math.exp(-weight * FAST_RECOVERY * by_time))
    return (within(CNP_INTERVAL * rate) ** 2 * within(ALPHA_INTERVAL * rate)
            - CNP_INTERVAL ** 2 * additive * rate * recovery * increase)


def fixed_point(flows):
    """Bytes in the queue, by bisection."""
    low, high = 1e-9, 0.5
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if surplus(middle, flows) > 0 else (middle, high)
    return MARKED_FROM + low / MARKED_SHARE * (MARKED_TO - MARKED_FROM)


def mean_by_packets(flows):
    """Bytes in the queue, by the model that knows single packets."""
    warmup, end = 30e6, 90e6  # ns
    link = dcqcn_packets.SharedLink(flows, LINE, FRAME, WIRE_FRAME,
                                    (MARKED_FROM, MARKED_TO, MARKED_SHARE), seed=1)
    link.run(warmup)
    return link.run(end) / (end - warmup)


class Dcqcn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def simulate(self, flows, parts, duration="400 ms", warmup="40 ms"):
        file, result = self.folder / "scenario.toml", self.folder / "result.json"
        text = SCENARIO.format(flows=flows, duration=duration, warmup=warmup)
        file.write_text(text + "".join(parts), encoding="ascii")
        done = subprocess.run([PROGRAM, file, "--json", result], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(result.read_text(encoding="ascii"))

    def test_the_model(self):
        """What the authors' figure 11 and the issue say, about."""
        for flows, expected in {2: 20e3, 4: 42e3, 8: 94e3, 10: 123e3}.items():
            self.assertAlmostEqual(fixed_point(flows) / expected, 1, delta=0.1)

    def check_flows(self, flows):
        result = self.simulate(flows, [DCQCN])
        queue, = [each for each in result["queues"]
                  if each["name"] == "tor to receiver" and each["priority"] == 3]
        expected, by_packets = fixed_point(flows), mean_by_packets(flows)
        load = result["links"][flows][1]["load"]
        print(f"{flows} flows: queue {queue['mean_bytes']:.0f} B, by the fluid model "
              f"{expected:.0f}, by packets {by_packets:.0f}; "
              f"fairness {result['fairness']:.4f}, load {load:.4f}")
        self.assertEqual(queue["dropped"], 0)
        self.assertAlmostEqual(queue["mean_bytes"] / by_packets, 1, delta=0.2)
        self.assertAlmostEqual(queue["mean_bytes"] / expected, 1, delta=TOLERANCE[flows])
        self.assertGreaterEqual(result["fairness"], 0.99)
        self.assertGreaterEqual(load, 0.95)

    def test_2_flows(self):
        self.check_flows(2)

    def test_4_flows(self):
        self.check_flows(4)

    def test_8_flows(self):
        self.check_flows(8)

    def test_10_flows(self):
        self.check_flows(10)

    def pauses(self, parts):
        """Pause frames of an incast of 16 that loses nothing. Both ends of each link count the
        same in both directions, and only the lossless priority is paused, by the switch."""
        result = self.simulate(16, parts, "30 ms", "10 ms")
        self.assertEqual(sum(each["dropped"] for each in result["queues"]), 0)
        self.assertEqual(result["switches"][0]["pfc_dropped"], 0)
        sent = 0
        for host, switch in result["links"]:
            for source, target in ((host, switch), (switch, host)):
                for priority in range(PRIORITIES):
                    with self.subTest(source=source["name"], target=target["name"],
                                      priority=priority):
                        count = source["pauses_sent"][priority]
                        # One may be on its way.
                        self.assertIn(count - target["pauses_received"][priority], (0, 1))
                        if source is host or priority != LOSSLESS:
                            self.assertEqual(count, 0)
            sent += switch["pauses_sent"][LOSSLESS]
        return sent

    def test_fewer_pauses(self):
        without, with_it = self.pauses([PFC]), self.pauses([PFC, DCQCN])
        print(f"pause frames: {without} without DCQCN, {with_it} with it")
        self.assertGreater(without, 100)
        self.assertGreaterEqual(without, 10 * with_it)


if __name__ == "__main__":
    unittest.main()
