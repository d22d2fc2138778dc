# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared: Tern, and what people use where they have no RDMA card."""

import json
import re

import source_modules
from ternlab import pair
from ternlab.errors import LabError
from ternlab.progress import say

MIB = 1 << 20
TCP_PORT = 5201


class Stack:
    """A way to move bytes from the second host to the first, which serves.

    Figures are None for what a stack does not know.
    """

    name = ""

    def __init__(self, hosts):
        self.server, self.client = hosts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def bandwidth(self, operation, size, iterations):
        """(MB/s, messages/s) of "write", "read" or "send"."""
        raise NotImplementedError

    def latency(self, operation, size, iterations):
        """(median, 99 %) of one way in us, for a read and an atomic there and back."""
        raise NotImplementedError

    def stream(self, seconds):
        """64 KiB writes for so long. Returns whether they did not fail."""
        raise NotImplementedError


class Perftest(Stack):
    options = ("", "")  # of the server, and of the client
    ready = staticmethod(pair.await_listener)
    address = None
    chances = 1
    hopeless = set()  # stack and program, whose chances are used up for the whole run

    def run(self, program, arguments, chances=None):
        """Its row; None if it has failed as often as it may, which is `chances` times if given."""
        if (self.name, program) in self.hopeless:
            return None
        serve, ask = (f"{program} {arguments} {options}" for options in self.options)
        for _ in range(chances or self.chances):
            try:
                return pair.perftest(self.server, self.client, serve, ask, address=self.address,
                                     timeout=30, ready=self.ready)[0]
            except LabError:
                if self.chances == 1:
                    raise
        if chances:
            return None
        say(f"{self.name} does not get through {program} {arguments}")
        self.hopeless.add((self.name, program))
        return None

    def bandwidth(self, operation, size, iterations):
        row = self.run(f"ib_{operation}_bw", f"-s {size} -n {iterations} --use_hugepages")
        return (row[3] * MIB / 1e6, row[4] * 1e6) if row else (None, None)

    def latency(self, operation, size, iterations):
        row = self.run(f"ib_{operation}_lat", f"-s {size} -n {iterations}")
        return (row[4], row[7]) if row else (None, None)

    def stream(self, seconds):
        # One try only: the caller measures the server meanwhile, and would measure the pause before
        # a second try, too.
        return bool(self.run("ib_write_bw", f"-s 65536 -D {seconds}", chances=1))


class Tern(Perftest):
    name = "Tern"

    def __enter__(self):
        devices = [(host.rdma_device(), host) for host in (self.server, self.client)]
        self.options = [f"-d {device} -x {host.gid_index(device)}" for device, host in devices]
        return self


def peer_address(host):
    return f"10.78.0.{host.index}"


class Virtio(Stack):
    """Over the hosts' virtio-net cards, which have a wire of their own."""

    @staticmethod
    def interface(host):
        """By its address; nobody names it."""
        mac = f"52:54:00:78:00:{host.index:02x}"
        file = host.run(f"grep -l {mac} /sys/class/net/*/address").out.strip()
        return file.split("/")[-2]

    def __enter__(self):
        for host in (self.server, self.client):
            host.run(f"ip link set {self.interface(host)} mtu {self.mtu} up; "
                     f"ip address replace {peer_address(host)}/24 dev {self.interface(host)}")
        return self

    mtu = 9000


class Software(Perftest, Virtio):
    """An RDMA device that is made of a network interface."""

    kind = ""
    # On a busy machine rxe refuses what it sends again itself, and with siw perftest does not
    # always find its end.
    chances = 2

    def load(self, host):
        raise NotImplementedError

    def __enter__(self):
        super().__enter__()
        for host in (self.server, self.client):
            self.load(host)
            host.run(f"rdma link add {self.kind}0 type {self.kind} netdev {self.interface(host)}")
        return self

    def __exit__(self, *_):
        for host in (self.server, self.client):
            host.run(f"rdma link delete {self.kind}0")


class Rxe(Software):
    name = kind = "rxe"

    def load(self, host):
        host.run("modprobe rdma_rxe")

    def __enter__(self):
        super().__enter__()
        # Where CPUs are scarce its acknowledgements take longer than perftest's 67 ms.
        self.options = [f"-d rxe0 -u 20 -x {host.gid_index('rxe0', peer_address(host))}"
                        for host in (self.server, self.client)]
        self.address = peer_address(self.server)
        return self


class Siw(Software):
    name = kind = "siw"
    ready = staticmethod(pair.await_cm_listener)

    def load(self, host):
        host.run("modprobe -a ib_core iw_cm libcrc32c rdma_ucm")
        source_modules.insert(host, "siw", ("siw",))

    def __enter__(self):
        super().__enter__()
        # iWARP connects by RDMA CM alone.
        self.options = ["-d siw0 -R"] * 2
        self.address = peer_address(self.server)
        return self


class Tcp(Virtio):
    name = "TCP"

    def ask(self, serve, port, command, timeout=120):
        return pair.run_pair(self.server, serve, self.client, command, port=port, timeout=timeout)

    def iperf3(self, size, seconds):
        said = self.ask("iperf3 -s -1", TCP_PORT, f"iperf3 -J -c {peer_address(self.server)} "
                        f"-l {size} -t {seconds}", timeout=seconds + 60)
        return json.loads(said)["end"]["sum_received"]["bits_per_second"] / 8

    def bandwidth(self, operation, size, iterations):
        """iperf3 knows but one operation, and time instead of iterations."""
        if operation != "send":
            return None, None
        bytes_per_second = self.iperf3(size, 2)
        return bytes_per_second / 1e6, bytes_per_second / size

    def latency(self, operation, size, iterations):
        """sockperf's messages have 14 to 65507 bytes, and it counts half of a round trip."""
        if operation != "send" or size > 65507:
            return None, None
        address, port = peer_address(self.server), 11111
        serving = self.server.spawn(f"sockperf server --tcp -i {address} -p {port}")
        try:
            pair.await_listener(self.server, port, serving)
            said = self.client.run(f"sockperf ping-pong --tcp -i {address} -p {port} "
                                   f"-m {max(size, 14)} -t 2", timeout=60).out
        finally:
            serving.kill()
            serving.wait(check=False)
        found = {share: float(value) for share, value in
                 re.findall(r"percentile (50|99)\.0+ *= *([\d.]+)", said)}
        if len(found) != 2:
            raise LabError(f"no percentiles in what sockperf said:\n{said}")
        return found["50"], found["99"]

    def stream(self, seconds):
        return bool(self.iperf3(65536, seconds))


STACKS = (Tern, Rxe, Siw, Tcp)
