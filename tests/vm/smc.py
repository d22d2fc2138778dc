# SPDX-License-Identifier: GPL-2.0-or-later
"""SMC-R: TCP sockets of stock programs, whose bytes go by RDMA WRITE once both ends agree."""

import pathlib

import upper_layer
from scenario import main, pair, wait_until
from upper_layer import MEBIBYTES

SMC = "LD_PRELOAD=/opt/tern/bin/smc_run.so"
PORT, CHANCES = 9998, 3
PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/smc_control.py"
CONTROL = f"python3 -B /tmp/{PROGRAM.name}"


class Smc(upper_layer.UpperLayer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab.each(lambda host: host.write_file(f"/tmp/{PROGRAM.name}", PROGRAM.read_bytes()))

    def setUp(self):
        super().setUp()
        self.addCleanup(self.lab.each, lambda host: upper_layer.unload(host, "smc_diag smc"))

    def copy(self, address):
        """If the ends do not agree, all of it works as well by TCP.

        SMC drops the first message of an agreement if it comes before SMC waits for it, as it can
        on a busy host, and then uses TCP; the next connection tries again.
        """
        for _ in range(CHANCES):
            before = self.client.hw_counter("sent_bytes")
            self.transfer(self.client, self.server, MEBIBYTES, address, socat=f"{SMC} socat")
            by_rdma = self.client.hw_counter("sent_bytes") - before
            if by_rdma > MEBIBYTES << 20:
                return
        self.fail(f"only {by_rdma} bytes went by RDMA")

    def test_copy(self):
        for ip in (4, 6):
            with self.cell(f"SMC-R: copy, IPv{ip}", "result"):
                self.copy(self.server.ipv4 if ip == 4 else f"[{self.server.ipv6}]")
                self.check_version(1)

    def test_version_2(self):
        """Hosts with a common enterprise ID agree on version 2, which uses RoCEv2."""
        self.lab.each(lambda host: host.run(f"modprobe smc; {CONTROL} add TERN"))
        with self.cell("SMC-R v2: copy", "result"):
            self.copy(self.server.ipv4)
            self.check_version(2)

    def versions(self, host):
        """The version of each link group that the host may use for new connections."""
        return [int(version) for version in host.run(f"{CONTROL} versions").out.split()]

    def check_version(self, version):
        for host in self.hosts:
            self.assertEqual(set(self.versions(host)), {version})

    def test_peer_with_tcp(self):
        with self.cell("SMC-R: a peer that has TCP", "result"):
            server = self.server.spawn(f"socat -u TCP4-LISTEN:{PORT},reuseaddr -")
            pair.await_listener(self.server, PORT, server)
            self.client.run(f"echo hello | {SMC} socat -u - TCP:{self.server.ipv4}:{PORT}")
            self.assertEqual(server.wait().out, "hello\n")

    def stream(self, settle):
        """A server and a client whose bytes go by RDMA, as in copy(). Each runs settle at the end.

        While the ends still agree on a link, SMC takes a card that has gone for one that is there,
        and keeps it for ever: the link must be in use before the card goes.
        """
        for _ in range(CHANCES):
            server = self.server.spawn(f"{SMC} socat TCP4-LISTEN:{PORT},reuseaddr "
                                       f"SYSTEM:'cat >/dev/null; {settle}',nofork")
            self.addCleanup(server.give_up)
            pair.await_listener(self.server, PORT, server)
            before = self.client.hw_counter("sent_bytes")
            client = self.client.spawn(
                f"{SMC} bash -c 'exec 3>/dev/tcp/{self.server.ipv4}/{PORT}; cat /dev/zero >&3; "
                f"{settle}; exit 1'")
            self.addCleanup(client.give_up)
            if wait_until(lambda: self.client.hw_counter("sent_bytes") > before + (1 << 20), 20):
                return server, client
            client.give_up()
            server.give_up()
        return self.fail("no bytes go by RDMA")

    def survive(self, what, misfortune):
        """Connections end, as they have no other card to go on with, and new ones use RDMA.

        Each end keeps its socket until SMC has aborted the connection. If a process closes it
        while smc_close_active_abort() has it unlocked, SMC never gives up its last reference to
        the socket, and nobody can unload the module any more.
        """
        settle = f"modprobe smc_diag; {CONTROL} settle"
        with self.cell(f"SMC-R: {what}", "result"):
            server, client = self.stream(settle)
            misfortune()
            self.assertTrue(wait_until(client.failed, 60), "the client waits for ever")
            # The server may not have noticed.
            self.server.run(settle)
            server.give_up()
            # An end that still has the link group offers it for a connection that cannot use it.
            gone = wait_until(lambda: not any(map(self.versions, self.hosts)), 60, 0.5)
            self.assertTrue(gone, "a link group has not ended")
            self.copy(self.server.ipv4)


if __name__ == "__main__":
    main()
