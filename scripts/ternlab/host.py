# SPDX-License-Identifier: GPL-2.0-or-later
"""One host: a virtual machine with a management card and a card on the wire."""

import dataclasses
import ipaddress
import json
import os
import re
import time

from . import cards, channel, machine, pace, qmp
from .cards import card_id, netdev
from .errors import LabError
from .paths import COMMAND
from .process import Process
from .progress import wait_until
from .snapshot import Snapshot
from .ssh import Ssh

START_TIMEOUT = 60
WIRES = ("shm", "stream")
DEFAULT_WIRE = os.environ.get("TERN_WIRE", "shm")
MAX_HOSTS = 32  # of a lab, as many as guest/assemble gives names
MAX_CARDS = 8  # as guest/net.rules knows and machine.py has slots

NETDEV = netdev(0)

# These scripts mostly use the shell's built-in commands, since starting a process takes a tenth of
# a second under TCG. sysfs lists the interfaces of a PCI card below its device; rxe has the name of
# its interface in "parent". Wait for udev, which renames a new RDMA device to its stable name.
# udev does not know a device yet that ib_core still gives to its clients, though sysfs has it. So
# the kernel's name of a Tern device counts only where no rule of rdma-core renames it.
_FIND_DEVICE = """
    udevadm settle --timeout=20
    for folder in /etc /run /usr/lib /lib; do
        rules=$folder/udev/rules.d/60-rdma-persistent-naming.rules
        [ ! -e $rules ] || break
    done
    for path in /sys/class/infiniband/*; do
        case $path in
            */tern[0-9]*)
                ! grep -Eqs '^[^#]*NAME_(FALLBACK|PCI|GUID)' $rules || continue ;;
        esac
        if [ ! -e $path/device/net/{netdev} ]; then
            read name 2>/dev/null <$path/parent && [ "$name" = {netdev} ] || continue
        fi
        echo ${{path##*/}}; exit
    done"""
# Two cards on one wire: each answers for its own address only, and asks with it.
_OWN_ADDRESSES = """
    echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
    echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce"""
_FIND_GID = """
    cd /sys/class/infiniband/{device}/ports/1 || exit
    index=0
    while read gid 2>/dev/null <gids/$index; do
        if [ $gid = {gid} ] && read kind <gid_attrs/types/$index && [ "$kind" = "{kind}" ]; then
            echo $index; exit
        fi
        index=$((index + 1))
    done"""

# udevd maps the module indexes that it had at the snapshot, and would not find tern.ko in those.
# It keeps them if the new ones have the same time, which is so when the image and the archive with
# the new ones were made within a second.
# `udevadm control --reload` may do nothing: udevd drops a message that arrives between its
# accept() and its setsockopt(SO_PASSCRED), and udevadm does not learn of it.
_RELOAD_UDEV = """
    touch /lib/modules/$(uname -r)/modules.*.bin
    udevd=$(pidof systemd-udevd) && kill -HUP $udevd || exit
    for pid in $udevd; do
        while grep -qs '/modules[.].*(deleted)' /proc/$pid/maps; do sleep 0.05; done
    done"""

# Hosts that start from one snapshot have its boot ID, by which programs (UCX, systemd) tell whether
# they share a machine and its memory. The kernel lets nobody change it.
_OWN_BOOT_ID = """
    read -r id </proc/sys/kernel/random/uuid && echo $id >/run/boot_id &&
        mount --bind /run/boot_id /proc/sys/kernel/random/boot_id"""

# The snapshot was made with an empty disk, and the guest's page cache may hold blocks of it.
_UNPACK = "blockdev --flushbufs /dev/vdb && tar -xf /dev/vdb -C /"

# The device has been plugged in, and the kernel may not have seen it yet.
_MOUNT_SHARE = """
    mkdir -p /share && modprobe -a 9p 9pnet_virtio || exit
    until grep -qs share /sys/bus/virtio/drivers/9pnet_virtio/*/mount_tag; do sleep 0.1; done
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share"""


