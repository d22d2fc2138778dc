# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of `lab watch`, from samples of cards."""

import os
import pathlib
import pty
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import watch  # noqa: E402
from ternlab.errors import LabError  # noqa: E402


def card(enabled=True, fatal="NONE", **counters):
    zero = dict.fromkeys(("tx_bytes", "rx_bytes", "tx_frames", "rx_frames", "resp_writes",
                          "req_retransmits", "rx_no_qp"), 0)
    return {"running": True, "bus_master": True, "msix": "on", "engines": [{
        "link": True, "enabled": enabled, "fatal": fatal, "last_fatal": "NONE", "mac": "2",
        "commands": {"pi": 0, "ci": 0, "running": "", "qpn": 0}, "qps": [],
        "counters": {**zero, **counters}}]}


class Lines(unittest.TestCase):
    def lines(self, *samples):
        """Of the last of the samples, which are a second apart."""
        screen = watch.Screen("lab", (0, samples[0]))
        for second, sample in enumerate(samples[1:], 1):
            lines = screen.lines((second, sample))
        return lines

    def test_rates(self):
        lines = self.lines({"host1": card(tx_bytes=1000)},
                           {"host1": card(tx_bytes=1_001_000, tx_frames=7, resp_writes=3)})
        self.assertEqual(lines[3].split(), ["host1", "on", "up", "0", "8.0", "0.0", "7", "0"])
        self.assertEqual([line.split() for line in lines if "resp_writes" in line],
                         [["host1", "resp_writes", "3"]])

    def test_errors_stay(self):
        lines = self.lines({"host1": card(rx_no_qp=5)}, {"host1": card(rx_no_qp=9)},
                           {"host1": card(rx_no_qp=9)})
        self.assertEqual([line.split() for line in lines if "rx_no_qp" in line],
                         [["host1", "rx_no_qp", "4"]])
        moving = lines[lines.index("counters that move, per second") + 1]
        self.assertEqual(moving, "")

    def test_reset(self):
        lines = self.lines({"host1": card(resp_writes=50)}, {"host1": card(resp_writes=2)})
        self.assertEqual([line.split()[-1] for line in lines if "resp_writes" in line], ["2"])

    def test_hosts_in_trouble(self):
        gone = LabError("host2: its QEMU does not answer")
        lines = self.lines({"host1": card(), "host2": gone},
                           {"host1": card(fatal="AQ_DMA"), "host2": gone})
        self.assertEqual(lines[3].split()[:2], ["host1", "stopped"])
        self.assertIn("host2: its QEMU does not answer", lines[4])
        self.assertIn("  host1: the card has stopped (AQ_DMA): it cannot read or write the admin "
                      "queue", lines)
        back = self.lines({"host1": gone}, {"host1": card(tx_frames=9)})
        self.assertEqual(back[3].split()[-2:], ["0", "0"])


class Lab:
    """Hosts whose QEMU is gone."""
    name = "lab"
    hosts = ()

    @staticmethod
    def each(action, _):
        return [action(host) for host in Lab.hosts]


class Terminal(unittest.TestCase):
    def test_q_quits(self):
        child, terminal = pty.fork()
        if not child:
            os.environ["TERM"] = "xterm"
            watch.watch(Lab)
            os._exit(0)
        seen = b""
        while b"q quits" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"q")
        with os.fdopen(terminal, "rb", buffering=0) as rest:
            try:
                while rest.read(4096):
                    pass
            except OSError:  # Linux' way to say that the other end is closed
                pass
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_no_terminal(self):
        read, write = os.pipe()
        with os.fdopen(read), os.fdopen(write, "w") as out:
            standard, sys.stdout = sys.stdout, out
            try:
                with self.assertRaisesRegex(LabError, "needs a terminal"):
                    watch.watch(Lab)
            finally:
                sys.stdout = standard


if __name__ == "__main__":
    unittest.main()
