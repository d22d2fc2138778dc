# SPDX-License-Identifier: GPL-2.0-or-later
"""`lab ladder` on captures that are made here, packet by packet."""

import ipaddress
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import ladder  # noqa: E402
from ternlab.errors import LabError  # noqa: E402

A, B = "10.77.0.1", "10.77.0.2"
AT_A, AT_B = 0x11, 0x12  # a QP at each


def aeth(syndrome, msn=1):
    return struct.pack(">I", syndrome << 24 | msn)


def reth(length):
    return struct.pack(">QII", 0x1000, 7, length)


def frame(source, target, opcode, qpn, psn, body=b""):
    """RoCEv2 over IPv4; the ICRC is any."""
    bth = struct.pack(">BBHII", opcode, 0x40, 0xffff, qpn, psn & 0xffffff)
    payload = bth + body + bytes(4)
    udp = struct.pack(">HHHH", 0xc000, 4791, 8 + len(payload), 0)
    addresses = b"".join(ipaddress.ip_address(end).packed for end in (source, target))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0) + addresses
    checksum = 0xffff - sum(struct.unpack(">10H", ip)) % 0xffff  # in ones' complement
    ip = ip[:10] + checksum.to_bytes(2, "big") + ip[12:]
    return bytes(12) + b"\x08\x00" + ip + udp + payload


