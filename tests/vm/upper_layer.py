# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of the kernel's upper layer protocols share.

The first host serves, the second asks.
"""

import json
import re
import time

from programs import EVERY_CELL, Programs
from scenario import LabError, wait_until

DRIVER = "/sys/bus/pci/drivers/tern"
CONFIGFS = "/sys/kernel/config"
RANDOM, STOP = "/tmp/random", "/tmp/stop"
MEBIBYTES, LOAD_MEBIBYTES = 64, 16
# fio writes random blocks with checksums, many requests at a time, then reads and checks them.
VERIFY = (f"fio --name=verify --filename=%s --size={LOAD_MEBIBYTES}M --direct=1 --ioengine=libaio "
          "--iodepth=16 --rw=randwrite --bsrange=4k-128k --verify=crc32c --verify_fatal=1 "
          "--end_fsync=1 --output-format=json")


def unload(host, modules):
    """Once all that used them is gone, some of which goes by itself."""
    remove = f"modprobe -r {modules}"
    if not wait_until(lambda: host.run(remove, check=False).code == 0, 30, 0.2):
        raise LabError(f"{host.name}: {host.run(f'{remove}; lsmod', check=False)}")


class UpperLayer(Programs):
    """What can happen to the card below a protocol, which must get over it."""

    OUTAGE = 10 if EVERY_CELL else 0  # seconds for which the cable is out at least
    COLUMNS = ("result",)
    OBJECTS = ("cm_id", "qp", "mr", "pd")  # CQs stay in the device's pool for the next user

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server, cls.client = cls.hosts
        # Without its card a host must not look for the other behind the management card.
        cls.lab.each(lambda host: host.run("ip route add unreachable 10.77.0.0/24 metric 4096"))

    def survive(self, what, misfortune):
        """A test: misfortune() happens under load."""
        raise NotImplementedError

    def test_cable_out(self):
        self.survive("cable out", self.lose_wire)

    def test_client_without_card(self):
        self.survive("the client's card goes", self.lose_card)

    def test_server_without_driver(self):
        self.survive("the server's driver goes", self.lose_driver)

    def connections(self, host):
        """The numbers of the RC QPs that can send."""
        port = f"{self.devices[host.name]}/1"
        qps = json.loads(host.run(f"rdma -j resource show qp link {port}").out)
        return {qp["lqpn"] for qp in qps if (qp["type"], qp["state"]) == ("RC", "RTS")}

    def lose_wire(self):
        """The cable is out until a connection has failed, which takes some seconds, and for OUTAGE.

        The end that waits for an answer notices it by itself, the other one may not.
        """
        before = [self.connections(host) for host in self.hosts]
        self.assertTrue(all(before), f"connections: {before}")
        self.client.set_cable(False)
        begun = time.monotonic()
        try:
            failed = wait_until(lambda: any(
                lost - self.connections(host) for host, lost in zip(self.hosts, before)), 60, 0.5)
            self.stay_out(begun)
        finally:
            self.client.set_cable(True)
        self.assertTrue(failed, "nobody has noticed that the cable is out")

    def stay_out(self, begun):
        """Returns when the cable that is out since then has been so for OUTAGE."""
        time.sleep(max(0, begun + self.OUTAGE - time.monotonic()))

    def lose_card(self, meanwhile=lambda: None):
        slot = self.client.pci()
        self.client.run(f"echo {slot} >{DRIVER}/unbind", timeout=60)
        meanwhile()
        self.client.run(f"echo {slot} >{DRIVER}/bind", timeout=60)
        self.come_back(self.client)

    def lose_driver(self):
        self.unload(self.server)
        self.server.run("modprobe tern")
        self.come_back(self.server)

    def come_back(self, host):
        host.configure()
        self.assertEqual(host.rdma_device(), self.devices[host.name])
        host.gid_index(host.rdma_device())
        self.meet()


class Storage(UpperLayer):
    """The tests of a protocol by which the client writes and reads what the server holds."""

    VARIANTS = ("",)
    RETRIED = None  # an error after which an application may try once more

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client.run(f"head -c {MEBIBYTES}M /dev/urandom >{RANDOM}")

    def attached(self, variant):
        """A context that gives the client's path and the server's to the same bytes."""
        raise NotImplementedError

    def use(self, what, variants, action):
        """action(path, held) with what attached() gives for each variant, in a cell of the table.
        """
        for variant in variants:
            row = f"{type(self).__name__} {variant}".strip()
            with self.cell(f"{row}: {what}", "result"), self.attached(variant) as (path, held):
                action(path, held)

    def check(self, what, action, variants, mebibytes=MEBIBYTES):
        """action(path) with each variant; both ends must then hold the random bytes."""
        def act(path, held):
            action(path)
            self.compare(path, held, mebibytes)

        self.use(what, variants, act)

    def test_copy(self):
        self.check("write, read, compare", self.write, self.VARIANTS)

    def test_verify(self):
        def act(path, _):
            job, = json.loads(self.client.run(VERIFY % path, timeout=180).out)["jobs"]
            self.assertEqual(job["error"], 0)
            for direction in ("write", "read"):
                self.assertEqual(job[direction]["io_bytes"], LOAD_MEBIBYTES << 20)

        self.use("fio with verify", self.VARIANTS, act)

    def survive(self, what, misfortune):
        """The work goes on afterwards."""
        def work(path):
            with Load(self.client, path, self.RETRIED) as load:
                load.advance()
                misfortune()
                load.advance()

        variants = self.VARIANTS if EVERY_CELL else self.VARIANTS[-1:]
        self.check(what, work, variants, LOAD_MEBIBYTES)

    def use_again(self, path, held):
        """Work goes on that an error has ended."""
        with Load(self.client, path) as load:
            load.advance()
        self.compare(path, held, LOAD_MEBIBYTES)

    def write(self, path):
        """Small and large requests, past the page cache. Nothing of them is revoked, though each
        request registers memory and invalidates it, and the wire loses nothing, either."""
        revoked = self.revoked()
        _, whole = self.without_drops(lambda: self.write_once(path))
        self.assertEqual(self.revoked(), revoked)
        self.assertTrue(whole, "the wire has lost packets each time")

    def write_once(self, path):
        for size in (512, 4096, 65536):
            self.client.run(f"dd if={RANDOM} of={path} bs={size} count=8 skip=5 seek=3 "
                            "oflag=direct conv=notrunc")
            self.client.run(f"dd if={path} bs={size} count=8 skip=3 iflag=direct | "
                            f"cmp -n {size * 8} -i 0:{size * 5} - {RANDOM}")
        self.client.run(f"dd if={RANDOM} of={path} bs=1M oflag=direct conv=notrunc,fsync",
                        timeout=120)

    def compare(self, path, held, mebibytes):
        """Past the client's page cache, and what the server holds, as it sees it."""
        self.client.run(f"dd if={path} bs=1M count={mebibytes} iflag=direct | "
                        f"cmp -n {mebibytes << 20} - {RANDOM}", timeout=120)
        checksum = f"head -c {mebibytes}M %s | sha256sum"
        self.assertEqual(self.server.run(checksum % held).out,
                         self.client.run(checksum % RANDOM).out)


