# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's machine without its card: the same for all hosts that start from a snapshot."""

import dataclasses
import os
import pathlib
import re

SLOTS = 9  # for eight cards and one device more
MANAGEMENT_MAC = "52:54:00:4d:00:01"  # by which guest/net.rules names the interface
# ssh reaches a guest through QEMU's user network.
MANAGEMENT_CARD = (
    "-netdev", "user,id=mgmt,hostfwd=tcp:127.0.0.1:0-:22",
    "-device", f"virtio-net-pci,netdev=mgmt,romfile=,mac={MANAGEMENT_MAC}")
DEATH = re.compile(r"Oops|BUG:|RIP: 0010|Kernel panic")  # what a dying kernel says
CPUINFO = pathlib.Path("/proc/cpuinfo")
# norandmaps: TCG translates a library again for each process that maps it at another address, which
# takes two thirds of the time to start a process.
# The rest turns off hardening, which takes a fifth of the time to start a process.
TCG_KERNEL_LINE = (
    "mitigations=off norandmaps init_on_alloc=0 hardened_usercopy=off "
    "randomize_kstack_offset=off apparmor=0 audit=0")
# tsc=reliable: All CPUs read one time stamp counter, but Linux does not trust it by itself. Its
# other clocks are devices, and each read of one takes microseconds.
# no_timer_check: The check of the timer fails on a busy host.
# maxcpus=1 noreplace-smp: Linux patches its code, mostly at boot. Another CPU of QEMU 7.2 may then
# execute a stale translation and die of an "int3" trap. So the guest boots on one CPU, and
# guest/boot starts the others.
X86_TCG_KERNEL_LINE = "tsc=reliable no_timer_check maxcpus=1 noreplace-smp"
# Linux sizes the windows of the ports below, for cards that are plugged in later. On x86 firmware
# has done so before, by what the ports ask for.
ARM_KERNEL_LINE = "pci=hpmmiosize=32M,hpmmioprefsize=512M"
TCG = ("-accel", "tcg,thread=multi")
# Distributions compile for newer processors than qemu64. Five levels of page tables would only make
# TCG slower.
TCG_CPU_OF_OWN_DISK = "max,la57=off"


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """An accelerator: QEMU's arguments for it, the processor of Tern's guests and of disk images
    of the user's, the kernel options that a guest needs on it, and what tells the processor from
    others if guests see it."""
    arguments: tuple
    cpu: str
    cpu_of_own_disk: str
    kernel_line: str
    processor: str = ""


