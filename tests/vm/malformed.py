# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that no peer should send, from outside, at a card in use.

Each kind has its own counter, and only that one moves. What the specification wants refused is
answered by the right NAK, all else is dropped without a word. The victim is a QP whose peer is
tests/vm/outsider.py; the card's other QPs, which two programs keep busy with data that they
compare, must not notice.
"""

import concurrent.futures
import itertools
import random
import re
import struct
import threading

from agent import Agent
from outsider import IPV4, IPV6, MAC, Outsider, Packet
from programs import Programs
from scenario import NETDEV, main, pair, wait_until

# IBA vol. 1, table 38.
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0x00, 0x01, 0x02, 0x04
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY = 0x06, 0x07, 0x08, 0x0a
READ_REQUEST, READ_RESPONSE_ONLY, ACKNOWLEDGE = 0x0c, 0x10, 0x11
CMP_SWAP, FETCH_ADD, FLUSH, RESERVED = 0x13, 0x14, 0x1c, 0x1f
UC, UD = 0x20, 0x60
# AETH syndromes, table 45: ACK without credits, and NAKs.
ACK, RNR_NAK, SEQ_NAK, INV_REQ_NAK, ACCESS_NAK = 0x1f, 0x20, 0x60, 0x61, 0x62
QKEY, PSN, MTU = 0x11111111, 0x1000, 1024
# QPNs of the outsider: the peer of the victims, and that of the witness.
QPN, WITNESS = 0x66, 0x67

# What moves in good traffic, too: between busy programs, or for want of CPU.
USUAL = {"sent_pkts", "sent_bytes", "rcvd_pkts", "rcvd_bytes", "rx_send_requests",
         "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "roce_retrans_pkts",
         "local_ack_timeout_err", "rcvd_rnr_err", "send_rnr_err", "implied_nak_seq_err",
         "duplicate_request", "duplicate_ack", "packet_seq_err", "sent_seq_err",
         "out_of_sequence"}
SPARE = 1 << 16  # in the buffer, what only the witness writes to


def aeth(syndrome, msn=0):
    return struct.pack(">I", syndrome << 24 | msn)


def reth(address, key, length):
    return struct.pack(">QII", address, key, length)


def feth(kind, level=0):
    return struct.pack(">I", level << 4 | kind)


def atomic(address, key, swap=1, compare=0):
    return struct.pack(">QIQQ", address, key, swap, compare)


def deth(qkey=QKEY, source=QPN):
    return struct.pack(">II", qkey, source)


class Malformed(Programs):
    TITLE, COLUMNS = "kind of packet", ("counted", "answer")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one, two = cls.hosts
        one.run(f"ip neigh replace {IPV4} lladdr {MAC} dev {NETDEV} nud permanent; "
                f"ip neigh replace {IPV6} lladdr {MAC} dev {NETDEV} nud permanent")
        cls.mac = one.run(f"cat /sys/class/net/{NETDEV}/address").out.strip()
        cls.gid_indices = [host.gid_index(cls.devices[host.name]) for host in (one, two)]
        cls.start_traffic()
        cls.agents = []
        for host in (one, two):
            cls.agents.append(Agent(host, cls.devices[host.name]))
            cls.addClassCleanup(cls.agents[-1].close)
        cls.live = cls.connect_live()
        cls.witness = cls.agents[0].create(service="RC")
        cls.connect_to_outsider(cls.witness, WITNESS)
        cls.witness_psns = itertools.count(PSN)

    def check_resources(self):
        """The agents and the other traffic keep theirs to the end."""

    def setUp(self):
        super().setUp()
        self.outsider = Outsider(self.lab.wire)
        self.addCleanup(self.outsider.close)

    def tearDown(self):
        self.check_live()
        super().tearDown()

    # --- the card is in use

    @classmethod
    def start_traffic(cls):
        """Two programs that compare their data, again and again until all tests are over. They
        leave most of the processors to the others."""
        one, two = cls.hosts
        serve, ask = cls.verbs_check_halves(
            one, two, "stress", "--seconds 10 --interval 2000 --qps 2", seed=3)
        over = threading.Event()

        def run():
            while not over.is_set():
                pair.run_pair(one, serve, two, ask, port=cls.VERBS_CHECK_PORT)

        pool = concurrent.futures.ThreadPoolExecutor(1)
        cls.addClassCleanup(pool.shutdown)
        running = pool.submit(run)
        cls.addClassCleanup(running.result)  # raises what run() did
        cls.addClassCleanup(over.set)
        if not wait_until(lambda: running.done() or
                          cls.in_use(one)["qp"] > cls.clean[one.name]["qp"], 20):
            raise AssertionError("the traffic has not begun")

    @staticmethod
    def long(gid):
        return "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(
            *map(int, gid.split(".")))

    @classmethod
    def connect_live(cls):
        qpns = [agent.create(service="RC") for agent in cls.agents]
        for end in (0, 1):
            cls.agents[end].connect(
                local=qpns[end], qpn=qpns[1 - end], psn=5, rq_psn=5, mtu=3, qkey=0,
                gid=cls.long(cls.hosts[1 - end].ipv4), gid_index=cls.gid_indices[end])
        return qpns

    def check_live(self):
        """A message from the other host to the victim's, and data read back."""
        (one, two), (own, other) = self.agents, self.live
        one.zero(offset=8192, length=5000)
        one.receive(local=own, offset=8192, length=5000)
        two.fill(offset=0, length=5000, seed=9)
        two.send(local=other, opcode="SEND", offset=0, length=5000)
        two.completions(local=other, kind="send")
        one.completions(local=own, kind="receive")
        self.assertTrue(one.check(offset=8192, length=5000, seed=9))
        two.send(local=other, opcode="READ", offset=16384, length=5000, rkey=one.rkey,
                 address=one.address + 8192)
        two.completions(local=other, kind="send")
        self.assertTrue(two.check(offset=16384, length=5000, seed=9))

    # --- victims

    @classmethod
    def connect_to_outsider(cls, qpn, dest, **how):
        cls.agents[0].connect(local=qpn, qpn=dest, psn=PSN, rq_psn=PSN, gid=cls.long(IPV4),
                              gid_index=cls.gid_indices[0], mtu=3, qkey=QKEY, min_rnr_timer=20,
                              **how)

    def victim(self, service="RC", receives=4, length=4096, access=True, **how):
        """A QP whose peer is the outsider."""
        agent = self.agents[0]
        qpn = agent.create(service=service, access=access)
        self.connect_to_outsider(qpn, QPN, **how)
        if receives:
            agent.receive(local=qpn, offset=0, length=length, count=receives)
        return qpn

    def packet(self, qpn, opcode=SEND_ONLY, body=b"good", psn=PSN, **more):
        more = {"target_mac": self.mac, "target": self.hosts[0].ipv4, **more}
        return Packet(opcode=opcode, qpn=qpn, psn=psn, body=body, **more)

    def await_processed(self):
        """Waits until the card has acknowledged a good packet behind all that the outsider has
        sent, and so has processed that, too. Returns the packets that have come meanwhile."""
        agent, psn = self.agents[0], next(self.witness_psns)
        self.outsider.send(self.packet(
            self.witness, WRITE_ONLY, reth(agent.address + SPARE, agent.rkey, 4) + b"good",
            psn=psn).frame())
        heard, answers = [], []

        def answered():
            for roce in self.outsider.take():
                (answers if roce.qpn == WITNESS else heard).append(roce)
            return answers

        self.assertTrue(wait_until(answered, 20), heard)
        self.assertEqual([(roce.opcode, roce.syndrome >> 5, roce.psn) for roce in answers],
                         [(ACKNOWLEDGE, 0, psn)])
        return heard

    def inject(self, kind, frames, counted, answers=()):
        """Sends frames; the counters named rise by as much and no other does.

        answers: the syndromes of the acknowledgements that come back.
        """
        with self.cell(kind, "counted") as note:
            self.outsider.take()
            before = self.hosts[0].hw_counters()
            for frame in frames:
                self.outsider.send(frame.frame() if isinstance(frame, Packet) else frame)

            def grown():
                after = self.hosts[0].hw_counters()
                return {name: after[name] - before[name] for name in after
                        if after[name] != before[name]
                        and (name in counted or name not in USUAL)}

            # The other traffic may add to what is usual.
            def matches(found):
                return found.keys() == counted.keys() and all(
                    found[name] == by or name in USUAL and found[name] > by
                    for name, by in counted.items())

            heard = self.await_processed()
            wait_until(lambda: heard.extend(self.outsider.take()) or len(heard) >= len(answers), 3)
            wait_until(lambda: matches(grown()), 3)
            found = grown()
            self.assertTrue(matches(found), f"{found} instead of {counted}")
            self.assertEqual([roce.syndrome for roce in heard if roce.opcode == ACKNOWLEDGE],
                             list(answers))
            if heard:
                self.table.set(kind, "answer", ", ".join(f"{roce.syndrome:#x}" for roce in heard))
            note(", ".join(f"{name} {by}" for name, by in counted.items()) or "as good traffic")

    def still_works(self, qpn, psn=PSN):
        """The victim has not noticed: the next good packet is acknowledged."""
        self.outsider.take()
        self.outsider.send(self.packet(qpn, psn=psn).frame())
        heard = []
        wait_until(lambda: heard.extend(self.outsider.take()) or heard, 3)
        self.assertEqual([(roce.opcode, roce.syndrome >> 5, roce.psn) for roce in heard],
                         [(ACKNOWLEDGE, 0, psn)])
        self.assertEqual(self.agents[0].state(local=qpn), "RTS")

    def dropped(self, kind, counted, *variants):
        """Each variant of a good packet, at the victim and at a QP in use."""
        qpn = self.victim()
        self.inject(kind, [self.packet(**{"qpn": qpn, **variant}) for variant in variants],
                    {counted: len(variants)})
        # Those that do not get as far as the addresses: as if from the live QP's peer.
        if counted != "rx_addr_err":
            for variant in variants:
                live = {"qpn": self.live[0], "source": self.hosts[1].ipv4, **variant}
                self.outsider.send(self.packet(**live).frame())
        # The answer shows that the card has counted all that the outsider sent before.
        self.still_works(qpn)
        self.agents[0].destroy(local=qpn)
        self.check_live()

    def test_good(self):
        """The tools are right: what is well-formed is taken."""
        qpn = self.victim()
        self.still_works(qpn)
        self.still_works(qpn, PSN + 1)
        self.agents[0].completions(local=qpn, kind="receive", count=2)

    def test_dropped(self):
        self.dropped("bad ICRC", "rx_icrc_encapsulated", *({"icrc": 1 << bit} for bit in
                                                           (0, 7, 8, 31)))
        self.dropped("bad transport version", "rx_malformed", *({"version": n} for n in (1, 15)))
        self.dropped("no whole word", "rx_malformed", {"pad": 0, "body": b"12345"})
        self.dropped("bad P_Key", "rx_pkey_err", *({"pkey": key} for key in (0, 1, 0x9234)))
        violations = re.search(r"bad_pkey_cntr:\s+0x(\w+)",
                               self.hosts[0].run("ibv_devinfo -v").out).group(1)
        self.assertEqual(int(violations, 16), self.hosts[0].hw_counters()["rx_pkey_err"],
                         "what ibv_query_port() says")
        self.assertGreaterEqual(int(violations, 16), 3)
        self.dropped("opcode of an unknown service", "rx_opcode_err",
                     *({"opcode": code} for code in (0x40, 0x84, 0xff)))
        self.dropped("UDP longer than IP", "rx_malformed", {"udp_length": 4})
        self.dropped("UDP shorter than IP", "rx_malformed", {"udp_length": -4})
        self.dropped("IP longer than the frame", "rx_malformed", {"ip_length": 4})
        self.dropped("IP shorter than UDP", "rx_malformed", {"ip_length": -4})
        self.dropped("bad IP checksum", "rx_malformed", {"ip_checksum": 1})
        self.dropped("a stranger's source address", "rx_addr_err", {"source": "10.77.0.67"})
        self.dropped("another target address", "rx_addr_err", {"target": "10.77.0.67"})

    def test_wrong_addresses_and_networks(self):
        own6 = self.hosts[0].ipv6
        self.dropped("unknown QP", "rx_no_qp", *({"qpn": qpn} for qpn in
                                                 (0xabcdef, 0xffffff, 2)))
        self.dropped("another service's opcode", "rx_no_qp", {"opcode": UC | SEND_ONLY},
                     {"opcode": UD | SEND_ONLY, "body": deth() + b"good"})
        self.dropped("RoCEv2 over IPv6 at an IPv4 QP", "rx_addr_err",
                     {"source": IPV6, "target": own6})
        self.dropped("RoCEv1 at a RoCEv2 QP", "rx_addr_err", {"roce": 1})
        self.dropped("RoCEv1, GRH names another protocol", "rx_malformed",
                     {"roce": 1, "next_header": 17})
        self.dropped("RoCEv1, GRH longer than the frame", "rx_malformed",
                     {"roce": 1, "ip_length": 4})
        self.dropped("IPv6, UDP length wrong", "rx_malformed",
                     {"source": IPV6, "target": own6, "udp_length": 8})
        self.dropped("IPv6 longer than the frame", "rx_malformed",
                     {"source": IPV6, "target": own6, "ip_length": 8})

    def test_truncated(self):
        """Cut anywhere: RoCE as far as its UDP header is there, else what Linux drops."""
        qpn = self.victim()
        headers = 14 + 20 + 8
        whole = self.packet(qpn, WRITE_ONLY, reth(self.agents[0].address, self.agents[0].rkey, 4)
                            + b"data").frame()
        self.inject("truncated before the BTH", [whole[:size] for size in range(14, headers)], {})
        self.inject("truncated from the BTH on",
                    [whole[:size] for size in range(headers, len(whole))],
                    {"rx_malformed": len(whole) - headers})
        self.still_works(qpn)

    def test_short_headers(self):
        """IP and ICRC are right, but the transport's headers are not all there, or there is more.

        A request is refused when its turn has come; a response is dropped.
        """
        for opcode, size in ((WRITE_ONLY, 16), (READ_REQUEST, 16), (CMP_SWAP, 28), (FLUSH, 20)):
            self.invalid(f"opcode {opcode:#x}, headers cut", (opcode, bytes(size - 4)))
        for opcode, size in ((READ_REQUEST, 16), (FETCH_ADD, 28), (FLUSH, 20)):
            self.invalid(f"opcode {opcode:#x}, headers too long", (opcode, bytes(size + 4)))
        qpn = self.victim()
        frames = [self.packet(qpn, ACKNOWLEDGE, b""), self.packet(qpn, ACKNOWLEDGE, bytes(8)),
                  self.packet(qpn, READ_RESPONSE_ONLY, b"")]
        self.inject("responses cut or too long", frames, {"rx_malformed": len(frames)})
        past = [self.packet(qpn, opcode, bytes(8), psn=PSN - 1)
                for opcode in (READ_REQUEST, RESERVED)]
        self.inject("requests cut, in the past", past, {"duplicate_request": len(past)})
        self.still_works(qpn)

    def test_psn(self):
        qpn = self.victim()
        # Once: those that follow say nothing new (9.7.5.2.8).
        self.inject("PSN far ahead", [self.packet(qpn, psn=PSN + 1), self.packet(
            qpn, psn=PSN + (1 << 22)), self.packet(qpn, psn=PSN + (1 << 23) - 1)],
                    {"out_of_sequence": 1, "sent_seq_err": 1}, [SEQ_NAK])
        self.still_works(qpn)
        # A duplicate SEND is acknowledged, and not executed, once more.
        self.outsider.take()
        self.outsider.send(self.packet(qpn, psn=PSN - (1 << 22)).frame())
        heard = []
        wait_until(lambda: heard.extend(self.outsider.take()) or heard, 3)
        self.assertEqual([(roce.opcode, roce.syndrome >> 5) for roce in heard], [(ACKNOWLEDGE, 0)])
        self.still_works(qpn, PSN + 1)
        self.agents[0].completions(local=qpn, kind="receive", count=2)
        self.assertEqual(self.agents[0].poll(local=qpn, kind="receive", patience=0), [])
        self.inject("responses to nothing", [
            self.packet(qpn, ACKNOWLEDGE, aeth(ACK), psn=PSN + 5),
            self.packet(qpn, ACKNOWLEDGE, aeth(INV_REQ_NAK), psn=PSN),
            self.packet(qpn, ACKNOWLEDGE, aeth(SEQ_NAK), psn=PSN + (1 << 22)),
            self.packet(qpn, READ_RESPONSE_ONLY, aeth(ACK) + b"data", psn=PSN)],
                    {"duplicate_ack": 4})
        self.still_works(qpn, PSN + 2)

    def refused(self, kind, syndrome, counter, *packets, **how):
        """The last of the packets is answered by a NAK, and the victim is in ERR."""
        flushed = how.setdefault("receives", 4)
        qpn = self.victim(**how)
        frames = [self.packet(qpn, opcode, body, psn=PSN + number, wants_ack=False, **dict(more))
                  for number, (opcode, body, *more) in enumerate(packets)]
        counted = {counter: 1}
        if flushed:
            counted["resp_cqe_flush_error"] = flushed
        self.inject(kind, frames, counted, [syndrome])
        self.assertEqual(self.agents[0].state(local=qpn), "ERR")
        self.agents[0].destroy(local=qpn)
        self.check_live()

    def invalid(self, kind, *packets, **how):
        self.refused(kind, INV_REQ_NAK, "resp_remote_invalid_request", *packets, **how)

    def test_opcode_sequences(self):
        full = bytes(MTU)
        address, key = self.agents[0].address, self.agents[0].rkey
        first_write = reth(address, key, 3 * MTU) + full
        self.invalid("SEND Middle without First", (SEND_MIDDLE, full))
        self.invalid("SEND Last without First", (SEND_LAST, b"good"))
        self.invalid("WRITE Middle without First", (WRITE_MIDDLE, full))
        self.invalid("WRITE Last without First", (WRITE_LAST, b"good"))
        self.invalid("SEND First, First", (SEND_FIRST, full), (SEND_FIRST, full))
        self.invalid("SEND First, Only", (SEND_FIRST, full), (SEND_ONLY, b"good"))
        self.invalid("SEND First, WRITE Middle", (SEND_FIRST, full), (WRITE_MIDDLE, full))
        self.invalid("SEND First, READ", (SEND_FIRST, full), (READ_REQUEST, reth(address, key, 4)))
        self.invalid("WRITE First, SEND Last", (WRITE_FIRST, first_write), (SEND_LAST, b"good"))
        self.invalid("WRITE First, READ with a payload", (WRITE_FIRST, first_write),
                     (READ_REQUEST, reth(address, key, 4) + b"good"))
        self.invalid("reserved opcode", (0x18, b"good"))
        self.invalid("SEND First, reserved opcode", (SEND_FIRST, full), (RESERVED, b"good"))

    def test_sizes(self):
        address, key = self.agents[0].address, self.agents[0].rkey
        self.invalid("SEND Only above the MTU", (SEND_ONLY, bytes(MTU + 4)))
        self.invalid("SEND Only above every MTU", (SEND_ONLY, bytes(4100)), length=8192)
        self.invalid("SEND First below the MTU", (SEND_FIRST, bytes(MTU - 4)))
        self.invalid("SEND First above the MTU", (SEND_FIRST, bytes(MTU + 4)))
        self.invalid("SEND Last without payload", (SEND_FIRST, bytes(MTU)), (SEND_LAST, b""))
        self.invalid("pad without payload", (SEND_ONLY, b"", ("pad", 3)))
        self.invalid("READ with a payload", (READ_REQUEST, reth(address, key, 4) + b"good"))
        self.invalid("WRITE shorter than announced", (WRITE_ONLY, reth(address, key, 8) + b"good"))
        self.invalid("WRITE longer than announced", (WRITE_ONLY, reth(address, key, 2) + b"good"))
        self.invalid("READ of 3 GiB", (READ_REQUEST, reth(address, key, 3 << 30)))
        self.invalid("atomic at no multiple of 8", (FETCH_ADD, atomic(address + 4, key)))
        self.invalid("FLUSH of 3 GiB", (FLUSH, feth(1) + reth(address, key, 3 << 30)))
        self.invalid("FLUSH of no type", (FLUSH, feth(0) + reth(address, key, 4)))
        self.invalid("FLUSH of an unknown type", (FLUSH, feth(5) + reth(address, key, 4)))
        self.invalid("FLUSH of an unknown level", (FLUSH, feth(1, 2) + reth(address, key, 4)))

    def test_receive_too_short(self):
        """The receiver's completion tells it, too."""
        qpn = self.victim(length=16)
        self.outsider.send(self.packet(qpn, body=bytes(32)).frame())
        done = self.agents[0].poll(local=qpn, kind="receive", count=4)
        self.assertEqual([wc["status"] for wc in done], [1, 5, 5, 5])  # length error, flushed
        self.assertEqual(self.agents[0].state(local=qpn), "ERR")

    def test_access(self):
        address, key = self.agents[0].address, self.agents[0].rkey
        for kind, packet in {
                "WRITE, unknown key": (WRITE_ONLY, reth(address, key ^ 0x80, 4) + b"good"),
                "READ, unknown key": (READ_REQUEST, reth(address, 0xabcd00, 4)),
                "atomic, unknown key": (FETCH_ADD, atomic(address, key ^ 0x80)),
                "WRITE, the reserved local key": (WRITE_ONLY, reth(address, 1, 4) + b"good"),
                "WRITE before the region": (WRITE_ONLY, reth(address - 4, key, 4) + b"good"),
                "READ beyond the region": (READ_REQUEST, reth(address + (1 << 17) - 2, key, 4)),
                "READ around the end of addresses": (READ_REQUEST, reth((1 << 64) - 2, key, 4)),
        }.items():
            self.refused(kind, ACCESS_NAK, "resp_remote_access_errors", packet, receives=0)
        # The rights of the QP come before the key.
        for kind, packet, access in (
                ("WRITE", (WRITE_ONLY, reth(address, key, 4) + b"good"), False),
                ("READ", (READ_REQUEST, reth(address, key, 4)), False),
                ("atomic", (FETCH_ADD, atomic(address, key)), False),
                ("FLUSH", (FLUSH, feth(1) + reth(address, key, 4)), True),
                ("FLUSH with an unknown key", (FLUSH, feth(1, 1) + reth(0, key ^ 0x80, 0)), True)):
            self.invalid(f"{kind} that the QP does not allow", packet, access=access, receives=0)

    def test_not_ready(self):
        qpn = self.victim(receives=0)
        self.inject("SEND without a receive", [self.packet(qpn)], {"send_rnr_err": 1},
                    [RNR_NAK | 20])
        self.assertEqual(self.agents[0].state(local=qpn), "RTS")

    def test_states(self):
        """A QP that does not receive says nothing."""
        agent = self.agents[0]
        reset = agent.create(service="RC")
        self.inject("SEND to a QP in RESET", [self.packet(reset)], {"rx_state_err": 1})
        broken = self.victim(receives=0)
        agent.error(local=broken)
        self.inject("SEND to a QP in ERR", [self.packet(broken)], {"rx_state_err": 1})
        gone = self.victim(receives=0)
        agent.destroy(local=gone)
        self.inject("SEND to a QP that was destroyed", [self.packet(gone)], {"rx_no_qp": 1})

    def silent(self, service, kind, counter, packets, deliveries=0):
        """Unacknowledged services drop, and the next good message arrives."""
        qpn = self.victim(service)
        base = UC if service == "UC" else UD
        self.inject(kind, [self.packet(**{"qpn": qpn, "opcode": base | opcode, "body": body,
                                          "psn": PSN + n, **more})
                           for n, (opcode, body, more) in enumerate(packets)],
                    {counter: 1})
        self.assertEqual(self.agents[0].state(local=qpn), "RTS")
        body = b"good" if service == "UC" else deth() + b"good"
        self.outsider.send(self.packet(qpn, base | SEND_ONLY, body, psn=PSN + 100,
                                       wants_ack=False).frame())
        done = self.agents[0].completions(local=qpn, kind="receive", count=deliveries + 1)
        self.assertEqual(done[-1]["length"], 4 if service == "UC" else 44)
        self.agents[0].destroy(local=qpn)
        self.check_live()

    def test_uc(self):
        full = bytes(MTU)
        address, key = self.agents[0].address, self.agents[0].rkey
        for kind, *packets in (
                ("UC SEND Middle without First", (SEND_MIDDLE, full, {})),
                ("UC SEND Last without First", (SEND_LAST, b"good", {})),
                ("UC SEND First, then a gap", (SEND_FIRST, full, {}),
                 (SEND_LAST, b"good", {"psn": PSN + 7})),
                ("UC SEND above the MTU", (SEND_ONLY, bytes(MTU + 4), {})),
                ("UC WRITE, unknown key", (WRITE_ONLY, reth(address, key ^ 0x80, 4) + b"good", {})),
                ("UC WRITE shorter than announced", (WRITE_ONLY, reth(address, key, 8) + b"good",
                                                     {}))):
            self.silent("UC", kind, "uc_rx_dropped", packets)

    def test_ud(self):
        for kind, counter, *packets in (
                ("UD bad Q_Key", "rx_qkey_err", (SEND_ONLY, deth(QKEY + 1) + b"good", {})),
                ("UD without DETH", "rx_malformed", (SEND_ONLY, b"good", {})),
                ("UD bad P_Key", "rx_pkey_err", (SEND_ONLY, deth() + b"good", {"pkey": 0x1234})),
                ("UD SEND First", "rx_opcode_err", (SEND_FIRST, deth() + b"good", {})),
                ("UD above every MTU", "rx_malformed", (SEND_ONLY, deth() + bytes(4100), {}))):
            self.silent("UD", kind, counter, packets)

    def test_ud_without_receive(self):
        qpn = self.victim("UD", receives=0)
        self.inject("UD without a receive",
                    [self.packet(qpn, UD | SEND_ONLY, deth() + b"good")] * 3,
                    {"ud_rx_no_buffer": 3})

    def test_gsi(self):
        """QP1: management datagrams have a Q_Key of their own, and a fixed size."""
        mad = bytes(256)
        self.inject("MAD with a program's Q_Key",
                    [self.packet(1, UD | SEND_ONLY, deth(QKEY, 1) + mad)], {"rx_qkey_err": 1})
        wild = random.Random(4)
        self.inject("MADs of random bytes",
                    [self.packet(1, UD | SEND_ONLY, deth(0x80010000, 1) + wild.randbytes(256))
                     for _ in range(50)], {})

    def test_random(self):
        """Good packets with a few bytes of noise, ICRC right and wrong: nothing breaks."""
        wild = random.Random(2)
        address, key = self.agents[0].address, self.agents[0].rkey
        bodies = {SEND_ONLY: b"good", WRITE_ONLY: reth(address, key, 4) + b"good",
                  READ_REQUEST: reth(address, key, 4), FETCH_ADD: atomic(address, key),
                  ACKNOWLEDGE: aeth(ACK), SEND_FIRST: bytes(MTU)}
        for _ in range(10):
            qpn = self.victim()
            for _ in range(200):
                opcode = wild.choice(list(bodies))
                packet = self.packet(qpn, opcode, bodies[opcode], psn=PSN + wild.randrange(4))
                noise = bytearray(packet.body)
                for _ in range(wild.randrange(3)):
                    noise[wild.randrange(len(noise))] ^= 1 << wild.randrange(8)
                packet.body = bytes(noise)
                frame = bytearray(packet.frame())
                for _ in range(wild.choice((0, 0, 1, 4))):
                    frame[wild.randrange(12, len(frame))] ^= 1 << wild.randrange(8)
                self.outsider.send(bytes(frame[:wild.choice((None, None, len(frame) // 2))]))
            self.check_live()
            self.agents[0].destroy(local=qpn)
        self.outsider.take()


if __name__ == "__main__":
    main()