class Ladder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "wire.pcap"

    def capture(self, *frames, endian="<", magic=0xa1b23c4d, unit=1000):
        """A file with the frames, a microsecond after each other."""
        data = struct.pack(endian + "IHHiIII", magic, 2, 4, 0, 0, 1 << 18, 1)
        for number, one in enumerate(frames):
            data += struct.pack(endian + "IIII", 1700000000, number * unit, len(one), len(one))
            data += one
        self.path.write_bytes(data)
        return self.path

    def labels(self, *frames, qpn=None):
        packets = ladder.read(self.capture(*frames))
        if qpn is not None:
            packets = ladder.of_qp(packets, qpn)
        return [(step.kind, step.label) for step in ladder.steps(packets)]

    def test_write(self):
        self.assertEqual(self.labels(
            frame(A, B, 0x0a, AT_B, 5, reth(8) + bytes(8)),
            frame(B, A, 0x11, AT_A, 5, aeth(0x1f))),
            [("request", "WRITE only PSN 5, 8 B"), ("response", "ACK PSN 5, MSN 1")])

    def test_who_requests_is_on_the_left(self):
        nak = frame(A, B, 0x11, AT_B, 5, aeth(0x22))
        request = frame(B, A, 0x04, AT_A, 5, bytes(8))
        for frames in ((request, nak), (nak, request), (nak, request, request)):
            arrows = ladder.steps(ladder.read(self.capture(*frames)))
            self.assertEqual(ladder.hosts(arrows), [B, A])

    def test_runs_are_one_line(self):
        middle = [frame(A, B, 0x07, AT_B, 0xfffffe + n, bytes(256)) for n in range(6)]
        self.assertEqual(
            self.labels(frame(A, B, 0x06, AT_B, 0xfffffd, reth(2000) + bytes(256)), *middle,
                        frame(A, B, 0x08, AT_B, 4, bytes(200))),
            [("request", "WRITE first PSN 16777213, 2000 B"),
             ("request", "WRITE middle PSN 16777214 to 3, 6 packets"),
             ("request", "WRITE last PSN 4")])
        self.assertEqual(len(self.labels(*middle[:3])), 3)

    def test_a_gap_ends_a_run(self):
        middle = [frame(A, B, 0x07, AT_B, psn, bytes(256)) for psn in (1, 2, 3, 4, 6, 7, 8, 9)]
        self.assertEqual([label for _, label in self.labels(*middle)],
                         ["WRITE middle PSN 1 to 4, 4 packets",
                          "WRITE middle PSN 6 to 9, 4 packets"])

    def test_naks_and_repetition(self):
        send = frame(A, B, 0x04, AT_B, 7, bytes(16))
        self.assertEqual(self.labels(
            send, frame(B, A, 0x11, AT_A, 7, aeth(0x21)), send,
            frame(B, A, 0x11, AT_A, 7, aeth(0x60)), frame(B, A, 0x11, AT_A, 7, aeth(0x62))),
            [("request", "SEND only PSN 7, 16 B in packet"),
             ("nak", "RNR NAK PSN 7, wait 0.01 ms"),
             ("again", "SEND only PSN 7, 16 B in packet, again"),
             ("nak", "NAK PSN 7, PSN sequence error"),
             ("nak", "NAK PSN 7, remote access error")])

    def test_other_services(self):
        self.assertEqual(self.labels(
            frame(A, B, 0x64, AT_B, 1, bytes(8)), frame(A, B, 0x64, AT_B, 1, bytes(8)),
            frame(A, B, 0x81, AT_B, 0, bytes(16)),
            frame(A, B, 0xac, AT_B, 3, bytes(4) + reth(64)), frame(A, B, 0x1f, AT_B, 4)),
            [("request", "UD SEND only PSN 1, 8 B in packet"),
             ("request", "UD SEND only PSN 1, 8 B in packet"),
             ("cnp", "CNP to QP 0x12"),
             ("request", "XRC READ request PSN 3, 64 B"),
             ("request", "opcode 0x1f PSN 4")])

    def test_masked_atomics(self):
        self.assertEqual(self.labels(
            frame(A, B, 0xd3, AT_B, 1, bytes(44)),
            frame(B, A, 0x12, AT_A, 1, aeth(0x1f) + bytes(8)),
            frame(A, B, 0xd4, AT_B, 2, bytes(44)), frame(A, B, 0xd4, AT_B, 2, bytes(44))),
            [("request", "MASKED COMPARE_SWAP PSN 1"),
             ("response", "ATOMIC response PSN 1"),
             ("request", "MASKED FETCH_ADD PSN 2"),
             ("again", "MASKED FETCH_ADD PSN 2, again")])

    def test_one_qp(self):
        """With what its peer sends; the QPs of both hosts may have the same number."""
        ours = [frame(A, B, 0x0c, AT_B, 50, reth(8)),
                frame(B, A, 0x10, AT_A, 50, aeth(0x1f) + bytes(8))]
        others = [frame(A, B, 0x0c, 0x20, 90, reth(8)),
                  frame(B, A, 0x10, 0x20, 90, aeth(0x1f) + bytes(8))]
        everything = [ours[0], others[0], others[1], ours[1]]
        self.assertEqual(len(self.labels(*everything)), 4)
        for qpn in (AT_A, AT_B):
            self.assertEqual(self.labels(*everything, qpn=qpn), self.labels(*ours))
        self.assertEqual(self.labels(*everything, qpn=0x20), self.labels(*others))

    def test_text(self):
        write = frame(A, B, 0x0a, AT_B, 5, reth(8) + bytes(8))
        arrows = ladder.steps(ladder.read(self.capture(
            write, frame(B, A, 0x11, AT_A, 5, aeth(0x1f)), write)))
        heading, there, back, again = ladder.text(arrows)
        self.assertEqual(heading.split(), [A, B])
        self.assertRegex(there, r"^     0\.000 ms \|-+ WRITE only PSN 5, 8 B -+>\|$")
        self.assertRegex(back, r"^     0\.001 ms \|<-+ ACK PSN 5, MSN 1 -+\|$")
        self.assertRegex(again, r"\|=+ WRITE only PSN 5, 8 B, again =+>\|$")
        self.assertEqual(len({len(line) for line in (there, back, again)}), 1)

    def test_three_hosts(self):
        arrows = ladder.steps(ladder.read(self.capture(
            frame(A, B, 0x64, 1, 1), frame(A, "10.77.0.3", 0x64, 1, 2),
            frame("10.77.0.3", B, 0x64, 1, 3), frame(B, B, 0x64, 1, 4))))
        lines = ladder.text(arrows)
        self.assertEqual([line.count("|") for line in lines[1:]], [3, 2, 3, 3])
        self.assertIn("<-- UD SEND", lines[4])

    def test_svg(self):
        write = frame(A, B, 0x0a, AT_B, 5, reth(8) + bytes(8))
        picture = ladder.svg(ladder.steps(ladder.read(self.capture(
            write, write, frame(B, A, 0x11, AT_A, 5, aeth(0x21)),
            frame(B, A, 0x81, AT_A, 0, bytes(16))))))
        root = ElementTree.fromstring(picture)
        space = {"svg": "http://www.w3.org/2000/svg"}
        words = [text.text for text in root.findall("svg:text", space)]
        self.assertEqual(words[:2], [A, B])
        for label in ("WRITE only PSN 5, 8 B, again", "RNR NAK PSN 5, wait 0.01 ms",
                      "CNP to QP 0x11", "sent again", "NAK"):
            self.assertIn(label, words)
        heads = [line.get("class") for line in root.findall("svg:line", space)
                 if line.get("marker-end")]
        self.assertEqual(heads, ["request", "again", "nak", "cnp"])

    def test_kinds_of_pcap(self):
        one = frame(A, B, 0x64, 1, 1)
        for endian in "<>":
            for magic, unit in ((0xa1b23c4d, 1000), (0xa1b2c3d4, 1)):
                path = self.capture(one, one, endian=endian, magic=magic, unit=unit)
                last = ladder.steps(ladder.read(path))[-1]
                self.assertAlmostEqual(last.time, 1e-6, delta=5e-7)

    def pcapng(self, *frames, endian="<", unit=b"\x09"):
        """A file with pairs of frame and comments, a microsecond after each other."""
        def block(kind, body):
            size = struct.pack(endian + "I", len(body) + 12)
            return struct.pack(endian + "I", kind) + size + body + size

        def option(code, value):
            return struct.pack(endian + "HH", code, len(value)) + value + bytes(-len(value) % 4)

        data = block(0x0a0d0d0a, struct.pack(endian + "IHHq", 0x1a2b3c4d, 1, 0, -1))
        data += block(1, struct.pack(endian + "HHI", 1, 0, 1 << 18) + option(9, unit) + bytes(4))
        data += block(5, bytes(12))  # statistics, which nobody asked for
        for number, (one, comments) in enumerate(frames):
            time = 1700000000 * 10 ** unit[0] + number * 10 ** (unit[0] - 6)
            data += block(6, struct.pack(
                endian + "IIIII", 0, time >> 32, time & 0xffffffff, len(one), len(one))
                + one + bytes(-len(one) % 4)
                + b"".join(option(1, comment.encode()) for comment in comments) + bytes(4))
        self.path.write_bytes(data)
        return self.path

    def test_pcapng(self):
        one = frame(A, B, 0x64, 1, 1)
        for endian in "<>":
            for unit in (b"\x09", b"\x06"):
                packets = ladder.read(self.pcapng((one, []), (one, ["a", "b"]),
                                                  endian=endian, unit=unit))
                self.assertEqual([packet.comments for packet in packets], [[], ["a", "b"]])
                self.assertAlmostEqual(ladder.steps(packets)[-1].time, 1e-6, delta=5e-7)

    def test_faults(self):
        """What the switch did is in the label; what it dropped is an arrow that ends on its way."""
        middle = [(frame(A, B, 0x07, AT_B, psn, bytes(256)),
                   ["fault: drop, rule 1, to port 1"] if psn == 5 else []) for psn in range(9)]
        back = (frame(B, A, 0x11, AT_A, 4, aeth(0x60)), ["fault: drop, by percentage, to port 0"])
        others = [(frame(A, B, 0x0a, AT_B, 20, reth(8) + bytes(8)), [comment]) for comment in (
            "fault: delay 5000us, rule 2, to port 1", "fault: reorder 3, rule 2, to port 1",
            "fault: mark, rule 2, to port 1", "fault: corrupt, rule 2, to port 1",
            "fault: duplicate, rule 2, to port 1", "fault: count, rule 2, to port 1", "a fault")]
        arrows = ladder.steps(ladder.read(self.pcapng(*middle, back, *others)))
        labels = [step.label for step in arrows]
        self.assertEqual(labels[:4], [
            "WRITE middle PSN 0 to 4, 5 packets", "WRITE middle PSN 5, dropped",
            "WRITE middle PSN 6", "WRITE middle PSN 7"])
        self.assertEqual(labels[5], "NAK PSN 4, PSN sequence error, dropped")
        self.assertEqual([label.partition("8 B")[2] for label in labels[6:]], [
            ", delayed by 5 ms", ", again, behind the next 3", ", again, marked CE",
            ", again, corrupted", ", again, duplicated", ", again", ", again"])
        lines = ladder.text(arrows)
        self.assertRegex(lines[2], r"\|-- WRITE middle PSN 5, dropped --X {8,}\|$")
        self.assertRegex(lines[6], r"\| {8,}Xxx NAK PSN 4, PSN sequence error, dropped xx\|$")
        self.assertEqual(len({len(line) for line in lines[1:]}), 1)
        root = ElementTree.fromstring(ladder.svg(arrows))
        space = {"svg": "http://www.w3.org/2000/svg"}
        ends = {line.get("marker-end"): abs(float(line.get("x2")) - float(line.get("x1")))
                for line in root.findall("svg:line[@marker-end]", space)}
        self.assertEqual(ends, {"url(#head)": ladder.COLUMN, "url(#cross)": ladder.COLUMN / 2})
        self.assertIn("dropped by the switch",
                      [text.text for text in root.findall("svg:text", space)])

    def lab(self, *arguments):
        done = subprocess.run([TOP / "scripts/lab", "ladder", *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_command(self):
        path = self.capture(frame(A, B, 0x64, AT_B, 1))
        picture = self.folder / "wire.svg"
        code, said, _ = self.lab(path, "--qp", "0x12")
        self.assertEqual((code, len(said.splitlines())), (0, 2))
        code, said, _ = self.lab(path, "--json")
        self.assertEqual(code, 0)
        arrow, = json.loads(said)
        self.assertEqual((arrow["source"], arrow["target"], arrow["qpn"], arrow["psn"]),
                         (A, B, AT_B, 1))
        code, said, _ = self.lab(path, "--svg", picture)
        self.assertEqual((code, said), (0, ""))
        ElementTree.parse(picture)

    def test_bad_input(self):
        def refused(message, path, *more):
            code, said, error = self.lab(path, *more)
            self.assertEqual((code, said), (1, ""))
            self.assertRegex(error, rf"^lab: .*{message}.*\n$")

        good = self.capture(frame(A, B, 0x64, AT_B, 1)).read_bytes()
        refused("no packet of QP 0x99; there are 0x12", self.path, "--qp", "0x99")
        refused("No such file", self.folder / "none.pcap")
        refused("No such file", self.path, "--svg", self.folder / "none/x.svg")
        for data, message in ((b"", "no pcap or pcapng file"),
                              (b"#!/bin/sh\n" * 9, "no pcap or pcapng file"),
                              (good[:-3], "ends within a frame"), (good[:30], "ends within"),
                              (good[:20] + b"\x65" + good[21:], "no Ethernet frames")):
            self.path.write_bytes(data)
            refused(message, self.path)
        good = self.pcapng((frame(A, B, 0x64, AT_B, 1), ["a comment"])).read_bytes()
        for data, message in ((good[:-3], "ends within a frame"),
                              (good[:32] + b"\x02" + good[33:], "has a block of 2 bytes"),
                              (good[:4] + b"\x0c" + good[5:], "has a block"),
                              (good[:36] + b"\x65" + good[37:], "no Ethernet frames")):
            self.path.write_bytes(data)
            refused(message, self.path)
        refused("has no RoCE packet", self.capture(bytes(60)))
        refused("has no RoCE packet", self.capture(frame(A, B, 0x64, 1, 1)[:44]))
        refused("7 addresses; choose", self.capture(
            *(frame(A, f"10.77.0.{n}", 0x64, 1, 1) for n in range(2, 8))))

    def test_reader_that_ends_early(self):
        """As `lab ladder | head` has one: no complaint, but a status of its own."""
        self.capture(*(frame(A, B, 0x64, AT_B, 10 * n) for n in range(2000)))
        with subprocess.Popen([TOP / "scripts/lab", "ladder", self.path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lab:
            self.assertIn(A, lab.stdout.readline())
            lab.stdout.close()
            self.assertEqual(lab.stderr.read(), "")
            self.assertEqual(lab.wait(), 128 + signal.SIGPIPE)

    def test_short_bodies(self):
        """Headers that end before their fields are shown without these."""
        self.assertEqual(self.labels(frame(A, B, 0x11, AT_B, 5), frame(A, B, 0x0a, AT_B, 6)),
                         [("response", "ACK PSN 5"), ("request", "WRITE only PSN 6")])


class Errors(unittest.TestCase):
    def test_none(self):
        with self.assertRaisesRegex(LabError, "No such file"):
            ladder.read("/nonexistent")


if __name__ == "__main__":
    unittest.main()
