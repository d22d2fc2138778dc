# SPDX-License-Identifier: GPL-2.0-or-later
"""Mappings for DMA that fail.

Linux copies what the card reads and writes through bounce buffers here, as with memory encryption.
They are few, and a program takes the rest of them with memory regions. Every further mapping of the
driver then fails.
"""

import errno
import os

from scenario import CommandError, NETDEV, Options, Scenario, main, pair, wait_until

# Buffers of 2 KiB. The receive rings of a host take about 7,000.
SLOTS = 16384
PORT = 9999
USED = "cat /sys/kernel/debug/swiotlb/io_tlb_used"

# For each line of its input, this program registers regions until no bounce buffer is left. It says
# how many regions it has then, and the error of the last attempts.
GREEDY = b"""
import mmap, os, sys
import pyverbs.enums as e
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

pd = PD(Context(name=sys.argv[1]))
regions, error = [], None
for line in sys.stdin:
    for length in (65536, 4096):
        try:
            while True:
                regions.append(MR(pd, length, e.IBV_ACCESS_LOCAL_WRITE))
        except PyverbsRDMAError as refused:
            error = refused.error_code
    print(len(regions), error, flush=True)
"""


class Mappings(Scenario):
    HOSTS = (Options(kernel_options=f"swiotlb={SLOTS},force"), Options())

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host, cls.peer = cls.hosts
        cls.device = cls.host.rdma_device()
        cls.host.write_file("/tmp/greedy.py", GREEDY)
        cls.set_link("down")
        cls.idle = cls.slots()  # what ib_core has mapped
        cls.set_link("up")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.check_slots)

    def check_slots(self):
        """Every mapping that a test has made has ended."""
        self.set_link("down")
        self.assertTrue(wait_until(lambda: self.slots() == self.idle, 20, 0.2),
                        f"{self.slots()} bounce buffers are in use, {self.idle} at first")
        self.set_link("up")

    @classmethod
    def set_link(cls, state):
        """Receive rings and their mappings exist while the interface is up."""
        cls.host.run(f"ip link set {NETDEV} {state}")
        if state == "up":
            cls.host.configure()

    @classmethod
    def slots(cls):
        return int(cls.host.run(USED).out)

    def dropped(self):
        """Frames that the stack has handed to the driver and that it has dropped."""
        return int(self.host.run(f"cat /sys/class/net/{NETDEV}/statistics/tx_dropped").out)

    def start_greedy(self):
        task = self.host.channel.talk(f"exec python3 -B /tmp/greedy.py {self.device}")
        self.addCleanup(self.end_greedy, task)
        self.take_all(task)
        return task

    def take_all(self, task):
        task.write(b"take\n")
        regions, error = map(int, task.read_line().split())
        self.assertGreater(regions, 100)
        self.assertEqual(error, errno.EIO)  # of Linux's dma_map_sgtable()

    @staticmethod
    def end_greedy(task):
        """Kills the program, which frees all that it has taken."""
        if task.running():
            task.kill()
        task.wait(check=False)

    def pings(self, size):
        """How many of 10 pings are answered, the last one within 2 seconds."""
        said = self.host.run(f"ping -q -i 0.05 -W 2 -c 10 -s {size} {self.peer.ipv4}", check=False)
        return int(said.out.split(" received")[0].rsplit(" ", 1)[-1])

    def test_regions(self):
        """A region of one page is refused where no bounce buffer is left."""
        self.start_greedy()
        refused = self.host.run(f"ibv_rc_pingpong -d {self.device} -s 4096", check=False)
        self.assertNotEqual(refused.code, 0)
        self.assertIn("Couldn't register MR", refused.out + refused.err)

    def test_frames(self):
        """A frame that cannot be mapped is dropped and counted, and the queue goes on."""
        size = 8000  # a fragmented pool has single buffers left
        self.assertTrue(wait_until(lambda: self.pings(size) == 10, 20))
        before = self.dropped()
        task = self.start_greedy()
        self.assertEqual(self.pings(size), 0)
        self.assertGreaterEqual(self.dropped() - before, 10)
        self.end_greedy(task)
        self.assertTrue(wait_until(lambda: self.pings(size) == 10, 20))

    def start_copy(self, source, target):
        """Starts to send random bytes over TCP; returns a function that compares their checksums
        at the end."""
        source.run("head -c 16M /dev/urandom >/tmp/random")
        receiver = target.spawn(f"socat -u TCP6-LISTEN:{PORT},ipv6only=0 - | sha256sum")
        pair.await_listener(target, PORT)
        sender = source.spawn(f"socat -u /tmp/random TCP:{target.ipv4}:{PORT} && "
                              "sha256sum /tmp/random")

        def finish():
            sent, received = (task.wait(timeout=180).out.split()[0] for task in (sender, receiver))
            self.assertEqual(sent, received)

        return finish

    def test_connections(self):
        """TCP in both directions goes on when there are buffers again, and loses no byte."""
        task = self.start_greedy()
        before = self.dropped()
        finish = [self.start_copy(*hosts) for hosts in (self.hosts, self.hosts[::-1])]
        self.assertTrue(wait_until(lambda: self.dropped() > before, 30, 0.2))
        self.end_greedy(task)
        for each in finish:
            each()

    def test_open(self):
        """An interface that cannot be opened says so, and opens when there are buffers again."""
        host = self.host
        task = self.start_greedy()
        self.set_link("down")
        self.take_all(task)
        with self.assertRaises(CommandError) as refused:
            host.run(f"ip link set {NETDEV} up")
        self.assertIn(os.strerror(errno.ENOMEM), str(refused.exception))
        self.end_greedy(task)
        self.set_link("up")
        self.transfer(*self.hosts)


if __name__ == "__main__":
    main()
