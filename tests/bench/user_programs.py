# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that use RDMA by libraries, and TCP as well: the same routes as the kernel's users.

How a program is installed and run is the business of its scenario in tests/vm.
"""

import contextlib
import pathlib
import re

import applications
import valkey
from ternlab import pair
from ternlab.errors import LabError
from users import KIB, MIB, ROUTES, RXE, SECONDS, Metric, User

MPI_PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/mpi_rate.py"
# On rxe libfabric's ofi_rxm cannot enable its endpoints, and UCX, which Open MPI uses, ends with a
# time-out of its UD.
NOT_RXE = tuple(route for route in ROUTES if route != RXE)
WARM_UP = 5  # seconds, in which valkey-benchmark's connections come up
FEWEST = 100  # messages in the first run of a metric
ROUND_TRIPS = Metric("8 B round trips/s", "tag_lat", 8, 1, 1)
STREAM = Metric("64 KiB sends, MiB/s", "tag_bw", 64 * KIB, 16, MIB / (64 * KIB))


def find(pattern, said):
    found = re.search(pattern, said)
    # valkey-benchmark counts nothing where its connections come late.
    if not found or not float(found[1]):
        raise LabError(f"no result in:\n{said}")
    return float(found[1])


class Program(User):
    has_cost = False  # most of them poll in a busy loop

    def attached(self, route):
        return contextlib.nullcontext()

    def warm_up(self, route, attached):
        """Done by each run itself."""


class Counting(Program):
    """Takes a number of messages rather than a time. A first run tells how many."""

    def __init__(self, hosts):
        super().__init__(hosts)
        self.rates = {}

    def warm_up(self, route, attached):
        User.warm_up(self, route, attached)

    def measure(self, route, attached, metric, seconds=SECONDS):
        count = max(FEWEST, int(seconds * self.rates.get((route, metric), 0)))
        rate = self.rates[route, metric] = self.rate(route, metric, count)
        return rate

    def rate(self, route, metric, count):
        """The operations per second of so many."""
        raise NotImplementedError


class Valkey(Program):
    name = "Valkey"
    metrics = (
        Metric("1 KB SETs/s", "set", 1000, 20, 1),
        Metric("64 KiB SETs, MiB/s", "set", 64 * KIB, 8, MIB / (64 * KIB)),
    )

    def prepare(self):
        valkey.install(valkey.build(), self.server, self.client)

    @contextlib.contextmanager
    def attached(self, route):
        address = route.address(self.server)
        # The client's kernel knows the server's Ethernet address then: see valkey.install().
        self.client.run(f"ping -qc 1 {address}")
        with valkey.served(self.server, address, route.transport):
            yield

    def measure(self, route, attached, metric, seconds=SECONDS):
        said = self.client.run(valkey.command(
            valkey.BENCHMARK, route.address(self.server),
            f"-c {metric.depth} --warmup {WARM_UP} --duration {seconds} -d {metric.block} "
            f"-t {metric.work} --csv",
            route.transport), timeout=60).out
        return find(rf'"{metric.work.upper()}","([\d.]+)"', said)


class Libfabric(Counting):
    name = "libfabric"
    routes = NOT_RXE
    metrics = (
        ROUND_TRIPS,
        Metric("64 KiB ping-pong, MiB/s", "", 64 * KIB, 1, MIB / (64 * KIB) / 2),
    )

    def rate(self, route, metric, count):
        """Round trips."""
        provider = {"rdma": "verbs", "tcp": "tcp"}[route.transport]
        serve, ask = (
            f"{applications.FABRIC_EVENTS} fi_pingpong -p '{provider};ofi_rxm' -e rdm "
            f"-d {route.device(host)} -S {metric.block} -I {count}"
            for host in (self.server, self.client))
        said = pair.run_pair(self.server, serve, self.client,
                             f"{ask} {route.address(self.server)}",
                             port=applications.FABRIC_PORT, timeout=60)
        # The last column but one is the time of one direction in microseconds.
        return 1e6 / find(r"\d\s+([\d.]+)\s+[\d.]+\s*$", said) / 2


class Ucx(Counting):
    name = "UCX"
    routes = NOT_RXE
    metrics = (ROUND_TRIPS, STREAM)

    def rate(self, route, metric, count):
        serve, ask = (f"{applications.ucx(*settings(route, host))} ucx_perftest -n {count} -w 10"
                      for host in (self.server, self.client))
        said = pair.run_pair(
            self.server, serve, self.client,
            f"{ask} -t {metric.work} -s {metric.block} {route.address(self.server)}",
            port=applications.UCX_PORT, timeout=60)
        return find(r"Final:.*\s(\d+)\s*$", said) / (2 if metric is ROUND_TRIPS else 1)


class OpenMpi(Program):
    name = "Open MPI"
    routes = NOT_RXE
    metrics = (ROUND_TRIPS, STREAM)

    def prepare(self):
        applications.prepare_mpi((self.client, self.server), MPI_PROGRAM)

    def measure(self, route, attached, metric, seconds=SECONDS):
        """Open MPI's own TCP, as who has no RDMA uses it, and not UCX's."""
        options = (applications.mpi_over_ucx(*settings(route, self.client))
                   if route.transport == "rdma" else "--mca pml ob1 --mca btl tcp,self "
                   f"--mca btl_tcp_if_include {route.device(self.client)}")
        said = applications.mpirun(
            (self.client, self.server), 1, options,
            f"{MPI_PROGRAM.name} {metric.block} {metric.depth} {seconds}")
        return find(r"([\d.]+) messages/s", said)


def settings(route, host):
    """Of UCX: the device and the transports."""
    if route.transport == "rdma":
        return f"{route.device(host)}:1", applications.TRANSPORTS[0]
    return route.device(host), "tcp"


PROGRAMS = (Valkey, Libfabric, Ucx, OpenMpi)
