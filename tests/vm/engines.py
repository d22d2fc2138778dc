# SPDX-License-Identifier: GPL-2.0-or-later
"""Cards of two engines: every service on each, among them, and with Soft-RoCE."""

import json
import re

from programs import Programs
from incast import streams
from scenario import NETDEV, Options, PATIENT, main, pair, wait_until

ENGINE_SHIFT = 20  # of a QPN: include/tern/tern_hw.h
CARD = Options(wire="shm", nic_options="engines=2")
# Engine 0 alone has QPs of raw frames, which these cases make, too.
RAW = ("raw", "raw-vlan", "raw-udp", "raw-counters", "raw-flow-goes", "raw-flows-refused",
       "life-raw", "errno-wq", "paced", "paced-refused")


class Engines(Programs):
    HOSTS = (CARD, CARD, Options(nic="virtio"))

    # --- who runs where

    def contexts(self, host):
        said = host.run(f"rdma -j resource show ctx dev {self.devices[host.name]}").out
        return len(json.loads(said or "[]"))

    def next_is_second(self, *hosts):
        """What is started next runs on engine 1: something that does nothing is on engine 0."""
        for host in hosts:
            before = self.contexts(host)
            task = host.spawn(f"ibv_asyncwatch -d {self.devices[host.name]}")
            self.addCleanup(task.give_up)
            self.assertTrue(wait_until(lambda: self.contexts(host) == before + 1, 20))

    def engines_in_use(self, host):
        """Of the QPs that programs have there."""
        said = host.run(f"rdma -j resource show qp link {self.devices[host.name]}").out
        return {qp["lqpn"] >> ENGINE_SHIFT for qp in json.loads(said or "[]") if "pid" in qp}

    def run_pingpong(self, program, arguments, server, client):
        def command(host):
            return f"{PATIENT} {program} {arguments} {self.verbs(host, option='-g')}"

        said = pair.run_both(server, command(server), client,
                             f"{command(client)} {server.ipv4}")
        own_qpn = r"(?m)^ *local.* QPN (?:RECV )?(?:0x)?([0-9a-f]+)"
        return [{int(qpn, 16) >> ENGINE_SHIFT for qpn in re.findall(own_qpn, half)}
                for half in said]

    # --- programs

    def test_pingpongs(self):
        one, two = self.hosts[:2]
        programs = {"ibv_rc_pingpong": "-c -n 50 -s 10000", "ibv_uc_pingpong": "-c -n 50 -s 10000",
                    "ibv_ud_pingpong": "-c -n 50", "ibv_srq_pingpong": "-c -n 20 -q 8",
                    "ibv_xsrq_pingpong": "-n 10"}
        self.next_is_second(one)
        for program, arguments in programs.items():
            with self.cell(f"{program}, engine 1 to 0", self.COLUMNS[0]):
                self.assertEqual(self.run_pingpong(program, arguments, one, two), [{1}, {0}])
        self.next_is_second(two)
        for program, arguments in programs.items():
            with self.cell(f"{program}, engine 1 to 1", self.COLUMNS[0]):
                self.assertEqual(self.run_pingpong(program, arguments, one, two), [{1}, {1}])

    def check(self, *hosts, skip=()):
        self.verbs_check("all", f"--seconds 2 --skip {','.join((*RAW, *skip))}", hosts, timeout=400)

    def test_every_case_on_second_engines(self):
        for host in self.hosts[:2]:
            host.run("modprobe vgem")
        self.next_is_second(*self.hosts[:2])
        with self.cell("tern_verbs_check, engine 1", self.COLUMNS[0]):
            self.check(*self.hosts[:2])

    def test_between_engines_of_a_card(self):
        """The client's engine is the one that the server has not."""
        host = self.hosts[0]
        host.run("modprobe vgem")
        with self.cell("tern_verbs_check, engine 0 and 1", self.COLUMNS[1]):
            # A sender that wants no loopback is heard by the other engine.
            self.check(host, host, skip=["ud-no-loopback"])
        with self.cell("ib_write_bw, engine 0 and 1", self.COLUMNS[1]):
            self.perftest("ib_write_bw", "-a -n 10", hosts=(host, host))

    def test_side_by_side(self):
        """Two pairs of programs at once, each on engines of its own."""
        one, two = self.hosts[:2]
        with (self.cell("ib_write_bw, twice at once", self.COLUMNS[0]),
              streams(one, [two, two]) as tasks):
            for host in (one, two):
                self.assertTrue(wait_until(lambda h=host: self.engines_in_use(h) == {0, 1}, 60))
            self.await_traffic(two, *tasks)

    def test_rdma_cm(self):
        """The GSI is engine 0's, the connection engine 1's."""
        self.next_is_second(*self.hosts[:2])
        with self.cell("rping, engine 1", self.COLUMNS[0]):
            self.rping(self.hosts[:2], "-C 200 -S 1000")

    def test_multicast(self):
        """A datagram to a group reaches members on both engines, and of the sender's own card."""
        one, two = self.hosts[:2]
        common = "mckey -m 239.1.2.7 -C 20 -S 500"
        receivers = [(host, f"/tmp/mckey{n}") for n in range(2) for host in (one, two)]
        with self.cell("mckey, a receiver on each engine", self.COLUMNS[0]):
            tasks = []
            for host, said in receivers:
                tasks.append(host.spawn(f"stdbuf -oL {common} -b {host.ipv4} >{said} 2>&1"))
                self.addCleanup(lambda t=tasks[-1]: t.running() and print(t.give_up()))
                self.assertTrue(wait_until(
                    lambda h=host, s=said: "joined" in h.run(f"cat {s}", check=False).out, 20))
            for host in (one, two):
                self.assertEqual(self.engines_in_use(host), {0, 1})
            two.run(f"{common} -b {two.ipv4} -s")
            for task, (host, said) in zip(tasks, receivers):
                task.wait(timeout=20)
                self.assertIn("data transfers complete", host.run(f"cat {said}").out)

    def test_soft_roce(self):
        """A peer that knows of no engines reaches each, by the switch."""
        card, rxe = self.hosts[0], self.hosts[2]
        self.next_is_second(card)
        for hosts, title in (((card, rxe), "rxe to engine 1"), ((rxe, card), "engine 1 to rxe")):
            for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
                with self.cell(f"{program}, {title}", self.COLUMNS[0]):
                    reads = "-o 16" if program == "ib_read_bw" else ""  # as many as both can
                    self.perftest(program, f"-s 65536 -n 20 -m 1024 {reads}", hosts=hosts)

    def test_raw_frames_on_the_first_only(self):
        host = self.hosts[0]
        self.next_is_second(host)
        said = host.run("strace -e trace=ioctl raw_ethernet_bw --server -n 5 -d "
                        f"{self.devices[host.name]} -E 02:00:00:00:00:01 -B 02:00:00:00:00:02 2>&1",
                        check=False).out
        self.assertIn("EOPNOTSUPP", said)
        self.assertIn("Unable to create QP", said)

    def test_xrc_domain_of_another_engine(self):
        """Two clients on one host share a domain; the second is on the other engine."""
        one, two = self.hosts[:2]

        def command(host):
            return f"ibv_xsrq_pingpong -n 10 {self.verbs(host, option='-g')}"

        server = one.spawn(f"{command(one)} -c 2")
        self.addCleanup(server.give_up)
        pair.await_listener(one, pair.PERFTEST_PORT, server)
        first = two.spawn(f"{command(two)} {one.ipv4}")
        self.addCleanup(first.give_up)
        self.assertTrue(wait_until(lambda: self.engines_in_use(two) == {0}, 20))
        said = two.run(f"strace -e trace=ioctl {command(two)} {one.ipv4} 2>&1", check=False)
        self.assertNotEqual(said.code, 0)
        self.assertIn("EINVAL", said.out)
        self.assertRegex(said.out, "(?i)(couldn't|failed to) (create|open).*SRQ")

    # --- the card as a whole

    def test_counters_are_sums(self):
        one, two = self.hosts[:2]

        def sends(host):
            return host.hw_counter("rx_send_requests")

        before = sends(one)
        self.run_pingpong("ibv_rc_pingpong", "-n 100", one, two)
        self.next_is_second(one)
        self.run_pingpong("ibv_rc_pingpong", "-n 100", one, two)
        self.assertEqual(sends(one) - before, 200)

    def test_ethernet(self):
        one, two = self.hosts[:2]
        for source, target in ((one, two), (two, one), (one, self.hosts[2])):
            self.ping(source, target.ipv4)
            self.transfer(source, target)

    def test_reset(self):
        """Through PCI, which resets all engines, with one in use."""
        one, two = self.hosts[:2]
        self.next_is_second(one)
        task = one.spawn(f"stdbuf -oL ibv_asyncwatch -d {self.devices[one.name]}")
        self.assertTrue(wait_until(lambda: self.contexts(one) == 2, 20))
        one.run(f"echo 1 >/sys/class/net/{NETDEV}/device/reset")
        one.configure()
        self.devices[one.name] = one.rdma_device()
        self.assertEqual(self.contexts(one), 0)
        heard = wait_until(lambda: "DEVICE_FATAL" in task.said(), 30)
        self.assertTrue(heard, task.give_up())
        task.give_up()
        with self.cell("ibv_rc_pingpong after a reset", self.COLUMNS[0]):
            self.assertEqual(self.run_pingpong("ibv_rc_pingpong", "-n 50", one, two), [{0}, {0}])


if __name__ == "__main__":
    main()
