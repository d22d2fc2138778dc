# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/guest/uverbs_fuzz: random calls of the driver by processes that are killed at random times.

The kernel has no complaint, nothing of them stays behind, and others that use the card do not
notice. TERN_UVERBS_SECONDS and TERN_UVERBS_SEED make it run longer and otherwise.
"""

import os
import random
import re
import time

from programs import EVERY_CELL, Programs
from scenario import main, wait_until
from ternlab import inject, query, stack

FUZZ = "/opt/tern/bin/uverbs_fuzz"
CGROUP = "/sys/fs/cgroup/uverbs"
SECONDS = float(os.environ.get("TERN_UVERBS_SECONDS", "60" if EVERY_CELL else "20"))
SEED = int(os.environ.get("TERN_UVERBS_SEED", "1"), 0)
# Each of these makes an object, or changes one, and must have succeeded.
FRUITFUL = """alloc_pd open_xrcd create_ah multicast create_counters create_flow create_channel
    alloc_async create_cq create_cq_ex create_cq_ioctl resize_cq modify_cq create_srq
    create_srq_xrc create_srq_tags create_srq_ioctl modify_srq create_qp_rc create_qp_uc
    create_qp_ud create_qp_raw create_qp_xrc_ini create_qp_xrc_tgt create_qp_ioctl create_qp_rss
    open_qp modify_qp connect create_wq create_wq_ioctl modify_wq create_table post drain reg_mr
    reg_mr_on_demand reg_mr_implicit reg_mr_dma_buf reg_mr_dm rereg_mr advise_mr alloc_mw
    alloc_dm map remap poke fork query_pd query_dm query_context read_events
    read_counters""".split()
FAILING = "--failing"  # the option by which allocations fail
# The kernel may still charge this many bytes to a control group when its processes are gone: the
# kernel has caches. What ib_core leaks does not count (kernel_log.KNOWN_LEAKS).
KEPT = 1 << 20
WITH_A_TASK = 2 << 10  # bytes of its credentials and a part of its process's signals


class Uverbs(Programs):
    COLUMNS = ("result",)
    SLOWNESS = 1

    @classmethod
    def setUpClass(cls):
        if stack.has_debug_kernel():
            cls.SLOWNESS = 8
        super().setUpClass()
        cls.host, cls.peer = cls.hosts[:2]
        cls.device = cls.devices[cls.host.name]
        # Exporters of dma-bufs: each kernel has one of them.
        cls.host.run("modprobe vgem; modprobe udmabuf", check=False)
        cls.host.run(f"""mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
                         echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir {CGROUP}""")

    # --- what is held

    def card(self):
        """The objects that the card has."""
        return [{kind: [entry["number"] for entry in engine[kind]] for kind in query.TABLES}
                for engine in query.card_of(self.host)["engines"]]

    def holdings(self):
        """All RDMA objects of kernel and card, and how many pages the kernel holds pinned."""
        objects = self.host.run("rdma -j resource show").out
        pins = dict(line.split() for line in self.host.run(
            # Each CPU counts for itself until it is asked.
            "sysctl -q vm.stat_refresh=1; grep nr_foll_pin_ /proc/vmstat").out.splitlines())
        return (objects, self.card(),
                int(pins["nr_foll_pin_acquired"]) - int(pins["nr_foll_pin_released"]))

    def charged(self):
        """Bytes of the kernel's memory that processes of the group have caused, but for tasks that
        have ended and to which ib_core refers for ever: one for each thread that has failed to
        make a context."""
        charged = int(re.search(r"^kernel (\d+)$", self.host.run(f"cat {CGROUP}/memory.stat").out,
                                re.MULTILINE)[1])
        tasks, size = map(int, self.host.run(
            "awk '$1 == \"task_struct\" { print $2, $4 }' /proc/slabinfo").out.split())
        ended = tasks - int(self.host.run("ps -eLo lwp= | wc -l").out)
        return charged - ended * (size + WITH_A_TASK)

    # --- the fuzzer

    def exchange(self, agents, qpns, seed):
        """A message of the pair that has nothing to do with the fuzzer."""
        one, two = agents
        one.receive(local=qpns[0], offset=8192, length=5000)
        two.fill(offset=0, length=5000, seed=seed)
        two.send(local=qpns[1], opcode="SEND", offset=0, length=5000)
        for agent, qpn, kind in ((two, qpns[1], "send"), (one, qpns[0], "receive")):
            agent.completions(local=qpn, kind=kind)
        self.assertTrue(one.check(offset=8192, length=5000, seed=seed))

    def fuzz(self, seed, meanwhile, options=""):
        """What the fuzzer has printed."""
        index = self.host.gid_index(self.device)
        task = self.host.spawn(f"""
            echo $$ >{CGROUP}/cgroup.procs
            exec {FUZZ} {self.device} --gid-index {index} --seed {seed} \\
                --seconds {SECONDS * self.SLOWNESS} --slowness {self.SLOWNESS} {options}""")
        for turn in range(1 << 20):
            meanwhile(turn)
            if wait_until(lambda: not task.running(), 0.5, 0.1):
                break
        said = task.wait(timeout=90).out
        print(said)
        return said

    def fuzz_and_compare(self, name, options="", also=lambda: None):
        def meanwhile(turn):
            self.exchange(agents, qpns, turn)
            also()

        said, lacking = "", FRUITFUL
        with self.cell(name, "result"), self.connected() as (agents, qpns):
            before = self.holdings()
            # A busy machine makes fewer calls in that time, so that further seeds may be needed.
            for seed in range(SEED, SEED + self.CHANCES):
                said += self.fuzz(seed, meanwhile, options)
                done = re.findall(r"^(\w+) +[1-9]\d* ok", said, re.MULTILINE)
                lacking = [name for name in FRUITFUL if name not in done]
                if not lacking or options == FAILING:
                    break
            self.assertTrue(wait_until(lambda: self.holdings() == before, 20),
                            f"had {before}, has {self.holdings()}")
            self.assertTrue(wait_until(lambda: self.charged() < KEPT * self.SLOWNESS, 20),
                            self.charged())
            if options != FAILING:  # which ends many calls before they do what they are for
                self.assertEqual(lacking, [])
        self.pingpong("-n 20 -c")
        return said

    def test_fuzz(self):
        self.fuzz_and_compare("random calls")

    def test_failing_allocations(self):
        if not stack.has_debug_kernel():
            self.skipTest("only debug kernels have fault injection")
        self.host.run("""
            for kind in failslab fail_page_alloc; do
                cd /sys/kernel/debug/$kind && echo N >ignore-gfp-wait && echo 0 >verbose || exit
            done
            echo N >ignore-gfp-highmem; echo 0 >min-order""")
        said = self.fuzz_and_compare("allocations fail", FAILING)
        self.assertRegex(said, r"[1-9]\d* calls with a failed allocation")

    def test_refused_commands(self):
        """The card refuses some of the driver's commands, as one without room does."""
        if not (EVERY_CELL or stack.has_debug_kernel()):
            self.skipTest("in make test-all, and on debug kernels")
        chance = random.Random(SEED)
        refused = []

        def refuse():
            for _ in range(10):
                inject.refuse_command(self.host, 0, chance.randrange(1, 20))
                time.sleep(0.05)
            commands = query.card_of(self.host)["engines"][0]["commands"]
            refused.append(commands["refuse_in"] == 0)
            inject.refuse_command(self.host, 0, 0)  # or it might refuse one of the exchange

        self.fuzz_and_compare("commands refused", also=refuse)
        self.assertIn(True, refused)


if __name__ == "__main__":
    main()