class X86:
    """A machine of the architecture amd64."""
    qemu = "qemu-system-x86_64"
    machine = "q35,kernel-irqchip=split"
    # Hosts that start from one snapshot have the same random numbers ahead of them; a new
    # generation ID tells their kernels to seed anew.
    devices = ("-device", "vmgenid,guid=auto")
    # With device-iotlb=on the IOMMU has ATS: cards cache translations, and the IOMMU tells them
    # what it unmaps. Without ATS they would have to ask it at each access.
    iommu = ("-device", "intel-iommu,device-iotlb=on")
    iommu_kernel_line = "intel_iommu=on iommu.passthrough=0 iommu.strict=1"
    console = "ttyS0"
    kernel_line = ""
    starts_with_empty_ram = True  # the firmware loads the kernel from fw_cfg

    @classmethod
    def accelerator(cls):
        """Returns KVM if the processor supports it, else TCG. Without vmx or svm, /dev/kvm is
        emulated in software and slower than TCG."""
        cpuinfo = CPUINFO.read_text(encoding="ascii", errors="replace")
        if re.search(r"^flags\s*:.*\b(vmx|svm)\b", cpuinfo, re.MULTILINE) \
                and os.access("/dev/kvm", os.R_OK | os.W_OK):
            first = cpuinfo.partition("\n\n")[0]
            told = re.findall(r"^(?:model name|stepping|microcode|flags)\s*:.*$", first,
                              re.MULTILINE)
            return Accelerator(("-accel", "kvm"), "host", "host", "",
                               "\n".join([os.uname().release, *told]))
        # With more features TCG is slower, not faster; rdrand spares waiting for entropy.
        return Accelerator(TCG, "qemu64,+rdrand", TCG_CPU_OF_OWN_DISK,
                           f"{TCG_KERNEL_LINE} {X86_TCG_KERNEL_LINE}{cls._clock(cpuinfo)}")

    @staticmethod
    def _clock(cpuinfo):
        """The frequency of the time stamp counter, which under TCG is the host's.

        A kernel that measures it by itself is wrong by any factor if the host is busy then, and
        from then on the guest's clock is too slow or too fast by that factor.
        """
        found = re.search(r"^bogomips\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)
        return f" tsc_early_khz={float(found[1]) * 500:.0f}" if found else ""  # twice the MHz


class Arm:
    """A machine of the architecture arm64, which TCG emulates."""
    qemu = "qemu-system-aarch64"
    # The interrupt controller of this version takes MSIs, by its ITS.
    machine = "virt,gic-version=3"
    devices = iommu = ()
    iommu_kernel_line = ""
    console = "ttyAMA0"
    kernel_line = ARM_KERNEL_LINE
    starts_with_empty_ram = False

    @staticmethod
    def accelerator():
        # A processor with atomic instructions, and without pointer authentication, which TCG
        # takes long to compute.
        return Accelerator(TCG, "neoverse-n1", "neoverse-n1", TCG_KERNEL_LINE)


def of(options):
    """The machine of hosts with these Options."""
    return {"amd64": X86, "arm64": Arm}[options.arch]


def hardware(options, cpu=None):
    """Without disk, console and sockets, which are files of their own for each host. cpu: in place
    of the processor of Tern's guests."""
    # RAM in a memfd: the other hosts read there what is sent to them. With seal=off the card
    # seals it itself, so that they cannot write. A tern-card process accepts only memory that
    # QEMU has sealed.
    sealed = "" if options.front_end == "vfio-user" else ",seal=off"
    ours = of(options)
    accelerator = ours.accelerator()
    machine = ["-machine", f"{ours.machine},memory-backend=ram", *accelerator.arguments,
               "-cpu", cpu or accelerator.cpu,
               "-object", f"memory-backend-memfd,id=ram,size={options.mem},share=on{sealed}",
               "-m", options.mem, "-smp", str(options.smp)]
    if options.viommu:
        # Before all cards, or they would not be behind it.
        machine += ours.iommu
    machine += ours.devices
    # Ports for cards that are plugged in later: QEMU cannot save a machine that has a card.
    for slot in range(1, SLOTS + 1):
        machine += ["-device", f"pcie-root-port,id=slot{slot},chassis={slot},"
                               "mem-reserve=32M,pref64-reserve=512M"]
    return machine


def kernel_line(options):
    ours = of(options)
    words = [f"root=/dev/vda console={ours.console} ignore_loglevel panic=-1", ours.kernel_line,
             ours.accelerator().kernel_line]
    if options.viommu:
        words.append(ours.iommu_kernel_line)
    words.append(options.kernel_options)
    return " ".join(filter(None, words))


def command(image, options, disk, parts, console, qmp, channel):
    """QEMU's arguments. disk is a -drive's file and its options, parts the archive (parts.py)."""
    return [
        *hardware(options), *_service(console, qmp),
        "-kernel", image.vmlinuz, "-initrd", image.initrd, "-append", kernel_line(options),
        "-drive", f"if=none,id=root,cache=unsafe,{disk}", "-device", "virtio-blk-pci,drive=root",
        # The second disk.
        "-drive", f"if=none,id=parts,format=raw,readonly=on,file={parts}",
        "-device", "virtio-blk-pci,drive=parts",
        *MANAGEMENT_CARD,
        "-chardev", f"socket,id=channel,path={channel},server=on,wait=off",
        "-device", "virtio-serial-pci",
        "-device", "virtserialport,chardev=channel,name=tern.executor",
    ]


def command_of_own_disk(disk, options, seed, key, console, qmp):
    """QEMU's arguments for a disk image of the user's, which stays as it is. seed is the folder for
    cloud-init, key the file with the public key."""
    drive = str(disk.path).replace(",", ",,")
    return [
        *hardware(options, of(options).accelerator().cpu_of_own_disk), *_service(console, qmp),
        # The firmware and a boot loader write to the serial port then.
        "-machine", "graphics=off",
        "-drive", f"if=none,id=root,cache=unsafe,snapshot=on,format={disk.format},file={drive}",
        "-device", "virtio-blk-pci,drive=root,bootindex=0",
        "-drive", f"if=none,id=seed,format=raw,readonly=on,file.driver=vvfat,file.dir={seed},"
                  "file.label=CIDATA",
        "-device", "virtio-blk-pci,drive=seed",
        "-fw_cfg", f"name=opt/io.systemd.credentials/ssh.authorized_keys.root,file={key}",
        *MANAGEMENT_CARD,
    ]


def _service(console, qmp):
    """Returns the arguments for a serial port and QEMU's monitor, without default devices."""
    return ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            # A host that is restarted appends to its log.
            "-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console",
            "-qmp", f"unix:{qmp},server=on,wait=off"]
