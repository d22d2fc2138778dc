# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/guest/tern_verbs_check: statuses, data and order, case by case, between two hosts."""

import re

from programs import EVERY_CELL
from scenario import RXE, Scenario, main

# The kernel since which cases do not leave this out. libibverbs can export the card's memory since
# rdma-core 57, which is on the stacks with Linux 7, and has completion counters since 65.
SINCE = {"regions that can be flushed": (6, 2), "/dev/udmabuf": (6, 2),
         "dma-bufs of device memory": (7, 0), "completion counters": (7, 3)}
LACKING = re.compile("^ *lacking: (.*)$", re.MULTILINE)


class Checks(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for host in cls.hosts:
            host.run("modprobe vgem")  # of its dma-bufs

    def every_case(self, arguments, hosts=None):
        """All cases. What any of them has left out is what this stack lacks."""
        said = self.verbs_check("all", arguments, hosts)
        if not RXE:
            kernel = tuple(map(int, self.hosts[0].run("uname -r").out.split(".")[:2]))
            self.assertEqual(set(LACKING.findall(said)),
                             {what for what, since in SINCE.items() if kernel < since})
        return said

    def test_every_case(self):
        print(self.every_case("--seconds 5"))

    def test_other_direction(self):
        """Errors and data once more, with the roles of the hosts exchanged."""
        self.verbs_check("bad-rkey send-too-long sg atomics", hosts=self.hosts[::-1])

    def test_one_host_with_itself(self):
        """Both QPs on one card: what it sends to its own address never reaches the wire."""
        host = self.hosts[0]
        if RXE:
            self.skipTest("rxe has its own loopback, which is not what this is about")
        # Pacing takes its time, and is the same there.
        self.every_case("--seconds 2" + ("" if EVERY_CELL else " --skip paced"), (host, host))

    def test_stress_on_a_bad_wire(self):
        faults = {} if RXE else {"loss": 1, "dup": 1, "reorder": 1, "corrupt": 0.5}
        self.lab.wire.tell("seed 11")
        with self.faulty_wire(**faults):
            self.verbs_check("stress", "--seconds 10 --qps 4")


if __name__ == "__main__":
    main()
