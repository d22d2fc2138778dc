# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripted faults between hosts, set by `lab faults`: what each does, exactly, by the cards'
counters and by the capture.

One message of known PSNs is sent at a time, so that each fault has one known consequence.
"""

import json
import subprocess
import unittest

import roce_capture
from agent import Agent
from scenario import RXE, Scenario, main, wait_until
from ternlab import ladder
from ternlab.paths import SCRIPTS

LAB = SCRIPTS / "lab"
# IBA vol. 1, table 38.
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, ACKNOWLEDGE, CNP = 6, 7, 8, 0x11, 0x81
READ_REQUEST = 0x0c
SEQUENCE_ERROR = 0x60
MTU, PACKETS, FIRST = 1024, 12, 100
LENGTH = MTU * PACKETS
# So that no timer ends because this machine is busy: one of 4.5 s where it shall end once, and one
# of 17.4 s where it shall not.
TIMEOUT, LONG_TIMEOUT = 20, 22
PEACE = {"roce_retrans_pkts": 0, "local_ack_timeout_err": 0, "packet_seq_err": 0,
         "implied_nak_seq_err": 0, "rx_icrc_encapsulated": 0, "rx_malformed": 0,
         "duplicate_request": 0, "out_of_sequence": 0, "sent_seq_err": 0, "duplicate_ack": 0,
         "req_cqe_error": 0, "np_ecn_marked_roce_packets": 0, "np_cnp_sent": 0,
         "rp_cnp_handled": 0, "rp_cnp_ignored": 0}


@unittest.skipIf(RXE, "rxe counts little")
class Faults(Scenario):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.agents = []
        for host in cls.hosts:
            cls.agents.append(Agent(host))
            cls.addClassCleanup(cls.agents[-1].close)
        cls.path = cls.lab.logs / "faults.pcapng"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.faults, "--clear")

    def faults(self, *words):
        done = subprocess.run([LAB, "--lab", self.lab.name, "faults", *map(str, words)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def connect(self, timeout):
        """A new pair of QPs, which send from FIRST on."""
        qpns = [agent.create(service="RC") for agent in self.agents]
        for end, agent in enumerate(self.agents):
            self.addCleanup(agent.destroy, local=qpns[end])
            peer = self.hosts[1 - end]
            agent.connect(
                local=qpns[end], qpn=qpns[1 - end], psn=FIRST, rq_psn=FIRST, mtu=3, qkey=0,
                gid=f"0000:0000:0000:0000:0000:ffff:0a4d:{peer.index:04x}",
                gid_index=self.hosts[end].gid_index(agent.device), timeout=timeout)
        return qpns

    def counters(self):
        return [{name: table[name] for name in PEACE}
                for table in (host.hw_counters() for host in self.hosts)]

    def transfer(self, opcode, length, qpns):
        """One message from the first host, or read by it, with its data."""
        one, two = self.agents
        source, target = (two, one) if opcode == "READ" else (one, two)
        source.fill(offset=0, length=length, seed=3)
        target.zero(offset=0, length=length)
        one.send(local=qpns[0], opcode=opcode, offset=0, length=length, rkey=two.rkey,
                 address=two.address)
        one.completions(local=qpns[0], kind="send")
        self.assertTrue(target.check(offset=0, length=length, seed=3))

    def run_with(self, *rules, opcode="WRITE", timeout=LONG_TIMEOUT, length=LENGTH, qpns=None):
        """transfer() under these rules, by a new pair of QPs or by these. Returns what each host
        has counted beyond nothing, and the RoCE packets of the capture."""
        qpns = qpns or self.connect(timeout)
        for rule in rules:
            self.faults(*rule)
        self.settle()
        before = self.counters()
        self.lab.wire.capture(self.path)
        try:
            self.transfer(opcode, length, qpns)
            self.settle()
        finally:
            self.lab.wire.stop_capture()
        grown = [{name: after[name] - was[name] for name in after if after[name] != was[name]}
                 for after, was in zip(self.counters(), before)]
        return (*grown, roce_capture.packets(self.path))

    @staticmethod
    def naks(packets):
        return [packet for packet in packets
                if packet.opcode == ACKNOWLEDGE and packet.syndrome >> 5 == 3]

    @staticmethod
    def noted(packets):
        """(PSN, what happened) of the packets with a fault."""
        return [(packet.psn, comment.split(",")[0]) for packet in packets
                for comment in packet.comments]

    def requests(self, packets):
        return [packet.psn for packet in packets if packet.opcode in (
            WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST)]

    def test_peace(self):
        """Without a fault nothing of this happens, so the other tests count it all."""
        one, two, packets = self.run_with()
        self.assertEqual((one, two, self.noted(packets)), ({}, {}, []))
        self.assertEqual(self.requests(packets), list(range(FIRST, FIRST + PACKETS)))

    def test_drop(self):
        """One NAK, and everything from the lost packet on is sent again."""
        one, two, packets = self.run_with(["--drop", "opcode=WRITE psn=+4", "--once"])
        lost = FIRST + 4
        self.assertEqual(self.noted(packets), [(lost, "fault: drop")])
        self.assertEqual([(nak.psn, nak.syndrome) for nak in self.naks(packets)],
                         [(lost, SEQUENCE_ERROR)])
        sent = self.requests(packets)
        again = sent[sent.index(lost, sent.index(lost) + 1):]
        self.assertEqual(again, list(range(lost, FIRST + PACKETS)))
        self.assertEqual(one, {"roce_retrans_pkts": len(again), "packet_seq_err": 1})
        self.assertEqual(two, {"out_of_sequence": 1, "sent_seq_err": 1})
        self.assertEqual(self.faults(), [
            "rule {}: drop opcode=WRITE psn=+4 once: matched 1, hit 1, will not act again".format(
                self.rule_number())])
        lines = ladder.text(ladder.steps(ladder.read(self.path)))
        self.assertEqual(len([line for line in lines if f"PSN {lost}, dropped --X" in line]), 1)
        self.check_log(lost)

    def rule_number(self):
        return int(self.faults()[0].split(":")[0].removeprefix("rule "))

    def check_log(self, lost):
        entry = json.loads(self.faults("--log")[-1])
        self.assertEqual((entry["from"], entry["to"], entry["action"], entry["psn"]),
                         ("host1", "host2", "drop", lost))
        self.assertEqual(entry["opcode"], "RC_WRITE_MIDDLE")
        self.assertEqual(entry["cause"], f"rule {self.rule_number()}")

    def test_drop_a_retransmission_too(self):
        """The receiver sends one NAK for a gap, so that only the timer helps then."""
        one, two, packets = self.run_with(
            ["host1", "--drop", "opcode=WRITE psn=+4 retransmission=no"],
            ["--drop", "opcode=WRITE psn=+4 retransmission=yes", "--once"], timeout=TIMEOUT)
        lost = FIRST + 4
        self.assertEqual(self.noted(packets), [(lost, "fault: drop")] * 2)
        self.assertEqual(len(self.naks(packets)), 1)
        self.assertEqual(self.requests(packets).count(lost), 3)
        self.assertEqual((one["packet_seq_err"], one["local_ack_timeout_err"]), (1, 1))
        self.assertEqual(two["sent_seq_err"], 1)

    def test_drop_the_last(self):
        """Nothing follows, so nobody notices the gap: the timer ends."""
        one, two, packets = self.run_with(["--drop", "opcode=WRITE_LAST", "--once"],
                                          timeout=TIMEOUT)
        self.assertEqual(self.noted(packets), [(FIRST + PACKETS - 1, "fault: drop")])
        self.assertEqual(self.naks(packets), [])
        self.assertEqual(one["local_ack_timeout_err"], 1)
        self.assertEqual(one["roce_retrans_pkts"], len(self.requests(packets)) - PACKETS)
        self.assertNotIn("sent_seq_err", two)

    def test_drop_a_response(self):
        """The requester asks again for what a gap in a READ leaves."""
        one, two, packets = self.run_with(
            ["--drop", "opcode=READ_RESPONSE psn=+3 from=host2", "--once"], opcode="READ")
        self.assertEqual(self.noted(packets), [(FIRST + 3, "fault: drop")])
        self.assertEqual([packet.psn for packet in packets if packet.opcode == READ_REQUEST],
                         [FIRST, FIRST + 3])
        self.assertEqual(one["implied_nak_seq_err"], 1)
        self.assertEqual(two, {"duplicate_request": 1})

    def test_corrupt(self):
        """A wrong ICRC, which is as a loss."""
        one, two, packets = self.run_with(["--corrupt", "opcode=WRITE nth=3"])
        self.assertEqual(self.noted(packets), [(FIRST + 2, "fault: corrupt")])
        self.assertEqual((two["rx_icrc_encapsulated"], two["sent_seq_err"]), (1, 1))
        self.assertEqual(one["packet_seq_err"], 1)

    def test_mark(self):
        """The receiver counts the mark and sends a CNP, which the sender takes."""
        one, two, packets = self.run_with(["--mark", "to=host2 opcode=RC_WRITE_MIDDLE", "--once"])
        self.assertEqual(self.noted(packets), [(FIRST + 1, "fault: mark")])
        self.assertEqual(sum(packet.opcode == CNP for packet in packets), 1)
        self.assertEqual(two, {"np_ecn_marked_roce_packets": 1, "np_cnp_sent": 1})
        self.assertEqual(one, {"rp_cnp_handled": 1})

    def test_duplicate(self):
        """A duplicate is acknowledged again and does no harm."""
        one, two, packets = self.run_with(["--duplicate", "opcode=WRITE psn=+2"])
        self.assertEqual(self.noted(packets), [(FIRST + 2, "fault: duplicate")])
        self.assertEqual(two, {"duplicate_request": 1})
        self.assertNotIn("roce_retrans_pkts", one)

    def test_reorder(self):
        """The packet comes behind the two that followed it: the receiver asks for it, takes it when
        it comes, and asks for the next one, which it has dropped meanwhile."""
        one, two, packets = self.run_with(["--reorder", "opcode=WRITE psn=+4 retransmission=no",
                                           "--by", "2"])
        late = FIRST + 4
        self.assertEqual(self.noted(packets), [(late, "fault: reorder 2")])
        self.assertEqual([(nak.psn, nak.syndrome) for nak in self.naks(packets)],
                         [(late, SEQUENCE_ERROR), (late + 1, SEQUENCE_ERROR)])
        self.assertEqual((one["packet_seq_err"], two["sent_seq_err"]), (2, 2))

    def test_every_third_of_a_qp(self):
        """A rule that counts packets, of one QP alone."""
        qpns, others = self.connect(LONG_TIMEOUT), self.connect(LONG_TIMEOUT)
        rule = ["--mark", f"opcode=WRITE qp={qpns[1]}", "--every", "3"]
        _, _, packets = self.run_with(rule, qpns=qpns)
        self.assertEqual(self.noted(packets),
                         [(FIRST + n, "fault: mark") for n in range(2, PACKETS, 3)])
        _, _, packets = self.run_with(qpns=others)
        self.assertEqual(self.noted(packets), [])

    def test_delayed_acknowledgement(self):
        """The timer ends before it comes, and what is sent again is a duplicate. So is it itself,
        when it comes."""
        begun = self.counters()[0]["duplicate_ack"]
        one, two, packets = self.run_with(
            ["--delay", "opcode=ACK from=host2", "--by", "12s", "--once"], timeout=TIMEOUT,
            length=MTU)
        self.assertEqual(self.noted(packets), [(FIRST, "fault: delay 12000000us")])
        self.assertEqual((one["local_ack_timeout_err"], one["roce_retrans_pkts"]), (1, 1))
        self.assertEqual(two, {"duplicate_request": 1})
        self.assertIn("delayed by 12000 ms", "\n".join(
            ladder.text(ladder.steps(ladder.read(self.path)))))
        self.assertTrue(wait_until(
            lambda: self.counters()[0]["duplicate_ack"] == begun + 1, 30))

    def test_rules_from_a_file(self):
        """One drops, and the other one counts what that leads to."""
        path = self.lab.logs / "rules.toml"
        path.write_text('[[rule]]\naction = "drop"\nopcode = "WRITE"\npsn = "+1"\nonce = true\n'
                        '[[rule]]\naction = "count"\nfrom = "host2"\nopcode = "NAK"\n',
                        encoding="utf-8")
        one, _, packets = self.run_with(["--file", path])
        self.assertEqual(self.noted(packets), [(FIRST + 1, "fault: drop"),
                                               (FIRST + 1, "fault: count")])
        self.assertEqual(one["packet_seq_err"], 1)
        self.assertEqual([line.split(": ")[2] for line in self.faults()],
                         ["matched 1, hit 1, will not act again", "matched 1, hit 1"])


if __name__ == "__main__":
    main()
