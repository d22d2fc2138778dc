# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that boot a disk image of the user's. Their programs, the driver and the provider are those
of the image. The lab reaches them by ssh, with a key that they get in two ways: from cloud-init,
and as a credential of systemd."""

import dataclasses
import re
import subprocess
import time
import uuid

from . import machine, pace, stack
from .cards import netdev
from .channel import Result
from .errors import CommandError, LabError
from .host import MAX_HOSTS, Host, Options, ipv4_of
from .progress import say, wait_until

QCOW2_MAGIC = b"QFI\xfb"
MONITOR_TIMEOUT = 10
BOOT_TIMEOUT = 240
# The lab gives up this long after the console has asked for a login, because all services run by
# then, or after the SSH server has refused the key.
LOGIN_TIMEOUT = 30
PROBE_TIMEOUT = 5
# SeaBIOS says this when the disk has no boot loader.
_NOT_BOOTABLE = re.compile(r"No bootable device")
_LOGIN_PROMPT = re.compile(r"\blogin: ")

# cloud-init's data source NoCloud reads these from a disk with the label CIDATA.
_USER_DATA = """\
#cloud-config
disable_root: false
users:
  - default
  - name: root
    ssh_authorized_keys:
      - {key}
"""
_META_DATA = """\
instance-id: {id}
local-hostname: {name}
"""
_NETWORK = f"""\
version: 2
ethernets:
  management:
    match:
      macaddress: "{machine.MANAGEMENT_MAC}"
    dhcp4: true
"""

# The lab's hosts know each other by name.
_NAMES = """
    echo {name} >/proc/sys/kernel/hostname
    cat >>/etc/hosts"""
# Gives the interface of a card the name that it has in all hosts of the lab. The guest may rename
# it, too, when udev sees it.
_ADOPT = """
    udevadm settle --timeout=20
    for path in /sys/class/net/*; do
        read -r address <$path/address && [ "$address" = {mac} ] || continue
        name=${{path##*/}}
        [ $name = {netdev} ] || {{ ip link set $name down && ip link set $name name {netdev}; }}
        exit
    done
    exit 1"""


class OwnDisk:
    """The image, which hosts leave as it is: what they write is gone when they end."""

    known_hosts = None  # The lab does not know the host keys of the image.

    def __init__(self, path, folder):
        self.path, self.ssh_key = path, folder / "ssh_key"
        self.format = "raw"

    @classmethod
    def get(cls, path, folder):
        """Returns the image for the hosts of a lab with this folder. Raises a LabError if the file
        cannot be read."""
        disk = cls(path, folder)
        disk.read_format()
        # A lab that starts has an empty folder.
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tern-lab", "-f",
                        disk.ssh_key], check=True)
        return disk

    def read_format(self):
        """Sets the format. QEMU would have to guess it, and warns of that."""
        try:
            with open(self.path, "rb") as file:
                if file.read(len(QCOW2_MAGIC)) == QCOW2_MAGIC:
                    self.format = "qcow2"
        except OSError as error:
            raise LabError(f"{self.path}: {error.strerror}") from None

    def to_json(self):
        return {"disk": str(self.path)}

    @property
    def public_key(self):
        return self.ssh_key.with_suffix(".pub")


def options_for(options, smp=None):
    """The Options of hosts that boot such an image. smp: the number of CPUs, if the user has given
    one."""
    if stack.ask("arch") != "amd64":
        raise LabError("--image FILE is for hosts of x86-64, as the firmware is a BIOS")
    if smp is None and machine.of(options).accelerator().arguments == machine.TCG:
        # Another CPU may die while Linux patches its code (machine.X86_TCG_KERNEL_LINE).
        smp = 1
    return dataclasses.replace(options, smp=smp or Options.smp)


class OwnDiskHost(Host):
    """A host that boots an OwnDisk. Its channel is ssh."""

    _console_begins = 0  # where the output of this start begins in the console's log

    def _machine_arguments(self, _archive):
        self._seed.mkdir(exist_ok=True)
        key = self.image.public_key.read_text(encoding="ascii").strip()
        for name, text in (("user-data", _USER_DATA.format(key=key)),
                           ("meta-data", _META_DATA.format(id=uuid.uuid4(), name=self.name)),
                           ("network-config", _NETWORK)):
            (self._seed / name).write_text(text, encoding="ascii")
        self.image.read_format()
        self._console_begins = len(self.console())
        return machine.command_of_own_disk(self.image, self.options, self._seed,
                                           self.image.public_key, self.log, self._qmp)

    def _wait_for_commands(self):
        wait_until(lambda: self._answers() or not self.process.alive(), MONITOR_TIMEOUT)
        self.check_alive()
        self._find_port()
        self._wait_for_login()
        names = "".join(f"{ipv4_of(index)} host{index}\n" for index in range(1, MAX_HOSTS + 1))
        self.run(_NAMES.format(name=self.name), stdin=names.encode())

    def _answers(self):
        """Whether QEMU does. Its socket may be that of one that has been killed."""
        try:
            with self.qmp():
                return True
        except OSError:
            return False

    def _wait_for_login(self):
        begun = time.monotonic()
        ends = begun + pace.scaled(BOOT_TIMEOUT)
        hurried = False
        while True:
            self.check_alive()
            done = self._ssh().probe(PROBE_TIMEOUT)
            if not done.returncode:
                return
            said = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
            console = self.console()[self._console_begins:]
            if _NOT_BOOTABLE.search(console):
                raise LabError(f"{self.image.path} does not boot: the firmware, a BIOS, finds "
                               "no boot loader")
            if not hurried and (_LOGIN_PROMPT.search(console) or "Permission denied" in said):
                hurried = True
                ends = min(ends, time.monotonic() + pace.scaled(LOGIN_TIMEOUT))
            if time.monotonic() > ends:
                raise LabError(
                    f"{self.name}: nobody can log in to {self.image.path} by ssh after "
                    f"{time.monotonic() - begun:.0f} s ({said}); it needs an SSH server, DHCP on "
                    "its network card, and cloud-init or systemd 252 for root's key")
            time.sleep(0.5)

    @property
    def _seed(self):
        return self._qmp.with_suffix(".seed")

    def last_words(self, lines=5):
        """Returns the end of QEMU's log. The end of the console's would be about the user's own
        services."""
        log = self._qemu_log()
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join([*text.splitlines()[-lines:], f"its console is in {self.log}"])

    def run(self, command, timeout=60, check=True, stdin=b""):
        try:
            done = subprocess.run(self._ssh().command(command), input=stdin, check=False,
                                  capture_output=True, timeout=pace.scaled(timeout))
        except subprocess.TimeoutExpired as late:
            raise CommandError(f"{self.name}: still running after {late.timeout:.0f} s: "
                               f"{command}") from None
        result = Result(done.returncode, done.stdout.decode(errors="replace"),
                        done.stderr.decode(errors="replace"))
        if check and result.code:
            raise CommandError(f"{self.name}: exit code {result.code}: {command}\n"
                               f"{result.out}{result.err}")
        return result

    def configure(self, timeout=30):
        has_driver = "modinfo tern || lsmod | grep -w ^tern"
        if self.options.nic == "tern" and self.run(has_driver, check=False).code:
            say(f"{self.name} has no driver for its card: install one, load it, and give its "
                f"interface the address {self.ipv4}/24")
            return
        for card, mac in enumerate(self.macs()):
            adopt = _ADOPT.format(mac=mac, netdev=netdev(card))
            if not wait_until(lambda adopt=adopt: not self.run(adopt, check=False).code, timeout):
                raise LabError(f"no interface has the address {mac}")
        super().configure(timeout)
