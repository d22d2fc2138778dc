# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel user of RDMA CM: a disk over NVMe/RDMA.

It and its like need what processes do not: the local DMA key, fast registration, invalidation by
the peer, drained queues.
"""

import contextlib
import json
import time

import upper_layer
from programs import Programs
from scenario import NETDEV, LabError, Options, main, wait_until

NQN, PORT = "nqn.2024-01.tern:disk", 4420
TARGET = "/sys/kernel/config/nvmet"
SUBSYSTEM = f"{TARGET}/subsystems/{NQN}"
NAMESPACE = f"{SUBSYSTEM}/namespaces/1"
DISK = "/dev/ram0"  # the target's
MEBIBYTES = 16
GIVE_UP = 3  # seconds for which an initiator tries to reach a target again
GONE = "Input/output error|No such (file or directory|device)"
DRAIN = 50  # less than the seconds for which Linux waits for a QP's last event


def serve(host, address, family, transport="rdma"):
    """A RAM disk for whoever connects."""
    host.run(f"""
        set -e
        modprobe brd rd_nr=1 rd_size={64 << 10}
        modprobe nvmet-{transport}
        mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
        mkdir {SUBSYSTEM} {NAMESPACE}
        echo 1 >{SUBSYSTEM}/attr_allow_any_host
        echo {DISK} >{NAMESPACE}/device_path
        echo 1 >{NAMESPACE}/enable
    """)
    listen(host, 1, address, family, transport)


def listen(host, number, address, family, transport="rdma"):
    """At one more address."""
    port = f"{TARGET}/ports/{number}"
    host.run(f"""
        set -e
        mkdir {port}
        echo {address} >{port}/addr_traddr
        echo {family} >{port}/addr_adrfam
        echo {transport} >{port}/addr_trtype
        echo {PORT} >{port}/addr_trsvcid
        ln -s {SUBSYSTEM} {port}/subsystems/{NQN}
    """)


def listen_again(host):
    """At all addresses. A port of nvmet does not by itself, when its card comes back."""
    host.run(f"for port in {TARGET}/ports/*; do rm $port/subsystems/{NQN} && "
             f"ln -s {SUBSYSTEM} $port/subsystems/{NQN} || exit; done")


def stop(host, transport="rdma"):
    host.run(f"rm -f {TARGET}/ports/*/subsystems/{NQN}; rmdir {TARGET}/ports/* "
             f"{NAMESPACE} {SUBSYSTEM}; rmmod nvmet-{transport}; rmmod brd",
             check=False)


def connect(host, address, transport="rdma"):
    """Returns the disk."""
    host.run(f"modprobe nvme-{transport}")
    host.run(f"echo 'transport={transport},traddr={address},trsvcid={PORT},nqn={NQN},"
             "nr_io_queues=2,queue_size=32,reconnect_delay=1' >/dev/nvme-fabrics", timeout=60)
    return find_disk(host)


def find_disk(host):
    disk = wait_until(lambda: host.run("ls /dev/nvme?n? 2>/dev/null", check=False).out.strip(),
                      20)
    if not disk:
        raise LabError(f"{host.name}: no disk came up\n{host.run('dmesg | tail -20').out}")
    return disk


def disconnect(host, transport="rdma"):
    host.run("for one in /sys/class/nvme/nvme*; do echo 1 >$one/delete_controller; done; "
             f"rmmod nvme-{transport}", check=False, timeout=60)


class NvmeOf(Programs):
    COLUMNS = ("result",)
    OBJECTS = ("cm_id", "qp", "mr", "pd")  # CQs stay in the device's pool for the next user

    def test_nvme(self):
        for ip, family in ((4, "ipv4"), (6, "ipv6")):
            self.disk(ip, family, self.hosts)

    def test_nvme_other_direction(self):
        self.disk(4, "ipv4", self.hosts[::-1])

    def disk(self, ip, family, hosts):
        target, initiator = hosts
        address = self.address(target, ip)
        try:
            row = f"NVMe/RDMA to {target.name}, IPv{ip}"
            disk = None
            with self.cell(f"{row}: connect", "result"):
                serve(target, address, family)
                disk = connect(initiator, address)
            if not disk:
                return
            with self.cell(f"{row}: write, read, compare", "result"):
                self.copy(initiator, target, disk)
            with self.cell(f"{row}: small and large requests", "result"):
                self.sizes(initiator, disk)
            with self.cell(f"{row}: disconnect", "result"):
                disconnect(initiator)
                self.assertEqual(initiator.run("ls /dev/nvme?n?", check=False).out, "")
        finally:
            disconnect(initiator)
            stop(target)

    def copy(self, initiator, target, disk):
        """Past both page caches; the target's RAM disk must hold the same, too."""
        size = f"bs=1M count={MEBIBYTES}"
        initiator.run(f"head -c {MEBIBYTES}M /dev/urandom >/tmp/random; "
                      f"dd if=/tmp/random of={disk} {size} oflag=direct conv=fsync", timeout=120)
        wanted = initiator.run("sha256sum </tmp/random").out
        read = initiator.run(f"dd if={disk} {size} iflag=direct | sha256sum", timeout=120).out
        held = target.run(f"dd if={DISK} {size} | sha256sum").out
        self.assertEqual([read, held], [wanted, wanted])

    def sizes(self, host, disk):
        for block in (512, 4096, 65536, 1 << 20):
            host.run(f"dd if=/tmp/random of={disk} bs={block} count=4 skip=1 seek=3 oflag=direct",
                     timeout=60)
            sums = host.run(
                f"dd if=/tmp/random bs={block} count=4 skip=1 | sha256sum; "
                f"dd if={disk} bs={block} count=4 skip=3 iflag=direct | sha256sum").out.split("\n")
            self.assertEqual(sums[0], sums[1], f"blocks of {block}")

    def test_target_card_fails(self):
        """A QP with an SRQ is drained when its last event has come, for which Linux 6.12 waits for
        60 s. The driver raises the event in place of a card that has failed."""
        with self.cell("the target's card fails", "result"):
            # On a busy machine all else may take that long, too, but hardly each time.
            for _ in range(self.CHANCES):
                took = self.fail_target_card()
                if took < DRAIN:
                    break
            self.assertLess(took, DRAIN)

    def fail_target_card(self):
        """Returns how many seconds the card has taken to come back, with an initiator."""
        target, initiator = self.hosts
        pci = target.pci()

        def recoveries():
            told = target.run(f"devlink -j health show pci/{pci} reporter fw_fatal").out
            return json.loads(told)["health"][f"pci/{pci}"][0]["recover"]

        try:
            target.run("modprobe nvmet-rdma use_srq=1")
            serve(target, target.ipv4, "ipv4")
            connect(initiator, target.ipv4)
            self.assertIn("nvmet_rdma", target.run("rdma resource show srq").out)
            # So that a card that has failed a moment ago is started again.
            target.run(f"devlink health set pci/{pci} reporter fw_fatal grace_period 0")
            before = recoveries()
            # The card may not read memory any more, and finds that out at the next command.
            begun = time.monotonic()
            target.run(f"setpci -s {pci} COMMAND=0:4; ethtool -S {NETDEV}", check=False)
            self.assertTrue(wait_until(lambda: recoveries() > before, 120))
            return time.monotonic() - begun
        finally:
            disconnect(initiator)
            stop(target)


