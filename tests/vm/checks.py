# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/guest/tern_verbs_check: statuses, data and order, case by case, between two hosts."""

from programs import EVERY_CELL
from scenario import RXE, Scenario, main, pair

PORT = 18600
CHECK = "/opt/tern/bin/tern_verbs_check"


class Checks(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for host in cls.hosts:
            host.run("modprobe vgem")  # of its dma-bufs

    def check(self, cases, arguments="", hosts=None, timeout=300):
        server, client = hosts or self.hosts[:2]

        def command(host):
            device = host.rdma_device()
            return f"{CHECK} --dev {device} --gid-index {host.gid_index(device)} --seed 1"

        said = pair.run_pair(
            server, f"{command(server)} server",
            client, f"{command(client)} {arguments} --peer {server.ipv4} {cases} stop",
            port=PORT, timeout=timeout)
        self.assertIn(" 0 failed", said)
        return said

    def test_every_case(self):
        said = self.check("all", "--seconds 5")
        print(said)
        if not RXE:
            old = self.hosts[0].run("uname -r").out.startswith("6.1.")
            for lack in ("no region of this kernel can be flushed", "no /dev/udmabuf"):
                self.assertEqual(lack in said, old, lack)

    def test_other_direction(self):
        """Errors and data once more, with the roles of the hosts exchanged."""
        self.check("bad-rkey send-too-long sg atomics", hosts=self.hosts[::-1])

    def test_one_host_with_itself(self):
        """Both QPs on one card: what it sends to its own address never reaches the wire."""
        host = self.hosts[0]
        if RXE:
            self.skipTest("rxe has its own loopback, which is not what this is about")
        # Pacing takes its time, and is the same there.
        self.check("all", "--seconds 2" + ("" if EVERY_CELL else " --skip paced"),
                   hosts=(host, host))

    def test_stress_on_a_bad_wire(self):
        if not RXE:
            self.lab.wire.tell("seed 11")
            for fault, percent in {"loss": 1, "dup": 1, "reorder": 1, "corrupt": 0.5}.items():
                self.lab.wire.tell(f"{fault} {percent}")
                self.addCleanup(self.lab.wire.tell, f"{fault} 0")
        self.check("stress", "--seconds 10 --qps 4")


if __name__ == "__main__":
    main()
