# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: the kernel's server and client, in both versions of the protocol."""

import contextlib

from programs import EVERY_CELL
from scenario import LabError, main
import upper_layer

PORTS = {"rdma": 20049, "tcp": 2049}
EXPORT, MOUNTED = "/srv", "/mnt"
ADMIT = f"exportfs -o rw,insecure,no_root_squash,no_subtree_check,fsid=1 '*:{EXPORT}'"
EXPEL = f"exportfs -u '*:{EXPORT}'"
VERSIONS = {
    "v3": "vers=3,nolock",  # locks would take daemons that RDMA has no part in
    "v4.2": "vers=4.2",
}
# Tenths of a second. A server forgets a broken connection without a word; a client that waits for
# its answer looks into that when this has passed.
TIMEOUT = 50


def prepare(server):
    """What it exports, and its daemons, once for a host."""
    server.run(f"""
        set -e
        mount -t tmpfs -o size={2 * upper_layer.MEBIBYTES}M tmpfs {EXPORT}
        mkdir -p /run/rpcbind
        rpcbind
        mount -t nfsd nfsd /proc/fs/nfsd
        rpc.mountd
    """)


@contextlib.contextmanager
def exported(server):
    """By RDMA, and by TCP."""
    try:
        server.run(f"""
            set -e
            {ADMIT}
            rpc.nfsd 4
            echo rdma {PORTS["rdma"]} >/proc/fs/nfsd/portlist
            echo Y >/proc/fs/nfsd/v4_end_grace
        """)
        yield
    finally:
        server.run("rpc.nfsd 0; exportfs -ua")
        upper_layer.unload(server, "rpcrdma")


@contextlib.contextmanager
def mounted(client, address, version, transport="rdma"):
    try:
        client.run(f"mount -t nfs -o {version},proto={transport},port={PORTS[transport]},"
                   f"timeo={TIMEOUT} {address}:{EXPORT} {MOUNTED}")
        said = client.run(f"grep {MOUNTED} /proc/mounts").out
        if f"proto={transport}" not in said:
            raise LabError(f"{client.name} has mounted {said}")
        yield
    finally:
        client.run(f"umount {MOUNTED}", timeout=120)
        upper_layer.unload(client, "rpcrdma")


class Nfs(upper_layer.Storage):
    VARIANTS = tuple(VERSIONS)
    OUTAGE = 10
    # When the device goes while xprtrdma connects anew, rdma_resolve_route() and rdma_connect()
    # fail with EINVAL, which sunrpc (call_connect_status()) hands to the application.
    RETRIED = "Invalid argument"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        prepare(cls.server)

    @contextlib.contextmanager
    def attached(self, variant):
        with exported(self.server), \
                mounted(self.client, self.server.ipv4, VERSIONS[variant]):
            yield f"{MOUNTED}/file", f"{EXPORT}/file"

    def test_export_goes(self):
        """An export that is taken away: its user gets an error, and none when it is back."""
        def act(path, held):
            with upper_layer.Load(self.client, path) as load:
                load.advance()
                self.server.run(EXPEL)
                load.await_error("Stale file handle|Permission denied")
            self.server.run(ADMIT)
            self.use_again(path, held)

        self.use("the export goes", self.VARIANTS if EVERY_CELL else self.VARIANTS[-1:], act)


if __name__ == "__main__":
    main()
