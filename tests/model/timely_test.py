#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The card's TIMELY follows the model: the same round-trip times give the same rates within 1 %."""

import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import timely  # noqa: E402

PROGRAM = sys.argv.pop(1)
LINE = 40000  # Mb/s


def rates_of_model(events):
    model = timely.Sender(LINE)
    for event in events:
        if event == 'loss':
            model.loss()
        elif event == 'timeout':
            model.timeout()
        else:
            model.completion(event / 1000)
        yield model.rate


def rates_of_card(events):
    lines = [event if isinstance(event, str) else f'rtt {event}' for event in events]
    script = f'{LINE}\n' + '\n'.join(lines) + '\n'
    done = subprocess.run([PROGRAM], input=script, capture_output=True, text=True, check=True)
    return [int(line) / 1000 for line in done.stdout.split()]


class Trajectory(unittest.TestCase):
    def check(self, events, least=0.0, most=1.0):
        """@events: round-trip times in ns, 'loss' or 'timeout'. @least, @most: how low the rate
        goes, as a share of the line's, so that the script covers what it is meant to."""
        expected, found = list(rates_of_model(events)), rates_of_card(events)
        self.assertEqual(len(found), len(expected))
        for i, (is_, should) in enumerate(zip(found, expected)):
            self.assertLess(abs(is_ - should), 0.01 * should, (i, events[i]))
        self.assertTrue(least <= min(expected) / LINE <= most, min(expected))
        return expected

    def test_no_queue(self):
        self.check([10000] * 100, least=1)

    def test_a_queue_that_stays(self):
        """The fixed point: a rate of additive / (gain * error)."""
        rates = self.check([100000] * 3000, most=0.05)
        self.assertAlmostEqual(rates[-1] / (40 / (819 / 1024 / 32)), 1, delta=0.001)

    def test_a_queue_that_rises_and_falls(self):
        """Slopes up to twice that at which the weight ends."""
        events, time = [], 60000
        for slope in list(range(-10000, 10001, 500)) * 4:
            time = max(time + slope, 51000)
            events.append(time)
        self.check(events, most=0.5)

    def test_above_the_high_threshold(self):
        self.check([600000, 700000, 1000000, 2000000] * 10, most=0.001)

    def test_hyperactive_increase(self):
        """From the least rate back to the line's."""
        rates = self.check(['loss'] * 20 + [20000] * 300, most=0.0001)
        self.assertEqual(rates[-1], LINE)

    def test_losses(self):
        self.check([80000, 'loss', 80000, 90000, 'timeout', 60000, 'timeout', 40000, 30000],
                   most=0.04)

    def test_many_trains(self):
        for seed in range(20):
            chance = random.Random(seed)
            events, time = [], 60000
            for _ in range(2000):
                time = min(max(time + round(chance.gauss(0, 8000)), 20000), 900000)
                events.append(chance.choices([time, 'loss', 'timeout'], [500, 2, 1])[0])
            with self.subTest(seed=seed):
                self.check(events, most=0.1)


if __name__ == '__main__':
    unittest.main()
