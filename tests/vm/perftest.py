# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest's options, each with the programs that take it; its result goes into a table."""

import math
import os
import re

import programs
from scenario import main, pair

BW = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw")
LAT = ("ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat")
SWEEP = [2 ** n for n in range(1, 24)]  # the sizes of -a
HUGE_PAGES = 64
TIMES = int(os.environ.get("TERN_TIMES", "1"))  # how often to run what did not always end


def parts(run):
    """The program, and each option with its value."""
    program, *options = re.split(r" (?=-)", run)
    return {program, *options}


class Perftest(programs.Programs):
    TITLE, COLUMNS = "program and options", ("result",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tried = set()  # of parts()

    @classmethod
    def chosen(cls, runs):
        """All runs of a test. Or as few as have each program and each option with its value that no
        earlier test has had, but one at least. A test that repeats its runs gets all of them."""
        if programs.EVERY_CELL or len(set(runs)) < len(runs):
            return runs
        wanted = set().union(*map(parts, runs)) - cls.tried
        found = []
        while wanted or not found:
            found.append(max(runs, key=lambda run: len(parts(run) & wanted)))
            wanted -= parts(found[-1])
            cls.tried |= parts(found[-1])
        return sorted(found, key=runs.index)

    def each(self, *runs):
        """Runs of a program and its options, the iterations few as these CPUs are emulated."""
        for run in self.chosen(runs):
            program, _, options = run.partition(" ")
            if not {"-n", "-D"} & set(options.split()):
                options += " -n 100"
            with self.subTest(run):
                self.table.set(run, "result", "FAILED")
                self.table.set(run, "result", self.measure(program, options))

    def measure(self, program, options):
        """Both sides have to end well and to say something plausible; returns it in short."""
        words = options.split()
        by_cm = {"-R", "-z"} & set(words)
        if "-R" in words:
            rows = self.cm_perftest(self.hosts, program, options.replace("-R", ""))
        else:
            server, client = self.hosts
            commands = [f"{program} {self.patient(host)} {options}" for host in self.hosts]
            rows = pair.perftest(
                server, client, *commands,
                ready=pair.await_cm_listener if by_cm else pair.await_listener)

        def value(name, default):
            return int(words[words.index(name) + 1]) if name in words else default

        size = 8 if "atomic" in program else value("-s", 65536 if "_bw" in program else 2)
        # Of both together and of each.
        sizes = SWEEP if "-a" in words else [size] * (3 if "--report-both" in words else 1)
        self.assertEqual([row[0] for row in rows], sizes)
        for row in rows:
            if "-D" in words:
                self.assertGreater(row[1], 0)
            else:
                self.assertEqual(row[1], value("-n", 0) * value("-q", 1))
            # Bandwidth of small messages is rounded to none, and so is the rate of large ones; a
            # peak may not be asked for, and the deviation may be none at all.
            numbers = row[3:] if "_bw" in program else row[2:6]
            enough = any if "_bw" in program else all
            self.assertTrue(all(map(math.isfinite, numbers)), row)
            self.assertTrue(enough(number > 0 for number in numbers), row)
        last = rows[-1]
        if "_bw" in program:
            unit = "Gb" if "--report_gbits" in words else "MB"
            return f"{last[3]:8.2f} {unit}/s {last[4] * 1000:8.2f} k/s"
        return f"{last[2 if '-D' in words else 4]:8.1f} {'cycles' if '-C' in words else 'us'}"

    # --- queues

    def test_queue_pairs(self):
        self.each(*(f"{program} -q 8" for program in BW), "ib_write_bw -q 64 -s 1024 -n 20",
                  "ib_send_bw -q 64 -s 1024 -n 20", "ib_send_bw -c UD -q 4 -s 1024",
                  "ib_write_bw -q 4 --mr_per_qp", "ib_send_bw -q 4 --mr_per_qp")

    def test_shared_receive_queue(self):
        self.each("ib_send_bw --use-srq", "ib_send_bw --use-srq -q 4 -r 64",
                  "ib_send_bw --use-srq -b", "ib_send_bw --use-srq -c UD -s 1024",
                  "ib_send_bw --use-srq -e", "ib_send_lat --use-srq", "ib_send_bw --use-srq -R")

    def test_depths(self):
        self.each(*(f"{program} -t 1" for program in BW),
                  "ib_send_bw -t 1 -r 1", "ib_send_bw -t 4096 -r 4096 -n 5000 -s 64",
                  "ib_write_bw -t 8192 -n 5000 -s 64", "ib_send_bw -r 8", "ib_read_bw -o 1",
                  "ib_read_bw -o 4", "ib_read_lat -o 1", "ib_atomic_bw -o 1", "ib_atomic_bw -o 16")

    def test_lists(self):
        self.each("ib_write_bw -l 20", "ib_read_bw -l 10", "ib_send_bw -l 20",
                  "ib_send_bw -l 20 --recv_post_list=20", "ib_send_bw --recv_post_list=10 -q 2",
                  "ib_write_bw -l 4 -q 4", "ib_atomic_bw -l 10", "ib_send_bw -l 10 -c UD -s 64",
                  "ib_write_bw -l 20 --use_old_post_send",
                  "ib_send_bw -l 20 --recv_post_list=20 --use_old_post_send",
                  "ib_send_bw --use-srq --recv_post_list=10")

    def test_completions(self):
        self.each(*(f"{program} -Q {count} -s 4096" for program in BW[:3] for count in (1, 7, 50)),
                  "ib_atomic_bw -Q 50", "ib_write_bw -N")

    def test_events(self):
        """The passive half sleeps for completions, too; writes complete silently there."""
        self.each("ib_send_bw -e", "ib_read_bw -e", "ib_atomic_bw -e", "ib_send_bw -e -b",
                  "ib_send_bw -e -c UD -s 1024", "ib_send_lat -e", "ib_read_lat -e",
                  "ib_atomic_lat -e", "ib_send_lat -e -c UC", "ib_send_bw -e -X 1 -q 4")

    def test_events_of_many_queue_pairs(self):
        """They poll at most 16 CQEs for each event, so those left need another one."""
        runs = [f"{program} -e -q {qps} -s 1024 -n 20" for program, qps in self.covering(
            ("ib_read_bw", "ib_send_bw"), (1, 16, 64, 256))]
        self.each(*TIMES * runs)

    # --- what travels

    def test_services(self):
        self.each(*(f"{program} -c UC" for program in (
            "ib_write_bw", "ib_write_lat", "ib_send_bw", "ib_send_lat", "ib_send_bw -b")),
            *(f"{program} -c UD -s 1024" for program in ("ib_send_bw", "ib_send_lat",
                                                         "ib_send_bw -b")),
            *(f"{program} -c XRC" for program in BW + LAT),
            "ib_send_bw -c XRC -q 4", "ib_write_bw -c XRC -b", "ib_send_bw -c XRC -b")

    def test_mtus(self):
        self.each(*(f"{program} -m {mtu}" for program, mtu in self.covering(
            BW[:3] + ("ib_write_bw -c UC",), (256, 512, 1024, 2048, 4096))),
                  "ib_send_bw -c UD -m 1024 -s 1024")

    def test_sizes(self):
        self.each("ib_write_bw -a -n 5", "ib_read_bw -a -n 5 -b", "ib_send_bw -a -n 5 -b",
                  "ib_write_bw -a -n 5 -c UC", "ib_send_lat -a -n 5 -c UC",
                  "ib_send_bw -a -n 5 --use-srq", "ib_write_bw -s 1", "ib_send_bw -s 1",
                  "ib_read_bw -s 1", "ib_write_bw -s 33554432 -n 5")

    def test_inline(self):
        self.each("ib_write_bw -I 512 -s 512", "ib_send_bw -I 64 -s 64", "ib_write_lat -I 220",
                  "ib_send_lat -I 64 -s 64", "ib_send_lat -I 912 -s 912",
                  "ib_send_bw -c UD -I 128 -s 128", "ib_write_lat -c UC -I 64 -s 64",
                  "ib_write_bw -I 64 -s 64 --use_old_post_send")

    def test_both_directions(self):
        self.each(*(f"{program} -b" for program in BW), "ib_write_bw -b --report-both",
                  "ib_send_bw -b --report-both", "ib_write_bw -b -q 4 -l 10",
                  # An SRQ with one receive for each of 128 QPs. With a smaller -r, or an -n below
                  # it, perftest posts none and waits for ever.
                  "ib_send_bw -b -c XRC -q 64 -r 128 -n 200")

    def test_atomics(self):
        self.each(*(f"{program} -A {kind}" for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD")
                    for program in ("ib_atomic_bw", "ib_atomic_lat", "ib_atomic_bw -b")))

    def test_headers(self):
        self.each("ib_write_bw --tclass=64", "ib_write_bw -S 3", "ib_write_bw --pkey_index=0",
                  "ib_write_bw --dlid=1", "ib_write_bw --force-link=Ethernet",
                  "ib_send_bw -R -T 32")

    # --- how they connect

    def test_connections(self):
        self.each("ib_write_bw -z", "ib_send_bw -z", "ib_send_lat -z -c UD -s 64",
                  *(f"{program} -R" for program in BW + LAT), "ib_send_bw -R -q 4",
                  "ib_write_bw -R --retry_count=3", "ib_send_bw -R -c UD -s 1024")

    # --- memory

    def test_memory(self):
        for host in self.hosts:
            host.run(f"sysctl -qw vm.nr_hugepages={HUGE_PAGES}; "
                     "head -c 1M /dev/zero >/dev/shm/perftest")
        self.each("ib_write_bw --odp", "ib_read_bw --odp", "ib_send_bw --odp",
                  "ib_write_bw --use_hugepages", "ib_send_bw --use_hugepages",
                  "ib_write_bw --disable_pcie_relaxed", "ib_write_bw --mmap=/dev/shm/perftest")

    # --- how they measure

    def test_duration(self):
        self.each(*(f"{program} -D 3 -f 1" for program in BW), "ib_read_lat -D 3 -f 1",
                  "ib_send_bw -D 3 -f 1 -b", "ib_write_bw -D 3 -f 1 --cpu_util")

    def test_reports(self):
        self.each("ib_write_bw --report_gbits", "ib_send_bw --report_gbits", "ib_write_lat -C",
                  "ib_write_lat -H", "ib_send_lat -U", "ib_write_bw --perform_warm_up",
                  "ib_read_bw --perform_warm_up", "ib_write_bw -w 0.001 -y 0.000001",
                  "ib_write_bw --out_json --out_json_file=/tmp/perftest.json",
                  "ib_write_bw -W hw_counters/duplicate_request",
                  "ib_write_bw --rate_limit=1 --rate_limit_type=SW --burst_size=4",
                  "ib_send_bw --wait_destroy=1", "ib_send_bw --reversed")


if __name__ == "__main__":
    main()
