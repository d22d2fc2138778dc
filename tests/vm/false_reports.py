# SPDX-License-Identifier: GPL-2.0-or-later
"""A card that reports what is not true (`lab inject falsify`): the kernel has no complaint, no
program crashes or hangs for ever, and a card that reports the truth again works."""

import os
import random
import re
import time

from programs import Programs
from scenario import NETDEV, main, wait_until
from ternlab import inject, pace, stack

# Other seeds find other things: TERN_FALSIFY_SEED and TERN_FALSIFY_SEEDS.
FIRST = int(os.environ.get("TERN_FALSIFY_SEED", "1"))
SEEDS = int(os.environ.get("TERN_FALSIFY_SEEDS", "2"))
SECONDS = 6
EVERY = 50
# A program that runs for more seconds than this hangs on the reference machine, and the test kills
# it. The kernel's checkers make programs ten times slower.
SLOW = stack.has_debug_kernel()
LIMIT = 40 if SLOW else 4
# An admin command whose answer has another's number ends when the driver gives the card up, after
# 20 s, and a program may meet two.
PATIENCE = 60
STOP, DONE = "/tmp/stop", "/tmp/done"
FAILURE = re.compile(r"\bthe card (.*)[\r\n]")  # as the driver says it
# Programs end with errors, which is fine; what hangs is killed. Both ends are on the same card.
WORK = f"""
work=$1 device=$2 gid=$3 own=$4 peer=$5 port=$6 limit=$7
halves() {{
    timeout -s KILL $limit $1 &
    sleep 0.2
    timeout -s KILL $limit $2
    status=$?
    wait $!
    return $status
}}
pair() {{
    halves "$*" "$* 127.0.0.1"
}}
while [ ! -e {STOP} ]; do
    case $work in
    rping) halves "rping -s -C 20 -a $own -p $port" "rping -c -C 20 -a $own -p $port" ;;
    ping) timeout -s KILL $limit ping -f -s 2000 $peer ;;
    tcp) timeout -s KILL $limit socat -u /dev/zero TCP:$peer:9998 ;;
    ethtool) ethtool -S {NETDEV} ;;
    ib_write_bw) pair ib_write_bw -F -d $device -x $gid -n 100 -s 4096 -p $port ;;
    *) pair $work -d $device -g $gid -n 30 -p $port ;;
    esac && : >{DONE}.$port
    sleep 0.05
done >/dev/null 2>&1
"""
ENDLESS = ("ping", "tcp")  # until they are killed
PROGRAMS = ("ibv_rc_pingpong", "ibv_rc_pingpong -e", "ibv_rc_pingpong -t", "ibv_uc_pingpong",
            "ibv_ud_pingpong", "ibv_srq_pingpong", "ib_write_bw", "rping", "ethtool",
            *ENDLESS)
# A debug kernel cannot run more programs at once: none would end in time, and the restarts would
# take all processors.
TOGETHER = 4 if SLOW else len(PROGRAMS)


class FalseReports(Programs):
    COLUMNS = ("result",)
    # A queue of the net_device waits as long as a command of its restart.
    TOLERATED = re.compile("NETDEV WATCHDOG")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host, cls.peer = cls.hosts
        cls.pci = cls.host.pci()
        cls.host.write_file("/tmp/work", WORK.encode())

    def start(self, programs):
        """The programs, each again and again until told to stop. Half of them have succeeded,
        which all would if each were alone."""
        device = self.devices[self.host.name]
        gid = self.host.gid_index(device)
        self.host.run(f"rm -f {STOP} {DONE}.*")
        # By default devlink recovers a card at most once a minute.
        self.host.run(f"devlink health set pci/{self.pci} reporter fw_fatal grace_period 0")
        limit = pace.scaled(LIMIT) / pace.LEAST
        tasks = [self.host.spawn(f"bash /tmp/work '{program}' {device} {gid} {self.host.ipv4} "
                                 f"{self.peer.ipv4} {20000 + number} {limit:.0f}")
                 for number, program in enumerate(programs)]
        ends = sum(program not in ENDLESS for program in programs)
        self.assertTrue(wait_until(
            lambda: len(self.host.run(f"ls {DONE}.*", check=False).out.split()) >= ends // 2,
            PATIENCE),
            self.host.run(f"ls {DONE}.*", check=False).out)
        return tasks

    def falsify(self, every, chance):
        inject.falsify(self.host, 0, every, chance.randrange(1 << 31))

    def finish(self, tasks):
        """From here on the card reports the truth. What it has reported does no lasting harm."""
        inject.falsify(self.host, 0, 0, 0)
        self.host.run(f"touch {STOP}")
        self.assertTrue(wait_until(lambda: not any(task.running() for task in tasks), PATIENCE),
                        self.host.run("ps -eo pid,stat,wchan:30,args").out)
        log = self.host.run("dmesg").out
        self.assertNotIn("segfault", log)
        drivers = "/sys/bus/pci/drivers/tern"
        self.host.run(f"echo {self.pci} >{drivers}/unbind; echo {self.pci} >{drivers}/bind",
                      timeout=60)
        self.assertTrue(wait_until(
            lambda: self.host.run(f"ip link show {NETDEV}", check=False).code == 0, 30))
        self.host.configure()
        self.host.rdma_device()
        self.pingpong("-n 20 -c")
        self.ping(self.peer, self.host.ipv4)
        return log

    def test_all_reports(self):
        sink = self.peer.spawn("socat -u TCP-LISTEN:9998,reuseaddr,fork OPEN:/dev/null")
        self.addCleanup(sink.give_up)
        for seed in range(FIRST, FIRST + SEEDS):
            with self.cell(f"seed {seed}", "result"):
                chance = random.Random(seed)
                tasks = self.start(chance.sample(PROGRAMS, TOGETHER))
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    self.falsify(EVERY, chance)  # anew, for a reset has ended it
                    time.sleep(0.5)
                self.finish(tasks)

    def failure(self, chance):
        """Has the card report what is not true until the driver gives it up; the reason."""
        before = len(self.host.console())
        self.falsify(2, chance)
        found = wait_until(lambda: FAILURE.search(self.host.console(), before), PATIENCE, 0.2)
        self.assertTrue(found)
        return found[1]

    def test_lost_completions(self):
        """The kernel waits for completions of its MADs that never come. The driver finds out by
        those that cannot be, and gives the card up, which ends the waiting."""
        chance = random.Random(FIRST)
        reporter = f"pci/{self.pci} reporter fw_fatal"
        with self.cell("completions of MADs", "result"):
            tasks = self.start(["rping"] * 4)
            # Here the card comes back when no report is false any more: its failure has ended that.
            self.host.run(f"devlink health set {reporter} auto_recover false")
            reasons = []
            while "completes what was not posted" not in reasons:
                if reasons:
                    self.host.run(f"devlink health recover {reporter}", timeout=60)
                reasons.append(self.failure(chance))
                # Other false reports may be found out first.
                self.assertLess(len(reasons), 20, reasons)
            self.finish(tasks)


if __name__ == "__main__":
    main()
