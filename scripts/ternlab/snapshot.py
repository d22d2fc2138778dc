# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that have booted, saved for hosts to start from: a boot takes many times as long.

A snapshot is a folder of the cache, one for each image, QEMU and kind of machine:

  state       the machine, as QEMU migrates one
  disk.qcow2  what the boot has written, over the image's root file system
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time

from . import channel, machine, migration, parts, qmp
from .errors import LabError
from .paths import cache
from .process import Process
from .progress import say, step, wait_until

BOOT_TIMEOUT = 180
SAVE_TIMEOUT = 60
ATTEMPTS = 3
# QEMU stops a guest while it saves it. This option has a restored guest run at once.
SAVED_RUNNING = ["-global", "migration.store-global-state=off"]
_INITRD = re.compile(r"^initrd: (.*?)\r?$", re.MULTILINE)  # why guest/initrd-init gives up
# What programs and the kernel read first is in the page cache of each host from then on.
WARM_UP = """
    cd /usr/bin
    cat ib_* ibv_* rping ucmatose udaddy mckey rstream rdma ip ping socat python3 rdma ip \
        /usr/lib/*-linux-gnu/lib{c,m,ibverbs,rdmacm,ibumad,nl-3,nl-route-3,pci}.so.* \
        /usr/lib/modules/*/kernel/drivers/infiniband/{core,sw}/*.ko >/dev/null 2>&1
    python3 -c 'import json, random, pyverbs.qp, pyverbs.mr'
    ibv_devinfo; rdma link; bash -c true
    sync
    true"""
# What hosts do first: start processes, from memory and from the disk, on each CPU.
TRIAL = """
    for n in 1 2 3 4 5 6; do ip -o link & done; wait
    find /usr/lib/modules -name '*.ko' | head -n 50 | xargs cat >/dev/null"""


class Snapshot:
    def __init__(self, folder):
        self.state, self.disk = folder / "state", folder / "disk.qcow2"

    @classmethod
    def get(cls, image, options):
        """The one for such hosts, made if need be."""
        folder = cache() / f"ready-{_key(image, options)}"
        if not folder.is_dir():
            cache().mkdir(parents=True, exist_ok=True)
            with open(cache() / "ready.lock", "w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not folder.is_dir():
                    with step(f"booting a guest of {options.mem} once, for others to start from"):
                        _make(image, options, folder)
        os.utime(folder)  # its last use: scripts/cache.sh deletes what is not used any more
        return cls(folder)

    def arguments(self):
        """QEMU's, beside those of the same machine."""
        return ["-incoming", f"exec:cat {shlex.quote(str(self.state))}"]

    def drive(self):
        return f"file={self.disk},snapshot=on"


def _key(image, options):
    version = subprocess.run([machine.of(options).qemu, "--version"], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    ingredients = [image.folder, version, WARM_UP, *SAVED_RUNNING, migration.VERSION,
                   machine.of(options).accelerator().processor,
                   *machine.command(image, options, "disk", parts.SIZE, "console", "qmp",
                                    "channel")]
    return hashlib.sha256("\n".join(map(str, ingredients)).encode()).hexdigest()[:16]


class BrokenSnapshot(LabError):
    """A snapshot from which a guest does not run, or whose clock has a wrong rate."""


def _make(image, options, folder):
    for left in reversed(range(ATTEMPTS)):
        half = pathlib.Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        try:
            _boot_and_save(image, options, half)
            _try(image, options, half)
            half.rename(folder)
            say(f"saved as {folder}")
            return
        except BrokenSnapshot as error:
            if not left:
                raise
            say(f"{error}\nmaking it once more")
        finally:
            shutil.rmtree(half, ignore_errors=True)


def _boot_and_save(image, options, half):
    disk = f"format=raw,file.locking=off,file={image.root}"
    with _guest(image, options, half, disk, ["-S", *SAVED_RUNNING]) as (guest, monitor):
        # All that it writes goes to a file of its own: others read the image meanwhile.
        monitor.execute("blockdev-snapshot-sync", device="root", format="qcow2",
                        **{"snapshot-file": str(half / "disk.qcow2")})
        monitor.execute("cont")
        guest.run(WARM_UP, timeout=BOOT_TIMEOUT)
        least, greatest = _clock_rates(guest)
        guest.close()
        _save(monitor, half / "state")
    if least > 1.25 or greatest < 0.8:  # all waiting in guests depends on the clock
        raise BrokenSnapshot(f"the rate of its clock is {least:.2f} to {greatest:.2f}")
    if machine.of(options).starts_with_empty_ram:
        migration.drop_zero_pages(half / "state")


def _try(image, options, half):
    """A snapshot with a fault would be one of every host."""
    snapshot = Snapshot(half)
    try:
        with _guest(image, options, half, snapshot.drive(), snapshot.arguments()) as (guest, _):
            guest.run(TRIAL, timeout=BOOT_TIMEOUT)
            guest.close()
    except LabError as error:
        raise BrokenSnapshot(f"the saved guest does not go on: {error}") from None


@contextlib.contextmanager
def _guest(image, options, half, disk, arguments):
    """Yields the channel and the monitor of a guest, which is stopped at the end. Raises a
    LabError with what it has said if it fails or its kernel has died."""
    # A socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="tern-") as sockets:
        sockets, console, log = pathlib.Path(sockets), half / "console", half / "log"
        monitor_path, channel_path = sockets / "qmp", sockets / "channel"
        empty = sockets / "empty"
        empty.touch()
        os.truncate(empty, parts.SIZE)

        def text(file):
            # QEMU creates the file after it has checked its options, so it may be missing.
            return file.read_text(errors="replace") if file.exists() else ""

        def said():
            return "".join(text(file)[-2000:] for file in (log, console))

        process = Process.start(
            "a guest", [machine.of(options).qemu, *arguments, *machine.command(
                image, options, disk, empty, console, monitor_path, channel_path)], log, True)
        try:
            guest = channel.connect("the guest", channel_path, process.alive, 30)
            with qmp.Qmp(monitor_path, SAVE_TIMEOUT) as monitor:
                yield guest, monitor
        except LabError as error:
            refused = _INITRD.search(text(console))
            raise LabError(refused[1] if refused else f"{error}\n{said()}") from None
        finally:
            process.stop()
    if machine.DEATH.search(text(console)):
        raise LabError(f"the guest's kernel has died\n{said()}")
    console.unlink(missing_ok=True)
    log.unlink(missing_ok=True)


def _clock_rates(guest):
    """The least and the greatest rate of the guest's clock to time that two readings allow. A
    reading takes long if this machine is busy, and may happen at any time meanwhile."""
    def read():
        before = time.monotonic()
        uptime = float(guest.run("cat /proc/uptime").out.split()[0])
        return before, uptime, time.monotonic()

    first_before, first, first_after = read()
    guest.run("sleep 1")
    second_before, second, second_after = read()
    passed = second - first
    return passed / (second_after - first_before), passed / (second_before - first_after)


def _save(monitor, state):
    # Stop the guest first: TCG does not notice all writes of a running guest while QEMU copies its
    # memory. The snapshot then has old content in some pages, and hosts that start from it crash.
    monitor.execute("stop")
    monitor.execute("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    monitor.execute("migrate", uri=f"exec:cat >{shlex.quote(str(state))}")

    def status():
        seen = monitor.execute("query-migrate").get("status")
        return seen if seen in ("completed", "failed", "cancelled") else None

    seen = wait_until(status, SAVE_TIMEOUT)
    if seen != "completed":
        raise LabError(f"its state could not be saved: {seen}")
    monitor.execute("quit")
