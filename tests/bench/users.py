# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's users of RDMA, and the routes by which the second host uses what the first serves.

How a user attaches is the business of its scenario in tests/vm.
"""

import contextlib
import dataclasses

import iser
import lio
import nfs
import nvmeof
import rnbd
import smb
import smc
import srp
from stacks import Rxe, Tcp, Tern, peer_address
from ternlab import pair, stack
from ternlab.errors import LabError
from ternlab.host import NETDEV
from ternlab.progress import wait_until
from upper_layer import unload

SECONDS = 2
KIB, MIB = 1 << 10, 1 << 20
MESSAGES = "/opt/tern/bin/tern_messages"
MESSAGES_PORT = 9997


@dataclasses.dataclass(frozen=True)
class Route:
    name: str
    stack: type     # which sets up its interfaces
    transport: str  # "rdma" or "tcp"

    def address(self, host):
        return host.ipv4 if self.stack is Tern else peer_address(host)

    def device(self, host):
        """The RDMA device, or the network interface."""
        if self.transport == "tcp":
            return NETDEV if self.stack is Tern else self.stack.interface(host)
        return host.rdma_device() if self.stack is Tern else "rxe0"


TERN = Route("Tern", Tern, "rdma")
TCP_TERN = Route("TCP/Tern", Tern, "tcp")
TCP_VIRTIO = Route("TCP/virtio", Tcp, "tcp")
RXE = Route("rxe", Rxe, "rdma")
ROUTES = (TERN, TCP_TERN, TCP_VIRTIO, RXE)


@dataclasses.dataclass(frozen=True)
class Metric:
    title: str
    work: str   # as the program in the guest calls it
    block: int
    depth: int  # requests at once
    unit: float  # operations in one unit of the figure


class User:
    routes = ROUTES
    needs_kernel = (6, 1)
    metrics = ()
    has_cost = True  # measure() takes SECONDS, so that an operation's CPU time can be told

    def __init__(self, hosts):
        self.server, self.client = hosts

    def prepare(self):
        """What the hosts need once."""

    def attached(self, route):
        """A context in which measure() works."""
        raise NotImplementedError

    def warm_up(self, route, attached):
        """Under TCG what runs for the first time is translated."""
        for metric in self.metrics:
            self.measure(route, attached, metric)

    def measure(self, route, attached, metric, seconds=SECONDS):
        """The operations per second; @attached is what the context gave."""
        raise NotImplementedError


# --- disks and files

class Storage(User):
    metrics = (
        Metric("4 KiB random reads/s", "randread", 4 * KIB, 16, 1),
        Metric("128 KiB reads, MiB/s", "read", 128 * KIB, 4, MIB / (128 * KIB)),
        Metric("128 KiB writes, MiB/s", "write", 128 * KIB, 4, MIB / (128 * KIB)),
    )

    def measure(self, route, attached, metric, seconds=SECONDS):
        said = self.client.run(f"/opt/tern/bin/tern_io {attached} {metric.work} {metric.block} "
                               f"{metric.depth} {seconds}", timeout=60 + seconds)
        return float(said.out)

    def fill(self, path):
        """With the blocks that are read later."""
        self.client.run(f"dd if=/dev/zero of={path} bs=1M count=32 oflag=direct conv=notrunc "
                        "status=none", timeout=120)
        return path


class NvmeOf(Storage):
    name = "NVMe-oF"

    @contextlib.contextmanager
    def attached(self, route):
        address, transport = route.address(self.server), route.transport
        try:
            nvmeof.serve(self.server, address, "ipv4", transport)
            yield self.fill(nvmeof.connect(self.client, address, transport))
        finally:
            nvmeof.disconnect(self.client, transport)
            nvmeof.stop(self.server, transport)


class Nfs(Storage):
    name = "NFS v4.2"

    def prepare(self):
        nfs.prepare(self.server)

    @contextlib.contextmanager
    def attached(self, route):
        with nfs.exported(self.server), \
                nfs.mounted(self.client, route.address(self.server), nfs.VERSIONS["v4.2"],
                            route.transport):
            yield self.fill(f"{nfs.MOUNTED}/file")


class Iser(Storage):
    name = "iSER, iSCSI"

    def prepare(self):
        iser.prepare(self.client)

    @contextlib.contextmanager
    def attached(self, route):
        with iser.exported(self.server, route.transport), \
                iser.logged_in(self.client, route.address(self.server), route.transport):
            yield self.fill(lio.find_disk(self.client))


class Srp(Storage):
    name = "SRP"
    routes = (TERN, RXE)  # there is no SRP over TCP

    @contextlib.contextmanager
    def attached(self, route):
        address = route.address(self.server)
        with srp.exported(self.server, route.device(self.server), address, use_srq=False), \
                srp.logged_in(self.server, self.client, route.device(self.client), address):
            yield self.fill(lio.find_disk(self.client))


class Rnbd(Storage):
    name = "RNBD"
    routes = (TERN, RXE)  # its transport is RDMA alone

    @contextlib.contextmanager
    def attached(self, route):
        with rnbd.exported(self.server) as disk, \
                rnbd.mapped(self.client, route.address(self.server), disk) as path:
            yield self.fill(path)


class Smb(Storage):
    name = "SMB"
    needs_kernel = (6, 12)  # tests/vm/smb.py

    def prepare(self):
        smb.prepare(self.server)

    @contextlib.contextmanager
    def attached(self, route):
        with smb.exported(self.server), \
                smb.mounted(self.client, route.address(self.server), route.transport):
            yield self.fill(f"{smb.MOUNTED}/file")


# --- sockets

class Sockets(User):
    """The server echoes or takes messages."""

    metrics = (
        Metric("4 KiB requests/s", "echo", 4 * KIB, 16, 1),
        Metric("128 KiB sends, MiB/s", "send", 128 * KIB, 1, MIB / (128 * KIB)),
    )

    def measure(self, route, attached, metric, seconds=SECONDS):
        address, peer = route.address(self.client), route.address(self.server)
        command = f"{MESSAGES} {attached} {metric.block}"
        return float(pair.run_pair(
            self.server, f"{command} serve {peer}", self.client,
            f"{command} {metric.work} {address} {peer} {metric.depth} {seconds}",
            port=MESSAGES_PORT, timeout=60 + seconds, ready=await_ready))


def await_ready(host, _, task):
    if not wait_until(lambda: "ready" in task.output() or task.failed(), 30):
        raise LabError(f"{host.name} does not serve\n{task.give_up()}")


class Smc(Sockets):
    name = "SMC-R, TCP"
    routes = (TERN, TCP_TERN, TCP_VIRTIO)  # it begins with RoCEv1, which rxe does not speak
    # TCP's buffers grow to megabytes by themselves, while SMC's stay at 64 KiB or what sysctl says.
    buffer = 2048 * KIB

    @contextlib.contextmanager
    def attached(self, route):
        if route.transport == "tcp":
            yield "tcp"
            return
        try:
            for host in (self.client, self.server):
                host.run("modprobe smc; "
                         f"sysctl -qw net.smc.wmem={self.buffer} net.smc.rmem={self.buffer}")
            yield "smc"
        finally:
            for host in (self.client, self.server):
                unload(host, "smc_diag smc")

    def measure(self, route, attached, metric, seconds=SECONDS):
        """A busy host may miss SMC's first message and use TCP: the next connection tries again."""
        for chances in reversed(range(smc.CHANCES)):
            try:
                return super().measure(route, attached, metric, seconds)
            except LabError as error:
                if "fallen back" not in str(error) or not chances:
                    raise
        raise AssertionError("there is always a last chance")


class Rds(Sockets):
    name = "RDS"

    @contextlib.contextmanager
    def attached(self, route):
        module = {"rdma": "rds_rdma", "tcp": "rds_tcp"}[route.transport]
        for host in (self.client, self.server):
            host.run(f"modprobe {module}")
        try:
            yield "rds"
        finally:
            for host in (self.client, self.server):
                unload(host, module)


def users():
    """Those that the stack's kernel has."""
    kernel = tuple(int(number) for number in stack.ask("kernel").split("."))
    return [kind for kind in (NvmeOf, Nfs, Iser, Srp, Rnbd, Smb, Smc, Rds)
            if kernel >= kind.needs_kernel]
