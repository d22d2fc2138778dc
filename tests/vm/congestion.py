# SPDX-License-Identifier: GPL-2.0-or-later
"""Congestion control between hosts: the switch marks packets, the receiver tells the sender, and
the sender slows down. Counters and capture agree about it.

The switch captures a frame when it comes in, before it marks it, so a packet's ECN field is the
sender's in the capture.
"""

import collections
import contextlib
import re
import time
import unittest

import roce_capture
from agent import Agent
from incast import get_parameters, parameters_folder, set_parameters
from scenario import RXE, Scenario, main, pair, wait_until

CNP = 0x81
ECN, ECT0 = 3, 2
DSCP = 26  # for CNPs, so that it cannot be that of anything else
INTERVAL = 20e-3
LONG_INTERVAL = 120e-3
DCQCN, TIMELY = 1, 2  # of rp_algorithm
LEAST = 8  # Mb/s
# Above any round trip here, us.
THRESHOLDS = {"rp_timely_t_high": 120000, "rp_timely_t_low": 100000}


def cnps_of(packets):
    """The CNPs of a capture, by flow: who told whom of which QP."""
    flows = collections.defaultdict(list)
    for roce in packets:
        if roce.opcode == CNP:
            flows[roce.source_mac, roce.target_mac, roce.qpn].append(roce.time)
    return flows


def allowed_cnps(marked, interval):
    """How many CNPs a flow gets for packets that were marked at these times: one for each, unless
    the last one was sent less than an interval before."""
    last, count = -interval, 0
    for time_of_mark in marked:
        if time_of_mark - last >= interval:
            last, count = time_of_mark, count + 1
    return count


