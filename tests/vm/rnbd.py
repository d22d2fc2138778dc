# SPDX-License-Identifier: GPL-2.0-or-later
"""RNBD: a block device over RTRS, whose client writes into buffers that the server lends it."""

import contextlib

from scenario import LabError, main, wait_until
import source_modules
import upper_layer
from upper_layer import MEBIBYTES

HELD = "/dev/shm/disk"
SESSION = "test"
DISK = "rnbd0"
PATHS = f"/sys/class/rtrs-client/{SESSION}/paths"
SERVER_MODULES = "rtrs-core", "rtrs-server", "rnbd-server"
CLIENT_MODULES = "rtrs-core", "rtrs-client", "rnbd-client"


def unload(host, modules):
    """The last module first, once nobody has the disk open. The module of the client ends its
    disks and sessions.

    A disk must not be unmapped just before. A work item of RNBD may then end the session, and the
    module does not wait for this work item: its code goes while the work item runs.
    """
    remove = f"rmmod {' '.join(reversed(modules))}"
    if not wait_until(lambda: host.run(f"{remove}; ! grep -q ^rtrs_core /proc/modules",
                                       check=False).code == 0, 60, 0.2):
        raise LabError(f"{host.name}: {host.run(f'{remove}; lsmod', check=False)}")


@contextlib.contextmanager
def exported(server):
    """Any block device of the server can be mapped; this gives one in memory."""
    server.run("modprobe -a rdma_cm loop")
    source_modules.insert(server, "rnbd", SERVER_MODULES)
    disk = server.run(f"truncate -s {MEBIBYTES}M {HELD} && losetup -f --show {HELD}").out.strip()
    try:
        yield disk
    finally:
        unload(server, SERVER_MODULES)
        server.run(f"losetup -d {disk}; rm {HELD}")


@contextlib.contextmanager
def mapped(client, address, disk):
    client.run("modprobe rdma_cm")
    source_modules.insert(client, "rnbd", CLIENT_MODULES)
    try:
        client.run(f"echo sessname={SESSION} path=ip:{address} device_path={disk} "
                   ">/sys/class/rnbd-client/ctl/map_device", timeout=60)
        client.run("udevadm settle")
        yield f"/dev/{DISK}"
    finally:
        unload(client, CLIENT_MODULES)


class Rnbd(upper_layer.Storage):
    @contextlib.contextmanager
    def attached(self, variant):
        with exported(self.server) as disk, \
                mapped(self.client, self.server.ipv4, disk) as path:
            yield path, HELD

    def test_cable_out(self):
        """A lost path comes back to the same disk, at the latest when somebody asks for it."""
        def reconnect(path):
            reconnected = wait_until(lambda: self.client.run(
                f"cd {PATHS}/* && {{ grep -qx connected state || echo 1 >reconnect; }} && "
                "grep -qx connected state", check=False).code == 0, 60, 0.5)
            self.assertTrue(reconnected, "the path does not come back")
            self.client.run(f"until dd if={path} of=/dev/null bs=4k count=1 iflag=direct; do "
                            "sleep 0.2; done")

        with self.cell("Rnbd: cable out", "result"), self.attached("") as (path, held):
            self.fail_reader(path, self.lose_wire)
            reconnect(path)
            self.write(path)
            self.compare(path, held, MEBIBYTES)

    def survive(self, what, misfortune):
        """The disk has gone with the card, and a new one can be mapped."""
        with self.cell(f"Rnbd: {what}", "result"):
            with self.attached("") as (path, _):
                self.fail_reader(path, misfortune)
            with self.attached("") as (path, held):
                self.write(path)
                self.compare(path, held, MEBIBYTES)

    def fail_reader(self, path, misfortune):
        """With one path only, who reads is told."""
        reader = self.client.spawn(
            f"while dd if={path} bs=1M iflag=direct of=/dev/null; do :; done; exit 1")
        self.assertTrue(wait_until(lambda: "copied" in reader.output(), 30), "nothing is read")
        misfortune()
        self.assertTrue(wait_until(reader.failed, 60), "the reader waits for ever")


if __name__ == "__main__":
    main()
