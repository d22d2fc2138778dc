# SPDX-License-Identifier: GPL-2.0-or-later
"""One host: a virtual machine with a management card and a card on the wire."""

import dataclasses
import ipaddress
import os
import pathlib
import re

from . import qmp
from .errors import LabError
from .paths import SCRIPTS
from .process import Process
from .progress import wait_until
from .ssh import Ssh

BOOT_TIMEOUT = 180
WIRES = ("shm", "stream")
DEFAULT_WIRE = os.environ.get("TERN_WIRE", "shm")
NETDEV = "wire0"  # both QEMU's id and, by guest/net.rules, the interface in the guest
CARD = "card"  # QEMU's id of it
DEATH = re.compile(r"Oops|BUG:|RIP: 0010|Kernel panic")

# What programs are told most often, asked of the guest's shell alone: to start a process takes a
# tenth of a second under TCG. A PCI card's device knows its interfaces, rxe its one. Only udev
# is waited for: a device has the driver's name first, then the stable one.
_FIND_DEVICE = f"""
    udevadm settle --timeout=20
    for path in /sys/class/infiniband/*; do
        if [ ! -e $path/device/net/{NETDEV} ]; then
            read name 2>/dev/null <$path/parent && [ "$name" = {NETDEV} ] || continue
        fi
        echo ${{path##*/}}; exit
    done"""
_FIND_GID = """
    cd /sys/class/infiniband/{device}/ports/1 || exit
    index=0
    while read gid 2>/dev/null <gids/$index; do
        if [ $gid = {gid} ] && read kind <gid_attrs/types/$index && [ "$kind" = "{kind}" ]; then
            echo $index; exit
        fi
        index=$((index + 1))
    done"""


@dataclasses.dataclass
class Options:
    """What a host is like."""
    mtu: int = 9000
    smp: int = 2
    mem: str = "1G"
    viommu: bool = False
    load: bool = True       # let udev load tern.ko
    nic: str = "tern"       # or "virtio", for Soft-RoCE
    wire: str = DEFAULT_WIRE  # how a Tern card reaches it: "shm", or "stream" as all others
    nic_options: str = ""   # more properties for the card, as QEMU spells them
    kernel_options: str = ""
    qemu_options: tuple = ()  # more of QEMU's; "{folder}" in one is the lab's, for sockets


