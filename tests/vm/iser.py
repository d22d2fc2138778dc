# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: a disk over iSCSI, whose target reads and writes the initiator's memory."""

import contextlib

import lio
from scenario import LabError, main, wait_until
import upper_layer

IQN, PORT = "iqn.2024-01.tern:disk", 3260
NAME = f"{lio.TARGET}/iscsi/{IQN}"
GROUP = f"{NAME}/tpgt_1"
# What iscsiadm calls an interface, and the session over it.
INTERFACES = {"rdma": ("iser", "iser:"), "tcp": ("default", "tcp:")}


def prepare(client):
    """Its daemon, once for a host."""
    lio.stop_watching(client)
    client.run("mkdir -p /run/lock/iscsi; modprobe -a ib_iser iscsi_tcp; iscsid")


@contextlib.contextmanager
def exported(server, transport="rdma"):
    lio.create(server, "iscsi_target_mod ib_isert")
    portal = f"{GROUP}/np/0.0.0.0:{PORT}"  # one with an address dies with its card
    try:
        server.run(f"""
            set -e
            mkdir -p {GROUP}/lun/lun_0 {portal}
            ln -s {lio.BACKSTORE} {GROUP}/lun/lun_0/disk
            echo {int(transport == "rdma")} >{portal}/iser
            cd {GROUP}/attrib
            echo 0 >authentication
            echo 1 >generate_node_acls
            echo 1 >cache_dynamic_acls
            echo 0 >demo_mode_write_protect
            echo 1 >{GROUP}/enable
        """)
        yield
    finally:
        wait_for_sessions(server)
        server.run(f"""
            echo 0 >{GROUP}/enable
            rm {GROUP}/lun/lun_0/disk
            rmdir {GROUP}/np/* {GROUP}/lun/lun_0 {GROUP} {NAME} {lio.TARGET}/iscsi
        """)
        lio.remove(server)
        upper_layer.unload(server, "ib_isert iscsi_target_mod target_core_file")


def wait_for_sessions(server):
    """Waits until the target has freed the last session, which takes it longer than the logout.

    Linux frees a portal group's dynamic node ACLs with the group, also those that a session still
    refers to: core_tpg_deregister() does not wait for transport_deregister_session_configfs().
    """
    count = f"cat {NAME}/fabric_statistics/iscsi_instance/sessions"
    if not wait_until(lambda: server.run(count).out.strip() == "0", 60, 0.2):
        raise LabError(f"{server.name}: {server.run(count).out.strip()} sessions are left")


@contextlib.contextmanager
def logged_in(client, address, transport="rdma"):
    node = f"iscsiadm -m node -T {IQN} -p {address}:{PORT}"
    interface, kind = INTERFACES[transport]
    client.run(f"{node},1 -I {interface} -o new && {node} --login", timeout=90)
    try:
        session = client.run("iscsiadm -m session").out
        if not session.startswith(kind):
            raise LabError(f"{client.name} has logged in to {session}")
        yield
    finally:
        client.run(f"{node} --logout && {node} -o delete", timeout=90)


class Iser(upper_layer.Storage):
    # A request that comes between the loss of the connection and the session's notice of it:
    # iscsi_iser_task_init() refuses it, and libiscsi aborts it.
    RETRIED = "Input/output error"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        prepare(cls.client)

    @contextlib.contextmanager
    def attached(self, variant):
        with exported(self.server), logged_in(self.client, self.server.ipv4):
            yield lio.find_disk(self.client), lio.HELD


if __name__ == "__main__":
    main()
