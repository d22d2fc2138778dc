# SPDX-License-Identifier: GPL-2.0-or-later
"""The card as the system's tools see it: rdma, devlink, sysfs, udev, namespaces, cgroups."""

import contextlib
import errno
import json
import re

from agent import Agent, CONSTANTS
from programs import Programs
import rds
from scenario import NETDEV, PATIENT, main, pair, wait_until

KINDS = ("pd", "cq", "qp", "cm_id", "mr", "ctx", "srq")
NETNS = "blue"
CGROUP = "/sys/fs/cgroup/test"
FROZEN = "/mnt/frozen"

# This program creates a CQ of 16 MiB. It prints the kernel memory of its control group before and
# after that. The kernel updates these statistics with a delay, so the program waits for them.
RINGS = b"""
import sys, time
from pyverbs.cq import CQ
from pyverbs.device import Context

def charged():
    return int(dict(line.split() for line in open(sys.argv[2]))["kernel"])

context = Context(name=sys.argv[1])
before = charged()
cq = CQ(context, (1 << 18) - 1)
deadline = time.monotonic() + 20
while charged() < before + (16 << 20) and time.monotonic() < deadline:
    time.sleep(0.1)
print(before, charged())
"""

# This program prefetches a page in each of 128 tables, then drops the pages. It prints the kernel
# memory of its group without page tables of the process: before, at most, and at least afterwards.
TABLES = b"""
import ctypes, mmap, sys, time
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.wr import SGE

AREA, COUNT = 2 << 20, 128

def charged():
    stat = dict(line.split() for line in open(sys.argv[2]))
    return int(stat["kernel"]) - int(stat["pagetables"])

def watch(choose, enough):
    seen = charged()
    deadline = time.monotonic() + 20
    while not enough(seen) and time.monotonic() < deadline:
        time.sleep(0.1)
        seen = choose(seen, charged())
    return seen

pd = PD(Context(name=sys.argv[1]))
mr = MR(pd, 0, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND, implicit=True)
memory = mmap.mmap(-1, COUNT * AREA, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
parts = [SGE(start + i * AREA, 1, mr.lkey) for i in range(COUNT)]
before = charged()
pd.advise_mr(e._IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, parts)
most = watch(max, lambda seen: seen >= before + COUNT * 4096)
memory.madvise(mmap.MADV_DONTNEED)
print(before, most, watch(min, lambda seen: seen < before + COUNT * 4096 // 4))
"""

# This program queues 2000 requests to prefetch a page of a file for writing. A workqueue of the
# kernel runs 256 work items at the same time, or 512. While the kernel waits for the page, it holds
# the mmap_lock of the program, which would wait, too, if it needed more memory. So it makes some
# requests for another page first, and what it allocates for these is enough.
WAITERS = b"""
import ctypes, gc, mmap, os, signal, sys
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.wr import SGE

with open(sys.argv[2], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
pd = PD(Context(name=sys.argv[1]))
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND, start)
other = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND)
gc.disable()
for region, address, count in ((other, other.buf, 20), (mr, start, 2000)):
    pages = [SGE(address, 1, region.lkey)]
    for _ in range(count):
        pd.advise_mr(e._IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, pages)
os.write(1, b"asked\n")
signal.pause()
"""

# This program opens the device twice. It creates tables of WQs in one context until the card
# refuses, and then one in the other.
SHARES = b"""
import sys
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.wq import WQ, RwqIndTable, RwqIndTableInitAttr, WQInitAttr

def work_queue():
    context = Context(name=sys.argv[1])
    pd, cq = PD(context), CQ(context, 16)
    return context, pd, cq, WQ(context, WQInitAttr(wq_pd=pd, wq_cq=cq))

def table(context, pd, cq, wq):
    return RwqIndTable(context, RwqIndTableInitAttr(log_ind_tbl_size=1, wqs_list=[wq, wq]))

greedy, other = work_queue(), work_queue()
tables = []
try:
    while True:
        tables.append(table(*greedy))
except PyverbsRDMAError as error:
    print(len(tables), error.error_code)
tables.append(table(*other))
"""


