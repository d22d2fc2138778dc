# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: the kernel's server and client, in both versions of the protocol."""

import contextlib

from scenario import main
import upper_layer

PORT = 20049
EXPORT, MOUNTED = "/srv", "/mnt"
VERSIONS = {
    "v3": "vers=3,nolock",  # locks would take daemons that RDMA has no part in
    "v4.2": "vers=4.2",
}
# Tenths of a second. A server forgets a broken connection without a word; a client that waits for
# its answer looks into that when this has passed.
TIMEOUT = 50


class Nfs(upper_layer.Storage):
    VARIANTS = tuple(VERSIONS)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.run(f"""
            set -e
            mount -t tmpfs -o size={2 * upper_layer.MEBIBYTES}M tmpfs {EXPORT}
            mkdir -p /run/rpcbind
            rpcbind
            mount -t nfsd nfsd /proc/fs/nfsd
            rpc.mountd
        """)

    @contextlib.contextmanager
    def attached(self, variant):
        with self.exported(), self.mounted(VERSIONS[variant]):
            yield f"{MOUNTED}/file", f"{EXPORT}/file"

    @contextlib.contextmanager
    def exported(self):
        try:
            self.server.run(f"""
                set -e
                exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=1 '*:{EXPORT}'
                rpc.nfsd 4
                echo rdma {PORT} >/proc/fs/nfsd/portlist
                echo Y >/proc/fs/nfsd/v4_end_grace
            """)
            yield
        finally:
            self.server.run("rpc.nfsd 0; exportfs -ua")
            self.unload(self.server, "rpcrdma")

    @contextlib.contextmanager
    def mounted(self, version):
        try:
            self.client.run(f"mount -t nfs -o {version},rdma,port={PORT},timeo={TIMEOUT} "
                            f"{self.server.ipv4}:{EXPORT} {MOUNTED}")
            self.assertIn("proto=rdma", self.client.run(f"grep {MOUNTED} /proc/mounts").out)
            yield
        finally:
            self.client.run(f"umount {MOUNTED}", timeout=120)
            self.unload(self.client, "rpcrdma")


if __name__ == "__main__":
    main()
