#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The card's DCQCN follows the model: the same CNPs and bytes give the same rates within 1 %."""

import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import dcqcn  # noqa: E402

PROGRAM = sys.argv.pop(1)
LINE_MBPS = 40000
PACKET = 1024
US, MS = 1000, 1000000


def flow(cnps, end, sends=True):
    """The events until @end of a flow that sends as fast as the model allows, or nothing; with
    CNPs at these times."""
    # The parameter for the initial alpha has ten bits.
    model = dcqcn.ReactionPoint(LINE_MBPS * 1e6, alpha=1023 / 1024)
    events, rates = [], []
    pending = sorted(cnps)
    now, burst = 0, 64 * PACKET
    while now < end:
        now += round(burst * 8e9 / model.rate(now)) if sends else 10 * US
        while pending and pending[0] <= now:
            at = pending.pop(0)
            model.cnp(at)
            events.append(f'{at} cnp')
            rates.append(model.rate(at))
        if sends:
            model.sent(now, burst)
        events.append(f'{now} sent {burst}' if sends else f'{now} rate')
        rates.append(model.rate(now))
    return events, rates


def rates_of_card(events):
    script = f'{LINE_MBPS}\n' + '\n'.join(events) + '\n'
    done = subprocess.run([PROGRAM], input=script, capture_output=True, text=True, check=True)
    return [int(line) * 1000 for line in done.stdout.split()]


class Trajectory(unittest.TestCase):
    def check(self, cnps, end, sends=True, least=0.0, most=1.0):
        """@least, @most: how low the rate goes, as a share of the line's, so that the script
        covers what it is meant to."""
        events, expected = flow(cnps, end, sends)
        found = rates_of_card(events)
        self.assertEqual(len(found), len(expected))
        for event, is_, should in zip(events, found, expected):
            self.assertLess(abs(is_ - should), 0.01 * should, event)
        low = min(expected) / (LINE_MBPS * 1e6)
        self.assertTrue(least <= low <= most, low)

    def test_no_cnp(self):
        self.check([], 1 * MS, least=1)

    def test_one_cnp(self):
        self.check([100 * US], 50 * MS, least=0.49, most=0.51)

    def test_a_train(self):
        """CNPs as often as they may be, then silence: fast recovery and additive increase."""
        self.check([50 * US * i for i in range(1, 40)], 50 * MS, most=0.001)

    def test_recovery_from_the_least_rate(self):
        """Nothing to send, so the timer alone increases the rate."""
        self.check([50 * US * i for i in range(1, 40)], 100 * MS, sends=False, most=0.001)

    def test_hyper_increase(self):
        """Enough bytes for the counter to pass its threshold, too."""
        self.check([50 * US * i for i in range(1, 6)], 300 * MS, most=0.1)

    def test_many_trains(self):
        for seed in range(20):
            chance = random.Random(seed)
            now, cnps = 0, []
            while now < 50 * MS:
                mean = chance.choice([50 * US, 500 * US, 5 * MS])
                now += 50 * US + round(chance.expovariate(1 / mean))
                cnps.append(now)
            with self.subTest(seed=seed):
                self.check(cnps, 50 * MS, most=0.6)


if __name__ == '__main__':
    unittest.main()
