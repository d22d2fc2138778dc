# SPDX-License-Identifier: GPL-2.0-or-later
"""
Garbage everywhere a guest can write. TERN_QTEST_SEED and TERN_QTEST_STEPS choose
others than the fixed ones.
"""

import os
import random

from machine import HW, Card, CardTest

SEED = int(os.environ.get("TERN_QTEST_SEED", "1"))
STEPS = int(os.environ.get("TERN_QTEST_STEPS", "10000"))
SIZES = (1, 2, 4, 8)
RAM = range(0x100000, 0x130000)


class Fuzz(CardTest):
    def still_works(self):
        self.card.function_level_reset()
        self.card.place()
        self.card.enable()
        self.assertEqual(self.card.query_device()[2], HW.AQ_OK)

    def test_every_register_every_size(self):
        for offset in (*range(0x60), 0x61, 0x100, 0x7fc, 0xff8, 0xffc, 0xffe, 0xfff):
            for size in SIZES:
                if offset + size <= 0x1000:
                    for value in (0, ~0):
                        self.machine.write(size, Card.REGS + offset, value)
                    self.machine.read(size, Card.REGS + offset)
        self.still_works()

    def test_every_doorbell_every_size(self):
        self.card.enable()
        for page in (0, 1, 2047):
            for offset in (*range(0x20), 0x40, 0xff0, 0xff8):
                for size in SIZES:
                    for value in (0, 1, ~0):
                        self.machine.write(size, Card.DOORBELLS + 4096 * page + offset, value)
        self.still_works()

    def test_more_doorbells_than_the_ring_holds(self):
        self.card.enable()
        self.machine.command(f"memset {Card.DOORBELLS:#x} {1 << 20:#x} 0xff")
        self.still_works()

    def test_random(self):
        rng = random.Random(SEED)
        with self.subTest(seed=SEED, steps=STEPS):
            for _ in range(STEPS):
                self.random_step(rng)
            self.still_works()

    def random_value(self, rng):
        return rng.choice((0, 1, ~0, rng.getrandbits(64), rng.getrandbits(8),
                           1 << rng.randrange(64), rng.choice(RAM) & ~0xfff))

    def random_step(self, rng):
        size = rng.choice(SIZES)
        kind = rng.random()
        if kind < 0.4:
            offset = rng.choice((rng.randrange(0x60) & ~3, rng.randrange(0x1000 - size)))
            size = rng.choice((4, size))
            self.machine.write(size, Card.REGS + offset, self.random_value(rng))
        elif kind < 0.5:
            self.machine.read(size, Card.REGS + rng.randrange(0x1000 - size))
        elif kind < 0.7:
            offset = rng.randrange(4096) * 4096 // 2 + 8 * rng.randrange(4)
            self.machine.write(8, Card.DOORBELLS + offset, self.random_value(rng))
        elif kind < 0.8:
            self.machine.write(size, Card.MSIX + rng.randrange(0x1000 - size),
                               self.random_value(rng))
        elif kind < 0.95:
            self.machine.write_memory(rng.choice(RAM), rng.randbytes(rng.randrange(1, 256)))
        elif kind < 0.99:
            self.card.write(2, 0x04, rng.choice((0, 2, 4, 6, 6, 6)))
        else:
            self.card.function_level_reset()
            self.card.place()
            if rng.random() < 0.8:
                self.card.enable()