class Load:
    """Writes zeros, writes something else over them and reads it, until the block ends. What ends
    with the error retried (its text) is done once more; any other error ends the load."""

    def __init__(self, host, path, retried=None):
        self.host = host
        options = f"bs=1M count={LOAD_MEBIBYTES} status=none"
        self.stopped = False
        # A disk that goes must not become a file in /dev.
        self.task = host.spawn(f"""
            set -e
            rm -f {STOP}
            [ -e {path} ] || : >{path}
            copy() {{
                until dd "$@" {options} 2>/tmp/error; do
                    cat /tmp/error
                    grep -q '{retried or "^$"}' /tmp/error || exit 1
                done
            }}
            until [ -e {STOP} ]; do
                for source in /dev/zero {RANDOM}; do
                    copy if=$source of={path} oflag=direct conv=notrunc,nocreat,fsync
                done
                copy if={path} of=/dev/shm/read iflag=direct
                cmp -n {LOAD_MEBIBYTES << 20} /dev/shm/read {RANDOM}
                echo round
            done""")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.run(f"touch {STOP}")
        self.task.wait(timeout=120, check=not (self.stopped or any(error)))

    def advance(self):
        """Returns when a round has ended that began later."""
        wanted = self.rounds() + 2
        if not wait_until(lambda: self.rounds() >= wanted or not self.task.running(), 120, 0.2) \
                or self.task.failed():
            raise LabError(f"{self.host.name}'s load has stopped\n{self.task.give_up()}")

    def await_error(self, pattern):
        """Returns when the load has ended with this error."""
        wait_until(lambda: not self.task.running(), 120, 0.2)
        if self.task.running() or not re.search(pattern, self.task.output()):
            raise LabError(f"{self.host.name}'s load has no error\n{self.task.give_up()}")
        self.stopped = True

    def rounds(self):
        return self.task.output().count("round")
