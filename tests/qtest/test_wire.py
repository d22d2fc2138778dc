# SPDX-License-Identifier: GPL-2.0-or-later
"""The wire through shared memory: how QEMU refuses what is none, and follows the switch."""

import mmap
import os
import re
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import test_hotplug
from machine import TOP, HW, Card, Machine

SWITCH = os.environ.get("TERN_SWITCH", TOP / "build/cmake/qemu/wire/tern-switch")


class Switch:
    def __init__(self, folder):
        self.path = f"{folder}/shared"
        self._process = subprocess.Popen(
            [SWITCH, "--listen", f"{folder}/stream", "--shared", self.path,
             "--control", f"{folder}/control"])
        while not os.path.exists(f"{folder}/control"):
            if self._process.poll() is not None:
                raise RuntimeError("the switch does not start")

    def kill(self):
        self._process.kill()
        self._process.wait()


class Peer:
    """Another process on the wire, as a hostile one would be: no card, and what it was given."""

    _VERSION = int(re.search(r"kVersion = (\d+)", (TOP / "qemu/shm/message.h").read_text(
        encoding="utf-8"))[1])
    _MESSAGE = struct.Struct("<QIIIIQII8Q128s")
    _MAGIC = 0x657269776e726574
    _HELLO, _PEER = 1, 4
    _LINK_FDS = 4
    _MAX_FDS = 12

    def __init__(self, switch):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(switch.path)
        self._socket.send(self._MESSAGE.pack(self._MAGIC, self._VERSION, self._HELLO,
                                             *[0] * 13, b""))
        self._fds = []

    def blocks(self):
        """Descriptors and sizes of what the first other host shares."""
        while True:
            data, fds, _, _ = socket.recv_fds(self._socket, self._MESSAGE.size, self._MAX_FDS)
            self._fds += fds
            message = self._MESSAGE.unpack(data)
            if message[2] == self._PEER:
                return list(zip(fds[self._LINK_FDS:], message[8:]))

    def close(self):
        for fd in self._fds:
            os.close(fd)
        self._socket.close()


class WireTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tern-wire-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Refusals(WireTest):
    def refused(self, wire, message, *arguments):
        with self.assertRaisesRegex(RuntimeError, message):
            Machine(*arguments, "-device", f"tern,wire={wire}")

    def test_no_such_path(self):
        self.refused(f"{self.folder}/none", "wire: .*No such file")

    def test_no_socket(self):
        path = Path(self.folder, "file")
        path.touch()
        self.refused(path, "wire: .*Connection refused")

    def test_path_too_long(self):
        self.refused(f"{self.folder}/{'x' * 100}", "107 bytes")

    def test_empty_path(self):
        self.refused("", "107 bytes")

    def listener(self, kind):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        path = f"{self.folder}/listener"
        listener.bind(path)
        listener.listen()
        return listener, path

    def test_another_kind_of_socket(self):
        _, path = self.listener(socket.SOCK_STREAM)
        self.refused(path, "somebody else listens there")

    def test_hangs_up(self):
        listener, path = self.listener(socket.SOCK_SEQPACKET)
        machine = subprocess.Popen(
            [TOP / "scripts/tern-qemu", "-nodefaults", "-display", "none", "-S",
             "-device", f"tern,wire={path}"], stderr=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.close()
        _, said = machine.communicate(timeout=60)
        self.assertEqual(machine.returncode, 1)
        self.assertIn("hung up", said)

    def test_netdev_and_wire(self):
        switch = Switch(self.folder)
        self.addCleanup(switch.kill)
        self.refused(f"{switch.path},netdev=net", "give one",
                     "-netdev", "hubport,id=net,hubid=0")


class Link(WireTest):
    """What the card says of its link while the switch comes and goes."""

    def start(self, *arguments):
        self.switch = Switch(self.folder)
        self.machine = Machine(
            *arguments, "-device",
            f"tern,id=card,wire={self.switch.path},mac=02:54:45:52:4e:01,addr=4")
        self.addCleanup(self.end)
        self.card = Card(self.machine)

    def end(self):
        log = self.machine.log()
        self.assertEqual(self.machine.quit(), 0, log)
        self.switch.kill()

    def link_is_up(self):
        return self.card.reg("LINK") == HW.LINK_UP

    def await_link(self, up):
        self.card.wait(lambda: self.link_is_up() == up)

    def test_follows_the_switch(self):
        self.start()
        self.await_link(True)
        for _ in range(3):
            self.switch.kill()
            self.await_link(False)
            self.switch = Switch(self.folder)
            self.await_link(True)

    def test_cable(self):
        """The link needs both a cable and a switch."""
        self.start()
        self.await_link(True)
        for _ in range(3):
            self.machine.set_cable(False)
            self.assertFalse(self.link_is_up())
            self.machine.set_cable(True)
            self.assertTrue(self.link_is_up())
        self.switch.kill()
        self.await_link(False)
        self.machine.set_cable(False)
        self.switch = Switch(self.folder)
        self.machine.set_cable(True)
        self.await_link(True)

    def start_with_memory(self, options):
        self.start("-object", f"memory-backend-memfd,id=ram,size=128M,{options}",
                   "-machine", "memory-backend=ram")

    def shared_blocks(self):
        """What another host gets of this one: RAM, and the spill last."""
        peer = Peer(self.switch)
        self.addCleanup(peer.close)
        return peer.blocks()

    def test_peers_can_read_but_not_write(self):
        self.start_with_memory("share=on,seal=off")
        (ram, size), (spill, spill_size) = self.shared_blocks()
        self.assertEqual(size, 128 << 20)
        for fd, length in (ram, size), (spill, spill_size):
            again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
            self.addCleanup(os.close, again)
            for way in fd, again:
                with self.assertRaises(PermissionError):
                    mmap.mmap(way, length, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            with self.assertRaises(PermissionError):
                os.pwrite(again, b"x", 0)
            with self.assertRaises(PermissionError):
                os.ftruncate(again, 0)
        with mmap.mmap(ram, size, mmap.MAP_SHARED, mmap.PROT_READ) as seen:
            self.machine.write_memory(0x200000, b"written by the guest")
            self.assertEqual(seen[0x200000:0x200014], b"written by the guest")

    def test_memory_that_peers_could_write_is_not_shared(self):
        self.start_with_memory("share=on,seal=on")
        self.assertEqual(len(self.shared_blocks()), 1)
        self.assertIn("is copied, not lent", self.machine.log())

    def test_sealed_memory_is_not_to_be_discarded(self):
        """virtio-mem, as a balloon, would fail at each page; it is told before."""
        switch = Switch(self.folder)
        self.addCleanup(switch.kill)
        with self.assertRaisesRegex(RuntimeError, "Discarding RAM is disabled"):
            Machine("-object", "memory-backend-memfd,id=ram,size=128M,share=on,seal=off",
                    "-machine", "memory-backend=ram", "-m", "128M,maxmem=1G",
                    "-device", f"tern,wire={switch.path}",
                    "-object", "memory-backend-ram,id=more,size=128M",
                    "-device", "virtio-mem-pci,memdev=more")

    def test_with_shared_memory(self):
        self.start_with_memory("share=on,seal=off")
        self.await_link(True)
        self.card.enable()
        self.assertEqual(self.card.query_device()[2], 0)

    def test_stopped_machine(self):
        self.start()
        self.await_link(True)
        self.machine.qmp("stop")
        self.switch.kill()
        self.switch = Switch(self.folder)
        self.machine.qmp("cont")
        self.await_link(True)


class Hotplug(test_hotplug.Hotplug):
    """Its tests, with cards on this wire."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tern-wire-")
        self.addCleanup(folder.cleanup)
        switch = Switch(folder.name)
        self.addCleanup(switch.kill)
        self.network = {"wire": switch.path}
        super().setUp()

    def plug(self):
        super().plug()
        self.card.wait(lambda: self.card.reg("LINK") == HW.LINK_UP)

    def test_refused_and_plugged(self):
        path, self.network["wire"] = self.network["wire"], "/nowhere/at/all"
        with self.assertRaisesRegex(RuntimeError, "No such file"):
            self.plug()
        self.network["wire"] = path
        self.plug()