@unittest.skipIf(RXE, "rxe has no congestion control")
class Congestion(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.lab.logs / "congestion.pcap"
        cls.marks = cls.lab.logs / "marks.pcapng"

    def setUp(self):
        super().setUp()
        for host in self.hosts:
            set_parameters(host, np_cnp_dscp=DSCP, np_min_time_between_cnps=round(INTERVAL * 1e6))
            self.addCleanup(set_parameters, host, np_cnp_dscp=48, np_min_time_between_cnps=4)

    def counters(self, host):
        return {name: value for name, value in host.hw_counters().items()
                if name.startswith(("np_", "rp_cnp"))}

    def marked(self):
        return int(re.search(r"marked=(\d+)", self.lab.wire.stats())[1])

    def run_marked(self, action, percent=2):
        """action() while the switch marks packets, and a capture of it. Returns what each host has
        counted, how many packets the switch has marked, and all packets. A packet that is dropped
        between them is in some of these only."""
        result, whole = self.without_drops(lambda: self.run_marked_once(action, percent))
        self.assertTrue(whole, "the wire has dropped packets each time")
        return result

    def run_marked_once(self, action, percent):
        self.settle()
        before, marked = [self.counters(host) for host in self.hosts], self.marked()
        self.lab.wire.capture(self.path)
        self.lab.wire.tell(f"ce {percent}")
        try:
            action()
            self.settle()
        finally:
            self.lab.wire.tell("ce 0")
            self.lab.wire.stop_capture()
        grown = [{name: after[name] - was[name] for name in after} for after, was in
                 zip([self.counters(host) for host in self.hosts], before)]
        return grown, self.marked() - marked, roce_capture.packets(self.path)

    def check_cnps(self, packets):
        """The rule: of each flow one CNP in an interval, and each as annex A17.9.3 has it. The
        switch's times are late by what it had to wait for a processor, so that two may seem to be
        less than an interval apart; all together they are not."""
        flows = cnps_of(packets)
        self.assertTrue(flows)
        for flow, times in flows.items():
            # One more for the first, and one for its lateness.
            self.assertLessEqual(len(times), (times[-1] - times[0]) / INTERVAL + 2, flow)
        for roce in packets:
            if roce.opcode == CNP:
                self.assertEqual(roce.body, bytes(16))
                self.assertEqual((roce.psn, roce.wants_ack), (0, False))
                self.assertEqual(roce.traffic_class, DSCP << 2)

    def test_writes(self):
        """Marked WRITEs: the receiver sends CNPs, the sender takes them."""
        (server, client), marked, packets = self.run_marked(
            lambda: self.perftest("ib_write_bw", "-s 65536 -D 3"))
        self.assertGreater(marked, 0)
        self.check_cnps(packets)
        sent = sum(roce.opcode == CNP for roce in packets)
        self.assertEqual(server["np_ecn_marked_roce_packets"], marked)
        self.assertEqual(server["np_cnp_sent"], sent)
        self.assertEqual(client["rp_cnp_handled"] + client["rp_cnp_ignored"], sent)
        self.assertGreater(client["rp_cnp_handled"], 0)
        self.assertEqual((client["np_cnp_sent"], server["rp_cnp_handled"]), (0, 0))
        # SENDs and WRITEs say that they are capable, acknowledgements do not.
        for roce in packets:
            if roce.opcode < 0x0c or roce.opcode == 0x11:
                self.assertEqual(roce.traffic_class & ECN, ECT0 if roce.opcode < 0x0c else 0)

    def test_reads(self):
        """Marked READ responses: the requester sends CNPs, the responder takes them."""
        (server, client), marked, packets = self.run_marked(
            lambda: self.perftest("ib_read_bw", "-s 65536 -D 3"))
        self.check_cnps(packets)
        self.assertEqual(client["np_ecn_marked_roce_packets"], marked)
        self.assertGreater(client["np_cnp_sent"], 0)
        self.assertGreater(server["rp_cnp_handled"], 0)

    def send_bursts(self, agents, qpns):
        """A capture of bursts of marked WRITEs by two QPs. A burst is posted at once, so it takes a
        fraction of LONG_INTERVAL, and the next one comes later than that."""
        one, two = agents
        self.lab.wire.capture(self.marks)
        self.lab.wire.add_rules(["mark opcode=WRITE"])
        try:
            for burst in range(6):
                # The second QP is quiet in every other one, and sends more at a time.
                for qpn, count in zip(qpns[0], (1 + burst, 3 * (burst % 2))):
                    if not count:
                        continue
                    one.send(local=qpn, opcode="WRITE", length=4096, rkey=two.rkey,
                             address=two.address, count=count)
                    one.completions(local=qpn, kind="send", count=count)
                time.sleep(2 * LONG_INTERVAL)
        finally:
            self.lab.wire.tell("clear")
            self.lab.wire.stop_capture()
        return roce_capture.packets(self.marks)

    def test_as_many_as_the_rule_allows(self):
        """For each flow exactly as many CNPs as its marked packets allow, with one in an interval.
        The capture has both: comments on the packets that the switch has marked, and the CNPs."""
        for host in self.hosts:
            set_parameters(host, np_min_time_between_cnps=round(LONG_INTERVAL * 1e6))
        agents = [Agent(host) for host in self.hosts]
        for agent in agents:
            self.addCleanup(agent.close)
        qpns = [[agent.create(service="RC") for _ in range(2)] for agent in agents]
        for end, agent in enumerate(agents):
            for local, remote in zip(qpns[end], qpns[1 - end]):
                agent.connect(
                    local=local, qpn=remote, psn=0, rq_psn=0, mtu=3, qkey=0,
                    gid=f"0000:0000:0000:0000:0000:ffff:0a4d:{self.hosts[1 - end].index:04x}",
                    gid_index=self.hosts[end].gid_index(agent.device))
        for _ in range(self.CHANCES):
            before = self.counters(self.hosts[1])
            packets = self.send_bursts(agents, qpns)
            after = self.counters(self.hosts[1])
            marked = [[roce.time for roce in packets if roce.qpn == qpn and any(
                comment.startswith("fault: mark") for comment in roce.comments)]
                for qpn in qpns[1]]
            # A process that waits for a processor makes a burst longer, and a receiver that waits
            # in the middle of one rightly sends two CNPs. If that matters, again.
            allowed = [{allowed_cnps(times, LONG_INTERVAL * share) for share in (0.6, 1, 1.5)}
                       for times in marked]
            sent = [sum(roce.opcode == CNP and roce.qpn == qpn for roce in packets)
                    for qpn in qpns[0]]
            if (allowed, sent) == ([{6}, {3}], [6, 3]):
                break
        self.assertEqual((allowed, sent), ([{6}, {3}], [6, 3]))
        self.assertEqual(after["np_cnp_sent"] - before["np_cnp_sent"], sum(sent))
        self.assertEqual(after["np_ecn_marked_roce_packets"]
                         - before["np_ecn_marked_roce_packets"], sum(map(len, marked)))

    @contextlib.contextmanager
    def stream(self, rule):
        """The second host writes to the first one, and the switch has this rule."""
        server, client = self.hosts
        command = "exec ib_write_bw -s 65536 -D 600"
        tasks = [server.spawn(f"{command} {self.patient(server)}")]
        self.lab.wire.add_rules([rule])
        try:
            pair.await_listener(server, pair.PERFTEST_PORT, tasks[0])
            tasks.append(client.spawn(f"{command} {self.patient(client)} {server.ipv4}"))
            yield
        finally:
            self.lab.wire.tell("clear")
            for task in tasks:
                task.give_up()

    @staticmethod
    def sending_rate(host):
        """Returns the rate at which a host's card sends now, Mb/s."""
        counter = f"/sys/class/infiniband/{host.rdma_device()}/ports/1/hw_counters/sent_bytes"
        # By the host's clock, which is read next to the counter.
        said = host.run(f"for n in 1 2; do echo $(cat {counter}) ${{EPOCHREALTIME/./}}; "
                        "[ $n = 2 ] || sleep 1; done").out
        (sent, begun), (more, ended) = (map(int, line.split()) for line in said.splitlines())
        return (more - sent) * 8 / (ended - begun)

    def check_slow(self, client):
        """The rate goes down to the least one."""
        self.assertTrue(wait_until(lambda: 0 < self.sending_rate(client) < 2 * LEAST, 60),
                        self.sending_rate(client))

    def check_fast(self, client):
        self.assertTrue(wait_until(lambda: self.sending_rate(client) > 10 * LEAST, 60),
                        self.sending_rate(client))

    def change(self, host, **parameters):
        """set_parameters() until the end of the test."""
        self.addCleanup(set_parameters, host, **get_parameters(host, parameters))
        set_parameters(host, **parameters)

    def test_slows_down(self):
        """A sender that is told of congestion all the time goes down to the least rate, and sends
        as fast as it can without congestion control."""
        client = self.hosts[1]
        set_parameters(self.hosts[0], np_min_time_between_cnps=1000)
        self.change(client, rp_algorithm=DCQCN, rp_min_rate=LEAST, rp_time_reset=100000,
                    rp_byte_reset=0,
                    rp_dce_tcp_rtt=1000)  # alpha stays at 1: each CNP halves the rate
        with self.stream("mark"):
            self.check_slow(client)
            set_parameters(client, rp_algorithm=0)
            self.check_fast(client)

    def test_round_trips(self):
        """TIMELY: a sender whose round trips are longer than the upper threshold goes down to the
        least rate, and without a CNP. With a lower threshold above them it sends fast again."""
        client = self.hosts[1]
        before = self.counters(client)
        self.change(client, rp_algorithm=TIMELY, rp_min_rate=LEAST,
                    **get_parameters(client, THRESHOLDS))
        with self.stream("delay by=5ms opcode=ACK"):
            self.check_slow(client)
            set_parameters(client, **THRESHOLDS)
            self.check_fast(client)
        self.assertEqual(self.counters(client), before)

    def test_parameters(self):
        """What mlx5 has, by its names; a value out of range is refused."""
        host = self.hosts[0]
        names = host.run(f"ls {parameters_folder(host)}").out.split()
        self.assertLessEqual({
            "rp_clamp_tgt_rate", "rp_clamp_tgt_rate_ati", "rp_time_reset", "rp_byte_reset",
            "rp_threshold", "rp_ai_rate", "rp_max_rate", "rp_hai_rate", "rp_min_dec_fac",
            "rp_min_rate", "rp_rate_to_set_on_first_cnp", "rp_dce_tcp_g", "rp_dce_tcp_rtt",
            "rp_rate_reduce_monitor_period", "rp_initial_alpha_value", "rp_gd",
            "np_min_time_between_cnps", "np_cnp_dscp", "np_cnp_prio_mode", "np_cnp_prio"},
            set(names))
        self.assertEqual(get_parameters(host, ["np_cnp_dscp"]), {"np_cnp_dscp": DSCP})
        set_parameters(host, np_cnp_prio_mode=1)
        set_parameters(host, np_cnp_prio=5)
        self.assertEqual(get_parameters(host, ["np_cnp_prio", "np_cnp_prio_mode"]),
                         {"np_cnp_prio": 5, "np_cnp_prio_mode": 0})
        refused = host.run(f"echo 64 >{parameters_folder(host)}/np_cnp_dscp", check=False)
        self.assertNotEqual(refused.code, 0)
        self.assertIn("Invalid argument", refused.err)
        self.assertEqual(get_parameters(host, ["np_cnp_dscp"]), {"np_cnp_dscp": DSCP})


if __name__ == "__main__":
    main()
