#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make install` puts in its place works there, without the checkout.

  test_install.py BUILD    the folder of CMake's, where the programs are built
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv.pop()


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        done = run("cmake", "--install", BUILD, DESTDIR=scratch.name)
        assert done.returncode == 0, done.stderr
        cls.root = pathlib.Path(scratch.name)
        # Links of the tree lead within it, as after an installation without DESTDIR.
        driver = (cls.root / "etc/libibverbs.d/tern.driver").read_text(encoding="ascii")
        cls.provider = cls.root / f"{driver.split()[1].lstrip('/')}-rdmav34.so"
        cls.bin = next(cls.root.rglob("tern-switch")).parent

    def test_the_provider_is_where_libibverbs_looks(self):
        self.assertEqual(self.provider.resolve().name, "libtern.so.1")
        self.assertTrue(self.provider.resolve().is_file())
        self.assertEqual(len(list(self.root.rglob("include/infiniband/terndv.h"))), 1)

    def test_qemu_has_the_card(self):
        told = run(self.bin / "qemu-system-x86_64-tern", "-device", "tern,help")
        self.assertIn("engines=", told.stdout, told.stderr)

    def test_the_card_refuses_another_qemu(self):
        told = run(self.bin / "qemu-system-x86_64-tern", "-version", TERN_QEMU="true")
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, "^qemu-system-x86_64-tern: .* is for QEMU .*\n$")

    def test_the_card_of_its_own_says_what_is_wrong(self):
        self.assertIn("--dm-size BYTES", run(self.bin / "tern-card", "--help").stdout)
        told = run(self.bin / "tern-card", "--socket", "s", "--wire", "w", "--engines", "17")
        self.assertEqual((told.returncode, told.stderr), (2, "tern-card: --engines: 1 to 16\n"))
        told = run(self.bin / "tern-card", "--socket", "s", "--wire", str(self.root / "none"))
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stderr, "^tern-card: wire: .*none: No such file or directory\n$")

    def test_the_simulation_runs_an_example(self):
        example = next(self.root.rglob("examples/two-hosts.toml"))
        told = run(self.bin / "tern-sim", example)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"(?m)^\d+ flows?, [1-9]")

    def test_the_lab_runs(self):
        told = run(self.bin / "tern-lab", "status", XDG_RUNTIME_DIR=str(self.root))
        self.assertEqual((told.returncode, told.stdout), (1, ""))
        self.assertEqual(told.stderr, 'lab: there is no lab "lab" here; `tern-lab up` starts it\n')

    def test_the_lab_has_all_that_its_scripts_include(self):
        scripts = self.bin.parent / "share/tern-lab/scripts"
        include = re.compile(r'^\. "\$here/([\w.-]+)"', re.MULTILINE)
        included = {name for path in scripts.iterdir() if path.is_file()
                    for name in include.findall(path.read_text(encoding="utf-8"))}
        self.assertIn("cache.sh", included)
        self.assertEqual([name for name in included if not (scripts / name).exists()], [])

    def test_the_lab_refuses_stacks_that_it_cannot_have(self):
        """Those of another Debian, and those whose kernel it would have to build."""
        rows = (self.bin.parent / "share/tern-lab/scripts/stacks.txt").read_text(encoding="ascii")
        stack = self.bin.parent / "share/tern-lab/scripts/stack"
        debug = run(stack, "--debug").stdout.split()
        for row in rows.splitlines():
            name = row.split()[0] if row and not row.startswith("#") else ""
            if not name:
                continue
            foreign = run(stack, "--foreign", TERN_STACK=name).stdout
            takes = "a Debian " if foreign else "Tern's sources" if name in debug else ""
            if takes:
                told = run(self.bin / "tern-lab", "up", TERN_STACK=name)
                self.assertEqual((told.returncode, told.stdout), (1, ""))
                self.assertRegex(told.stderr, f"^lab: the stack {name} takes {takes}.*\n$")

    def test_dkms_has_all_that_the_module_is_built_of(self):
        source = next(self.root.rglob("dkms.conf")).parent
        self.assertEqual(source.name.partition("-")[0], "tern")
        objects = {word.removesuffix(".o") for line in
                   (source / "kernel/Kbuild").read_text(encoding="ascii").splitlines()
                   if re.match(r"tern-(y|\$\(.*\)) ", line)
                   for word in line.split()[2:] if word.endswith(".o")}
        self.assertEqual({path.stem for path in source.glob("kernel/*.c")}, objects)
        for pattern in ("tern/*.h", "uapi/rdma/*.h"):
            self.assertEqual({path.name for path in (source / "include").glob(pattern)},
                             {path.name for path in (TOP / "include").glob(pattern)})


if __name__ == "__main__":
    unittest.main()
