# SPDX-License-Identifier: GPL-2.0-or-later
"""What travels between the cards, as others decode it, and a wire with three hosts."""

import collections
import logging

import roce_capture
from scenario import Options, RXE, Scenario, main

# IBA vol. 1, table 38, for reliable connections.
SEND_ONLY, WRITE_FIRST, WRITE_LAST, WRITE_ONLY = 0x04, 0x06, 0x08, 0x0a
READ_REQUEST, READ_FIRST, READ_LAST = 0x0c, 0x0d, 0x0f
ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, FETCH_ADD = 0x11, 0x12, 0x14
EXPECTED = {SEND_ONLY, WRITE_FIRST, WRITE_LAST, WRITE_ONLY, READ_REQUEST, READ_FIRST, READ_LAST,
            ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, FETCH_ADD}


class Wire(Scenario):
    HOSTS = (Options(), Options(), Options())

    def capture(self):
        path = self.lab.logs / "wire.pcap"
        self.lab.wire.capture(path)
        try:
            self.pingpong("-n 50 -s 100")
            for ip in (4, 6):
                self.perftest("ib_write_bw", "-s 65536 -n 20", ip=ip)
                self.perftest("ib_read_bw", "-s 10000 -n 20", ip=ip)
                self.perftest("ib_send_bw", "-s 1001 -n 20", ip=ip)
                self.perftest("ib_write_lat", "-s 5 -n 20", ip=ip)
                self.perftest("ib_atomic_bw", "-n 20", ip=ip)
            self.ping(self.hosts[0], self.hosts[1].ipv4)
        finally:
            self.lab.wire.stop_capture()
        return path

    def test_capture(self):
        path = self.capture()
        self.check_dissection(path)
        self.check_icrcs(path)

    def check_dissection(self, path):
        """tshark finds nothing malformed, and no wrong length or IP checksum."""
        self.assertEqual(roce_capture.tshark(path, "_ws.malformed"), "")
        self.assertEqual(roce_capture.tshark(
            path, "ip.checksum.status == Bad || udp.length.bad", "-o", "ip.check_checksum:TRUE"),
            "")
        seen = roce_capture.tshark(
            path, "infiniband", "-T", "fields", "-e", "infiniband.bth.opcode")
        self.assertLessEqual(EXPECTED, {int(word, 0) for word in seen.split()})

    def check_icrcs(self, path):
        packets = collections.Counter()
        samples = {}
        for frame in roce_capture.frames(path):
            roce = roce_capture.packet(frame)
            if not roce:
                continue
            version, opcode = roce[2][0] >> 4, roce_capture.opcode(roce)
            packets[version] += 1
            samples.setdefault((version, opcode), (frame, roce))
            self.assertEqual(roce_capture.stored_icrc(roce), roce_capture.computed_icrc(roce),
                             f"frame {frame.hex()}")
        self.assertGreater(packets[4], 500)
        self.assertGreater(packets[6], 500)
        # This scapy cannot compute an ICRC over IPv6. There interop.py's peer checks it: rxe drops
        # packets with a wrong one.
        for frame, roce in (samples[key] for key in samples if key[0] == 4):
            self.assertEqual(self.scapy_icrc(frame), roce_capture.stored_icrc(roce),
                             f"scapy's opinion of frame {frame.hex()}")

    def scapy_icrc(self, frame):
        """Returns the ICRC as scapy computes it. That checks our computation. As it is slow, it is
        done for one packet of each kind only."""
        logging.getLogger("scapy").setLevel(logging.ERROR)
        from scapy.contrib.roce import BTH  # pylint: disable=import-outside-toplevel
        from scapy.layers.l2 import Ether  # pylint: disable=import-outside-toplevel

        decoded = Ether(frame)
        decoded[BTH].icrc = None
        return int.from_bytes(bytes(decoded)[-4:], "little")

    def test_three_hosts(self):
        """Each talks with both others at once."""
        one, two, three = self.hosts
        for source, target in ((one, two), (two, three), (three, one)):
            self.ping(source, target.ipv4)
            self.ping(source, target.ipv6)

        pairs = {18601: (one, two), 18602: (two, three), 18603: (three, one)}
        self.lab.each(
            lambda port: self.pingpong("-n 200 -c -e", hosts=pairs[port], port=port), list(pairs))

    def test_perftest_among_three(self):
        one, two, three = self.hosts
        for hosts in ((one, three), (three, two)):
            self.perftest("ib_write_bw", "-s 65536 -n 50", hosts=hosts)

    def test_bad_wire(self):
        """Loss, duplicates, reordering and corruption cost time, not data."""
        wire = self.lab.wire
        self.addCleanup(wire.tell, "clear")
        wire.tell("seed 7")
        # Only SENDs have faults here. A pingpong destroys its QP when it has all completions, even
        # if its last ACK was lost, and then nobody answers the retransmission of its peer.
        kinds = {"drop": "lost"} if RXE else {"drop": "lost", "duplicate": "duplicated",
                                              "reorder by=2": "reordered", "corrupt": "corrupted"}
        before = wire.counters()
        wire.add_rules([f"{kind} opcode=SEND probability=0.01" for kind in kinds])
        self.pingpong("-n 200 -c -s 20000")
        wire.tell("clear")
        now = wire.counters()
        for counter in kinds.values():
            self.assertGreater(now[counter], before[counter], counter)
        # All packets may have faults here: perftest keeps its QPs until both sides have finished.
        others = {} if RXE else {"dup": 1, "reorder": 1}
        with self.faulty_wire(loss=1, **others):
            # Two flipped bits can cancel out in TCP's checksum; a real wire has the FCS. So TCP
            # goes without.
            with self.faulty_wire(**({} if RXE else {"corrupt": 0.5})):
                self.perftest("ib_write_bw", "-s 65536 -n 50")
                self.perftest("ib_read_bw", "-s 65536 -n 50")
                self.perftest("ib_atomic_bw", "-n 200")
            self.transfer(*self.hosts[:2], mebibytes=4)


if __name__ == "__main__":
    main()
