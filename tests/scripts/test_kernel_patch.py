#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/kernel-patch, on a tree that has only what it looks at."""

import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
DRIVER = "drivers/infiniband/hw/tern"
TREE = {
    "drivers/infiniband/Kconfig":
        'menuconfig INFINIBAND\nsource "drivers/infiniband/hw/efa/Kconfig"\n'
        'source "drivers/infiniband/hw/usnic/Kconfig"\n'
        'source "drivers/infiniband/hw/vmw_pvrdma/Kconfig"\n',
    "drivers/infiniband/hw/Makefile":
        "obj-$(CONFIG_INFINIBAND_EFA)\t\t+= efa/\nobj-$(CONFIG_INFINIBAND_ERDMA)\t\t+= erdma/\n",
    "MAINTAINERS":
        "Descriptions\n\nMaintainers List\n----------------\n\n"
        "TEAM DRIVER\nM:\tA <a@example>\nF:\tdrivers/net/team/\n\n"
        "TEXAS INSTRUMENTS ASoC DRIVERS\nM:\tB <b@example>\nF:\tsound/\n",
}


class KernelPatch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for name, contents in TREE.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(contents, encoding="utf-8")

    def run_it(self):
        return subprocess.run([TOP / "scripts/kernel-patch", self.tree], capture_output=True,
                              text=True, check=False)

    def apply(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run(["git", "apply", "-"], cwd=self.tree, input=done.stdout, text=True,
                       check=True)

    def read(self, name):
        return (self.tree / name).read_text(encoding="utf-8")

    def test_applies(self):
        self.apply()
        self.assertIn('usnic/Kconfig"\nsource "drivers/infiniband/hw/tern/Kconfig"\nsource',
                      self.read("drivers/infiniband/Kconfig"))
        self.assertTrue(self.read("drivers/infiniband/hw/Makefile").endswith(
            "obj-$(CONFIG_INFINIBAND_TERN)\t\t+= tern/\n"))
        self.assertIn("F:\tdrivers/net/team/\n\nTERN EMULATED RDMA DRIVER\nM:\t",
                      self.read("MAINTAINERS"))
        self.assertEqual({path.name for path in (self.tree / DRIVER).iterdir()},
                         {path.name for path in (TOP / "kernel").glob("*.[ch]")} |
                         {path.name for path in (TOP / "include/tern").glob("*.h")} |
                         {"Kbuild", "Kconfig"})

    def test_sources_are_the_kernels(self):
        self.apply()
        headers = [path.read_text(encoding="utf-8")
                   for path in (self.tree / DRIVER).glob("tern_hw*.h")]
        for header in headers:
            for word in ("__cplusplus", "namespace", "__KERNEL__", "endian.hpp"):
                self.assertNotIn(word, header)
            self.assertEqual(header.count("#if"), header.count("#endif"))
        self.assertIn("struct tern_hw_create_qp {", "".join(headers))
        for path in (self.tree / DRIVER).iterdir():
            self.assertNotIn('"tern/', path.read_text(encoding="utf-8"), path)
        self.assertNotIn("TERN_INCLUDE", self.read(f"{DRIVER}/Kbuild"))
        self.assertIn("tern-y := main.o", self.read(f"{DRIVER}/Kbuild"))

    def assert_refused(self, message):
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"^kernel-patch: .*{message}.*\n$")

    def test_bad_input(self):
        self.apply()
        self.assert_refused("already has drivers/infiniband/hw/tern")
        (self.tree / "MAINTAINERS").unlink()
        (self.tree / DRIVER).rename(self.tree / "elsewhere")
        self.assert_refused("is not a kernel tree: there is no MAINTAINERS")

    def test_no_place(self):
        (self.tree / "drivers/infiniband/Kconfig").write_text("menu\n", encoding="utf-8")
        self.assert_refused("Kconfig has no place for the driver")


if __name__ == "__main__":
    unittest.main()
