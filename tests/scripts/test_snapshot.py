#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A snapshot is kept only if a guest goes on from it."""

import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import snapshot  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402


class BusyGuest:
    """One whose clock runs at RATE of time's, on a machine that stalls before the READING-th."""

    def __init__(self, rate, reading=None, stall=0.0):
        self.rate, self.reading, self.stall = rate, reading, stall
        self.time, self.readings = 1000.0, 0

    def run(self, command):
        if command == "sleep 1":
            self.time += 1 / self.rate
            return None
        self.readings += 1
        self.time += self.stall if self.readings == self.reading else 0.01
        return types.SimpleNamespace(out=f"{self.time * self.rate} 0.0\n")

    def rates(self):
        with mock.patch.object(snapshot.time, "monotonic", lambda: self.time):
            return snapshot._clock_rates(self)  # pylint: disable=protected-access


class Clock(unittest.TestCase):
    def test_right(self):
        for rate in BusyGuest(1).rates():
            self.assertAlmostEqual(rate, 1, delta=0.05)

    def test_stalls_are_no_fault_of_the_clock(self):
        for reading in (1, 2):
            least, greatest = BusyGuest(1, reading, stall=0.5).rates()
            self.assertLessEqual(least, 1.01)
            self.assertGreaterEqual(greatest, 0.99)

    def test_wrong(self):
        self.assertGreater(BusyGuest(2).rates()[0], 1.25)
        self.assertLess(BusyGuest(0.5).rates()[1], 0.8)


class Making(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.cache = pathlib.Path(scratch.name)
        self.made, self.broken = 0, 0
        for patch in (mock.patch.object(snapshot, "cache", lambda: self.cache),
                      mock.patch.object(snapshot, "_key", lambda *_: "key"),
                      mock.patch.object(snapshot, "_boot_and_save", self.boot_and_save),
                      mock.patch.object(snapshot, "_try", self.try_it)):
            patch.start()
            self.addCleanup(patch.stop)

    def boot_and_save(self, _image, _options, folder):
        self.made += 1
        (folder / "state").write_text(str(self.made), encoding="ascii")

    def try_it(self, *_):
        if self.made <= self.broken:
            raise snapshot.BrokenSnapshot("Oops")

    def get(self):
        return snapshot.Snapshot.get(types.SimpleNamespace(folder=self.cache), Options())

    def kept(self):
        return sorted(name for name in os.listdir(self.cache) if name != "ready.lock")

    def test_made_once(self):
        self.get()
        self.get()
        self.assertEqual((self.made, self.kept()), (1, ["ready-key"]))

    def test_a_broken_one_is_made_again(self):
        self.broken = 2
        self.assertEqual(self.get().state.read_text(encoding="ascii"), "3")
        self.assertEqual(self.kept(), ["ready-key"])

    def test_none_works(self):
        self.broken = 100
        with self.assertRaisesRegex(snapshot.BrokenSnapshot, "Oops"):
            self.get()
        self.assertEqual((self.made, self.kept()), (snapshot.ATTEMPTS, []))


class Ends(unittest.TestCase):
    def test_qemu_that_ends_at_once(self):
        """It has told why, and has not made its console yet."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        qemu = pathlib.Path(scratch.name) / "qemu"
        qemu.write_text("#!/bin/sh\necho ram is too large\nexit 1\n", encoding="ascii")
        qemu.chmod(0o755)
        image = types.SimpleNamespace(vmlinuz="vmlinuz", initrd="initrd")
        with mock.patch.object(snapshot.machine.X86, "qemu", str(qemu)), \
                self.assertRaisesRegex(LabError, "ram is too large"), \
                snapshot._guest(  # pylint: disable=protected-access
                    image, Options(), pathlib.Path(scratch.name), "file=disk", []):
            self.fail("there is no guest")


class Paths(unittest.TestCase):
    """QEMU has a shell read and write the state."""
    FOLDER = pathlib.Path("/my cache/it's")

    def test_read(self):
        self.assertEqual(snapshot.Snapshot(self.FOLDER).arguments(),
                         ["-incoming", """exec:cat '/my cache/it'"'"'s/state'"""])

    def test_written(self):
        monitor = mock.Mock()
        monitor.execute.return_value = {"status": "completed"}
        snapshot._save(monitor, self.FOLDER / "state")  # pylint: disable=protected-access
        monitor.execute.assert_any_call(
            "migrate", uri="""exec:cat >'/my cache/it'"'"'s/state'""")


class Saving(unittest.TestCase):
    def test_a_guest_that_is_stopped(self):
        """Its memory must not change while it is saved."""
        monitor = mock.Mock()
        monitor.execute.side_effect = lambda command, **_: (
            {"status": "completed"} if command == "query-migrate" else {})
        snapshot._save(monitor, pathlib.Path("state"))  # pylint: disable=protected-access
        commands = [call.args[0] for call in monitor.execute.call_args_list]
        self.assertIn("migrate", commands)
        self.assertLess(commands.index("stop"), commands.index("migrate"))


if __name__ == "__main__":
    unittest.main()
