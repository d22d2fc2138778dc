# SPDX-License-Identifier: GPL-2.0-or-later
"""The card in a process of its own, driven by a client in place of QEMU and a guest."""

import mmap
import os
import resource
import select
import socket
import struct
import time
import unittest

from machine import HW, PATIENCE
from test_example import execute_all
from vfio_user import (DMA_UNMAP, GET_REGION_INFO, HEADER, RESET, Client, Processes, Refused,
                       UserCard)


def cpu_seconds(pid):
    """What the process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class VfioUser(unittest.TestCase):
    options = ()

    def setUp(self):
        self.processes = Processes(*self.options)
        self.addCleanup(self.end)
        self.connect()
        self.addCleanup(lambda: self.client.close())

    def end(self):
        log = self.processes.log()
        self.assertEqual(self.processes.end(), 0, log)

    def connect(self):
        self.client = Client(self.processes.socket)
        self.client.map_ram()
        self.card = UserCard(self.client)

    def query(self):
        self.card.enable()
        self.card.query_device()

    def test_admin_command(self):
        self.assertEqual(self.card.reg("VERSION") >> 16, HW.HW_MAJOR)
        self.query()

    def test_example(self):
        """That of docs/hardware.md, as test_example.py executes it on the QEMU device."""
        execute_all(self, self.card)

    def test_interrupt(self):
        bell = self.client.listen(0)
        self.addCleanup(os.close, bell)
        self.card.write(2, self.card.capability(0x11) + 2, 0x8000)
        self.query()
        self.assertTrue(select.select([bell], [], [], PATIENCE)[0])

    def test_device_memory(self):
        """A client maps what it would otherwise access by messages."""
        info = self.client.call(GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, 5, 0, 0, 0))
        size, = struct.unpack_from("<Q", info, 16)
        with mmap.mmap(self.client.fds[0], size) as memory:
            memory[8:12] = b"tern"
        os.close(self.client.fds[0])
        self.assertEqual(self.client.region_read(5, 8, 4).to_bytes(4, "little"), b"tern")

    def test_reset(self):
        self.query()
        self.client.call(RESET)
        self.assertEqual(self.card.reg("STATUS"), 0)
        self.card.place()
        self.query()

    def test_memory_that_is_gone(self):
        """A card whose rings are unmapped stops, and only that."""
        self.query()
        self.client.call(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, 0, self.client.RAM))
        self.card.set_reg("AQ_PI", 2)
        self.card.wait(lambda: self.card.reg("STATUS") & HW.STATUS_FATAL)
        self.client.map_ram()
        self.card.set_reg("CTRL", HW.CTRL_RESET)
        self.card.wait(lambda: self.card.reg("STATUS") == 0)
        self.query()

    def test_next_client(self):
        """One that goes away leaves a card without memory, as after power on."""
        self.query()
        self.client.close()
        self.connect()
        self.assertEqual(self.card.reg("STATUS"), 0)
        self.query()

    def test_nonsense(self):
        """It ends the connection, and the card serves the next one."""
        for nonsense in (bytes(HEADER.size), os.urandom(4096),
                         HEADER.pack(1, 9, HEADER.size + 3, 0, 0) + b"abc"):
            self.client.send(nonsense)
            with self.assertRaises((EOFError, ConnectionError)):
                self.client.call(RESET)
            self.client.close()
            self.connect()
        self.query()
        self.assertEqual(self.processes.log().count("tern-card: the client"), 3)

    def test_pipe_for_an_eventfd(self):
        """One that nobody reads does not end the card."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        self.client.signal(0, writing)
        os.close(reading)
        self.card.write(2, self.card.capability(0x11) + 2, 0x8000)
        self.query()
        self.client.close()
        self.connect()
        self.query()

    def test_why_memory_is_refused(self):
        """Each client is told."""
        unsealed = os.memfd_create("unsealed")
        self.addCleanup(os.close, unsealed)
        for clients in (1, 2):
            with self.assertRaises(Refused):
                self.client.map(Client.RAM, unsealed)
            self.assertEqual(self.processes.log().count("guest memory: "), clients)
            self.client.close()
            self.connect()

    def test_no_descriptor_for_a_client(self):
        """The card says so, waits without using the processor, and serves the client later."""
        pid = self.processes.card.pid
        self.client.close()
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(os.fspath(self.processes.socket))
            end = time.monotonic() + PATIENCE
            while "Too many open files" not in self.processes.log():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            before = cpu_seconds(pid)
            time.sleep(1)
            self.assertLess(cpu_seconds(pid) - before, 0.5)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        self.connect()
        self.query()
        self.assertEqual(self.processes.log().count("Too many open files"), 1)

    def test_refused(self):
        with self.assertRaises(Refused):
            self.client.map_ram()
        self.query()


class SeveralEngines(VfioUser):
    options = ("--engines", "4")

    def test_engines(self):
        self.assertEqual(self.card.reg("ENGINES"), 4)


if __name__ == "__main__":
    unittest.main()
