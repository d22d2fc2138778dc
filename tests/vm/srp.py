# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP: a SCSI disk over RDMA CM, with and without a shared receive queue at its target."""

import contextlib

import lio
from scenario import main, wait_until
import upper_layer
from upper_layer import MEBIBYTES

PORT = 5555
FABRIC = f"{lio.TARGET}/srpt"
REMOTE = "/sys/class/srp_remote_ports"
# ib_srp connects again this long after it has lost a connection. The disk must not time out before:
# an abort would keep ib_srp from that until about when the old connection leaves its time wait
# state. ib_srp takes this event for an address of the new connection, has no device for a QP, and
# gives the disk up. If only the target's end has failed, it is the disk's timeout that notices.
RECONNECT_DELAY, DISK_TIMEOUT = 2, 20


@contextlib.contextmanager
def exported(server, device, address, use_srq):
    """The target has its port's GUID for a name, and lets in who came to its address."""
    gid = f"/sys/class/infiniband/{device}/ports/1/gids/0"
    guid = server.run(f"cut -d: -f5- {gid}").out.strip()
    group = f"{FABRIC}/{guid}/{guid}"
    acl = f"{group}/acls/{address}"
    lio.create(server, "ib_srpt")
    try:
        server.run(f"""
            set -e
            mkdir -p {group}/lun/lun_0
            ln -s {lio.BACKSTORE} {group}/lun/lun_0/disk
            mkdir -p {acl}/lun_0
            ln -s {group}/lun/lun_0 {acl}/lun_0/disk
            echo {int(use_srq)} >{group}/attrib/use_srq
            echo {PORT} >{FABRIC}/discovery_auth/rdma_cm_port
            echo 1 >{group}/enable
        """)
        yield
    finally:
        server.run(f"""
            echo 0 >{group}/enable
            echo 0 >{FABRIC}/discovery_auth/rdma_cm_port
            rm {acl}/lun_0/disk {group}/lun/lun_0/disk
            rmdir {acl}/lun_0 {acl} {group}/lun/lun_0 {group} {FABRIC}/{guid} {FABRIC}
        """)
        lio.remove(server)
        upper_layer.unload(server, "ib_srpt target_core_file")


@contextlib.contextmanager
def logged_in(server, client, device, address):
    said = server.run("cat /sys/module/ib_srpt/parameters/srpt_service_guid").out
    service = said.strip().removeprefix("0x").zfill(16)
    client.run("modprobe ib_srp")
    try:
        client.run(f"echo id_ext={service},ioc_guid={service},dest={address}:{PORT} "
                   f">/sys/class/infiniband_srp/srp-{device}-1/add_target", timeout=60)
        client.run(f"for one in {REMOTE}/port-*; do "
                   f"echo {RECONNECT_DELAY} >$one/reconnect_delay || exit; done")
        yield
    finally:
        client.run(f"for one in {REMOTE}/port-*; do "
                   "[ ! -e $one ] || echo 1 >$one/delete; done", timeout=60)
        upper_layer.unload(client, "ib_srp")


class Srp(upper_layer.Storage):
    VARIANTS = ("own receive queues", "SRQ")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lio.stop_watching(cls.client)

    @contextlib.contextmanager
    def attached(self, variant):
        target, initiator = (self.devices[host.name] for host in self.hosts)
        with exported(self.server, target, self.server.ipv4, variant == "SRQ"), \
                logged_in(self.server, self.client, initiator, self.server.ipv4):
            srqs = self.server.run("rdma resource show srq").out
            self.assertEqual("[ib_srpt]" in srqs, variant == "SRQ", srqs)
            yield lio.find_disk(self.client, DISK_TIMEOUT), lio.HELD

    def test_client_without_card(self):
        self.start_again("the client's card goes", self.lose_card)

    def test_server_without_driver(self):
        self.start_again("the server's driver goes", self.lose_driver)

    def start_again(self, what, misfortune):
        """Neither end comes back by itself: readers are told, and a new start helps."""
        variant = self.VARIANTS[-1]
        with self.cell(f"Srp {variant}: {what}", "result"):
            with self.attached(variant) as (path, _):
                reader = self.client.spawn(
                    f"while dd if={path} bs=1M iflag=direct of=/dev/null; do :; done; exit 1")
                begun = wait_until(lambda: "copied" in reader.output(), 30)
                self.assertTrue(begun, "nothing is read")
                misfortune()
                self.assertTrue(wait_until(reader.failed, 60), "the reader waits for ever")
            with self.attached(variant) as (path, held):
                self.write(path)
                self.compare(path, held, MEBIBYTES)


if __name__ == "__main__":
    main()
