# SPDX-License-Identifier: GPL-2.0-or-later
"""The wire through shared memory: many hosts, and what becomes of them when one of them goes."""

import os
import re
import signal

import roce_capture
from incast import ENDLESS, get_parameters, is_paced, set_parameters, streams
from scenario import NETDEV, Options, Scenario, main, pair, wait_until

PORT = 18610


class SharedMemory(Scenario):
    """Without hosts of its own."""

    def counted(self, name):
        """By the switch."""
        return self.lab.wire.counters()[name]

    def pingpongs(self, pairs, arguments="-n 100 -c"):
        """One for each pair of hosts, at the same time."""
        self.lab.each(lambda job: self.pingpong(arguments, hosts=job[1], port=PORT + job[0]),
                      list(enumerate(pairs)))

    def writers(self, server, client, arguments="-s 65536"):
        """The two halves of a program that writes until it is ended, or fails."""
        command = f"ib_write_bw {arguments} -D {ENDLESS} -p {PORT}"
        serving = server.spawn(f"{command} {self.verbs(server)}")
        pair.await_listener(server, PORT, serving)
        return [client.spawn(f"{command} {self.verbs(client)} {server.ipv4}"), serving]

    def await_ping(self, host, address):
        self.assertTrue(wait_until(
            lambda: host.run(f"ping -q -c 1 -W 1 {address}", check=False).code == 0, 30),
            f"{host.name} does not reach {address}")


class EightHosts(SharedMemory):
    HOSTS = (Options(smp=1, mem="512M", wire="shm"),) * 8

    def test_everyone_reaches_everyone(self):
        def ping_others(host):
            addresses = " ".join(other.ipv4 for other in self.hosts if other is not host)
            host.run(f"for a in {addresses}; do ping -q -M do -s 8000 -i 0.2 -c 3 -w 30 $a || "
                     "exit; done", timeout=240)

        self.lab.each(ping_others)

    def test_rdma_between_neighbours(self):
        hosts = self.hosts
        for first in (0, 1):
            self.pingpongs([(hosts[i], hosts[(i + 1) % 8]) for i in range(first, 8, 2)])

    def test_others_go_on_when_one_dies(self):
        """One QEMU is killed in the middle of its traffic."""
        one, two, three, victim = self.hosts[:4]
        doomed = self.writers(victim, three)
        with streams(three, [one]) as lasting:
            self.await_traffic(victim, *doomed)
            self.await_traffic(one, *lasting)
            os.kill(victim.process.pid, signal.SIGKILL)
            victim.process.wait(10)
            self.addCleanup(self.restart, victim)
            self.await_traffic(one, *lasting)
        self.ping(one, two.ipv4)
        self.pingpongs([(one, three), (two, self.hosts[4])])
        for task in doomed:
            task.give_up()

    def restart(self, host):
        self.seen[host.name] = ""
        self.lab.restart(host.name)
        self.await_ping(self.hosts[0], host.ipv4)
        self.pingpongs([(self.hosts[0], host)])

    def test_the_switch_dies_and_comes_back(self):
        hosts = self.hosts
        self.kill_switch()
        self.await_switch()
        for host in hosts[1:]:
            self.await_ping(hosts[0], host.ipv4)
        self.pingpongs([(hosts[0], hosts[1]), (hosts[2], hosts[3])])


