# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that boot a disk image of the user's: a Debian that was not made for the lab.

bootable-disk makes it. The driver and the provider come into copies of it by debugfs, as packages
would put them there. One copy gets root's key from cloud-init, the other, where that is off, from
systemd. Images that no host can boot are refused.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from kernel_log import trouble
from scenario import main, report, wait_until
from ternlab import own_kernel, parts, paths
from ternlab.image import Image
from ternlab.own_disk import QCOW2_MAGIC
from ternlab.paths import SCRIPTS
from ternlab.process import Process
from ternlab.qmp import Qmp

HERE = pathlib.Path(__file__).resolve().parent
LAB = SCRIPTS / "lab"
ROOT_OFFSET = 129 << 20  # of the root file system in the image, in bytes
# debugfs says this of a folder that exists and of a file that does not, and goes on.
EXPECTED = re.compile(r"mkdir: Ext2 directory already exists|^rm: File not found")
PROGRESS = re.compile(r"^lab: (starting host1|taking the lab down)")
NO_CLOUD_INIT = "etc/cloud/cloud-init.disabled"
SSH_SERVICE = "/etc/systemd/system/multi-user.target.wants/ssh.service"


def run(*words):
    return subprocess.run([LAB, "--lab", report.NAME, *words], capture_output=True, text=True,
                          check=False)


def copy(disk, to):
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", disk, to], check=True)
    return to


def edit(disk, commands):
    """Changes the root file system, which is not mounted."""
    failed = [line for line in own_kernel.debugfs(f"{disk}?offset={ROOT_OFFSET}", commands)
              if not EXPECTED.search(line)]
    if failed:
        raise AssertionError(failed)


def unpack(archive, scratch, disk):
    """Writes what hosts of the lab get of what is built here into the root file system."""
    commands = []
    with tarfile.open(archive) as tar:
        tar.extractall(scratch)
        for entry in tar:
            above = pathlib.PurePath(entry.name).parents
            commands += [f"mkdir /{folder}" for folder in reversed(above) if folder.name]
            commands.append(f"rm /{entry.name}")
            commands += ([f"symlink /{entry.name} {entry.linkname}"] if entry.issym() else
                         [f'write "{scratch / entry.name}" /{entry.name}',
                          f"set_inode_field /{entry.name} mode 0{0o100000 | entry.mode:o}"])
    edit(disk, commands)


def overlay(disk, qcow2):
    """Has QEMU make a qcow2 whose content is the disk's."""
    escaped = str(disk).replace(",", ",,")
    with tempfile.TemporaryDirectory() as folder:
        monitor = pathlib.Path(folder, "qmp")
        qemu = Process.start("QEMU", [
            "qemu-system-x86_64", "-machine", "none", "-nodefaults", "-display", "none",
            "-drive", f"if=none,id=root,format=raw,file={escaped}",
            "-qmp", f"unix:{monitor},server=on,wait=off"], os.devnull, True)
        try:
            wait_until(monitor.exists, 10)
            with Qmp(monitor) as qmp:
                qmp.execute("blockdev-snapshot-sync", device="root", format="qcow2",
                            **{"snapshot-file": str(qcow2)})
        finally:
            qemu.stop()


class Disks(unittest.TestCase):
    """Labs with images of a folder that is gone when the tests have ended."""

    @classmethod
    def setUpClass(cls):
        report.COST.logs.append(paths.logs(report.NAME))
        scratch = tempfile.TemporaryDirectory(prefix="own, disk ", dir=paths.BUILD)
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)

    def setUp(self):
        self.addCleanup(run, "down")

    def refused(self, image):
        """The lines of the error. Nothing of the lab is left."""
        done = run("up", "1", "--image", str(image))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertNotEqual(run("status").returncode, 0)
        lab = paths.runtime(report.NAME)
        self.assertFalse(lab.exists())
        self.assertEqual(subprocess.run(["pgrep", "--full", "--list-full", f"{lab}/"], check=False,
                                        capture_output=True, text=True).stdout, "")
        return [line for line in done.stderr.splitlines() if not PROGRESS.search(line)]


