# SPDX-License-Identifier: GPL-2.0-or-later
"""tern-card and a client of it: what QEMU and a guest would say, without QEMU."""

import array
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from machine import PATIENCE, TOP, Card

BUILD = TOP / "build/cmake/qemu"
CARD = os.environ.get("TERN_CARD", BUILD / "vfio/tern-card")
SWITCH = os.environ.get("TERN_SWITCH", BUILD / "wire/tern-switch")

HEADER = struct.Struct("<HHIII")
VERSION, DMA_MAP, DMA_UNMAP, GET_REGION_INFO, SET_IRQS = 1, 2, 3, 5, 8
REGION_READ, REGION_WRITE, RESET = 9, 10, 13
CONFIG = 7  # the region
MSIX = 2  # the interrupt index
EVENTFD_TRIGGER = 1 << 2 | 1 << 5
MAC = "02:54:45:52:4e:01"


class Refused(Exception):
    """An error reply."""


class Processes:
    """A switch and a card in a folder of their own."""

    def __init__(self, *options):
        self._folder = tempfile.TemporaryDirectory(prefix="tern-vfio-")
        self.path = Path(self._folder.name)
        self.socket = self.path / "card"
        self._log = open(self.path / "log", "w+", encoding="utf-8")
        self._running = []
        self._start(SWITCH, "--listen", self.path / "listen", "--shared", self.path / "shared")
        self._wait(self.path / "shared")
        self.card = self._start(CARD, "--socket", self.socket, "--wire", self.path / "shared",
                                "--mac", MAC, *options)
        self._wait(self.socket)

    def _start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log,
                                   stderr=self._log)
        self._running.append(process)
        return process

    def _wait(self, path):
        end = time.monotonic() + PATIENCE
        while not path.exists():
            if self._running[-1].poll() is not None or time.monotonic() > end:
                self.end()
                raise RuntimeError(f"nobody listens at {path}: {self.log()}")
            time.sleep(0.01)

    def log(self):
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def end(self):
        """Returns the card's exit status."""
        for process in reversed(self._running):
            process.terminate()
        status = [process.wait(PATIENCE) for process in self._running][-1]
        self._log.close()
        self._folder.cleanup()
        return status


class Client:
    """Has the methods of Machine that drive a card, over the vfio-user protocol."""

    RAM = 16 << 20
    BARS = ((Card.REGS, 0), (Card.MSIX, 4), (Card.DM, 5), (Card.DOORBELLS, 2))

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(os.fspath(path))
        self._memory = os.memfd_create("guest", os.MFD_ALLOW_SEALING)
        os.ftruncate(self._memory, self.RAM)
        fcntl.fcntl(self._memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self._ram = mmap.mmap(self._memory, self.RAM)
        self.call(VERSION, struct.pack("<HH", 0, 0) + b'{"capabilities":{}}\0')

    def close(self):
        self._socket.close()
        self._ram.close()
        os.close(self._memory)

    def map_ram(self):
        self.map(0, self._memory)

    def map(self, address, memory):
        self.call(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, address, self.RAM), [memory])

    def send(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self._socket.sendmsg([data], rights)

    def _receive(self, size):
        data = b""
        while len(data) < size:
            part, fds, _, _ = socket.recv_fds(self._socket, size - len(data), 1)
            if not part:
                raise EOFError("the card hung up")
            self.fds = list(fds) or self.fds
            data += part
        return data

    def call(self, command, body=b"", fds=()):
        """Returns the body of the reply; what came with it is in self.fds."""
        self.send(HEADER.pack(1, command, HEADER.size + len(body), 0, 0) + body, fds)
        self.fds = []
        number, what, size, flags, error = HEADER.unpack(self._receive(HEADER.size))
        assert (number, what) == (1, command), (number, what)
        if flags & 0x20:
            raise Refused(os.strerror(error))
        return self._receive(size - HEADER.size)

    def region_read(self, region, offset, size):
        reply = self.call(REGION_READ, struct.pack("<QII", offset, region, size))
        return int.from_bytes(reply[16:], "little")

    def region_write(self, region, offset, size, value):
        self.call(REGION_WRITE, struct.pack("<QII", offset, region, size) +
                  value.to_bytes(size, "little"))

    def _bar(self, address):
        """The BAR at that address, and the offset."""
        base, bar = max((base, bar) for base, bar in self.BARS if base <= address)
        return bar, address - base

    def read(self, size, address):
        return self.region_read(*self._bar(address), size)

    def write(self, size, address, value):
        self.region_write(*self._bar(address), size, value)

    def read_memory(self, address, size):
        return self._ram[address:address + size]

    def write_memory(self, address, data):
        self._ram[address:address + len(data)] = data

    def listen(self, vector):
        """An eventfd that the vector signals."""
        fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.signal(vector, fd)
        return fd

    def signal(self, vector, fd):
        """The vector writes to that descriptor."""
        self.call(SET_IRQS, struct.pack("<IIIII", 20, EVENTFD_TRIGGER, MSIX, vector, 1), [fd])


class UserCard(Card):
    """The card as a client of the protocol sees it."""

    def read(self, size, offset):
        return self.machine.region_read(CONFIG, offset, size)

    def write(self, size, offset, value):
        self.machine.region_write(CONFIG, offset, size, value)
