# SPDX-License-Identifier: GPL-2.0-or-later
"""A wire that loses and reorders one frame in a hundred: RC programs end with their data whole,
and the counters tell what happened, as the capture shows it.

The switch captures a frame when it comes in, before faults have their way with it: the capture has
all that each card sent, so what a card counts of its own sending must agree exactly.
"""

import collections
import re

import roce_capture
from agent import Agent
from programs import Programs
from scenario import LabError, RXE, main

LOSS = {"loss": 1, "reorder": 1}
# IBA vol. 1, table 38; the service is in the upper three bits, here 0 for RC or 5 for XRC.
REQUESTS = set(range(0x0d)) | {0x13, 0x14, 0x16, 0x17}
READ_REQUEST, ACKNOWLEDGE = 0x0c, 0x11
PSNS = 1 << 24


def is_request(roce):
    return roce.opcode >> 5 in (0, 5) and roce.opcode & 0x1f in REQUESTS


def distance(psn, other):
    """psn - other, in serial arithmetic."""
    return (psn - other + PSNS // 2) % PSNS - PSNS // 2


class Sender:
    """What one card did as the requester, according to the wire."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.next = {}   # the first PSN not yet sent, by destination
        self.last = {}   # the last PSN that was
        self.again = self.jumps = 0

    def see(self, roce):
        key = roce.target_mac, roce.qpn
        packets = 1
        if roce.opcode & 0x1f == READ_REQUEST:
            skip = 4 if roce.opcode >> 5 else 0  # XRC's header comes first
            length = int.from_bytes(roce.body[skip + 12:skip + 16], "big")
            packets = max(1, -(-length // self.mtu))
        fresh = self.next.setdefault(key, roce.psn)
        if distance(roce.psn, fresh) < 0:
            self.again += 1
            self.jumps += distance(roce.psn, self.last[key]) <= 0
        end = (roce.psn + packets) % PSNS
        if distance(end, fresh) > 0:
            self.next[key] = end
        self.last[key] = roce.psn


class Lossy(Programs):
    """Each program runs on a bad wire; capture and counters are compared after each."""

    COLUMNS = ("result", "sent again", "lost", "seq NAKs", "RNR NAKs")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.lab.logs / "lossy.pcap"

    def setUp(self):
        super().setUp()
        self.lab.wire.tell("seed 5")
        for fault, percent in LOSS.items():
            self.lab.wire.tell(f"{fault} {percent}")
            self.addCleanup(self.lab.wire.tell, f"{fault} 0")

    def lost(self):
        """By the faults, and because a receiver did not take its frames for a second."""
        return self.lab.wire.counters()["lost"] + self.dropped()

    def not_captured(self):
        """What the cards have dropped because the switch did not take it."""
        return self.lab.wire.counters()["direct_lost"]

    def bad_wire(self, row, action, mtu=4096):
        """action() between two hosts, and then the balance."""
        for _ in range(self.CHANCES):
            not_captured = self.not_captured()
            grown, lost = self.measure(row, action)
            if self.not_captured() == not_captured:
                break
        if not RXE:  # which counts little
            self.balance(row, grown, lost, mtu)

    def measure(self, row, action):
        """action() and a capture of it. Returns what each host has counted, and the lost frames."""
        self.settle()
        before = [host.hw_counters() for host in self.hosts]
        lost = self.lost()
        self.orphaned = False
        self.lab.wire.capture(self.path)
        try:
            with self.cell(row, "result"):
                action()
            self.settle()
        finally:
            self.lab.wire.stop_capture()
        lost = self.lost() - lost
        return [{name: after[name] - was.get(name, 0) for name in after} for after, was in
                zip([host.hw_counters() for host in self.hosts], before)], lost

    def balance(self, row, grown, lost, mtu):
        packets = roce_capture.packets(self.path)
        sums = collections.Counter()
        for host, counted in zip(self.hosts, grown):
            mac = f"52:54:00:77:00:{host.index:02x}"
            mine = [roce for roce in packets if roce.source_mac == mac]
            sender = Sender(mtu)
            for roce in filter(is_request, mine):
                sender.see(roce)
            acks = [roce for roce in mine if roce.opcode & 0x1f == ACKNOWLEDGE]
            seen = {
                "sent_pkts": len(mine),
                "roce_retrans_pkts": sender.again,
                "sent_seq_err": sum(roce.syndrome == 0x60 for roce in acks),
                "send_rnr_err": sum(roce.syndrome >> 5 == 1 for roce in acks),
                "resp_remote_invalid_request": sum(roce.syndrome == 0x61 for roce in acks),
            }
            with self.subTest(f"{row}, {host.name}: counters and capture"):
                self.assertEqual({name: counted[name] for name in seen}, seen)
                # Each time that it went back had a cause, which it counted.
                causes = sum(counted[name] for name in (
                    "local_ack_timeout_err", "packet_seq_err", "rcvd_rnr_err",
                    "implied_nak_seq_err"))
                self.assertLessEqual(sender.jumps, causes)
            sums.update(counted)

        with self.subTest(f"{row}: what both hosts count"):
            # On their way some are lost, NAKs among them; nothing is made up.
            self.assertLessEqual(sums["rcvd_pkts"], sums["sent_pkts"])
            self.assertGreaterEqual(sums["rcvd_pkts"], sums["sent_pkts"] - lost)
            for received, sent in (("packet_seq_err", "sent_seq_err"),
                                   ("rcvd_rnr_err", "send_rnr_err")):
                self.assertLessEqual(sums[received], sums[sent])
            # A gap is noticed by a packet behind it, and reordering makes gaps, too.
            self.assertLessEqual(sums["sent_seq_err"], sums["out_of_sequence"])
            if not self.orphaned:
                self.assertEqual(sums["req_cqe_error"] + sums["retry_exceeded_err"], 0)
        for column, name in (("sent again", "roce_retrans_pkts"), ("seq NAKs", "sent_seq_err"),
                             ("RNR NAKs", "send_rnr_err")):
            self.table.set(row, column, str(sums[name]))
        self.table.set(row, "lost", str(lost))
        self.totals.update(sums, lost=lost)

    totals = collections.Counter()
    orphaned = False  # a program's peer has gone before its last acknowledgement came through

    def pingpong_row(self, program, arguments):
        self.bad_wire(f"{program} {arguments}",
                      lambda: self.patient_pingpong(program, arguments), mtu=1024)

    def patient_pingpong(self, program, arguments):
        """The half that has received all ends; when its last acknowledgement is lost, nobody
        answers the other's retries. Then once more."""
        for chances in reversed(range(3)):
            try:
                self.any_pingpong(program, arguments, self.hosts, timeout=120)
                return
            except LabError as error:
                if not chances or not re.search(
                        "retry counter exceeded(?s:.*)exit code 0|"
                        "exit code 0(?s:.*)retry counter exceeded", str(error)):
                    raise
                self.orphaned = True

    def test_pingpongs(self):
        self.pingpong_row("ibv_rc_pingpong", "-c -n 100 -s 20000")
        self.pingpong_row("ibv_rc_pingpong", "-c -e -n 100")
        self.pingpong_row("ibv_srq_pingpong", "-c -n 30 -q 8")

    def test_xrc(self):
        self.skip_on_rxe("no XRC")
        self.bad_wire("ibv_xsrq_pingpong", lambda: self.patient_pingpong(
            "ibv_xsrq_pingpong", "-n 50 -s 10000"), mtu=2048)
        self.bad_wire("ib_write_bw -c XRC", lambda: self.perftest(
            "ib_write_bw", "-c XRC -s 65536 -n 50"))

    def test_perftest(self):
        for program, arguments in (
                ("ib_write_bw", "-s 65536 -n 50"), ("ib_send_bw", "-s 65536 -n 50"),
                ("ib_read_bw", "-s 65536 -n 50"), ("ib_atomic_bw", "-n 200"),
                ("ib_send_bw", "-s 4096 -n 100 -q 4 -b")):
            self.bad_wire(f"{program} {arguments}",
                          lambda: self.perftest(program, arguments, timeout=180))

    def test_stress(self):
        """Random requests of every kind, all data compared."""
        def stress():
            self.verbs_check("stress", "--seconds 8 --qps 4", seed=8)

        before = self.totals.copy()
        self.bad_wire("tern_verbs_check stress", stress)
        if not RXE:
            # Enough has happened that each kind of trouble did.
            grown = self.totals - before
            for name in ("lost", "roce_retrans_pkts", "packet_seq_err", "sent_seq_err",
                         "out_of_sequence", "duplicate_request"):
                self.assertGreater(grown[name], 0, name)

    def test_late_receives(self):
        """A receiver that is not ready: RNR NAKs, and the message in the end."""
        def late():
            agents = [Agent(host, self.devices[host.name]) for host in self.hosts]
            try:
                qpns = [agent.create(service="RC") for agent in agents]
                for end in (0, 1):
                    host, peer = self.hosts[end], self.hosts[1 - end]
                    index = host.gid_index(self.devices[host.name])
                    gid = "0000:" * 5 + "ffff:0a4d:{:04x}".format(peer.index)
                    agents[end].connect(local=qpns[end], qpn=qpns[1 - end], psn=1, rq_psn=1,
                                        gid=gid, gid_index=index, mtu=5, qkey=0,
                                        min_rnr_timer=16)
                agents[0].fill(offset=0, length=30000, seed=1)
                for _ in range(5):
                    agents[0].send(local=qpns[0], opcode="SEND", offset=0, length=30000)
                    agents[1].zero(offset=0, length=30000)
                    agents[1].receive(local=qpns[1], offset=0, length=30000)
                    for end, kind in ((0, "send"), (1, "receive")):
                        agents[end].completions(local=qpns[end], kind=kind)
                    self.assertTrue(agents[1].check(offset=0, length=30000, seed=1))
            finally:
                for agent in agents:
                    agent.close()

        before = self.totals.copy()
        self.bad_wire("SEND before its receive", late)
        if not RXE:
            self.assertGreater((self.totals - before)["rcvd_rnr_err"], 0)

    def test_rdma_cm(self):
        """Its datagrams are lost, too, and sent again after seconds."""
        self.bad_wire("rping", lambda: self.rping(self.hosts, "-C 60 -S 10000"), mtu=4096)
        self.bad_wire("rstream", lambda: self.stream(
            self.hosts, "rstream", "-S 65536 -C 50 -I 2"), mtu=4096)


if __name__ == "__main__":
    main()
