# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU with a Tern card and no guest, driven through qtest and QMP."""

import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

# What the tests stand in for: a firmware that only halts.
HALT = b"\xfa\xf4\xeb\xfd"  # cli; hlt; jmp to the cli
BIOS_SIZE = 64 * 1024

ECAM = 0xb0000000
ATS = 0x100  # the card's first extended capability

PATIENCE = 120  # seconds, for a machine that is busy with other things, too


class Lines:
    """A connection on which both sides speak in lines."""

    def __init__(self, listener, process):
        listener.settimeout(0.1)
        self._socket = None
        while not self._socket:
            try:
                self._socket, _ = listener.accept()
            except TimeoutError:
                if process.poll() is not None:
                    raise
        self._socket.settimeout(PATIENCE)
        self._file = self._socket.makefile("rw", encoding="ascii", newline="\n")

    def send(self, line):
        self._file.write(line + "\n")
        self._file.flush()

    def receive(self):
        line = self._file.readline()
        if not line:
            raise EOFError("QEMU hung up")
        return line.rstrip("\n")

    def close(self):
        self._file.close()
        self._socket.close()


class Machine:
    def __init__(self, *arguments):
        self._folder = tempfile.TemporaryDirectory(prefix="tern-qtest-")
        folder = Path(self._folder.name)
        bios = folder / "bios"
        bios.write_bytes(bytes(BIOS_SIZE - 16) + HALT.ljust(16, b"\0"))
        self._log = open(folder / "log", "w+", encoding="utf-8", errors="replace")
        listeners = {name: self._listen(folder / name) for name in ("qtest", "qmp")}
        self.process = subprocess.Popen(
            [TOP / "scripts/tern-qemu", "-nodefaults", "-display", "none", "-m", "128",
             "-machine", "q35,kernel-irqchip=off", "-accel", "tcg", "-bios", bios,
             "-qtest", f"unix:{folder}/qtest", "-qtest-log", "none",
             "-qmp", f"unix:{folder}/qmp", *arguments],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            # What was freed is overwritten, or, if it is large, not there any more.
            env={**os.environ, "GLIBC_TUNABLES":
                 "glibc.malloc.perturb=85:glibc.malloc.mmap_threshold=131072"})
        self.events = []
        try:
            self._qtest = Lines(listeners["qtest"], self.process)
            self._qmp = Lines(listeners["qmp"], self.process)
            json.loads(self._qmp.receive())
            self.qmp("qmp_capabilities")
        except (OSError, EOFError) as error:
            self.process.kill()
            self.process.wait()
            log = self.log()
            self._log.close()
            self._folder.cleanup()
            raise RuntimeError(f"QEMU does not start: {log}") from error
        finally:
            for listener in listeners.values():
                listener.close()

    @staticmethod
    def _listen(path):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.fspath(path))
        listener.listen()
        return listener

    def log(self):
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def quit(self):
        """Ends QEMU in an orderly way; returns its exit status."""
        try:
            self.qmp("quit")
        except (OSError, EOFError):
            pass
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self._qtest.close()
        self._qmp.close()
        self._log.close()
        self._folder.cleanup()
        return status

    # ---- QMP

    def qmp(self, command, **arguments):
        self._qmp.send(json.dumps({"execute": command, "arguments": arguments}))
        while True:
            answer = json.loads(self._qmp.receive())
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(answer["error"]["desc"])
            else:
                return answer["return"]

    def wait_event(self, name):
        while True:
            for i, event in enumerate(self.events):
                if event["event"] == name:
                    return self.events.pop(i)
            answer = json.loads(self._qmp.receive())
            assert "event" in answer, answer
            self.events.append(answer)

    def set_cable(self, plugged, device="card"):
        self.qmp("qom-set", path=f"/machine/peripheral/{device}", property="link", value=plugged)

    def hmp(self, line):
        return self.qmp("human-monitor-command", **{"command-line": line})

    # ---- qtest

    def command(self, line):
        self._qtest.send(line)
        while True:
            answer = self._qtest.receive()
            if answer.startswith("IRQ "):
                continue
            if not answer.startswith("OK"):
                raise RuntimeError(f"qtest: {line}: {answer}")
            return answer[3:]

    def read(self, size, address):
        return int(self.command(f"read{'?bw?l???q'[size]} {address:#x}"), 0)

    def write(self, size, address, value):
        value &= (1 << 8 * size) - 1
        self.command(f"write{'?bw?l???q'[size]} {address:#x} {value:#x}")

    def read_memory(self, address, size):
        return bytes.fromhex(self.command(f"read {address:#x} {size:#x}")[2:])

    def write_memory(self, address, data):
        self.command(f"write {address:#x} {len(data):#x} 0x{data.hex()}")


