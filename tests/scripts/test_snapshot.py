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
from ternlab.host import Options  # noqa: E402


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