class TwoKinds(SharedMemory):
    """Two hosts share memory, the third has a netdev."""
    HOSTS = (Options(wire="shm"), Options(wire="shm"), Options(wire="stream"))

    def test_mixed(self):
        one, two, three = self.hosts
        for source, target in ((one, two), (two, three), (three, one)):
            self.ping(source, target.ipv4, size=8000)
            self.ping(source, target.ipv6)
        self.pingpongs([(one, two), (two, three), (three, one)])
        self.transfer(one, two)
        self.transfer(one, three)

    def test_direct_way_and_capture(self):
        """Only a capture sees what two such hosts say, and then every packet is a true one."""
        arguments = "-s 65536 -n 50"
        self.perftest("ib_write_bw", arguments)
        before, direct = self.counted("frames"), self.counted("direct")
        self.perftest("ib_write_bw", arguments)
        self.assertLess(self.counted("frames") - before, 100)
        self.assertGreater(self.counted("direct") - direct, 50 * 16)
        path = self.lab.logs / "wire.pcap"
        self.lab.wire.capture(path)
        try:
            self.perftest("ib_write_bw", arguments)
            self.perftest("ib_read_bw", arguments)
            self.perftest("ib_send_bw", "-s 1001 -n 20")
        finally:
            self.lab.wire.stop_capture()
        packets = list(filter(None, map(roce_capture.packet, roce_capture.frames(path))))
        for roce in packets:
            self.assertEqual(roce_capture.stored_icrc(roce), roce_capture.computed_icrc(roce))
        self.assertGreater(len(packets), 2 * 50 * 16)

    def test_lends_while_slow(self):
        """A sender that congestion control holds back lends its payload as ever."""
        server, client = self.hosts[:2]
        # From the first CNP on, whenever that comes: a target rate that is still high would let the
        # sender recover as soon as the marks end.
        slow = {"rp_rate_to_set_on_first_cnp": 10, "rp_min_rate": 10, "rp_time_reset": 131071,
                "rp_byte_reset": 0, "rp_ai_rate": 1}
        self.addCleanup(set_parameters, client, **get_parameters(client, slow))
        self.addCleanup(self.lab.wire.tell, "clear")
        set_parameters(client, **slow)
        self.lab.wire.add_rules(["mark opcode=WRITE"])
        with streams(server, [client]):
            self.assertTrue(wait_until(lambda: is_paced(client), 60))
            self.lab.wire.tell("clear")
            direct = self.counted("direct")
            self.assertTrue(wait_until(lambda: self.counted("direct") - direct > 1000, 60))
            # On a busy machine the QP is behind its rate now and then, and waits for nothing.
            self.assertTrue(wait_until(lambda: is_paced(client), 60))

    def test_regions_come_and_go_beside_a_writer(self):
        """Another process's regions are no reason to lose its packets."""
        revoked = self.revoked()
        grown, whole = self.without_drops(self.write_beside_regions,
                                          lambda grown: not any(grown))
        self.assertEqual(self.revoked(), revoked)
        self.assertTrue(whole, "the wire has lost packets each time")
        self.assertEqual(grown, [0] * len(grown))

    def write_beside_regions(self):
        """Returns what was sent again, and the timeouts, of both hosts."""
        server, client = self.hosts[:2]

        def counters():
            return [host.hw_counter(name) for host in (server, client)
                    for name in ("roce_retrans_pkts", "local_ack_timeout_err")]

        before = counters()
        storm = client.spawn(f"/opt/tern/bin/tern_region_storm {client.rdma_device()} 6")
        # With a timeout that a busy machine hardly makes expire.
        self.perftest("ib_write_bw", "-s 65536 -D 4", ack_timeout=20)
        regions = int(storm.wait(timeout=60).out.split()[0])
        self.assertGreater(regions, 100)
        return [after - was for after, was in zip(counters(), before)]

    def roce_received(self, host):
        return int(re.search(r"roce_rx_packets: (\d+)", host.run(f"ethtool -S {NETDEV}").out)[1])

    def test_cable(self):
        """It is pulled in mid-traffic, from a card on either wire."""
        one, two, three = self.hosts
        for host in (one, three):
            self.pull_cable(host, two)

    def await_silence(self, host):
        """Until nothing has arrived for half a second: what was on the wire still arrives."""
        counts = []

        def silent():
            counts.append(self.roce_received(host))
            return counts[-2:-1] == counts[-1:]

        self.assertTrue(wait_until(silent, 10, interval=0.5), counts)

    def pull_cable(self, host, peer):
        tasks = self.writers(peer, host)
        self.await_traffic(peer, *tasks, packets=1000)
        host.set_cable(False)
        self.addCleanup(host.set_cable, True)
        self.await_carrier("0", host)
        self.await_silence(peer)
        self.assertEqual(self.carrier(peer), "1")
        lost = host.run(f"ping -q -c 1 -W 1 {peer.ipv4}", check=False)
        self.assertNotEqual(lost.code, 0)
        host.set_cable(True)
        self.await_carrier("1", host)
        for task in tasks:
            task.give_up()
        self.await_ping(host, peer.ipv4)
        self.pingpong("-n 50 -c", hosts=(host, peer))

    def test_stopped_host(self):
        """Stopped in mid-traffic it holds up nobody for long, and then goes on."""
        one, two, three = self.hosts
        tasks = self.writers(two, one)
        self.await_traffic(two, *tasks)
        with two.qmp() as monitor:
            monitor.execute("stop")
            try:
                self.await_ping(one, three.ipv4)
                self.ping(one, three.ipv4)
                self.pingpong("-n 50 -c", hosts=(one, three))
            finally:
                monitor.execute("cont")
        for task in tasks:
            task.give_up()
        self.await_ping(one, two.ipv4)
        self.pingpong("-n 50 -c")

    def test_memory_comes_and_goes_under_load(self):
        self.verbs_check("stress", "--seconds 20 --qps 8", seed=9)
        for _ in range(4):
            self.kill_writer()
        self.pingpong("-n 50 -c")

    def kill_writer(self):
        """Its regions go while packets from them are on their way."""
        server, client = self.hosts[:2]
        tasks = self.writers(server, client, "-s 1048576 -q 4")
        self.await_traffic(server, *tasks)
        tasks[0].kill()
        for task in tasks:
            task.give_up()


if __name__ == "__main__":
    main()