class System(Programs):
    def setUp(self):
        super().setUp()
        self.host, self.peer = self.hosts[:2]
        self.device = self.devices[self.host.name]

    def rdma(self, command):
        return json.loads(self.host.run(f"rdma -j {command}").out)

    # --- the tools

    def test_rdma_dev_and_link(self):
        device = self.rdma(f"dev show {self.device}")[0]
        self.assertEqual(device["node_type"], "ca")
        self.assertRegex(device["fw"], r"^\d+\.\d+$")
        link = self.rdma(f"link show {self.device}/1")[0]
        self.assertEqual((link["state"], link["physical_state"], link["netdev"]),
                         ("ACTIVE", "LINK_UP", NETDEV))

    def test_rdma_resource(self):
        """Each object of a process is there with its owner, and goes with it."""
        before = self.rdma(f"resource show {self.device}")[0]
        self.assertLessEqual(set(KINDS), before.keys())
        agent = Agent(self.host, self.device)
        try:
            qpn = agent.create(service="RC")
            queues = [qp for qp in self.rdma("resource show qp")
                      if qp.get("lqpn") == qpn]
            self.assertEqual(len(queues), 1)
            self.assertEqual((queues[0]["type"], queues[0]["comm"]), ("RC", "python3"))
            pid = queues[0]["pid"]
            for kind in ("pd", "cq", "mr", "ctx"):
                owned = [entry for entry in self.rdma(f"resource show {kind}")
                         if entry.get("pid") == pid]
                self.assertTrue(owned, kind)
        finally:
            agent.close()
        wait_until(lambda: self.rdma(f"resource show {self.device}")[0] == before, 20)
        self.assertEqual(self.rdma(f"resource show {self.device}")[0], before)

    def test_rdma_statistic(self):
        counters = self.rdma(f"statistic show link {self.device}/1")[0]
        self.assertGreater(len(counters), 40)

    def test_devlink(self):
        info = json.loads(self.host.run(f"devlink -j dev info pci/{self.host.pci()}").out)
        info = info["info"][f"pci/{self.host.pci()}"]
        mac = self.host.run(f"cat /sys/class/net/{NETDEV}/address").out.strip()
        self.assertEqual((info["driver"], info["serial_number"]), ("tern", mac))
        self.assertEqual(info["versions"]["running"]["fw"],
                         self.rdma(f"dev show {self.device}")[0]["fw"])

    # --- sysfs and udev

    def test_sysfs(self):
        def read(name):
            return self.host.run(f"cat /sys/class/infiniband/{self.device}/{name}").out.strip()

        mac = read("device/net/" + NETDEV + "/address").split(":")
        guid = "{:02x}{}:{}ff:fe{}:{}{}".format(int(mac[0], 16) ^ 2, *mac[1:])
        for name, value in (
                ("node_type", "1: CA"), ("node_guid", guid), ("sys_image_guid", guid),
                ("fw_ver", self.rdma(f"dev show {self.device}")[0]["fw"]),
                ("ports/1/state", "4: ACTIVE"), ("ports/1/phys_state", "5: LinkUp"),
                ("ports/1/link_layer", "Ethernet"), ("ports/1/pkeys/0", "0xffff"),
                ("ports/1/gid_attrs/ndevs/0", NETDEV)):
            self.assertEqual(read(name), value, name)
        self.assertRegex(read("ports/1/rate"), r"^\d+(\.\d)? Gb/sec \(\d+X ")
        # Packets without a QP may come at any time: both tell of the same counter.
        self.assertTrue(wait_until(
            lambda: int(read("ports/1/hw_counters/rx_no_qp")) ==
            self.rdma(f"statistic show link {self.device}/1")[0]["rx_no_qp"], 20))
        self.host.run(f"echo a description >/sys/class/infiniband/{self.device}/node_desc")
        self.assertEqual(read("node_desc"), "a description")

    def test_stable_names(self):
        """rdma-core's udev rules name a device by its place on the bus."""
        bus, slot, function = re.fullmatch(r"0000:(\w\w):(\w\w)\.(\d)", self.host.pci()).groups()
        self.assertEqual(function, "0")
        self.assertEqual(self.device, f"rocep{int(bus, 16)}s{int(slot, 16)}")
        self.host.run("test -c /dev/infiniband/uverbs0 && test -c /dev/infiniband/rdma_cm")

    # --- namespaces and cgroups

    def test_shared_namespace(self):
        """As it is by default, a process of any namespace sees the device."""
        self.host.run(f"ip netns add {NETNS}")
        try:
            self.host.run(f"ip netns exec {NETNS} ibv_devinfo -d {self.device}")
        finally:
            self.host.run(f"ip netns del {NETNS}")

    def test_exclusive_namespace(self):
        """The device moves with its interface, works there, and comes back."""
        host = self.host
        inside = f"ip netns exec {NETNS}"
        host.run("rdma system set netns exclusive")
        try:
            host.run(f"""ip netns add {NETNS} && rdma dev set {self.device} netns {NETNS} &&
                         ip link set {NETDEV} netns {NETNS} &&
                         {inside} ip address add {host.ipv4}/24 dev {NETDEV} &&
                         {inside} ip link set {NETDEV} mtu {host.options.mtu} up""")
            self.assertNotEqual(host.run(f"ibv_devinfo -d {self.device}", check=False).code, 0)
            table = host.run(f"{inside} sh -c 'cd /sys/class/infiniband/{self.device}/ports/1; "
                             "grep -il 0000:ffff:0a4d gids/* | xargs -n 1 basename | "
                             "while read n; do echo $n $(cat gid_attrs/types/$n); done'").out
            index = re.search(r"^(\d+) RoCE v2$", table, re.MULTILINE)[1]
            self.ping(self.peer, host.ipv4)
            # Its TCP goes through the namespace, too, where await_listener does not look.
            serving = host.spawn(f"{inside} env {PATIENT} ibv_rc_pingpong -c -n 50 "
                                 f"-d {self.device} -g {index}")
            asking = (f"until {PATIENT} ibv_rc_pingpong -c -n 50 -d {self.devices[self.peer.name]} "
                      f"-g {self.peer.gid_index(self.devices[self.peer.name])} {host.ipv4}; "
                      "do sleep 0.5; done")
            self.assertIn("50 iters", self.peer.run(asking, timeout=60).out)
            serving.wait(timeout=30)
        finally:
            # The kernel removes a namespace in the background.
            host.run(f"ip netns del {NETNS}; until rdma system set netns shared; "
                     "do sleep 0.2; done", timeout=20)
        host.configure()
        self.assertEqual(host.rdma_device(), self.device)
        self.pingpong("-n 20")

    def run_in_group(self, program):
        """Returns the numbers that a Python program prints in a memory control group of its own.
        Its arguments are the device and the statistics of the group."""
        host = self.host
        host.run(f"""mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
                     echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir {CGROUP}""")
        try:
            said = host.run(f"""echo $$ >{CGROUP}/cgroup.procs
                                exec python3 - {self.device} {CGROUP}/memory.stat""",
                            stdin=program).out
        finally:
            host.run(f"until rmdir {CGROUP}; do sleep 0.2; done", timeout=20)
        return [int(size) for size in said.split()]

    @contextlib.contextmanager
    def frozen_file(self):
        """A file whose pages nobody can write before the block ends: its file system is frozen."""
        host = self.host
        host.write_file("/tmp/ext4.gz", rds.file_system())
        host.run(f"""modprobe loop && zcat /tmp/ext4.gz >/tmp/ext4 && mkdir -p {FROZEN} &&
            mount -o loop /tmp/ext4 {FROZEN} && truncate -s 4096 {FROZEN}/file &&
            fsfreeze --freeze {FROZEN}""")
        try:
            yield f"{FROZEN}/file"
        finally:
            host.run(f"fsfreeze --unfreeze {FROZEN}")
            host.run(f"until umount {FROZEN}; do sleep 0.2; done", timeout=20)

    def test_pages_that_do_not_come(self):
        """A process whose pages do not come keeps no other process from its pages."""
        self.host.write_file("/tmp/waiters.py", CONSTANTS.read_bytes() + WAITERS)
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(self.frozen_file())
            task = self.host.spawn(f"exec python3 /tmp/waiters.py {self.device} {file}")
            # This callback runs before frozen_file() thaws the file system. The killed process
            # ends after that, and frozen_file() repeats umount until then.
            stack.callback(task.kill, "KILL")
            self.assertTrue(wait_until(lambda: "asked" in task.output(), 60), task.output())
            with self.connected(on_demand=True) as ((one, two), qpns):
                two.receive(local=qpns[1], offset=0, length=4096)
                one.send(local=qpns[0], opcode="SEND", length=100)
                one.completions(local=qpns[0], kind="send")
                two.completions(local=qpns[1], kind="recv")

    def test_shares(self):
        """A process that takes all tables of WQs that it can get leaves some to others."""
        most = self.host.run(f"ibv_devinfo -v -d {self.device}").out
        most = int(re.search(r"max_rwq_indirection_tables:\s+(\d+)", most)[1])
        said = self.host.run(f"exec python3 - {self.device}", stdin=SHARES, timeout=120).out
        made, error = map(int, said.split())
        self.assertEqual(error, errno.ENOMEM)
        self.assertEqual(made, most // 2)

    def test_cgroup_memory(self):
        """Tables of a region on demand are charged to its process, though a worker of the driver
        allocates them, until the pages go."""
        before, most, least = self.run_in_group(CONSTANTS.read_bytes() + TABLES)
        self.assertGreaterEqual(most - before, 128 * 4096)
        self.assertLess(least - before, 32 * 4096)

    def test_cgroup_rings(self):
        """The ring of a CQ, which the driver allocates, is charged to its process."""
        before, after = self.run_in_group(RINGS)
        self.assertGreaterEqual(after - before, 16 << 20)

    def test_cgroup_limits(self):
        """A control group holds the objects that it may, and no more."""
        host = self.host
        host.run(f"""mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
                     echo +rdma >/sys/fs/cgroup/cgroup.subtree_control && mkdir {CGROUP}""")
        command = (f"echo $$ >{CGROUP}/cgroup.procs; exec ibv_srq_pingpong -q 16 "
                   f"-d {self.device} -g {host.gid_index(self.device)}")
        try:
            host.run(f"echo {self.device} hca_handle=1 hca_object=10 >{CGROUP}/rdma.max")
            refused = host.run(f"sh -c '{command}'", check=False)
            self.assertNotEqual(refused.code, 0)
            self.assertIn("Couldn't create QP", refused.err + refused.out)

            host.run(f"echo {self.device} hca_handle=max hca_object=max >{CGROUP}/rdma.max")
            task = host.spawn(f"sh -c '{command}'")
            try:
                pair.await_listener(host, pair.PERFTEST_PORT, task)
                current = host.run(f"cat {CGROUP}/rdma.current").out
                held = re.search(rf"{self.device} hca_handle=1 hca_object=(\d+)", current)
                self.assertTrue(held, current)
                self.assertGreaterEqual(int(held[1]), 16)
            finally:
                host.run(f"kill $(cat {CGROUP}/cgroup.procs)")
                task.give_up()
        finally:
            host.run(f"until rmdir {CGROUP}; do sleep 0.2; done", timeout=20)


if __name__ == "__main__":
    main()
