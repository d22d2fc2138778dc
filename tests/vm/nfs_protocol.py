# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of other protocols on an NFS server's ports: the server ends their connections, and its
own clients notice nothing."""

import nfs
from programs import PING, Programs
from scenario import main, wait_until
import upper_layer
from upper_layer import LOAD_MEBIBYTES, RANDOM, Load

FILE = "file"
SECONDS = 30  # until a stranger must have ended by itself
TIMED_OUT = 124  # timeout(1) says so


class Protocol(Programs):
    COLUMNS = tuple(nfs.PORTS)
    OBJECTS = upper_layer.UpperLayer.OBJECTS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server, cls.client = cls.hosts
        nfs.prepare(cls.server)
        cls.client.run(f"head -c {LOAD_MEBIBYTES}M /dev/urandom >{RANDOM}")

    def beside_a_mount(self, stranger, act):
        """act() while a client of NFS is at work, by each transport of the mount."""
        for transport in self.COLUMNS:
            with self.cell(stranger, transport), nfs.exported(self.server), \
                    nfs.mounted(self.client, self.server.ipv4, nfs.VERSIONS["v4.2"], transport):
                with Load(self.client, f"{nfs.MOUNTED}/{FILE}") as load:
                    load.advance()
                    before = self.in_use(self.server)
                    act()
                    left = wait_until(lambda: self.in_use(self.server)["qp"] == before["qp"], 30)
                    self.assertTrue(left, f"{before} before, now {self.in_use(self.server)}")
                    load.advance()
                self.assertEqual(self.server.run(f"sha256sum <{nfs.EXPORT}/{FILE}").out,
                                 self.client.run(f"sha256sum <{RANDOM}").out)

    def ask(self, command):
        """What a stranger says whom the server gives nothing."""
        ended = self.client.run(f"timeout {SECONDS} {command} 2>&1", check=False)
        self.assertNotIn(ended.code, (0, TIMED_OUT), ended.out)
        return ended.out

    def test_rping(self):
        """It connects, and sends less than a header."""
        def act():
            said = self.ask(f"rping -c -v -C 1 -a {self.server.ipv4} -p {nfs.PORTS['rdma']}")
            self.assertNotIn(PING, said)

        self.beside_a_mount("rping", act)

    def test_perftest(self):
        """It connects, and sends more than a header, which is none."""
        def act():
            said = self.ask(f"ib_send_bw -R -p {nfs.PORTS['rdma']} {self.server.ipv4}")
            self.assertNotIn("MB/sec", said)

        self.beside_a_mount("ib_send_bw -R", act)

    def test_datagrams(self):
        """Nobody listens for them there."""
        def act():
            said = self.ask(f"ib_send_bw -R -c UD -p {nfs.PORTS['rdma']} {self.server.ipv4}")
            self.assertNotIn("MB/sec", said)

        self.beside_a_mount("ib_send_bw -R -c UD", act)

    def test_http(self):
        """A record of TCP that claims to be longer than the server takes."""
        def act():
            said = self.client.run(
                f"timeout {SECONDS} bash -c 'exec 3<>/dev/tcp/{self.server.ipv4}/"
                f"{nfs.PORTS['tcp']}; echo \"GET / HTTP/1.1\" >&3; cat <&3'", check=False)
            self.assertNotEqual(said.code, TIMED_OUT)
            self.assertEqual(said.out, "")

        self.beside_a_mount("HTTP", act)


if __name__ == "__main__":
    main()