class PciDevice:
    """Configuration space, through the ports of the host bridge."""

    def __init__(self, machine, bus, slot):
        self.machine = machine
        self.function = bus << 8 | slot << 3
        self._select = 1 << 31 | self.function << 8

    def read(self, size, offset):
        self.machine.command(f"outl 0xcf8 {self._select | offset & 0xfc:#x}")
        return int(self.machine.command(f"in{'?bw?l'[size]} {0xcfc + offset % 4:#x}"), 0)

    def write(self, size, offset, value):
        self.machine.command(f"outl 0xcf8 {self._select | offset & 0xfc:#x}")
        self.machine.command(f"out{'?bw?l'[size]} {0xcfc + offset % 4:#x} {value:#x}")

    def capability(self, wanted):
        offset = self.read(1, 0x34)
        while offset:
            if self.read(1, offset) == wanted:
                return offset
            offset = self.read(1, offset + 1)
        return None

    def _extended(self, offset):
        """Where that part is in memory, which the host bridge is to decode."""
        bridge = PciDevice(self.machine, 0, 0)
        if bridge.read(4, 0x60) != ECAM | 1:  # a change of it is one of the memory map
            bridge.write(4, 0x60, ECAM | 1)
        return ECAM + (self.function << 12) + offset

    def enable_ats(self, on=True):
        self.machine.write(2, self._extended(ATS + 6), 0x8000 if on else 0)

    def ats_enabled(self):
        return bool(self.machine.read(2, self._extended(ATS + 6)) & 0x8000)


# The text of tern_hw.h and of the headers that it includes
HEADERS = "".join(path.read_text(encoding="utf-8")
                  for path in sorted((TOP / "include/tern").glob("tern_hw*.h")))


def header_constants():
    """Names and numbers of HEADERS."""
    pairs = re.findall(r"\b(TERN_\w+) = (0x[0-9a-f]+|\d+)\b", HEADERS)
    pairs += re.findall(r"^#define (TERN_\w+)\s+(0x[0-9a-f]+|\d+)u?\s", HEADERS, re.M)
    return {name: int(number, 0) for name, number in pairs}


HW = type("HW", (), {name.removeprefix("TERN_"): number
                     for name, number in header_constants().items()})

COMMAND_MEMORY = 0x2
COMMAND_MASTER = 0x4


