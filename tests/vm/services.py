# SPDX-License-Identifier: GPL-2.0-or-later
"""Every service with stock programs: UC, UD, XRC, shared receive queues, multicast, raw frames."""

import json
import re

from programs import EVERY_CELL, Programs
from scenario import CommandError, LabError, NETDEV, PATIENT, RXE, main, pair, wait_until

# Fewer messages than the receiver posts buffers for: UC and UD lose what finds none.
FEW = "-n 100"
# Rows of SENDs that nobody sends again.
UNACKNOWLEDGED = re.compile("ib_send_(bw|lat) -c U[CD] ")


class Services(Programs):
    def pingpongs(self, program, *variants):
        one, two = self.hosts
        cells = [(ip, *cell) for cell in zip(self.COLUMNS, ((one, two), (one, one)))
                 for ip in (4, 6)]
        # In turn, IPv4 between two hosts goes with IPv6 on one.
        cells = cells if EVERY_CELL else cells[::3]
        for arguments in variants:
            for ip, column, hosts in self.sample(cells):
                with self.cell(f"{program} {arguments}, IPv{ip}", column):
                    self.any_pingpong(program, arguments, hosts, ip)

    def test_rc_pingpong(self):
        self.pingpongs("ibv_rc_pingpong", "-c -n 50", "-c -e -n 50 -s 10000")

    def test_uc_pingpong(self):
        self.pingpongs("ibv_uc_pingpong", "-c -n 50", "-c -e -n 50 -s 10000 -m 2048")

    def test_ud_pingpong(self):
        self.pingpongs("ibv_ud_pingpong", "-c -n 50", "-c -e -n 50 -s 4096")

    def test_srq_pingpong(self):
        self.pingpongs("ibv_srq_pingpong", "-c -n 20 -q 4", "-c -e -n 20 -q 16")

    def test_xsrq_pingpong(self):
        self.skip_on_rxe("no XRC")
        # It has no -c: it compares what arrives anyway.
        self.pingpongs("ibv_xsrq_pingpong", "-n 10", "-e -n 10 -s 10000")

    def two_xsrq_clients(self, hosts):
        one, two = hosts

        def command(host):
            return (f"{PATIENT} ibv_xsrq_pingpong -n 10 -d {self.devices[host.name]} "
                    f"-g {host.gid_index(self.devices[host.name])}")

        server = one.spawn(f"{command(one)} -c 2")
        tasks = [server]
        try:
            pair.await_listener(one, pair.PERFTEST_PORT, server)
            tasks += [two.spawn(f"{command(two)} {one.ipv4}") for _ in range(2)]
            for task in tasks:
                task.wait(timeout=60)
        finally:
            for task in tasks:
                if task.running():
                    print(task.give_up())

    def test_xsrq_pingpong_with_two_clients(self):
        """The server sends what is for one client's SRQ to the other client's target QP too, as
        both clients share an XRC domain: they are processes of one host."""
        self.skip_on_rxe("no XRC")
        self.everywhere("ibv_xsrq_pingpong, 2 clients", self.two_xsrq_clients)

    def measure(self, *rows, ip=4):
        for row in rows:
            program, arguments = row.split(" ", 1)
            run = self.unacknowledged if UNACKNOWLEDGED.match(row) else self.perftest
            self.everywhere(f"{row}, IPv{ip}" if ip == 6 else row,
                            lambda hosts: run(program, arguments, hosts=hosts, ip=ip))

    def unacknowledged(self, program, arguments, **how):
        """perftest(), up to three times. If the receiver's engine waits for a processor for a
        second, the wire loses packets, and the server then waits for their messages for ever."""
        for chances in reversed(range(3)):
            lost = self.dropped()
            try:
                return self.perftest(program, arguments, timeout=30, **how)
            except LabError:
                if not chances or self.dropped() == lost:
                    raise
        raise AssertionError("there is always a last chance")

    def test_perftest_uc(self):
        self.measure(f"ib_send_bw -c UC {FEW} -s 4096", f"ib_send_bw -c UC -e {FEW} -s 4096",
                     f"ib_send_bw -c UC -b {FEW} -s 2048", f"ib_send_lat -c UC {FEW}",
                     f"ib_write_bw -c UC {FEW} -s 16384", f"ib_write_bw -c UC -q 4 {FEW} -s 4096",
                     f"ib_write_lat -c UC {FEW} -s 64")
        self.measure(f"ib_send_bw -c UC {FEW} -s 10000", ip=6)

    def test_perftest_ud(self):
        self.measure(f"ib_send_bw -c UD {FEW} -s 4096", f"ib_send_bw -c UD -e {FEW} -s 2048",
                     f"ib_send_bw -c UD -b {FEW} -s 1024", "ib_send_bw -c UD -q 4 -n 50 -s 1024",
                     f"ib_send_bw -c UD -m 1024 {FEW} -s 1024",
                     f"ib_send_lat -c UD {FEW} -s 64", f"ib_send_lat -c UD -e {FEW} -s 64")
        self.measure(f"ib_send_bw -c UD {FEW} -s 4096", ip=6)

    def test_perftest_xrc(self):
        self.skip_on_rxe("no XRC")
        self.measure(f"ib_send_bw -c XRC {FEW} -s 16384", f"ib_send_bw -c XRC -e {FEW} -s 4096",
                     f"ib_send_bw -c XRC -q 4 {FEW} -s 4096", f"ib_send_lat -c XRC {FEW} -s 64",
                     f"ib_write_bw -c XRC {FEW} -s 16384", f"ib_write_lat -c XRC {FEW} -s 64",
                     f"ib_read_bw -c XRC {FEW} -s 16384", f"ib_atomic_bw -c XRC {FEW}")
        self.measure(f"ib_send_bw -c XRC {FEW} -s 16384", ip=6)

    def test_perftest_srq(self):
        self.measure(f"ib_send_bw --use-srq {FEW} -s 16384",
                     f"ib_send_bw --use-srq -q 4 {FEW} -s 4096",
                     f"ib_send_bw --use-srq -e {FEW} -s 4096",
                     f"ib_send_bw -c UD --use-srq {FEW} -s 1024",
                     f"ib_send_lat --use-srq {FEW} -s 64")

    def test_perftest_events(self):
        self.measure(f"ib_send_bw -e {FEW} -s 4096", f"ib_read_bw -e {FEW} -s 4096",
                     f"ib_send_lat -e {FEW} -s 64", f"ib_atomic_bw -e {FEW}")

    def raw(self, hosts, program, arguments):
        """Both halves are told everything: they say nothing to each other over TCP."""
        server, client = hosts
        macs = {host: host.run("cat /sys/class/net/wire0/address").out.strip() for host in hosts}

        def command(host, peer, role):
            return (f"{program} -d {self.devices[host.name]} --{role} -B {macs[host]} "
                    f"-E {macs[peer]} {arguments}")

        def receiving(host, _, task):
            """It posts receives last, when its QP is in RTR and has its flow."""
            def ready():
                link = f"{self.devices[host.name]}/1"
                qps = json.loads(host.run(f"rdma -j -dd resource show qp link {link}").out)
                return task.failed() or any(
                    qp.get("comm") == program[:15] and qp.get("drv_rq_pi") for qp in qps)
            if not wait_until(ready, 20):
                raise CommandError(f"{program} does not receive on {host.name}")

        return pair.run_pair(server, command(server, client, "server"),
                             client, command(client, server, "client"),
                             timeout=60, ready=receiving)

    def quiet_neighbours(self, hosts):
        """A flow by MAC steers to the program what the kernels ask each other about addresses, too,
        and such a frame may be larger than the program's buffers: let them not ask."""
        each = (f"ip neigh show dev {NETDEV} | while read address _ mac _; do ip neigh replace "
                f"$address lladdr $mac dev {NETDEV} nud %s 2>/dev/null; done; true")
        for host in hosts:
            self.addCleanup(host.run, each % "reachable")
            host.run(each % "permanent")

    def test_raw_ethernet(self):
        """Raw frames, steered to the program by MAC, IP addresses and ports."""
        self.skip_on_rxe("no raw packet QPs")
        self.quiet_neighbours(self.hosts)
        one, two = self.hosts
        for program, arguments in (
                ("raw_ethernet_bw", f"{FEW} -s 1500"), ("raw_ethernet_bw", "-n 50 -s 8192 -m 9000"),
                ("raw_ethernet_bw", "-n 100 -s 64"), ("raw_ethernet_lat", "-n 100 -s 64")):
            with self.cell(f"{program} {arguments}", self.COLUMNS[0]):
                self.raw((one, two), program, arguments)
        for program in ("raw_ethernet_bw", "raw_ethernet_lat"):
            with self.cell(f"{program} by IP and UDP port", self.COLUMNS[0]):
                # Each half is told the client's first, then the server's.
                self.raw((one, two), program, "-n 100 -s 1000 "
                         f"-j {two.ipv4} -J {one.ipv4} -k 10002 -K 10001")
        with self.cell("ping after flows", self.COLUMNS[0]):
            self.ping(two, one.ipv4)

    def test_packet_pacing(self):
        """A QP with a limit of 1 MB/s, which perftest sets and measures, does not go faster."""
        self.skip_on_rxe("no raw packet QPs")
        self.quiet_neighbours(self.hosts)
        with self.cell("raw_ethernet_bw --rate_limit_type=PP", self.COLUMNS[0]):
            said = self.raw(self.hosts, "raw_ethernet_bw", "-n 500 -s 1000 "
                            "--rate_limit_type=PP --rate_units=M --rate_limit=1")
            average = float(re.findall(r"^ *1000 +500 +[\d.]+ +([\d.]+)", said, re.M)[-1])
            self.assertGreater(average, 0)
            self.assertLess(average, 1.05)

    def test_perftest_multicast(self):
        """Datagrams to a group, which the server's QP has joined."""
        self.skip_on_rxe("takes no group's packets that IP has not joined, as RDMA CM would do")
        with self.cell("ib_send_bw -g -c UD", self.COLUMNS[0]):
            self.perftest("ib_send_bw", f"-g -c UD {FEW} -s 1024", ip=6, timeout=30)

    def test_together(self):
        """All services at once: none gets in another's way."""
        one, two = self.hosts
        programs = {18701: "ibv_rc_pingpong -c", 18702: "ibv_uc_pingpong -c",
                    18703: "ibv_ud_pingpong -c", 18704: "ibv_srq_pingpong -c -q 4"}
        if not RXE:
            programs[18705] = "ibv_xsrq_pingpong"

        def run(port):
            program = programs[port]

            def command(host):
                device = self.devices[host.name]
                return (f"{PATIENT} {program} -n 100 -p {port} -d {device} "
                        f"-g {host.gid_index(device)}")

            return pair.run_pair(one, command(one), two, f"{command(two)} {one.ipv4}",
                                 port=port, timeout=90)

        with self.cell("all pingpongs at once", self.COLUMNS[0]):
            self.lab.each(run, list(programs))


if __name__ == "__main__":
    main()
