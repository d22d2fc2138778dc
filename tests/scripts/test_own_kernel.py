#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel of the user's: what is wrong with it is found before anything is made of it."""

import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import cli, own_kernel, parts  # noqa: E402
from ternlab.errors import LabError  # noqa: E402

VERSION = "6.12.9-mine"


def bzimage(version=VERSION):
    """As much of one as tells its version."""
    image = bytearray(0x1000)
    image[0x202:0x206] = b"HdrS"
    image[0x20e:0x210] = (0x400).to_bytes(2, "little")
    text = f"{version} (me@here) #1 SMP\0".encode("ascii")
    image[0x600:0x600 + len(text)] = text
    return bytes(image)


class OwnKernel(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.base = pathlib.Path(scratch.name)
        self.cache = self.base / "cache"
        self.cache.mkdir()
        self.kernel, self.modules = self.base / "bzImage", self.base / "modules"
        self.kernel.write_bytes(bzimage())
        self.modules.mkdir()
        patch = mock.patch.object(own_kernel, "cache", lambda: self.cache)
        patch.start()
        self.addCleanup(patch.stop)

    def refused(self, modules=None):
        with self.assertRaises(LabError) as caught:
            own_kernel.image_folder(self.base, self.kernel, modules)
        self.assertEqual(list(self.cache.iterdir()), [])
        return str(caught.exception)

    def test_version(self):
        self.assertEqual(own_kernel.version_of(self.kernel), VERSION)

    def test_no_file(self):
        self.kernel.unlink()
        self.assertEqual(self.refused(), f"{self.kernel}: No such file or directory")

    def test_no_bzimage(self):
        for content in (b"", b"\x7fELF" + bytes(0x1000), bzimage()[:0x500]):
            self.kernel.write_bytes(content)
            self.assertEqual(self.refused(), f"{self.kernel} is not a bzImage")

    def test_no_modules(self):
        for folder in (self.modules, self.base / "nowhere"):
            self.assertEqual(self.refused(folder), f"{folder} is not like /lib/modules/{VERSION}: "
                             "it has no modules.builtin")

    def test_modules_of_another_kernel(self):
        (self.modules / "modules.builtin").touch()
        (self.modules / "some.ko").touch()
        with mock.patch.object(own_kernel, "_output", lambda _: "6.1.0 SMP mod_unload\n"):
            self.assertEqual(self.refused(self.modules), f"{self.modules} has modules of kernel "
                             f"6.1.0, and {self.kernel} is kernel {VERSION}")

    def test_key(self):
        """Each of what the image is made from is in it."""
        def key():
            return own_kernel._key(self.base, self.kernel, self.modules)

        keys = [key()]
        (self.modules / "build").symlink_to(self.base)  # where they were built does not matter
        self.assertEqual(key(), keys[0])
        (self.modules / "some.ko").write_bytes(b"1")
        keys.append(key())
        (self.modules / "some.ko").write_bytes(b"2")
        keys.append(key())
        (self.modules / "some.ko").rename(self.modules / "other.ko")
        keys.append(key())
        self.kernel.write_bytes(bzimage() + b"more")
        keys.append(key())
        keys.append(own_kernel._key(self.base / "other", self.kernel, self.modules))
        self.assertEqual(len(set(keys)), len(keys))

    def test_no_driver(self):
        image = types.SimpleNamespace(kernel=VERSION, has_packages=False, has_own_kernel=True,
                                      has_module=lambda _: False)
        with self.assertRaisesRegex(LabError, rf"{VERSION}/tern.ko is not there; "
                                    "`TERN_KDIR=FOLDER make module` makes it"):
            parts.require_module(image)
        image.has_module = lambda name: name == "tern"  # the kernel's tree has it
        parts.require_module(image)

    def test_options(self):
        for words, why in ((["--modules", "m"], "--modules FOLDER is for a kernel"),
                           (["--kernel", "k", "--package", "p"], "--kernel and --package: ")):
            with self.assertRaisesRegex(LabError, f"^{why}"):
                cli.up(cli.parse(["up", *words]))


if __name__ == "__main__":
    unittest.main()
