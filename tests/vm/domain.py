# SPDX-License-Identifier: GPL-2.0-or-later
"""A card in a domain of libvirt: examples/libvirt.xml, on one wire with a host of the lab.

Debian's libvirtd runs in a mount and a network namespace, with folders of its own.
"""

import pathlib
import shutil
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET

from kernel_log import trouble
from scenario import Options, Scenario, main, wait_until
from ternlab import channel, machine, parts
from ternlab.image import Image
from ternlab.paths import CHECKOUT, QEMU

EXAMPLE = CHECKOUT / "examples/libvirt.xml"
CONFIGURATION = 'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nstdio_handler = "file"\n'
# libvirtd looks up Debian's user for guests even if its configuration names another one.
# libvirt-daemon-system makes that user; it would also start daemons on this machine.
START_LIBVIRTD = """
    folder=$1
    for own in /etc/libvirt /run/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
        mkdir -p $own
        mount -t tmpfs tmpfs $own
    done
    cp "$folder/qemu.conf" /etc/libvirt/
    for table in passwd group; do
        cp /etc/$table "$folder/$table"
        echo libvirt-qemu:x:64055:64055:::/usr/sbin/nologin >>"$folder/$table"
        mount --bind "$folder/$table" /etc/$table
    done
    echo kvm:x:64056: >>"$folder/group"
    ip link set lo up
    exec /usr/sbin/libvirtd"""
BOOT_TIMEOUT = 120


class Libvirt:
    """libvirtd, with its configuration in a folder."""

    def __init__(self, folder, log):
        (folder / "qemu.conf").write_text(CONFIGURATION, encoding="ascii")
        with open(log, "w", encoding="ascii") as output:
            self.daemon = subprocess.Popen(
                ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-euc",
                 START_LIBVIRTD, "sh", folder], stdout=output, stderr=output)

    def virsh(self, *words):
        """The exit code, and what it says."""
        done = subprocess.run(["nsenter", "--target", str(self.daemon.pid), "--mount", "virsh",
                               *map(str, words)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def end(self):
        self.daemon.terminate()
        self.daemon.wait(20)


class Domain(Scenario):
    HOSTS = (Options(),)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scratch = tempfile.TemporaryDirectory(prefix="tern-", ignore_cleanup_errors=True)
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.image = Image.get()
        log = cls.lab.logs / "libvirtd.log"
        cls.libvirt = Libvirt(cls.folder, log)
        cls.addClassCleanup(cls.libvirt.end)
        if not wait_until(lambda: cls.libvirt.virsh("list")[0] == 0, 30):
            raise AssertionError(log.read_text(encoding="utf-8"))

    def definition(self, emulator=QEMU):
        """The example for this wire, with a kernel, a disk and a way to give it commands."""
        domain = ET.parse(EXAMPLE).getroot()
        domain.find("devices/emulator").text = str(emulator)
        card = domain.findall("{*}commandline/{*}arg")[1]
        card.set("value", card.get("value").replace("/tmp/wire.shared",
                                                    str(self.lab.wire.shared_path)))
        for name, value in (("kernel", self.image.vmlinuz), ("initrd", self.image.initrd),
                            ("cmdline", machine.kernel_line(Options()))):
            ET.SubElement(domain.find("os"), name).text = str(value)
        disk = self.folder / "root.ext4"
        shutil.copyfile(self.image.root, disk)
        domain.find("devices").extend(ET.fromstring(f"""
            <devices>
              <disk type="file">
                <driver name="qemu" type="raw"/>
                <source file="{disk}"/>
                <target dev="vda" bus="virtio"/>
              </disk>
              <serial type="file"><source path="{self.lab.logs}/domain.log"/></serial>
              <channel type="unix">
                <source mode="bind" path="{self.folder}/channel"/>
                <target type="virtio" name="tern.executor"/>
              </channel>
            </devices>"""))
        path = self.folder / "domain.xml"
        ET.ElementTree(domain).write(path, encoding="unicode")
        return path

    def define(self, *emulator):
        code, said = self.libvirt.virsh("define", self.definition(*emulator))
        self.assertEqual(code, 0, said)
        self.addCleanup(self.libvirt.virsh, "undefine", "tern")

    def install(self, guest):
        """What docs/own-vm.md says, and an address."""
        guest.run("tar -xf - -C /", stdin=parts.archive(self.image).read_bytes())
        guest.run(f"""date -s @{time.time():.0f} >/dev/null; modprobe tern && udevadm settle &&
                      interface=$(basename /sys/class/infiniband/*/device/net/*) &&
                      ip link set $interface mtu 9000 up &&
                      ip address add 10.77.0.9/24 dev $interface""")

    def test_domain(self):
        """Defined and started by virsh, its card works with that of a host of the lab."""
        self.define()
        code, said = self.libvirt.virsh("start", "tern")
        self.assertEqual(code, 0, said)
        self.addCleanup(self.libvirt.virsh, "destroy", "tern")
        guest = channel.connect("the domain", self.folder / "channel", lambda: True, BOOT_TIMEOUT)
        self.addCleanup(guest.close)
        self.install(guest)
        host = self.hosts[0]
        self.ping(host, "10.77.0.9")
        serving = host.spawn("ibv_rc_pingpong -g 3 -n 500 -s 65536 -c")
        self.addCleanup(serving.give_up)
        self.assertTrue(wait_until(lambda: ":18515 " in host.run("ss -Hltn").out, 30))
        self.assertIn("500 iters", guest.run(
            f"ibv_rc_pingpong -g 3 -n 500 -s 65536 -c {host.ipv4}").out)
        self.assertEqual(serving.wait().code, 0)
        self.assertFalse(trouble(guest.run("dmesg").out))

    def test_a_qemu_without_the_card(self):
        self.define("/usr/bin/qemu-system-x86_64")
        code, said = self.libvirt.virsh("start", "tern")
        self.assertEqual(code, 1)
        self.assertIn("'tern' is not a valid device model name", said)


if __name__ == "__main__":
    main()