@dataclasses.dataclass
class Options:
    """What a host is like."""
    mtu: int = 9000
    smp: int = 2
    mem: str = "512M"
    viommu: bool = False
    load: bool = True       # let udev load tern.ko
    nic: str = "tern"       # or "virtio", for Soft-RoCE
    cards: int = 1          # on the wire
    wire: str = DEFAULT_WIRE  # how a Tern card reaches it: "shm", or "stream" as all others
    nic_options: str = ""   # more properties for the card, as QEMU spells them
    kernel_options: str = ""
    netdevs: tuple = ()     # more -netdevs of QEMU; "{folder}" in one is the lab's, for sockets
    devices: tuple = ()     # more -devices, in slots of their own
    share: str = ""         # a folder of this machine, the host's /share
    name: str = ""          # default: hostN
    edges: tuple = ()       # of a topology: the name and the rate in Mb/s of each card
    # Of the stack: see cards.for_this_stack().
    front_end: str = "preloaded"  # how QEMU has the cards
    arch: str = "amd64"     # the machine's architecture


def ipv4_of(index, card=0):
    """The address of a card of the host with this number."""
    return f"10.77.{card}.{index}"


class Host:
    def __init__(self, index, image, options, folder, log, process=None, port=None,
                 card_processes=()):
        self.index, self.image, self.options = index, image, options
        self.name = options.name or f"host{index}"
        self.log = log
        self.process, self.port = process, port
        self.ipv4, self.ipv6 = self.addresses(0)
        self._qmp = folder / f"{self.name}.qmp"
        self._channel_path = folder / f"{self.name}.channel"
        self._channel = None
        self._started, self._devices, self._rdma_devices = 0.0, [], {}
        self._ssh_control = folder / f"{self.name}.ssh"
        self.cards = cards.of(self, folder, card_processes)

    def macs(self):
        """The Ethernet addresses of its cards; see guest/net.rules."""
        return [f"52:54:00:77:{card:02x}:{self.index:02x}" for card in range(self.options.cards)]

    # --- life

    def start(self, wire, owned, archive):
        """Starts its QEMU; wait_ready() returns when the host can be worked on. The archive
        (parts.py) holds what it gets of what is built here."""
        # With debug-threads=on QEMU names its threads, by which tools find those of the card.
        command = [*self.cards.qemu, "-name", f"{self.name},debug-threads=on",
                   *self._machine_arguments(archive)]
        command += self.cards.start(wire, owned)
        for network in self.options.netdevs:
            command += ["-netdev", network.format(folder=wire.path.parent)]
        self._devices = [*self.options.devices]
        if self.options.share:
            folder = self.options.share.replace(",", ",,")
            command += ["-fsdev", f"local,id=share,security_model=none,path={folder}"]
            self._devices.append("virtio-9p-pci,fsdev=share,mount_tag=share")
        self._started, self.port = time.monotonic(), None
        self.process = Process.start(self.name, command, self._qemu_log(), owned)

    def wait_ready(self):
        """Waits until the guest runs commands, and plugs in its cards and other devices."""
        try:
            self._wait_for_commands()
            if not self.options.load:
                self.run("echo blacklist tern >/etc/modprobe.d/lab.conf")
            with self.qmp() as monitor:
                self._plug(monitor)
            if self.options.share:
                self.run(_MOUNT_SHARE, timeout=START_TIMEOUT)
        except LabError as error:
            self.check_alive()
            raise LabError(f"{error}\n{self.last_words()}") from None
        self._find_port()

    def _machine_arguments(self, archive):
        """QEMU's arguments. The guest goes on where a snapshot of a booted one ended."""
        snapshot = Snapshot.get(self.image, self.options)
        return [*snapshot.arguments(), *machine.command(
            self.image, self.options, snapshot.drive(), archive, self.log, self._qmp,
            self._channel_path)]

    def _wait_for_commands(self):
        """Adds what the guest of a snapshot lacks. What the archive holds goes over its root file
        system."""
        self._channel = channel.connect(self.name, self._channel_path, self.process.alive,
                                        START_TIMEOUT)
        self.run(f"hostname {self.name}; date -s @{time.time():.0f} >/dev/null; "
                 f"{_OWN_BOOT_ID}", timeout=START_TIMEOUT)
        pace.measure(time.monotonic() - self._started)
        self.run(_UNPACK, timeout=START_TIMEOUT)
        self.reload_udev()

    def _find_port(self):
        """The port of this machine by which ssh reaches it."""
        with self.qmp() as monitor:
            forwards = monitor.human("info usernet")
        self.port = int(re.search(r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)", forwards)[1])

    def _plug(self, monitor):
        """Cards and other devices, each into a slot of its own."""
        try:
            for card in range(self.options.cards):
                self._plug_card(monitor, card)
            for slot, device in enumerate(self._devices, self.options.cards + 1):
                refused = monitor.human(f"device_add {device},bus=slot{slot}")
                if refused:
                    raise LabError(refused)
        except LabError as error:
            raise LabError(f"{self.name}: {error}") from None

    def _plug_card(self, monitor, card):
        self.cards.plug(monitor, card, f"slot{card + 1}")

    def plug_card(self, card):
        """Plugs in a card that unplug_card() has taken out."""
        with self.qmp() as monitor:
            self._plug_card(monitor, card)

    def unplug_card(self, card, timeout):
        """Asks the guest to give up a card, and waits until QEMU has removed it."""
        with self.qmp() as monitor:
            monitor.execute("device_del", id=card_id(card))
            if not wait_until(lambda: f'id "{card_id(card)}"' not in monitor.human("info qtree"),
                              timeout):
                raise LabError(f"{self.name} has not given up its card within {timeout} s")

    def check_alive(self):
        if not self.process.alive():
            raise LabError(f"{self.name}'s QEMU has ended;\n{self.last_words()}")
        self.cards.check_alive()

    def kill(self):
        """Kills QEMU and the card processes, as a power failure would stop the host."""
        self.process.kill()
        self.cards.kill()
        self._hang_up()

    def stop(self):
        """Ends QEMU without shutting the guest down, since changes of its disk are discarded."""
        self._hang_up()
        if self.process and self.process.alive():
            try:
                with self.qmp() as monitor:
                    monitor.execute("quit")
                self.process.wait(10)
            except (OSError, LabError):
                pass
            self.process.stop()
        self.cards.stop()

    def _hang_up(self):
        if self._channel:
            self._channel.close()
            self._channel = None
        if self.port:
            self._ssh().close()

    # --- what it says

    def _qemu_log(self):
        return self.log.with_suffix(".qemu.log")

    def console(self):
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def last_words(self, lines=25):
        """The last lines of its logs, and any earlier lines that report a crash of the kernel."""
        text = ""
        for log in (*self.cards.logs(), self._qemu_log(), self.log):
            if log.exists():
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                deaths = [line for line in said[:-lines] if machine.DEATH.search(line)]
                text += "\n".join([f"--- the end of {log}:", *deaths, *said[-lines:], ""])
        return text

    # --- how to reach it

    def qmp(self):
        return qmp.Qmp(self._qmp)

    @property
    def ssh(self):
        if not self.process.alive():
            raise LabError(f"{self.name} is down; `{COMMAND} restart {self.name}` starts it anew")
        if not self.port:
            raise LabError(f"{self.name} is not up")
        return self._ssh()

    def _ssh(self):
        return Ssh(self.name, self.image, self.port, self._ssh_control)

    @property
    def channel(self):
        if not self._channel:
            raise LabError(f"another process brought {self.name} up; reach it by ssh")
        return self._channel

    def run(self, command, timeout=60, check=True, stdin=b""):
        return self.channel.run(command, timeout, check, stdin)

    def spawn(self, command):
        return self.channel.spawn(command)

    def tasks(self):
        """The commands that run in it now."""
        return self._channel.tasks() if self._channel else set()

    def reload_udev(self):
        """Has udev read its rules and the module indexes as they are now."""
        self.run(_RELOAD_UDEV)

    def write_file(self, path, data):
        self.run(f"cat >{path}", stdin=data)

    # --- its card

    def set_cable(self, plugged, card=0):
        """Plugs in or pulls out the cable of a Tern card. Without it the card's link is down."""
        cards.tell(self, "qom-set", path=f"/machine/peripheral/{card_id(card)}", property="link",
                   value=plugged)

    def addresses(self, card):
        """The IPv4 and the IPv6 address of a card: each has a subnet of its own."""
        return ipv4_of(self.index, card), str(
            ipaddress.ip_address(f"fd77::{card:x}:0:0:0:{self.index:x}"))

    def names(self):
        """[(name, IPv4 address)] of the host, with its first card's address, and of its cards."""
        cards = [name for name, _ in self.options.edges] or [self.name]
        return [(self.name, self.ipv4), *((name, self.addresses(card)[0])
                                          for card, name in enumerate(cards) if name != self.name)]

    def configure(self, timeout=30):
        """Gives the cards' interfaces, once udev or modprobe has brought them, their addresses."""
        self._rdma_devices = {}
        if self.options.cards > 1:
            self.run(_OWN_ADDRESSES)
        for card in range(self.options.cards):
            ipv4, ipv6 = self.addresses(card)
            name = netdev(card)
            self.run(f"""
                until [ -e /sys/class/net/{name} ]; do sleep 0.1; done
                ip link set {name} mtu {self.options.mtu} up || exit
                ip -4 address replace {ipv4}/24 dev {name} || exit
                ip -6 address replace {ipv6}/64 dev {name} nodad
            """, timeout=timeout)

    def driver(self):
        """The driver of the card on the wire, or ""."""
        link = self.run(f"readlink /sys/class/net/{NETDEV}/device/driver", check=False).out
        return link.strip().rpartition("/")[2]

    def rdma_device(self, timeout=30, card=0):
        """The name of a card's RDMA device, once it is there; known until configure()."""
        if card not in self._rdma_devices:
            self._rdma_devices[card] = self.rdma_device_of(netdev(card), timeout)
        return self._rdma_devices[card]

    def rdma_device_of(self, interface, timeout=30):
        """The name of the RDMA device of an interface, once it is there for good."""
        find = _FIND_DEVICE.format(netdev=interface)
        name = wait_until(lambda: self.run(find, check=False).out.strip(), timeout)
        if not name:
            raise LabError(f"{self.name} has no RDMA device on {interface}\n{self.last_words()}")
        return name

    def pci(self, card=0):
        """The PCI address of a card."""
        link = self.run(f"readlink -f /sys/class/net/{netdev(card)}/device").out
        return link.strip().rpartition("/")[2]

    def hw_counter(self, name, card=0):
        """A counter of a card's RDMA device."""
        device = self.rdma_device(card=card)
        return int(self.run(f"cat /sys/class/infiniband/{device}/ports/1/hw_counters/{name}").out)

    def hw_counters(self):
        """All of the first card's, by name."""
        said = self.run(f"rdma -j statistic show link {self.rdma_device()}/1").out
        return {name: value for name, value in json.loads(said)[0].items()
                if isinstance(value, int)}

    def gids(self, device):
        """The GID table as [(index, GID, type)]."""
        # One process for all: a table may have a thousand entries, empty ones give an error.
        files = self.run(f"cd /sys/class/infiniband/{device}/ports/1; "
                         "grep -s . gid_attrs/types/* gids/*", check=False).out
        table = dict(line.split(":", 1) for line in files.splitlines())
        prefix = "gid_attrs/types/"
        return sorted(
            (int(index), ipaddress.ip_address(table[f"gids/{index}"]), kind)
            for index, kind in ((name.removeprefix(prefix), kind)
                                for name, kind in table.items() if name.startswith(prefix)))

    def gid_index(self, device, address=None, kind="RoCE v2", timeout=10):
        """The index of the GID that stands for an address (default: the host's IPv4 one)."""
        wanted = ipaddress.ip_address(address or self.ipv4)
        if wanted.version == 4:
            wanted = ipaddress.ip_address(f"::ffff:{wanted}")
        # As sysfs has it; Python 3.13 writes the end of such an address as an IPv4 one.
        find = _FIND_GID.format(device=device, gid=wanted.packed.hex(":", 2), kind=kind)
        found = wait_until(lambda: self.run(find, check=False).out.strip(), timeout)
        if not found:
            raise LabError(f"{self.name}: {device} has no {kind} GID for {wanted}: "
                           f"{self.gids(device)}")
        return int(found)

    def to_json(self):
        return {"index": self.index, "port": self.port, "process": self.process.to_json(),
                "cards": self.cards.to_json(), "options": dataclasses.asdict(self.options)}
