# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that are killed at random points, under load: nothing of them stays behind.

TERN_KILLS says how often a process of each pair of programs is killed.
"""

import os
import random
import time

from programs import Programs
from scenario import main, pair, wait_until

SEED = 7
KILLS = int(os.environ.get("TERN_KILLS", "6"))
ENDLESS = 600  # seconds; the programs are killed long before


class Killed(Programs):
    """Objects and pinned pages are counted before and after."""

    COLUMNS = ("result",)

    def holdings(self, host):
        """All RDMA objects of the host, and how many pages the kernel holds pinned."""
        objects = host.run("rdma -j resource show").out
        pins = dict(line.split() for line in host.run(
            # Each CPU counts for itself until it is asked.
            "sysctl -q vm.stat_refresh=1; grep nr_foll_pin_ /proc/vmstat").out.splitlines())
        return objects, int(pins["nr_foll_pin_acquired"]) - int(pins["nr_foll_pin_released"])

    def kill_one(self, victim, after, commands, port, in_traffic):
        """Half @victim of a pair dies so many seconds after both began, or after packets go to and
        fro; then the other."""
        serving = self.hosts[0].spawn(commands[0])
        pair.await_listener(self.hosts[0], port, serving)
        tasks = [serving, self.hosts[1].spawn(commands[1])]
        if in_traffic:
            self.await_traffic(self.hosts[victim], *tasks)
        time.sleep(after)
        # A half that has ended by itself would leave nothing to kill.
        self.assert_running(*tasks)
        tasks[victim].kill()
        self.assertNotEqual(tasks[victim].wait(check=False).code, 0)
        for task in tasks:
            task.give_up()

    def check_load(self, row, commands, port):
        chance = random.Random(SEED)
        before = [self.holdings(host) for host in self.hosts]
        with self.cell(row, "result"):
            for turn in range(KILLS):
                after = chance.uniform(0.05, 1.5)
                self.kill_one(turn % 2, after, commands, port, in_traffic=turn >= KILLS // 2)
                for host, had in zip(self.hosts, before):
                    gone = wait_until(lambda: self.holdings(host) == had, 15)
                    self.assertTrue(gone, f"{host.name}, killed after {after:.2f} s: had {had}, "
                                          f"has {self.holdings(host)}")
        # What is left works.
        self.pingpong("-n 20 -c")

    def device_options(self, host, option="-x"):
        return f"-d {self.devices[host.name]} {option} {host.gid_index(self.devices[host.name])}"

    def test_perftest(self):
        server, client = self.hosts[:2]
        for program, arguments in (("ib_write_bw", f"-s 1048576 -q 8 -D {ENDLESS}"),
                                   ("ib_read_bw", f"-s 65536 -q 4 -D {ENDLESS}"),
                                   ("ib_send_bw", f"-c UD -s 2048 -D {ENDLESS}"),
                                   ("ib_send_bw", f"-s 4096 --use-srq -q 4 -D {ENDLESS}")):
            self.check_load(f"{program} {arguments}", [
                f"{program} {arguments} {self.device_options(server)}",
                f"{program} {arguments} {self.device_options(client)} {server.ipv4}"],
                pair.PERFTEST_PORT)

    def test_stress(self):
        """Every kind of request, and regions, windows and QPs that come and go."""
        self.check_load("tern_verbs_check stress", self.verbs_check_halves(
            *self.hosts[:2], "stress", f"--seconds {ENDLESS} --qps 8", seed=8),
            self.VERBS_CHECK_PORT)


if __name__ == "__main__":
    main()
