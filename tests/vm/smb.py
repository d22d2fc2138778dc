# SPDX-License-Identifier: GPL-2.0-or-later
"""SMB Direct: the kernel's SMB server and client. Debian builds both without it.

This needs a newer kernel than 6.1: there the server dereferences a null pointer when a client opens
a directory (opinfo_put() in smb2_open() of Linux 6.1.192).
"""

import contextlib
import pathlib
import subprocess

from scenario import LabError, main
from ternlab.paths import SCRIPTS
import source_modules
import upper_layer

EXPORT, MOUNTED = "/srv", "/mnt"
SHARE, USER, PASSWORD = "test", "root", "secret"
TOOLS = "/tmp/ksmbd"
# The server moves data by RDMA READ and WRITE. With signatures the messages carry all data.
VARIANTS = {"": "", "signed": ",sign"}
CONFIGURATION = f"[{SHARE}]\n\tpath = {EXPORT}\n\tread only = no\n"
SERVER_NEEDS = "rdma_cm cifs_arc4 nls_ucs2_utils"
CLIENT_NEEDS = f"{SERVER_NEEDS} cifs_md4 dns_resolver netfs"


def tool(name, *arguments):
    """The tools are one program, of another Debian, that goes by its name."""
    return (f"{TOOLS}/ld-linux-x86-64.so.2 --library-path {TOOLS} --argv0 ksmbd.{name} "
            f"{TOOLS}/ksmbd.tools {' '.join(arguments)}")


def prepare(server):
    """What it exports, and the tools, once for a host."""
    made = subprocess.run([SCRIPTS / "ksmbd-tools"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        raise LabError("there are no ksmbd-tools; see above")
    server.run(f"mount -t tmpfs -o size={2 * upper_layer.MEBIBYTES}M tmpfs {EXPORT}; "
               f"mkdir {TOOLS}")
    for file in pathlib.Path(made.stdout.strip()).iterdir():
        server.write_file(f"{TOOLS}/{file.name}", file.read_bytes())
    server.write_file(f"{TOOLS}/ksmbd.conf", CONFIGURATION.encode())
    server.run(f"chmod +x {TOOLS}/*; " +
               tool("adduser", f"-C {TOOLS}/ksmbd.conf -P {TOOLS}/users -a -p {PASSWORD} {USER}"))


@contextlib.contextmanager
def exported(server):
    """By RDMA, and by TCP."""
    server.run(f"modprobe -a {SERVER_NEEDS}")
    source_modules.insert(server, "smb", ("ksmbd",))
    try:
        server.run(tool("mountd", f"-C {TOOLS}/ksmbd.conf -P {TOOLS}/users"))
        server.run("until grep -q running /sys/class/ksmbd-control/stats; do sleep 0.1; done")
        yield
    finally:
        server.run(tool("control", "-s"))
        server.run("until rmmod ksmbd; do sleep 0.2; done", timeout=60)


@contextlib.contextmanager
def mounted(client, address, transport="rdma", options=""):
    client.run(f"modprobe -a {CLIENT_NEEDS}")
    source_modules.insert(client, "smb", ("cifs",))
    try:
        # mount(8) takes an option user= for its own, and its helper for cifs is not there.
        client.run(f"mount -i -t cifs -o ip={address},vers=3.1.1,username={USER},"
                   f"password={PASSWORD}{',rdma' * (transport == 'rdma')}{options} "
                   f"//{address}/{SHARE} {MOUNTED}", timeout=60)
        said = client.run(f"grep {MOUNTED} /proc/mounts").out
        if (",rdma," in said) != (transport == "rdma"):
            raise LabError(f"{client.name} has mounted {said}")
        yield
    finally:
        client.run(f"! mountpoint -q {MOUNTED} || umount {MOUNTED}", timeout=120)
        client.run("until rmmod cifs; do sleep 0.2; done", timeout=60)


class Smb(upper_layer.Storage):
    VARIANTS = tuple(VARIANTS)

    # After a failed send the client of Linux 6.12 waits for ever: send_done() does not decrement
    # the number of pending sends, and smbd_send() ignores signals until that number is 0.
    test_cable_out = test_client_without_card = test_server_without_driver = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        prepare(cls.server)

    @contextlib.contextmanager
    def attached(self, variant):
        with exported(self.server), \
                mounted(self.client, self.server.ipv4, options=VARIANTS[variant]):
            yield f"{MOUNTED}/file", f"{EXPORT}/file"


if __name__ == "__main__":
    main()