def accelerator():
    """KVM if it is real: /dev/kvm without vmx or svm emulates in software, slower than TCG."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    if re.search(r"^flags\s*:.*\b(vmx|svm)\b", cpuinfo, re.MULTILINE) \
            and os.access("/dev/kvm", os.R_OK | os.W_OK):
        return ["-accel", "kvm", "-cpu", "host"]
    # With more features TCG is slower, not faster; rdrand spares waiting for entropy.
    return ["-accel", "tcg,thread=multi", "-cpu", "qemu64,+rdrand"]


class Host:
    def __init__(self, index, image, options, folder, log, process=None, port=None):
        self.index, self.image, self.options = index, image, options
        self.name = f"host{index}"
        self.log = log
        self.process, self.port = process, port
        self.ipv4, self.ipv6 = f"10.77.0.{index}", f"fd77::{index}"
        self._qmp = folder / f"{self.name}.qmp"
        self._ssh_control = folder / f"{self.name}.ssh"

    # --- life

    def start(self, wire, parts, owned):
        self.process = Process.start(self.name, self._qemu(wire, parts), self._qemu_log(), owned)

    def wait_ready(self):
        """Until the guest says so on its console; fails at once if it has died."""
        def ready():
            return "tern: ready" in self.console() or not self.process.alive()

        if not wait_until(ready, BOOT_TIMEOUT):
            raise LabError(f"{self.name} did not boot in {BOOT_TIMEOUT} s;\n{self.last_words()}")
        self.check_alive()
        with self.qmp() as monitor:
            forwards = monitor.human("info usernet")
        self.port = int(re.search(r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)", forwards)[1])
        # QEMU's user network resets what comes before the guest's interface runs.
        if not wait_until(lambda: self.run("true", check=False).code == 0, 30, 0.2):
            raise LabError(f"{self.name} lets nobody log in;\n{self.last_words()}")

    def check_alive(self):
        if not self.process.alive():
            raise LabError(f"{self.name}'s QEMU has ended;\n{self.last_words()}")

    def stop(self):
        """A guest's disk is thrown away, so there is nothing to shut down in order."""
        if self.port:
            self.ssh.close()
        if self.process and self.process.alive():
            try:
                with self.qmp() as monitor:
                    monitor.execute("quit")
                self.process.wait(10)
            except (OSError, LabError):
                pass
            self.process.stop()

    def _qemu(self, wire, parts):
        options, image = self.options, self.image
        # The CPUs' time stamp counters are one, which Linux does not believe; its other
        # clocks are devices, where each look at the time costs microseconds. And its check
        # that the timer ticks would fail a machine whose host is merely busy. TCG translates
        # the libraries anew for each process that has them elsewhere, which takes two thirds
        # of the time to start one: all have them at the same place. And a CPU of QEMU 7.2 may
        # go on with what it has translated while another one patched that code, as Linux does
        # mostly at boot; it dies of a breakpoint then ("int3"). So it boots on one.
        kernel = (f"root=/dev/vda console=ttyS0 ignore_loglevel mitigations=off panic=-1 "
                  f"tsc=reliable no_timer_check norandmaps maxcpus=1 noreplace-smp "
                  f"lab.host={self.name}")
        if options.viommu:
            kernel += " intel_iommu=on iommu.passthrough=0 iommu.strict=1"
        if not options.load:
            kernel += " modprobe.blacklist=tern"
        qemu = SCRIPTS / "tern-qemu" if options.nic == "tern" else "qemu-system-x86_64"
        return [
            qemu, "-name", self.name, *self._machine(), "-smp", options.smp, "-m", options.mem,
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-serial", f"file:{self.log}",
            "-qmp", f"unix:{self._qmp},server=on,wait=off",
            "-kernel", image.vmlinuz, "-initrd", image.initrd,
            "-append", f"{kernel} {options.kernel_options}",
            *_disk(image.root, "snapshot=on,cache=unsafe"),
            *_disk(parts, "readonly=on"),
            "-netdev", "user,id=mgmt,hostfwd=tcp:127.0.0.1:0-:22",
            "-device", f"virtio-net-pci,netdev=mgmt,romfile=,mac={self._mac('4d')}",
            *self._card(wire),
            *(option.format(folder=wire.path.parent) for option in options.qemu_options),
        ]

    def _machine(self):
        machine = ["-machine", "q35,kernel-irqchip=split", *accelerator()]
        if self.options.viommu:
            # Before all cards, or they would not be behind it. With ATS, which has it tell the
            # cards what it unmaps, or they would have to ask it at each access.
            machine += ["-device", "intel-iommu,device-iotlb=on"]
        return machine

    def _card(self, wire):
        options = self.options
        properties = f"id={CARD},mac={self._mac('77')}"
        if options.nic_options:
            properties += f",{options.nic_options}"
        if options.nic == "tern" and options.wire == "shm":
            # RAM in a memfd: the other hosts read there what is sent to them.
            return ["-object", f"memory-backend-memfd,id=ram,size={options.mem},share=on",
                    "-machine", "memory-backend=ram",
                    "-device", f"tern,wire={wire.shared_path},{properties}"]
        model = {"tern": "tern", "virtio": "virtio-net-pci,romfile="}[options.nic]
        return ["-netdev", f"stream,id={NETDEV},server=off,addr.type=unix,addr.path={wire.path}",
                "-device", f"{model},netdev={NETDEV},{properties}"]

    def _mac(self, network):
        """By these addresses guest/net.rules names the interfaces."""
        return f"52:54:00:{network}:00:{self.index:02x}"

    # --- what it says

    def _qemu_log(self):
        return self.log.with_suffix(".qemu.log")

    def console(self):
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def last_words(self, lines=25):
        """The end of its logs, and of what is before that where a kernel says that it dies."""
        text = ""
        for log in (self._qemu_log(), self.log):
            if log.exists():
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                deaths = [line for line in said[:-lines] if DEATH.search(line)]
                text += "\n".join([f"--- the end of {log}:", *deaths, *said[-lines:], ""])
        return text

    # --- how to reach it

    def qmp(self):
        return qmp.Qmp(self._qmp)

    @property
    def ssh(self):
        if not self.port:
            raise LabError(f"{self.name} is not up")
        return Ssh(self.name, self.image, self.port, self._ssh_control)

    def run(self, command, **how):
        return self.ssh.run(command, **how)

    def spawn(self, command):
        return self.ssh.spawn(command)

    # --- its card

    def set_cable(self, plugged):
        """Of a Tern card: without one nothing comes and goes, and the link is down."""
        with self.qmp() as monitor:
            monitor.execute("qom-set", path=f"/machine/peripheral/{CARD}", property="link",
                            value=plugged)

    def configure(self, timeout=30):
        """Gives the card's interface, once udev or modprobe has brought it, its addresses."""
        self.run(f"""
            n=0
            until [ -e /sys/class/net/{NETDEV} ]; do
                n=$((n + 1)); [ $n -lt {timeout * 10} ] || exit 99
                sleep 0.1
            done
            ip link set {NETDEV} mtu {self.options.mtu} up || exit
            ip -4 address replace {self.ipv4}/24 dev {NETDEV} || exit
            ip -6 address replace {self.ipv6}/64 dev {NETDEV} nodad
        """, timeout=timeout + 30)

    def driver(self):
        """The driver of the card on the wire, or ""."""
        link = self.run(f"readlink /sys/class/net/{NETDEV}/device/driver", check=False).out
        return link.strip().rpartition("/")[2]

    def rdma_device(self, timeout=30):
        """The name of the RDMA device on the wire, once it is there."""
        name = wait_until(lambda: self.run(_FIND_DEVICE, check=False).out.strip(), timeout)
        if not name:
            raise LabError(f"{self.name} has no RDMA device on {NETDEV}\n{self.last_words()}")
        return name

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
        find = _FIND_GID.format(device=device, gid=wanted.exploded, kind=kind)
        found = wait_until(lambda: self.run(find, check=False).out.strip(), timeout)
        if not found:
            raise LabError(f"{self.name}: {device} has no {kind} GID for {wanted}: "
                           f"{self.gids(device)}")
        return int(found)

    def to_json(self):
        return {"index": self.index, "port": self.port, "process": self.process.to_json(),
                "options": dataclasses.asdict(self.options)}


def _disk(path, how):
    name = path.name.replace(".", "-")
    return ["-drive", f"file={path},if=none,format=raw,id={name},{how}",
            "-device", f"virtio-blk-pci,drive={name}"]
