# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: a disk over iSCSI, whose target reads and writes the initiator's memory."""

import contextlib

import lio
from scenario import main
import upper_layer

IQN, PORT = "iqn.2024-01.tern:disk", 3260
NAME = f"{lio.TARGET}/iscsi/{IQN}"
GROUP = f"{NAME}/tpgt_1"


class Iser(upper_layer.Storage):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lio.stop_watching(cls.client)
        cls.client.run("mkdir -p /run/lock/iscsi; modprobe ib_iser; iscsid")

    @contextlib.contextmanager
    def attached(self, variant):
        with self.exported(), self.logged_in():
            yield lio.find_disk(self.client), lio.HELD

    @contextlib.contextmanager
    def exported(self):
        lio.create(self.server, "iscsi_target_mod ib_isert")
        portal = f"{GROUP}/np/0.0.0.0:{PORT}"  # one with an address dies with its card
        try:
            self.server.run(f"""
                set -e
                mkdir -p {GROUP}/lun/lun_0 {portal}
                ln -s {lio.BACKSTORE} {GROUP}/lun/lun_0/disk
                echo 1 >{portal}/iser
                cd {GROUP}/attrib
                echo 0 >authentication
                echo 1 >generate_node_acls
                echo 1 >cache_dynamic_acls
                echo 0 >demo_mode_write_protect
                echo 1 >{GROUP}/enable
            """)
            yield
        finally:
            self.server.run(f"""
                echo 0 >{GROUP}/enable
                rm {GROUP}/lun/lun_0/disk
                rmdir {GROUP}/np/* {GROUP}/lun/lun_0 {GROUP} {NAME} {lio.TARGET}/iscsi
            """)
            lio.remove(self.server)
            self.unload(self.server, "ib_isert iscsi_target_mod target_core_file")

    @contextlib.contextmanager
    def logged_in(self):
        node = f"iscsiadm -m node -T {IQN} -p {self.server.ipv4}:{PORT}"
        self.client.run(f"{node},1 -I iser -o new && {node} --login", timeout=90)
        try:
            self.assertIn("iser:", self.client.run("iscsiadm -m session").out)
            yield
        finally:
            self.client.run(f"{node} --logout && {node} -o delete", timeout=90)


if __name__ == "__main__":
    main()
