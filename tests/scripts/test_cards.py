#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How hosts get their cards: as devices of QEMU, or as processes to which QEMU connects."""

import pathlib
import stat
import sys
import tempfile
import types
import unittest
from unittest import mock

import test_lab

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import cards, machine  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Host, Options  # noqa: E402

WIRE = types.SimpleNamespace(path="/lab/wire", shared_path="/lab/wire.shm")
MACS = ("52:54:00:77:00:01", "52:54:00:77:01:01")
# In place of tern-card: its socket is a file, and its log has what it was asked for.
CARD = """#!/bin/sh
echo "$@"
touch "$2"
exec sleep 600
"""
REFUSES = """#!/bin/sh
echo 'tern-card: --frobs: no such option; see --help' >&2
exit 2
"""


class Monitor:
    """QEMU's, which notes what it is told and answers as if it had no memory left, or nothing."""

    def __init__(self, answer=""):
        self.told, self._answer = [], answer

    def human(self, line):
        self.told.append(line)
        return self._answer

    def execute(self, command, **arguments):
        self.told.append((command, arguments))


class Cards(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def host(self, card_processes=(), **options):
        host = Host(1, None, Options(**options), self.folder, self.folder / "host1.log",
                    card_processes=card_processes)
        self.addCleanup(host.cards.kill)
        return host


class DevicesOfQemu(Cards):
    def plugged(self, **options):
        """QEMU's arguments, and the devices that are plugged in then."""
        host, monitor = self.host(**options), Monitor()
        arguments = host.cards.start(WIRE, True)
        for card in range(host.options.cards):
            host.cards.plug(monitor, card, f"slot{card + 1}")
        return arguments, [line.removeprefix("device_add ") for line in monitor.told]

    def test_shared_memory(self):
        self.assertEqual(self.plugged(wire="shm", cards=2, nic_options="engines=2"), ([], [
            f"tern,wire=/lab/wire.shm,id=card{card},mac={MACS[card]},engines=2,bus=slot{card + 1}"
            for card in (0, 1)]))

    def test_sockets(self):
        network = "stream,id=wire0,server=off,addr.type=unix,addr.path=/lab/wire"
        for nic, model in (("tern", "tern"), ("virtio", "virtio-net-pci,romfile=")):
            self.assertEqual(self.plugged(wire="stream", nic=nic), (["-netdev", network], [
                f"{model},netdev=wire0,id=card0,mac={MACS[0]},bus=slot1"]))

    def test_in_a_topology(self):
        arguments, devices = self.plugged(wire="shm", edges=(("left", 10000),))
        self.assertEqual((arguments, devices), ([], [
            f"tern,wire=/lab/wire.shm.left,id=card0,mac={MACS[0]},speed=10000,bus=slot1"]))

    def test_a_device_that_qemu_refuses(self):
        host = self.host()
        host.cards.start(WIRE, True)
        with self.assertRaisesRegex(LabError, "^no room$"):
            host.cards.plug(Monitor("no room"), 0, "slot1")

    def test_their_memory(self):
        """The device seals it."""
        self.assertIn("seal=off", " ".join(machine.hardware(Options())))


class Processes(Cards):
    def setUp(self):
        super().setUp()
        self.program = self.folder / "tern-card"
        patch = mock.patch.object(cards, "CARD", self.program)
        patch.start()
        self.addCleanup(patch.stop)
        self.write(CARD)

    def write(self, text):
        self.program.write_text(text, encoding="ascii")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def processes(self, **options):
        return self.host(wire="shm", front_end="vfio-user", **options)

    def said(self, card):
        return (self.folder / f"host1.card{card}.log").read_text(encoding="ascii")

    def test_what_they_are_asked_for(self):
        host = self.processes(cards=2, nic_options="engines=2,trace",
                              edges=(("left", 10000), ("right", 40000)))
        self.assertEqual(host.cards.start(WIRE, True), [])
        for card, (edge, speed) in enumerate(host.options.edges):
            self.assertEqual(
                self.said(card), f"--socket {self.folder}/host1.card{card} "
                f"--wire /lab/wire.shm.{edge} --mac {MACS[card]} --engines 2 --trace "
                f"--speed {speed}\n")

    def test_how_qemu_finds_them(self):
        host, monitor = self.processes(), Monitor()
        host.cards.start(WIRE, True)
        host.cards.plug(monitor, 0, "slot1")
        self.assertEqual(host.cards.qemu, ["qemu-system-x86_64"])
        self.assertEqual(monitor.told, [("device_add", {
            "driver": "vfio-user-pci", "id": "card0", "bus": "slot1",
            "socket": {"type": "unix", "path": f"{self.folder}/host1.card0"}})])

    def test_their_memory(self):
        """QEMU seals it."""
        hardware = " ".join(machine.hardware(Options(front_end="vfio-user")))
        self.assertIn("memory-backend-memfd", hardware)
        self.assertNotIn("seal=off", hardware)

    def test_another_command_finds_and_ends_them(self):
        host = self.processes(cards=2)
        host.cards.start(WIRE, False)
        found = self.processes(cards=2, card_processes=host.cards.to_json())
        found.cards.check_alive()
        found.cards.stop()
        with self.assertRaisesRegex(LabError, "host1's tern-card 0 has ended: --socket"):
            host.cards.check_alive()

    def test_once_more(self):
        """As a restart does, also if a card was killed and its socket is still there."""
        host = self.processes()
        host.cards.start(WIRE, True)
        before = host.cards.to_json()
        host.cards.start(WIRE, True)
        host.cards.check_alive()
        self.assertNotEqual(host.cards.to_json(), before)

    def test_one_that_does_not_start(self):
        self.write(REFUSES)
        host = self.processes(cards=2, nic_options="frobs=1")
        with self.assertRaisesRegex(
                LabError, "^host1: tern-card: --frobs: no such option; see --help$"):
            host.cards.start(WIRE, True)

    def test_not_built(self):
        self.program.unlink()
        with self.assertRaisesRegex(LabError, "tern-card is not built; run `make build`$"):
            self.processes().cards.start(WIRE, True)


class OfAStack(unittest.TestCase):
    def chosen(self, front_end, arch="amd64", **options):
        def ask(*what):
            return {"front-end": front_end, "arch": arch}[what[0]] if what else "latest"

        with mock.patch("ternlab.stack.ask", ask):
            return cards.for_this_stack([Options(**options)])[0]

    def test_its_front_end(self):
        for front_end in ("preloaded", "vfio-user"):
            self.assertEqual(self.chosen(front_end, wire="shm").front_end, front_end)

    def test_its_architecture(self):
        for arch in ("amd64", "arm64"):
            self.assertEqual(self.chosen("preloaded", arch).arch, arch)
        with self.assertRaisesRegex(LabError, "^hosts of the stack latest have no IOMMU$"):
            self.chosen("preloaded", "arm64", viommu=True)

    def test_what_processes_cannot(self):
        for options, reason in (({"wire": "stream"}, "shared memory only, and not by stream"),
                                ({"wire": "shm", "viommu": True}, "cannot be behind an IOMMU")):
            self.chosen("preloaded", **options)
            self.chosen("vfio-user", nic="virtio", **options)
            with self.assertRaisesRegex(LabError, f"the cards of the stack latest .* {reason}$"):
                self.chosen("vfio-user", **options)


class Commands(test_lab.Stateful):
    def test_what_processes_are_not_told(self):
        self.remember(1, 2, options={"front_end": "vfio-user"})
        for words in (["cable", "host1", "off"], ["query", "host1"], ["why", "host1"],
                      ["inject", "host1", "hold"]):
            self.assertEqual(self.refused(*words), "host1: its card is a process, tern-card, which "
                             "takes no commands")


if __name__ == "__main__":
    unittest.main()
