# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk of Linux's SCSI target, which iSER and SRP export, and how it looks to the initiator."""

from scenario import LabError, wait_until
from upper_layer import CONFIGFS, MEBIBYTES

TARGET = f"{CONFIGFS}/target"
ADAPTER = f"{TARGET}/core/fileio_0"
BACKSTORE = f"{ADAPTER}/disk"
HELD = "/dev/shm/disk"


def create(host, fabric):
    """The disk is a file in memory. The fabric's module brings its folder of configfs."""
    host.run(f"""
        set -e
        modprobe -a target_core_file {fabric}
        mountpoint -q {CONFIGFS} || mount -t configfs none {CONFIGFS}
        mkdir -p {BACKSTORE}
        echo fd_dev_name={HELD},fd_dev_size={MEBIBYTES << 20} >{BACKSTORE}/control
        echo 1 >{BACKSTORE}/enable
    """)


def remove(host):
    host.run(f"rmdir {BACKSTORE} {ADAPTER}; rm {HELD}")


def stop_watching(host):
    """Has udev look at a disk only when it comes, not whenever a writer closes it.

    The disk's parent is the card: until such a look has ended, and it waits for the disk, udev
    gives no name to a network interface that comes with the card.
    """
    host.run("mkdir -p /run/udev/rules.d")
    host.write_file("/run/udev/rules.d/99-disks.rules",
                    b'SUBSYSTEM=="block", OPTIONS:="nowatch"\n')
    host.reload_udev()


def find_disk(host, timeout=5):
    """The path of the one SCSI disk, once udev has looked at it. It need not answer for TIMEOUT
    seconds; then the kernel aborts its commands."""
    find = "cd /sys/class/scsi_disk/*/device/block && echo *"
    disk = wait_until(lambda: host.run(find, check=False).out.strip(), 30)
    if not disk:
        raise LabError(f"{host.name}: no disk came up\n{host.run('dmesg | tail -20').out}")
    host.run(f"udevadm settle; echo {timeout} >/sys/block/{disk}/device/timeout")
    return f"/dev/{disk}"
