# SPDX-License-Identifier: GPL-2.0-or-later
"""RDS: reliable datagrams of sockets, RDMA and atomics with the memory of the peer."""

import contextlib
import gzip
import pathlib
import subprocess
import tempfile

from programs import Programs
from scenario import LabError, Options, main, wait_until
import upper_layer
from upper_layer import MEBIBYTES, STOP

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/rds_peer.py"
PEER = f"python3 /tmp/{PROGRAM.name}"

# A part of the memory that the kernel takes for persistent memory, where files can have DAX.
PMEM = Options(kernel_options="memmap=16M!256M")
DAX = "/mnt/dax"


def file_system():
    """Returns an empty file system, compressed. Guests have no program that makes one with DAX."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(8 << 20)
        subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-b", "4096",
                        file.name], check=True)
        return gzip.compress(pathlib.Path(file.name).read_bytes())


class Peers(Programs):
    COLUMNS = upper_layer.UpperLayer.COLUMNS
    OBJECTS = upper_layer.UpperLayer.OBJECTS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server, cls.client = cls.hosts
        for host in cls.hosts:
            host.write_file(f"/tmp/{PROGRAM.name}", PROGRAM.read_bytes())

    def setUp(self):
        super().setUp()
        self.lab.each(lambda host: host.run("modprobe rds_rdma"))  # and not rds_tcp
        self.addCleanup(self.lab.each, lambda host: host.run("modprobe -r rds_rdma"))

    @contextlib.contextmanager
    def sending(self, work):
        """The receiver, while the client sends; then both must end well."""
        self.client.run(f"rm -f {STOP}")
        receiver = self.server.spawn(f"{PEER} receive {self.server.ipv4}")
        # RDS drops what comes to a port that nobody has.
        self.assertTrue(wait_until(lambda: "ready" in receiver.output(), 30), "no receiver")
        sender = self.client.spawn(f"{PEER} send {self.client.ipv4} {self.server.ipv4} {work}")
        try:
            yield receiver
            # If the receiver fails, the sender waits for ever.
            wait_until(lambda: not sender.running() or receiver.failed(), 120)
            if receiver.failed():
                receiver.wait()
            if sender.running():
                raise LabError(f"the sender still runs\n{self.connection_states()}")
            sender.wait(timeout=1)
            self.assertIn("received all", receiver.wait(timeout=30).out)
        finally:
            for task in (sender, receiver):
                if task.running():
                    task.kill()

    def connection_states(self):
        """What the cards know of their QPs, and the counters of RDS."""
        return "\n".join(f"--- {host.name}\n" + host.run(
            "cat /sys/kernel/debug/tern/*/[QC]*s; rdma statistic", check=False).out
            for host in self.hosts)


class Rds(Peers, upper_layer.UpperLayer):
    def advance(self, receiver):
        """Returns when the receiver has got more."""
        seen = receiver.output()
        if not wait_until(lambda: receiver.output() != seen or not receiver.running(), 120, 0.2) \
                or not receiver.running():
            raise LabError(f"{self.server.name} receives nothing\n{receiver.give_up()}")

    def test_messages(self):
        with self.cell("RDS: messages", "result"), self.sending(MEBIBYTES * 16):
            pass

    def test_rdma(self):
        for work in ("read", "write"):
            with self.cell(f"RDS: RDMA {work}", "result"), self.sending(work):
                pass

    def survive(self, what, misfortune):
        """Each message comes once, in order, whatever connection it takes."""
        with self.cell(f"RDS: {what}", "result"), self.sending("forever") as receiver:
            self.advance(receiver)
            misfortune()
            self.advance(receiver)
            self.client.run(f"touch {STOP}")


class Atomics(Peers):
    """With hosts of their own: rds_ib_get_mr() of the kernel keeps a reference to RDS's device for
    each region on demand, and with it a PD for ever."""

    HOSTS = (PMEM, PMEM)

    def check_resources(self):
        self.clean[self.client.name]["pd"] = 1 + self.clean[self.server.name]["pd"]
        super().check_resources()

    def test_atomics(self):
        """RDS gives a peer the right to them only in memory that it cannot pin, as that of a file
        with DAX. All are masked ones for the card."""
        self.client.write_file("/tmp/ext4.gz", file_system())
        self.client.run(f"""modprobe -a nd_e820 nd_pmem && udevadm settle && mkdir -p {DAX} &&
            zcat /tmp/ext4.gz >/dev/pmem0 && mount -o dax=always /dev/pmem0 {DAX}""")
        self.addCleanup(self.client.run, f"umount {DAX}")

        def executed():
            return sum(host.hw_counter("rx_atomic_requests") for host in self.hosts)

        before = executed()
        with self.cell("RDS: atomics", "result"), self.sending("atomics"):
            pass
        self.assertGreater(executed(), before)


if __name__ == "__main__":
    main()