class NvmePaths(upper_layer.Storage):
    """A disk with two paths, a card each: its user notices nothing of what one of them suffers."""

    HOSTS = (Options(cards=2), Options(cards=2))
    PATHS = range(2)

    @contextlib.contextmanager
    def attached(self, variant):
        try:
            serve(self.server, self.server.addresses(0)[0], "ipv4")
            listen(self.server, 2, self.server.addresses(1)[0], "ipv4")
            for path in self.PATHS:
                disk = self.connect_path(path)
            yield disk, DISK
        finally:
            disconnect(self.client)
            stop(self.server)

    def connect_path(self, path):
        disk = connect(self.client, self.server.addresses(path)[0])
        self.assertRegex(disk, r"^/dev/nvme\dn\d$", "the paths are not one disk")
        self.await_states({path: "live"})
        return disk

    def states(self):
        """Of the controllers, by path."""
        said = self.client.run("cd /sys/class/nvme; for one in nvme?; do "
                               "echo $(cat $one/address) $(cat $one/state); done", check=False).out
        return {path: line.split()[-1] for path in self.PATHS for line in said.splitlines()
                if f"traddr={self.server.addresses(path)[0]}," in line}

    def await_states(self, wanted):
        self.assertTrue(wait_until(lambda: wanted.items() <= self.states().items(), 60, 0.5),
                        f"not {wanted}: {self.states()}")

    def survive(self, what, misfortune):
        """A misfortune of each path in turn, or of all."""
        def work(path):
            with upper_layer.Load(self.client, path) as load:
                load.advance()
                misfortune(load)
                load.advance()

        self.check(what, work, self.VARIANTS, upper_layer.LOAD_MEBIBYTES)

    def test_cable_out(self):
        def each_in_turn(load):
            for path in self.PATHS:
                self.client.set_cable(False, path)
                begun = time.monotonic()
                try:
                    self.await_states({path: "connecting", 1 - path: "live"})
                    load.advance()
                    self.stay_out(begun)
                finally:
                    self.client.set_cable(True, path)
                self.await_states({0: "live", 1: "live"})

        self.survive("one cable out after the other", each_in_turn)

    def test_client_without_card(self):
        def first(load):
            self.lose_card(load.advance)
            self.assertTrue(wait_until(lambda: self.states() == {1: "live"}, 60, 0.5),
                            self.states())
            self.connect_path(0)

        self.survive("one of the client's cards goes", first)

    def test_server_without_driver(self):
        def both(_):
            self.lose_driver()
            listen_again(self.server)
            self.await_states({0: "live", 1: "live"})

        self.survive("the server's driver goes", both)

    # --- what the target does to its initiator

    def test_target_goes(self):
        """A target that does not come back: its user gets an error when the initiator gives up."""
        with self.cell("the target goes", "result"):
            with self.attached("") as (disk, _):
                self.client.run(f"for one in /sys/class/nvme/nvme?; do "
                                f"echo {GIVE_UP} >$one/ctrl_loss_tmo || exit; done")
                with upper_layer.Load(self.client, disk) as load:
                    load.advance()
                    stop(self.server)
                    load.await_error(GONE)
                self.assertNotIn("nvmet_rdma", self.server.run("cat /proc/modules").out)
                self.assertTrue(wait_until(lambda: not self.states(), 30, 0.5), self.states())
            with self.attached("") as (disk, held):
                self.use_again(disk, held)

    def test_namespace_goes(self):
        """A namespace that is disabled: its user gets an error. When it is enabled again, the
        initiator finds it."""
        with self.cell("the namespace goes", "result"), self.attached("") as (disk, held):
            with upper_layer.Load(self.client, disk) as load:
                load.advance()
                self.server.run(f"echo 0 >{NAMESPACE}/enable")
                load.await_error(GONE)
            self.server.run(f"echo 1 >{NAMESPACE}/enable")
            self.use_again(find_disk(self.client), held)


if __name__ == "__main__":
    main()
