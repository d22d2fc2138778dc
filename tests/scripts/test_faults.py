# SPDX-License-Identifier: GPL-2.0-or-later
"""`lab faults` and `lab capture` with a switch and no hosts; argv[1] is tern-switch."""

import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import ladder, roce  # noqa: E402
from ternlab.wire import Wire  # noqa: E402
from test_ladder import A, AT_A, AT_B, B, aeth, frame as packet  # noqa: E402

SWITCH = None
MACS = [bytes.fromhex(f"52540077000{host}") for host in (1, 2)]


class Faults(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": scratch.name, "TERN_STACK": "",
                            "TERN_SWITCH": SWITCH, "TERN_LAB": f"faults-{os.getpid()}"}
        self.remember_lab()
        self.switch = subprocess.Popen(
            [SWITCH, "--listen", self.lab_folder / "wire", "--control",
             self.lab_folder / "wire.ctl"])
        self.addCleanup(self.switch.wait)
        self.addCleanup(self.switch.terminate)
        while self.lab("faults")[0]:
            self.assertIsNone(self.switch.poll())
            time.sleep(0.05)

    def remember_lab(self):
        """Writes what a lab of two hosts leaves for `scripts/lab`, and makes its folder of logs."""
        name = self.environment["TERN_LAB"]
        find = "from ternlab import paths; import sys; print(paths.runtime(sys.argv[1]));" \
               "print(paths.logs(sys.argv[1]))"
        told = subprocess.run([sys.executable, "-B", "-c", find, name], cwd=TOP / "scripts",
                              stdout=subprocess.PIPE, text=True, check=True, env=self.environment)
        self.lab_folder, self.logs = map(pathlib.Path, told.stdout.split())
        self.lab_folder.mkdir(parents=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.addCleanup(self.logs.rmdir)
        self.addCleanup((self.logs / "faults.jsonl").unlink, missing_ok=True)
        process = {"name": "ended", "pid": 1, "birth": None}
        (self.lab_folder / "lab.json").write_text(json.dumps({
            "image": "/nowhere", "wire": process,
            "hosts": [{"index": index, "port": None, "process": process, "options": {"cards": 2}}
                      for index in (1, 2)]}), encoding="ascii")

    def lab(self, *words):
        words = [word if isinstance(word, bytes) else str(word) for word in words]
        done = subprocess.run([sys.executable, "-B", TOP / "scripts/lab", *words],
                              capture_output=True, text=True, check=False, env=self.environment)
        return done.returncode, done.stdout, done.stderr

    def faults(self, *words):
        code, said, error = self.lab("faults", *words)
        self.assertEqual((code, error), (0, ""))
        return said

    def rules(self):
        """What is set, without numbers and counts."""
        return [line.split(": ")[1] if line.startswith("rule ") else line
                for line in self.faults().splitlines()]

    def refused(self, message, *words):
        """An error is one line, and nothing is set."""
        code, said, error = self.lab("faults", *words)
        self.assertEqual((code, said), (1, ""), words)
        self.assertRegex(error, rf"^lab: .*{message}.*\n$")
        self.assertEqual(self.faults(), "no faults are set\n")

    def connect(self):
        """Two hosts' sockets, of which the switch knows the addresses."""
        hosts = [socket.socket(socket.AF_UNIX) for _ in MACS]
        for host in hosts:
            self.addCleanup(host.close)
            host.settimeout(20)
            host.connect(str(self.lab_folder / "wire"))
        while not Wire(self.lab_folder).tell("ports").startswith("2;"):
            time.sleep(0.01)
        for host, mac in zip(hosts, MACS):
            self.send(host, b"\xff" * 6 + mac + b"\x08\x06" + bytes(46))
        for host in hosts:
            self.receive(host)
        return hosts

    @staticmethod
    def send(host, frame):
        host.sendall(len(frame).to_bytes(4, "big") + frame)

    @staticmethod
    def receive(host):
        stream = host.makefile("rb", buffering=0)
        size = int.from_bytes(stream.read(4), "big")
        found = b""
        while len(found) < size:
            found += stream.read(size - len(found))
        return found

    # --- what is set

    def test_shown_added_cleared(self):
        self.assertEqual(self.faults(), "no faults are set\n")
        self.assertEqual(self.faults("--drop", "opcode=WRITE psn=+4", "--once"), "")
        self.assertEqual(self.faults("host1", "--delay", "opcode=ACK", "--by", "5ms",
                                     "--every", 10), "")
        self.assertEqual(self.faults("--loss", 1.5, "--corrupt", 0.5), "")
        self.assertEqual(self.faults("--corrupt", "from=host2", "--probability", 0.01), "")
        self.assertEqual(self.faults().splitlines(), [
            "loss 1.5 %", "corrupt 0.5 %",
            "rule 1: drop opcode=WRITE psn=+4 once: matched 0, hit 0",
            "rule 2: delay opcode=ACK host=host1 by=5ms every=10: matched 0, hit 0",
            "rule 3: corrupt from=host2 probability=0.01: matched 0, hit 0"])
        told = json.loads(self.faults("--json"))
        self.assertEqual((told["loss"], told["corrupt"]), (1.5, 0.5))
        self.assertEqual([rule["text"] for rule in told["rules"]][2],
                         "corrupt from=host2 probability=0.01")
        code, _, error = self.lab("faults", "--json", "--clear")
        self.assertEqual((code, error), (1, "lab: --json shows the faults and sets none\n"))
        self.faults("--loss", 0)
        self.assertEqual(len(self.rules()), 4)
        self.faults("--clear")
        self.assertEqual(self.faults(), "no faults are set\n")

    def test_file(self):
        path = self.folder / "rules.toml"
        path.write_text("""
            [[rule]]
            action = "drop"
            opcode = "WRITE,SEND"
            psn = "+4"
            once = true

            [[rule]]
            action = "reorder"
            by = 3
            to = "host1,52:54:00:00:00:09"
            retransmission = false
            every = 2
            once = false
        """, encoding="utf-8")
        self.faults("--file", path)
        self.assertEqual(self.rules(), [
            "drop opcode=WRITE,SEND psn=+4 once",
            "reorder by=3 to=host1,52:54:00:00:00:09 retransmission=no every=2"])

    def test_bad_words(self):
        for message, *words in (
                ('opcode: there is no opcode "WIRTE"', "--drop", "opcode=WIRTE"),
                ("colour: there is no such key", "--drop", "colour=red"),
                ("psn: needs a number of 24 bits", "--drop", "psn=0x1000000"),
                ("nth: excludes", "--drop", "nth=3", "--probability", "0.5"),
                ("once: is given twice", "--drop", "once", "--once"),
                ("by: needs a time", "--delay", "", "--by", "5"),
                ("by: is missing", "--reorder", ""),
                ('from: no host "host9"', "--drop", "from=host9"),
                ("to: what a host sends to itself", "--drop",
                 "from=52:54:00:00:00:09 to=52:54:00:00:00:09"),
                ('host: no host "host9"', "host9", "--drop", ""),
                ("opcode: .* blank or a semicolon", "--drop", "opcode=ACK;drop"),
                ("host is for a rule", "host1"),
                ("once is for a rule", "--once", "--loss", "1"),
                ("one rule at a time", "--drop", "", "--mark", ""),
                ("one rule at a time", "--drop", "", "--file", self.folder / "none.toml"),
                ("--loss needs a percentage", "--loss", "much"),
                ("--dup needs a percentage from 0 to 100", "--loss", "1", "--dup", "101"),
                ("--corrupt needs a percentage from 0 to 100", "--corrupt", "nan"),
                ("opcode: there is no", "--loss", "1", "--drop", "opcode=NONE"),
                ("--clear goes without", "--clear", "--drop", ""),
                ("--log shows", "--log", "--clear"),
                ("--log shows", "--log", "--loss", "5"),
                ("No such file", "--file", self.folder / "none.toml"),
                ("colour\ufffd: there is no such key", "--drop", b"colour\xff=red"),
                (r'by: "by=5ms.n" has a blank', "--delay", "", "--by", "5ms\n")):
            self.refused(message, *words)

    def test_bad_file(self):
        path = self.folder / "rules.toml"
        good = '[[rule]]\naction = "drop"\nqp = 17\n'
        for line, message, text in (
                (6, "opcode: there is no opcode", '[[rule]]\naction="drop"\nopcode = "X"\n'),
                (4, "action: is missing", "[[rule]]\nqp = 1\n"),
                (5, "action: .*lose", '[[rule]]\naction = "lose"\n'),
                (5, 'action: "drop.u000aseed 1" has', '[[rule]]\naction = "drop\\nseed 1"\n'),
                (5, 'action: "drop;mark" has', '[[rule]]\naction = "drop;mark"\n'),
                (6, 'opcode: "ACK once" has', '[[rule]]\naction="drop"\nopcode="ACK once"\n'),
                (7, "from: no host", '# [[rule]]\n[[ rule ]]\naction="drop"\n"from" = "host7"\n'),
                (6, "psn: needs a number", '[[rule]]\naction="drop"\npsn = 16777216\n'),
                (6, "qp: must be a string, a number", '[[rule]]\naction="drop"\nqp = [1, 2]\n'),
                (6, "colour: there is no such key", '[[rule]]\naction="drop"\ncolour = 1\n'),
                (6, "nth: excludes", '[[rule]]\naction="drop"\nnth = 2\nevery = 2\n'),
                (4, "by: is missing", '[[rule]]\naction="delay"\n'),
                (5 + 3 * 63, "action: there may be 64", 64 * '[[rule]]\naction="drop"\n\n')):
            path.write_text(good + text, encoding="utf-8")
            self.refused(f"{path}:{line}: rule.{message}", "--file", path)
        for line, message, text in (
                (1, "rules: there is no such key", 'rules = 1\n'),
                (1, "rule: is missing", ""), (1, "rule: must be tables", "rule = []\n"),
                (2, "rule: must be tables", "\nrule = 1\n"),
                (3, "rule.psn: needs a number",
                 'rule = [\n {action="drop"},\n {action="drop", psn=-1}]\n'),
                (4, "rule.from: no host",
                 'rule = [{action="drop"},\n\n\n {action="drop", from="host9"}]\n'),
                (2, "Error while parsing", '[[rule]]\naction = drop\n')):
            path.write_text(text, encoding="utf-8")
            self.refused(f"{path}:{line}: {message}", "--file", path)
        self.refused(f"{self.folder}: Is a directory", "--file", self.folder)

    # --- what happens

    def test_log_and_capture(self):
        """Each fault is a line of the log, and a comment in the capture."""
        first, second = self.connect()
        paths = {name: self.folder / name for name in ("all.pcapng", "all.pcap", "mirror.pcap")}

        def write(psn):
            return MACS[1] + MACS[0] + packet(A, B, 0x07, AT_B, psn, bytes(64))[12:]

        answer = MACS[0] + MACS[1] + packet(B, A, 0x11, AT_A, 7, aeth(0x1f))[12:]
        for name, path in paths.items():
            self.faults("--clear")
            self.faults("host2", "--drop", "opcode=WRITE psn=+1", "--once")
            mirror = ["--mirror"] if name == "mirror.pcap" else []
            self.assertEqual(self.lab("capture", "start", path, "--host", "host1", *mirror),
                             (0, "", ""))
            for psn in (5, 6, 7):
                self.send(first, write(psn))
            for psn in (5, 7):
                self.assertEqual(self.receive(second), write(psn))
            self.send(second, answer)
            self.assertEqual(self.receive(first), answer)
            self.assertEqual(self.lab("capture", "stop"), (0, "", ""))
        self.assertIn("matched 1, hit 1, will not act again", self.faults())

        found = roce.packets(paths["all.pcapng"])
        self.assertEqual([len(one.comments) for one in found], [0, 1, 0, 0])
        self.assertRegex(found[1].comments[0], r"^fault: drop, rule 1, to port \d$")
        self.assertEqual([one.comments for one in roce.packets(paths["all.pcap"])], [[]] * 4)
        lines = ladder.text(ladder.steps(ladder.read(paths["all.pcapng"])))
        self.assertRegex(lines[2], r"\|-- WRITE middle PSN 6, dropped --X +\|$")

        entries = [json.loads(line) for line in self.faults("--log").splitlines()]
        self.assertEqual(len(entries), 3)
        self.assertEqual({name: entries[0][name] for name in entries[0] if name != "time"},
                         {"from": "host1", "to": "host2", "port": entries[0]["port"],
                          "action": "drop", "cause": "rule 1", "opcode": "RC_WRITE_MIDDLE",
                          "qp": 0x12, "psn": 6})
        self.assertRegex(entries[0]["time"], r"^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
        self.check_mirror(paths["mirror.pcap"], [write(psn) for psn in (5, 6, 7)] + [answer])

    def ports(self):
        """{Ethernet address: the switch's port at which its host is}."""
        ports = Wire(self.lab_folder).tell("ports")
        found = {mac: int(number) for number, addresses in
                 re.findall(r"port=(\d+)([^;]*)", ports) for mac in MACS
                 if mac.hex(":") in addresses}
        self.assertEqual(len(set(found.values())), len(MACS), ports)
        return found

    def check_mirror(self, path, sent):
        """What Lumina's analyzer reads: time, sequence number, event and port; the rest is as
        sent."""
        ports = self.ports()
        for number, ((at, frame, _), original) in enumerate(zip(roce.records(path), sent), 1):
            self.assertAlmostEqual(int.from_bytes(frame[:6], "big"),
                                   round(at * 1e9) % (1 << 48), delta=1000)
            self.assertEqual(int.from_bytes(frame[6:12], "big"), number)
            self.assertEqual(frame[22], 1 if number == 2 else 0)  # TTL: dropped
            self.assertEqual(int.from_bytes(frame[18:20], "big"), ports[original[6:12]])
            self.assertEqual(frame[12:18] + frame[20:22] + frame[23:24] + frame[26:],
                             original[12:18] + original[20:22] + original[23:24] + original[26:])
            self.assertEqual(sum(struct.unpack(">10H", frame[14:34])) % 0xffff, 0)  # its checksum
        self.assertEqual(number, len(sent))

    def test_capture_of_one_host(self):
        """Frames between others are not in it."""
        first, second = self.connect()
        path = self.folder / "other.pcapng"
        self.assertEqual(self.lab("capture", "start", path, "--host", "host2")[0], 0)
        stranger = bytes.fromhex("525400990001")
        self.send(first, MACS[1] + MACS[0] + b"\x08\x06" + bytes(50))
        self.assertEqual(self.receive(second)[:6], MACS[1])
        self.send(first, stranger + MACS[0] + b"\x08\x06" + bytes(50))  # unknown, so to all
        self.assertEqual(self.receive(second)[:6], stranger)
        self.send(first, MACS[0] + stranger + b"\x08\x06" + bytes(50))  # to its own segment
        self.send(second, MACS[0] + MACS[1] + b"\x08\x06" + bytes(50))
        while self.receive(first)[6:12] != MACS[1]:
            pass
        self.assertEqual(self.lab("capture", "stop")[0], 0)
        self.assertEqual([frame[:12] for _, frame, _ in roce.records(path)],
                         [MACS[1] + MACS[0], stranger + MACS[0], MACS[0] + MACS[1]])

    def test_capture_of_one_card(self):
        """Frames of the host's other card are not in it; without --card they are."""
        first, second = self.connect()
        mac = bytes.fromhex("525400770101")  # of the first host's other card
        other = socket.socket(socket.AF_UNIX)
        self.addCleanup(other.close)
        other.settimeout(20)
        other.connect(str(self.lab_folder / "wire"))
        self.send(other, b"\xff" * 6 + mac + b"\x08\x06" + bytes(46))
        for host in (first, second):
            self.receive(host)
        pairs = [MACS[1] + MACS[0], MACS[1] + mac]
        for words, found in ((["--card", 1], pairs[1:]), (["--card", 0], pairs[:1]), ([], pairs)):
            path = self.folder / f"{len(words)}-{words[-1:]}.pcap"
            self.assertEqual(self.lab("capture", "start", path, "--host", "host1", *words),
                             (0, "", ""))
            for host, addresses in zip((first, other), pairs):
                self.send(host, addresses + b"\x08\x06" + bytes(50))
                self.assertEqual(self.receive(second)[:12], addresses)
            self.assertEqual(self.lab("capture", "stop")[0], 0)
            self.assertEqual([frame[:12] for _, frame, _ in roce.records(path)], found)

    def test_capture_with_any_name(self):
        """But for a line break, which ends a command for the switch."""
        path = os.path.join(bytes(self.folder), b" \xff\xc3\xa9\t.pcap")
        self.assertEqual(self.lab("capture", "start", path), (0, "", ""))
        self.assertEqual(self.lab("capture", "stop")[0], 0)
        self.assertTrue(os.path.exists(path))
        path = os.path.join(bytes(self.folder), b"\xff/none.pcap")
        self.assertRegex(self.lab("capture", "start", path)[2], "^lab: .*No such file.*\n$")
        for name in ("a\nseed 1", "a\n", "a "):
            self.assertRegex(self.lab("capture", "start", self.folder / name)[2],
                             r"^lab: the wire takes no line break .*'\n$")
        self.assertEqual([path.name for path in self.folder.glob("a*")], [])

    def test_capture_refused(self):
        for message, *words in (
                (".*for pcap, not for pcapng", "--mirror"),
                ("host1 has no card 2", "--host", "host1", "--card", 2),
                ("host1 has no card -1", "--host", "host1", "--card", -1),
                ('no host "host3"; there are host1, host2', "--host", "host3", "--card", 0),
                ("--card NUMBER is for a host, which --host HOST names", "--card", 0)):
            path = self.folder / "x.pcapng"
            code, said, error = self.lab("capture", "start", path, *words)
            self.assertEqual((code, said), (1, ""), words)
            self.assertRegex(error, f"^lab: {message}\n$")
            self.assertFalse(path.exists())


if __name__ == "__main__":
    SWITCH = sys.argv.pop(1)
    unittest.main()
