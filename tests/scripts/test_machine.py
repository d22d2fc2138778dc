#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest runs on KVM if the processor supports it, without the kernel options for TCG."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import machine, own_disk  # noqa: E402
from ternlab.host import Options  # noqa: E402

CPUINFO = "processor\t: 0\nflags\t\t: fpu {feature} sse2\nbogomips\t: 5000.50\n"
ALWAYS = "root=/dev/vda console=ttyS0 ignore_loglevel panic=-1"
# These change a default of the kernel, or tell it what it would measure by itself.
FOR_TCG = ("mitigations=off", "tsc=reliable", "no_timer_check", "norandmaps", "maxcpus=1",
           "noreplace-smp", "init_on_alloc=0", "hardened_usercopy=off",
           "randomize_kstack_offset=off", "apparmor=0", "audit=0", "tsc_early_khz=2500250")


class Accelerators(unittest.TestCase):
    def on(self, feature, may_open=True):
        """On a machine of such processors from now on. It has a /dev/kvm."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        cpuinfo = pathlib.Path(scratch.name) / "cpuinfo"
        cpuinfo.write_text(CPUINFO.format(feature=feature), encoding="ascii")
        for patch in (mock.patch.object(machine, "CPUINFO", cpuinfo),
                      mock.patch.object(machine.os, "access", lambda *_: may_open)):
            patch.start()
            self.addCleanup(patch.stop)

    def check(self, accelerator, cpu, kernel_line):
        arguments = machine.hardware(Options())
        self.assertEqual(arguments[arguments.index("-accel") + 1], accelerator)
        self.assertEqual(arguments[arguments.index("-cpu") + 1], cpu)
        self.assertEqual(sorted(machine.kernel_line(Options()).split()), sorted(kernel_line))

    def test_kvm(self):
        for feature in ("vmx", "svm"):
            with self.subTest(feature=feature):
                self.on(feature)
                self.check("kvm", "host", ALWAYS.split())

    def test_processors(self):
        """With KVM a guest sees the host's processor, and with TCG always the same."""
        told = {}
        for feature in ("vmx", "vmx aes", "none", "none aes"):
            self.on(feature)
            told[feature] = machine.X86.accelerator().processor
        self.assertNotEqual(told["vmx"], told["vmx aes"])
        self.assertEqual((told["none"], told["none aes"]), ("", ""))

    def test_tcg(self):
        """Without virtualization, whatever /dev/kvm is, and where one may not open that."""
        for feature, may_open in (("vmxx", True), ("svm", False)):
            with self.subTest(feature=feature):
                self.on(feature, may_open)
                self.check("tcg,thread=multi", "qemu64,+rdrand", [*ALWAYS.split(), *FOR_TCG])

    def test_options(self):
        """The options of the user come last."""
        self.on("vmx")
        options = Options(viommu=True, kernel_options="quiet")
        self.assertEqual(machine.kernel_line(options),
                         f"{ALWAYS} intel_iommu=on iommu.passthrough=0 iommu.strict=1 quiet")

    def test_own_disk(self):
        """On TCG an image has one CPU, unless the user gives it more, and one that distributions
        compile for."""
        disk = own_disk.OwnDisk(pathlib.Path("/my, disk"), pathlib.Path("/lab"))
        for feature, smp, cpu in (("svm", 2, "host"), ("none", 1, "max,la57=off")):
            with self.subTest(feature=feature):
                self.on(feature)
                self.assertEqual(own_disk.options_for(Options()).smp, smp)
                self.assertEqual(own_disk.options_for(Options(), 4).smp, 4)
                command = machine.command_of_own_disk(disk, Options(), "seed", "key", "log", "qmp")
                self.assertEqual(command[command.index("-cpu") + 1], cpu)
                self.assertIn("if=none,id=root,cache=unsafe,snapshot=on,format=raw,"
                              "file=/my,, disk", command)

    def test_arm(self):
        """It is emulated on any processor, and knows nothing of x86."""
        self.on("vmx")
        options = Options(arch="arm64", kernel_options="quiet")
        hardware = machine.hardware(options)
        self.assertEqual(hardware[hardware.index("-accel") + 1], "tcg,thread=multi")
        self.assertNotIn("vmgenid", " ".join(hardware))
        words = machine.kernel_line(options).split()
        self.assertIn("console=ttyAMA0", words)
        self.assertFalse([word for word in words if word.startswith(("tsc", "console=ttyS"))])
        self.assertEqual(words[-1], "quiet")


if __name__ == "__main__":
    unittest.main()