class Card(PciDevice):
    """A card with its BARs at fixed addresses."""

    REGS = 0xfe000000
    MSIX = 0xfe010000
    DM = 0xfe100000
    DOORBELLS = 0xe0000000

    # where the tests keep things in RAM
    AQ, ACQ, IRQS = 0x100000, 0x110000, 0x120000
    AQ_LOG_SIZE = 4

    def __init__(self, machine, bus=0, slot=4):
        super().__init__(machine, bus, slot)
        self.place()

    def place(self):
        """What firmware and driver do after a reset: BARs, decoding, bus mastering, MSI-X."""
        self.write(4, 0x10, self.REGS)
        self.write(4, 0x18, self.DOORBELLS)
        self.write(4, 0x1c, 0)
        self.write(4, 0x20, self.MSIX)
        self.write(4, 0x24, self.DM)
        self.write(2, 0x04, COMMAND_MEMORY | COMMAND_MASTER)

    def enable_msix(self):
        """Interrupts of a vector arrive as a store of 1 + vector into RAM."""
        for vector in range(self.reg("VECTORS")):
            entry = struct.pack("<QII", self.IRQS + 4 * vector, 1 + vector, 0)
            for i in range(0, 16, 4):
                self.machine.write(4, self.MSIX + 16 * vector + i,
                                   int.from_bytes(entry[i:i + 4], "little"))
        self.write(2, self.capability(0x11) + 2, 0x8000)

    def reg(self, name):
        return self.machine.read(4, self.REGS + getattr(HW, f"REG_{name}"))

    def set_reg(self, name, value):
        self.machine.write(4, self.REGS + getattr(HW, f"REG_{name}"), value)

    def enable(self, aq=AQ, acq=ACQ):
        self.machine.write_memory(self.ACQ, bytes(HW.AQ_ENTRY << self.AQ_LOG_SIZE))
        self.set_reg("AQ_LOG_SIZE", self.AQ_LOG_SIZE)
        self.set_reg("AQ_BASE_LO", aq & 0xffffffff)
        self.set_reg("AQ_BASE_HI", aq >> 32)
        self.set_reg("ACQ_BASE_LO", acq & 0xffffffff)
        self.set_reg("ACQ_BASE_HI", acq >> 32)
        self.set_reg("CTRL", HW.CTRL_ENABLE | HW.CTRL_AQ_IRQ)

    def submit(self, index, opcode, body=b""):
        command = struct.pack("<HHI", opcode, index, 0) + body
        slot = self.AQ + HW.AQ_ENTRY * (index % (1 << self.AQ_LOG_SIZE))
        self.machine.write_memory(slot, command.ljust(HW.AQ_ENTRY, b"\0"))
        self.set_reg("AQ_PI", index + 1)

    def completion(self, index):
        """The completion of the index-th command, as (body, id, status); None if there is none."""
        size = 1 << self.AQ_LOG_SIZE
        entry = self.machine.read_memory(self.ACQ + HW.AQ_ENTRY * (index % size), HW.AQ_ENTRY)
        number, status, phase = struct.unpack_from("<HBB", entry, 124)
        if phase & 1 == index // size % 2:
            return None
        return entry[:120], number, status

    def wait(self, what):
        """
        Until what() is true. Each step is a round trip to the card, which has done
        something meanwhile; that bounds it without a clock.
        """
        for _ in range(20000):
            result = what()
            if result:
                return result
            self.reg("STATUS")
        raise TimeoutError("the card does nothing")

    def execute(self, index, opcode, body=b""):
        """Returns what the index-th command created."""
        self.submit(index, opcode, body)
        result, _, status = self.wait(lambda: self.completion(index))
        assert status == HW.AQ_OK, (opcode, status)
        return int.from_bytes(result[:4], "little")

    def create_eq(self, index, ring):
        """With 16 entries, of vector 0."""
        return self.execute(index, HW.AQ_CREATE_EQ, struct.pack("<QBB6xIB3x", ring, 0, 0, 0, 4))

    def query_device(self, index=0):
        self.submit(index, HW.AQ_QUERY_DEVICE)
        return self.wait(lambda: self.completion(index))

    def function_level_reset(self):
        express = self.capability(0x10)
        self.write(2, express + 8, self.read(2, express + 8) | 0x8000)


class CardTest(unittest.TestCase):
    """A test of one machine; whatever a test does, QEMU must end in good order."""

    arguments = ("-netdev", "hubport,id=net,hubid=0",
                 "-device", "tern,id=card,netdev=net,mac=02:54:45:52:4e:01,addr=4")

    def setUp(self):
        self.machine = Machine(*self.arguments)
        self.addCleanup(self.end)
        self.card = self.find_card()

    def find_card(self):
        return Card(self.machine)

    def end(self):
        log = self.machine.log()
        status = self.machine.quit()
        self.assertEqual(status, 0, f"QEMU ended with {status}: {log}")
