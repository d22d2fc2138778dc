#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine goes on from a state without zero pages with the memory that it had, and with less of
it allocated."""

import contextlib
import pathlib
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import migration, qmp  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.process import Process  # noqa: E402
from ternlab.progress import wait_until  # noqa: E402

RAM = 64 << 20
QEMU = ["qemu-system-x86_64", "-machine", "q35,memory-backend=ram", "-accel", "tcg",
        "-object", f"memory-backend-memfd,id=ram,size={RAM},share=on", "-m", f"{RAM >> 20}",
        "-nodefaults", "-display", "none"]
HEADER = b"QEVM\0\0\0\3\7\0\0\0\4q35x"
FIRST = b"\1\0\0\0\2\3ram\0\0\0\0\0\0\0\4"


def listens(path):
    """Whether QEMU takes connections at its socket, whose file exists a moment earlier."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


class DropZeroPages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="tern-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.state = self.folder / "state"

    @contextlib.contextmanager
    def machine(self, name, *arguments):
        """Yields the monitor and the process."""
        monitor = self.folder / f"{name}.qmp"
        process = Process.start(name, [*QEMU, "-qmp", f"unix:{monitor},server=on,wait=off",
                                       *arguments], self.folder / f"{name}.log", True)
        try:
            self.assertTrue(wait_until(lambda: listens(monitor), 20))
            with qmp.Qmp(monitor) as said:
                yield said, process
        finally:
            process.stop()

    def memory(self, monitor, name):
        file = self.folder / name
        monitor.execute("pmemsave", val=0, size=RAM, filename=str(file))
        return file.read_bytes()

    def incoming(self, name):
        """The memory of a machine that has come from the state, and how much of it is allocated."""
        with self.machine(name, "-S", "-incoming", f"exec:cat {self.state}") as (monitor, process):
            self.assertTrue(wait_until(lambda: monitor.execute("query-status")["status"]
                                       not in ("inmigrate", "prelaunch"), 20))
            (memfd,) = {file.stat() for file in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()
                        if "memfd:memory-backend" in str(file.readlink())}
            allocated = memfd.st_blocks * 512
            return self.memory(monitor, name), allocated

    def test_memory_is_the_same(self):
        with self.machine("first") as (monitor, _):
            # The firmware writes some of its memory, and most of that stays zero.
            self.assertTrue(wait_until(lambda: self.memory(monitor, "early").count(0) < RAM - 4096,
                                       20))
            monitor.execute("stop")
            before = self.memory(monitor, "first")
            monitor.execute("migrate", uri=f"exec:cat >{self.state}")
            self.assertTrue(wait_until(
                lambda: monitor.execute("query-migrate").get("status") == "completed", 20))
        whole, size = self.incoming("whole"), self.state.stat().st_size
        migration.drop_zero_pages(self.state)
        self.assertLess(self.state.stat().st_size, size)
        dropped = self.incoming("dropped")
        self.assertEqual(before, whole[0])
        self.assertEqual(before, dropped[0])
        self.assertEqual(whole[1], RAM)
        self.assertLess(dropped[1], RAM // 4)

    def test_what_is_no_state_is_left_alone(self):
        for data in (b"", b"QEVM", HEADER, HEADER + FIRST, HEADER + FIRST + bytes(8),
                     HEADER + FIRST + b"\0\0\0\0\0\0\0\x02\3ram",
                     HEADER + FIRST + b"\0\0\0\0\0\0\0\x10\x7e\0\0\0\3",
                     HEADER + FIRST + b"\0\0\0\0\0\0\0\x10\x7e\0\0\0\2\4\0\0\0\2"):
            self.state.write_bytes(data)
            with self.assertRaises(LabError, msg=data):
                migration.drop_zero_pages(self.state)
            self.assertEqual(self.state.read_bytes(), data)
            self.assertEqual(list(self.folder.iterdir()), [self.state])


if __name__ == "__main__":
    unittest.main()
