# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA CM as programs use it: connecting by address, datagrams, multicast, rsockets, refusals."""

import contextlib
import itertools
import re
import time

from programs import CM_PORT, PING, Programs, RPING_PORT
from scenario import LabError, main, pair, wait_until
from ternlab import pace

# No "-T a" for rstream, whose client takes for an error that the server, which has sent all, hangs
# up before it has looked.
MODES = {"rstream": {"blocking": "-T b", "polling": "-T n"},
         "riostream": {"blocking": "-T b", "polling": "-T n", "poll()": "-T a"}}

# Numbers of QPs that do not exist, for cmtime: the first of each of its halves.
QP_NUMBERS = itertools.count(1 << 20, 1 << 10)


class Cm(Programs):
    def test_rping(self):
        for ip in (4, 6):
            self.everywhere(f"rping, IPv{ip}", lambda hosts: self.rping(hosts, ip=ip))
        self.everywhere("rping 60000 bytes",
                        lambda hosts: self.rping(hosts, "-C 10 -S 60000"))
        self.everywhere("rping with a QP of its own", lambda hosts: self.rping(hosts, "-C 10 -q"))

    def test_rping_other_direction(self):
        with self.cell("rping from host1 to host2", self.COLUMNS[0]):
            self.rping(self.hosts[1::-1])

    def test_persistent_server(self):
        """One server, several clients one after the other and at once."""
        one, two = self.hosts
        # A client that the server disconnects exits with 0 whatever it has done, as after a READ
        # into a server's buffer that is too small without -S: count the answers.
        server = one.spawn("rping -s -P -V -S 500 -a 0.0.0.0")
        client = f"rping -c -V -v -S 500 -a {one.ipv4}"
        clients = []
        try:
            pair.await_cm_listener(one, RPING_PORT, server)
            with self.cell("rping -P, 3 clients in turn", self.COLUMNS[0]):
                for _ in range(3):
                    self.assertEqual(two.run(f"{client} -C 20").out.count(PING), 20)
            with self.cell("rping -P, 4 clients at once", self.COLUMNS[0]):
                for host in (one, two, two, two):
                    clients.append(host.spawn(client))
                    # In the server of rdma-core 44.0 a request overwrites the one before it that
                    # no thread has taken yet (fixed in 44.9 and 57.0).
                    self.await_pings(server, clients)
        finally:
            for task in (*clients, server):
                task.kill()
            for task in (*clients, server):
                task.wait(check=False)

    def await_pings(self, server, clients):
        """Until each client has had another 20 answers while all run."""
        tasks = [server, *clients]
        goals = [client.output().count(PING) + 20 for client in clients]

        def served():
            return all(client.output().count(PING) >= goal
                       for client, goal in zip(clients, goals))

        wait_until(lambda: served() or not all(task.running() for task in tasks), 60)
        if not served() or not all(task.running() for task in tasks):
            raise LabError("\n".join(re.sub(rf"{PING}\S* \S*\n", "", task.give_up())
                                     for task in tasks))

    def test_ucmatose(self):
        for ip in (4, 6):
            self.everywhere(f"ucmatose, IPv{ip}", lambda hosts: self.ucmatose(hosts, ip=ip))
        self.everywhere("ucmatose, 30 connections",
                        lambda hosts: self.ucmatose(hosts, "-c 30 -C 2 -S 100"))
        self.everywhere("ucmatose with type of service",
                        lambda hosts: self.ucmatose(hosts, "-c 2 -C 5 -S 100 -t 96"))

    def test_udaddy(self):
        for ip in (4, 6):
            self.everywhere(f"udaddy, IPv{ip}", lambda hosts: self.udaddy(hosts, ip=ip))

    def test_mckey(self):
        self.everywhere("mckey", lambda hosts: self.mckey(hosts, "239.1.2.3"))
        with self.cell("mckey, send-only sender", self.COLUMNS[0]):
            self.mckey(self.hosts[:2], "239.1.2.4", sender="-o")

    def test_mckey_without_loopback(self):
        self.skip_on_rxe("no QPs that do not hear themselves")
        with self.cell("mckey, without loopback", self.COLUMNS[0]):
            self.mckey(self.hosts[:2], "239.1.2.5", receiver="-l", sender="-l")

    def test_mckey_ipv6(self):
        """Linux has no MLD for this: rdma_cm joins IPv6 groups for RoCEv1 alone."""
        self.skip_on_rxe("no RoCEv1")
        modes = {}
        for host in self.hosts:
            host.run("mount -t configfs none /sys/kernel/config 2>/dev/null; modprobe rdma_cm; "
                     f"mkdir -p /sys/kernel/config/rdma_cm/{self.devices[host.name]}")
            modes[host] = (f"/sys/kernel/config/rdma_cm/{self.devices[host.name]}"
                           "/ports/1/default_roce_mode")
        try:
            for host, mode in modes.items():
                host.run(f"echo 'IB/RoCE v1' >{mode}")
            self.everywhere("mckey, IPv6",
                            lambda hosts: self.mckey(hosts, "ff0e::1234", ip=6))
        finally:
            for host, mode in modes.items():
                host.run(f"echo 'RoCE v2' >{mode}; rmdir "
                         f"/sys/kernel/config/rdma_cm/{self.devices[host.name]}")

    def test_two_receivers(self):
        """A datagram to a group goes to each member, also the sender's own host."""
        one, two = self.hosts
        common = "mckey -m 239.1.2.6 -C 20 -S 500"

        def receiver(host):
            return host.spawn(f"stdbuf -oL {common} -b {host.ipv4} >/tmp/mckey 2>&1")

        with self.cell("mckey, a receiver on each host", self.COLUMNS[0]):
            tasks = [receiver(host) for host in (one, two)]
            try:
                for host in (one, two):
                    joined = wait_until(
                        lambda: "joined" in host.run("cat /tmp/mckey", check=False).out, 20)
                    self.assertTrue(joined, host.run("cat /tmp/mckey").out)
                two.run(f"{common} -b {two.ipv4} -s")
                for task, host in zip(tasks, (one, two)):
                    task.wait(timeout=20)
                    self.assertIn("data transfers complete", host.run("cat /tmp/mckey").out)
            finally:
                for task in tasks:
                    task.give_up()

    def test_cmtime(self):
        """Many connections at once."""
        usage = self.hosts[0].run("cmtime --help", check=False).out
        # Newer halves keep in step over TCP, and the server ends by itself, too.
        cmtime = self.meeting_cmtime if "base_qpn" in usage else self.serving_cmtime
        # In rdma-core 65 both halves take the address for that TCP connection, which -C gives. In
        # 56 the client takes the server's address.
        ends = (("-L -C {0} -b {0}", "-C {0} -b {1}") if "controller_address" in usage else
                ("-b {0}", "-s {0}"))
        for count in (1, 50):
            self.everywhere(f"cmtime, {count} at once", lambda hosts: cmtime(hosts, count, ends))

    def serving_cmtime(self, hosts, count, _ends):
        """Its server has to be stopped."""
        server, client = hosts
        serving = server.spawn(f"cmtime -b {server.ipv4}")
        try:
            pair.await_cm_listener(server, CM_PORT, serving)
            said = client.run(f"cmtime -s {server.ipv4} -c {count}").out
            for step in ("resolve addr", "connect", "disconnect", "destroy"):
                self.assertRegex(said, rf"(?m)^{step}\s*:\s+[\d.]+")
        finally:
            serving.kill()
            serving.wait(check=False)

    def meeting_cmtime(self, hosts, count, ends):
        """Each half tells of the connections with QPs, then of as many without.

        To the kernel a connection is stale if another one has the same number of a QP of the same
        device, or has just had it. By default the numbers of both halves begin at 1000.
        """
        server, client = hosts
        listens, connects = (
            f"cmtime {end.format(server.ipv4, client.ipv4)} -c {count} -q {next(QP_NUMBERS)}"
            for end in ends)
        for said in pair.run_both(server, listens, client, connects, port=CM_PORT, timeout=60):
            for kind in ("qp_conn", "cm_conn"):
                self.assertRegex(said, rf"(?m)^{kind}\s+{count}$")
            for step in ("cm connect", "disconnect", "destroy id", "destroy qp"):
                self.assertEqual(len(re.findall(rf"(?m)^{step}(?:\s+\d+){{6}}$", said)), 2, said)

    def test_rsockets(self):
        for program, modes in MODES.items():
            for name, mode in modes.items():
                self.everywhere(f"{program}, {name}", lambda hosts: self.stream(
                    hosts, program, f"{mode} -S 65536 -C 10 -I 2"))
            self.everywhere(f"{program}, 1 MiB", lambda hosts: self.stream(
                hosts, program, "-S 1048576 -C 2 -I 1"))
        self.everywhere("rstream, IPv6", lambda hosts: self.stream(hosts, ip=6))

    def test_rcopy(self):
        """A file over rsockets, whole."""
        one, two = self.hosts
        serving = one.spawn("rcopy")
        try:
            pair.await_cm_listener(one, 7427, serving)
            with self.cell("rcopy 4 MiB", self.COLUMNS[0]):
                two.run("head -c 4M /dev/urandom >/tmp/sent")
                two.run(f"rcopy /tmp/sent {one.ipv4}:/tmp/received")
                sums = [host.run(f"sha256sum <{path}").out
                        for host, path in ((one, "/tmp/received"), (two, "/tmp/sent"))]
                self.assertEqual(*sums)
        finally:
            serving.kill()
            serving.wait(check=False)

    def test_perftest(self):
        for row in ("ib_send_bw -n 100 -s 16384", "ib_write_bw -n 100 -s 16384",
                    "ib_read_bw -n 100 -s 16384", "ib_write_lat -n 50 -s 64",
                    "ib_send_bw -n 50 -s 4096 -q 4", "ib_atomic_bw -n 50",
                    "ib_send_bw -c UD -n 100 -s 2048", "ib_send_lat -c UD -n 50 -s 64"):
            program, arguments = row.split(" ", 1)
            self.everywhere(f"{program} -R {arguments}",
                            lambda hosts: self.cm_perftest(hosts, program, arguments))
        self.everywhere("ib_send_bw -z", lambda hosts: self.perftest_exchange(hosts))

    def perftest_exchange(self, hosts):
        """RDMA CM for what the halves say to each other, QPs by hand."""
        command = "ib_send_bw -z -n 50 -s 4096"
        server, client = hosts
        pair.perftest(server, client, f"{command} {self.patient(server)}",
                      f"{command} {self.patient(client)}", timeout=60, ready=pair.await_cm_listener)

    # --- what must not work

    def refused(self, command, *words, within=20):
        """The program fails, soon for this machine, and says why."""
        begun = time.monotonic()
        result = self.hosts[1].run(command, check=False, timeout=within + 10)
        took = time.monotonic() - begun
        said = result.out + result.err
        self.assertNotEqual(result.code, 0, said)
        for word in words:
            self.assertIn(word, said)
        self.assertLess(took, pace.scaled(within), said)

    def test_nobody_listens(self):
        one = self.hosts[0]
        # 8 is "invalid service ID" (table 109 of the specification).
        with self.cell("rping to no listener: rejected", self.COLUMNS[0]):
            self.refused(f"rping -c -C 1 -a {one.ipv4} -p 7999", "RDMA_CM_EVENT_REJECTED, error 8")
        with self.cell("rping to no listener, IPv6: rejected", self.COLUMNS[0]):
            self.refused(f"rping -c -C 1 -a {one.ipv6} -p 7999", "RDMA_CM_EVENT_REJECTED, error 8")
        with self.cell("ucmatose to no listener: rejected", self.COLUMNS[0]):
            self.refused(f"ucmatose -s {one.ipv4} -p 7999", "RDMA_CM_EVENT_REJECTED, error: 8")
        # SIDR's status 1: service ID not supported (table 125).
        with self.cell("udaddy to no listener: unreachable", self.COLUMNS[0]):
            self.refused(f"udaddy -s {one.ipv4}", "RDMA_CM_EVENT_UNREACHABLE, error: 1")
        with self.cell("rstream to no listener: refused", self.COLUMNS[0]):
            self.refused(f"rstream -s {one.ipv4} -p 7999 -T b",
                         "rconnect: Connection refused")

    def test_nobody_at_the_address(self):
        with self.cell("rping to no host: address error", self.COLUMNS[0]):
            self.refused("rping -c -C 1 -a 10.77.0.99", "RDMA_CM_EVENT_ADDR_ERROR")

    def rejects(self, host):
        """REJ messages that came, by the count of the kernel's CM."""
        path = f"/sys/class/infiniband/{self.devices[host.name]}/ports/1/cm_rx_msgs/rej"
        return int(host.run(f"cat {path}").out)

    def test_server_rejects(self):
        """A server that has as many connections as it wants refuses the next."""
        one, two = self.hosts
        server = one.spawn("ucmatose -c 1 -C 1 -S 100")
        try:
            pair.await_cm_listener(one, CM_PORT, server)
            with self.cell("ucmatose, one connection too many", self.COLUMNS[0]):
                before = self.rejects(two)
                said = two.run(f"ucmatose -s {one.ipv4} -c 2 -C 1 -S 100", check=False, timeout=30)
                self.assertNotEqual(said.code, 0)
                # A server that refuses one ends, at once and with both. Of which the client
                # hears first depends on how far it is with the other.
                self.assertRegex(said.out + said.err, "RDMA_CM_EVENT_(REJECTED|CONNECT_ERROR)")
                self.assertGreater(self.rejects(two), before)
        finally:
            server.give_up()

    @contextlib.contextmanager
    def endless_rping(self, server_options=""):
        """Both halves, once data goes round, and what reads the client's output."""
        one, two = self.hosts
        output = "/tmp/rping"
        server = one.spawn(f"rping -s -C 1000000 {server_options} -a 0.0.0.0")
        client = None
        try:
            pair.await_cm_listener(one, RPING_PORT, server)
            client = two.spawn(f"stdbuf -oL rping -c -v -C 1000000 -a {one.ipv4} >{output} 2>&1")

            def said():
                return two.run(f"tail -c 1000 {output}", check=False).out

            self.assertTrue(wait_until(lambda: "ping data" in said(), 20), said())
            yield server, client, said
        finally:
            for task in filter(None, (client, server)):
                task.give_up()
            two.run(f"rm -f {output}")

    def test_server_dies(self):
        """Its connections end with it: the client is told, by a DREQ."""
        with self.cell("rping, server killed: disconnected", self.COLUMNS[0]), \
                self.endless_rping() as (server, client, said):
            server.kill()
            client.wait(timeout=20, check=False)
            self.assertIn("DISCONNECT", said())

    def test_client_dies(self):
        """The server's half ends, too, and its next client is served."""
        one, two = self.hosts
        with self.cell("rping, client killed: the next served", self.COLUMNS[0]), \
                self.endless_rping("-P") as (_, client, _):
            client.kill()
            client.wait(check=False)
            two.run(f"rping -c -C 10 -a {one.ipv4}")
            gone = wait_until(lambda: self.in_use(one)["qp"] == self.clean[one.name]["qp"], 20)
            self.assertTrue(gone, self.in_use(one))


if __name__ == "__main__":
    main()