class OwnDisk(Disks):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        made = subprocess.run([HERE / "bootable-disk"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()
        cls.bare = pathlib.Path(made, "disk")
        cls.disk = copy(cls.bare, cls.folder / "disk")
        unpack(parts.archive(Image(made)), cls.folder / "parts", cls.disk)

    def lab(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def check_kernels(self, *hosts):
        for host in hosts:
            self.assertEqual(trouble(self.lab("run", host, "--", "dmesg")), [])

    def test_two_hosts(self):
        """Hosts boot a qcow2 and get the key from cloud-init. One comes later, and is started
        anew."""
        image = self.folder / "disk.qcow2"
        overlay(self.disk, image)
        before = image.read_bytes()
        self.lab("up", "1", "--image", str(image))
        self.assertEqual(self.lab("run", "1", "--", "cat", "/proc/sys/kernel/hostname"), "host1\n")
        self.lab("add", "--cards", "2")
        told = json.loads(self.lab("status", "--json"))
        self.assertEqual([host["driver"] for host in told["hosts"]], ["tern", "tern"])
        self.assertEqual(self.lab("run", "2", "--", "ibv_devices | grep -c roce"), "2\n")
        self.transfer("host1", "host2")
        self.check_kernels("host1", "host2")

        self.lab("run", "2", "--", "touch /root/written; sync")
        self.lab("restart", "host2")
        self.assertNotEqual(run("run", "2", "--", "test -e /root/written").returncode, 0)
        self.transfer("host2", "host1")
        self.check_kernels("host2")
        self.assertEqual(image.read_bytes(), before)

    def transfer(self, server, client):
        self.lab("serve", server, "--", "ib_write_bw")
        self.assertRegex(self.lab("run", client, "--", "ib_write_bw", server),
                         r"65536 +5000 +[\d.]+ +[\d.]+")

    def test_without_cloud_init(self):
        """The key is a credential of systemd. The driver comes in by `lab copy`."""
        disk = copy(self.bare, self.folder / "bare")
        edit(disk, [f"write /dev/null {NO_CLOUD_INIT}"])
        self.assertIn("host1 has no driver for its card: install one",
                      self.lab("up", "1", "--image", str(disk)))
        self.assertEqual(self.lab("run", "1", "--", "test -e /run/cloud-init/enabled || echo off"),
                         "off\n")
        module = self.folder / "tern.ko"
        shutil.copy(next((self.folder / "parts").rglob("tern.ko")), module)
        self.lab("copy", str(module), "host1:/root/")
        self.lab("run", "1", "--", "modprobe ib_uverbs && insmod tern.ko")
        self.assertIn("tern", self.lab("run", "1", "--", "readlink /sys/class/net/*/device/driver"))
        self.check_kernels("host1")

    def test_without_ssh(self):
        disk = copy(self.bare, self.folder / "mute")
        edit(disk, [f"write /dev/null {NO_CLOUD_INIT}", f"rm {SSH_SERVICE}"])
        said, _console = self.refused(disk)
        self.assertIn(f"host1: nobody can log in to {disk} by ssh", said)


class BadImages(Disks):
    """Images that the lab refuses before a guest has booted."""

    def image(self, name, content):
        """A file with these bytes. The test fails if the lab changes them."""
        path = self.folder / name
        path.write_bytes(content)
        self.addCleanup(lambda: self.assertEqual(path.read_bytes(), content))
        return path

    def not_bootable(self, image):
        said, console = self.refused(image)
        self.assertEqual(said, f"lab: {image} does not boot: the firmware, a BIOS, finds no boot "
                               "loader")
        log = pathlib.Path(console.removeprefix("its console is in "))
        self.assertIn("No bootable device", log.read_text(encoding="utf-8", errors="replace"))

    def not_read(self, image, reason):
        """QEMU says why it cannot read the image."""
        ended, said, console = self.refused(image)
        self.assertEqual(ended, "lab: host1's QEMU has ended;")
        self.assertIn(str(image).replace(",", ",,"), said)
        self.assertRegex(said, reason)
        self.assertTrue(pathlib.Path(console.removeprefix("its console is in ")).exists())

    def test_no_file(self):
        for image in (self.folder / "missing", self.folder):
            said, = self.refused(image)
            self.assertRegex(said, f"^lab: --image {image} is no file, and there is no stack ")

    def test_not_bootable(self):
        self.not_bootable(self.image("zeros", bytes(1 << 20)))

    def test_empty(self):
        self.not_bootable(self.image("empty", b""))

    def test_other_format(self):
        """What is not qcow2 is raw."""
        self.not_bootable(self.image("other", b"KDMV".ljust(1 << 20, b"\0")))

    def test_empty_qcow2(self):
        raw, qcow2 = self.folder / "base", self.folder / "base.qcow2"
        raw.write_bytes(bytes(1 << 20))
        overlay(raw, qcow2)
        self.not_bootable(qcow2)
        raw.unlink()
        self.not_read(qcow2, "Could not open backing file: .*No such file or directory")

    def test_damaged_qcow2(self):
        self.not_read(self.image("damaged", QCOW2_MAGIC.ljust(1 << 20, b"\0")),
                      "Unsupported qcow2 version 0")


if __name__ == "__main__":
    main()
