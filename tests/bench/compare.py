#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench`: Tern, rxe, siw and TCP between the same two hosts, in turns, in one run.

Machines are noisy, so what counts are the ratios. Every figure is measured in several rounds,
in each of which all have their turn; the median counts. The table goes to the standard output,
and with all values and the plots to the build folder.
"""

import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "vm"), str(TESTS.parent / "scripts")]

# pylint: disable=wrong-import-position
from stacks import STACKS  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.host import Options  # noqa: E402
from ternlab.lab import Lab  # noqa: E402
from ternlab.paths import BUILD  # noqa: E402
from ternlab.progress import say, step  # noqa: E402

OPERATIONS = ("write", "read", "send")
SIZES = (65536, 1 << 20)
SWEEP = tuple(1 << n for n in (3, 6, 9, 12, 14, 16, 18, 20))
# How long a measurement should take, in seconds, and what it takes at least and at most.
TARGET, FEWEST, MOST = 1, 20, 200000
PASSIVE_SECONDS = 6
# For the buffers of bandwidth tests, as programs have them that care: what is lent or copied then
# is one piece.
HUGE_PAGES = 16


class Results:
    """What was measured: key, stack: all values."""

    def __init__(self):
        self.values = {}

    def add(self, key, stack, value):
        if value is not None:
            self.values.setdefault(key, {}).setdefault(stack, []).append(value)

    def median(self, key, stack):
        values = self.values.get(key, {}).get(stack)
        return statistics.median(values) if values else None


class Bench:
    def __init__(self, results, rounds, sweep):
        self.results, self.rounds, self.sweep = results, rounds, sweep
        self.rates = {}  # messages/s of a stack, by what was sent: how many fit in a while

    def iterations(self, key):
        rate = self.rates.get(key)
        return FEWEST if rate is None else int(min(MOST, max(FEWEST, rate * TARGET)))

    def bandwidth(self, stack, operation, size):
        """Measures once more if that was much shorter than it should have been: a short run is
        mostly its beginning, and says too little of how many the next should have."""
        key = (stack.name, operation, size)
        iterations = self.iterations(key)
        megabytes, messages = stack.bandwidth(operation, size, iterations)
        if messages is None:
            return None, None
        self.rates[key] = messages
        if self.iterations(key) > 2 * iterations:
            return self.bandwidth(stack, operation, size)
        return megabytes, messages

    def latency(self, stack, operation, size):
        key = (stack.name, operation, size, "latency")
        guessed = key not in self.rates
        median, rare = stack.latency(operation, size, 5 * self.iterations(key))
        if median:
            self.rates[key] = 1e6 / median / 5
            if guessed:
                return self.latency(stack, operation, size)
        return median, rare

    def passive(self, stack):
        """How much of a processor the serving guest needs while it is written to. None if nobody
        wrote."""
        seen = stack.server.spawn(f"vmstat -n 1 {PASSIVE_SECONDS}")
        written = stack.stream(PASSIVE_SECONDS)
        told = seen.wait().out
        return _busy(told, stack.server) if written else None

    def measure(self, stack):
        add, name = self.results.add, stack.name
        for operation in OPERATIONS:
            for size in SIZES:
                add(f"{operation} {size} MB/s", name, self.bandwidth(stack, operation, size)[0])
            rate = self.bandwidth(stack, operation, 8)[1]
            add(f"{operation} 8 k/s", name, rate and rate / 1e3)
            median, rare = self.latency(stack, operation, 8)
            add(f"{operation} 8 us", name, median)
            add(f"{operation} 8 us 99 %", name, rare)
        add("passive CPU %", name, self.passive(stack))

    def measure_sweep(self, stack):
        operation = "write" if stack.name != "TCP" else "send"
        for size in SWEEP:
            self.results.add(f"sweep {size} MB/s", stack.name,
                             self.bandwidth(stack, operation, size)[0])
            self.results.add(f"sweep {size} us", stack.name,
                             self.latency(stack, operation, size)[0])

    def run(self, hosts):
        for host in hosts:
            host.run(f"sysctl -qw vm.nr_hugepages={HUGE_PAGES}")
        idle = hosts[0].run(f"vmstat -n 1 {PASSIVE_SECONDS}").out
        self.results.add("passive CPU %", "idle", _busy(idle, hosts[0]))
        for number in range(1, self.rounds + 1):
            self.results.add("memcpy 65536 MB/s", "memcpy", memcpy(65536))
            for kind in STACKS:
                with kind(hosts) as stack, step(f"round {number} of {self.rounds}: {stack.name}"):
                    self.measure(stack)
        if self.sweep:
            for kind in STACKS:
                with kind(hosts) as stack, step(f"every size: {stack.name}"):
                    self.measure_sweep(stack)


def _busy(vmstat, host):
    """Per cent of one processor, from the middle of what vmstat said each second."""
    names, *rows = [line.split() for line in vmstat.splitlines() if not line.startswith("procs")]
    idle = [int(row[names.index("id")]) for row in rows[1:]]  # the first is since boot
    return (100 - statistics.median(idle)) * host.options.smp


def memcpy(size, seconds=0.3):
    """MB/s of this machine's memcpy() between two buffers of @size."""
    source, target = memoryview(bytearray(b"x" * size)), memoryview(bytearray(size))
    begun, copies = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        for _ in range(100):
            target[:] = source
        copies += 100
    return copies * size / (time.perf_counter() - begun) / 1e6


# --- how it is told

TABLE = (
    [(f"{operation} {size} MB/s", f"ib_{operation}_bw {size >> 10} KiB, MB/s")
     for operation in OPERATIONS for size in SIZES]
    + [(f"{operation} 8 k/s", f"ib_{operation}_bw 8 B, thousand messages/s")
       for operation in OPERATIONS]
    + [(f"{operation} 8 us{rare}", f"ib_{operation}_lat 8 B, us{text}")
       for operation in OPERATIONS for rare, text in (("", " median"), (" 99 %", " 99 %"))]
    + [("passive CPU %", "passive guest's CPU, % of one")]
)


def table(results):
    names = [stack.name for stack in STACKS]
    others = names[1:]
    lines = [f"{'':<36}" + "".join(f"{name:>9}" for name in names)
             + "".join(f"{'Tern/' + name:>11}" for name in others)]
    for key, title in TABLE:
        medians = {name: results.median(key, name) for name in names}
        if key.startswith("send"):
            title += "" if medians["TCP"] is None else " (TCP: iperf3, sockperf)"
        line = f"{title:<36.36}" + "".join(
            f"{'-' if medians[name] is None else format(medians[name], '.1f'):>9}"
            for name in names)
        if key != "passive CPU %":
            line += "".join(f"{ratio(medians['Tern'], medians[name]):>11}" for name in others)
        lines.append(line)
    copy = results.median("memcpy 65536 MB/s", "memcpy")
    write = results.median("write 65536 MB/s", "Tern")
    lines.append(f"memcpy of 64 KiB on this machine: {copy:.0f} MB/s; "
                 f"Tern's 64 KiB write: {write / copy:.3f} of it")
    tcp = results.median("send 65536 MB/s", "TCP")
    lines.append(f"Tern's 64 KiB write is {ratio(write, tcp)} of TCP's stream; the passive guest "
                 f"when idle: {results.median('passive CPU %', 'idle'):.1f} %")
    return "\n".join(lines)


def ratio(ours, theirs):
    return f"{ours / theirs:.2f} x" if ours and theirs else "-"


PLOTS = {
    "bandwidth": ("MB/s", "Bandwidth of writes (TCP: its stream)"),
    "latency": ("us", "Median latency of writes (TCP: ping-pong), one way"),
}


def plot(results, folder):
    """bandwidth.svg and latency.svg over the message's size, by gnuplot."""
    for name, (unit, title) in PLOTS.items():
        data = folder / f"{name}.dat"
        stacks = [stack.name for stack in STACKS]
        rows = ["\t".join(["size", *stacks])]
        for size in SWEEP:
            medians = [results.median(f"sweep {size} {unit}", stack) for stack in stacks]
            rows.append("\t".join([str(size), *("?" if m is None else f"{m:.3f}"
                                                for m in medians)]))
        data.write_text("\n".join(rows) + "\n", encoding="ascii")
        script = f"""
            set terminal svg size 800,500 background "white"
            set output "{folder / name}.svg"
            set title "{title}"
            set datafile missing "?"
            set logscale xy
            set logscale x 2
            set format x "%.0b %BB"
            set rmargin 6
            set xlabel "size of a message"
            set ylabel "{unit}"
            set grid
            set key top left
            plot for [n=2:{len(stacks) + 1}] "{data}" using 1:n with linespoints \\
                title columnheader(n)
        """
        subprocess.run(["gnuplot"], input=script, text=True, check=True)


def host_options(index):
    """With a virtio-net card on a wire of its own: datagrams from one QEMU to the other."""
    local, remote = (f"{{folder}}/peer{end}" for end in (index, 3 - index))
    return Options(
        wire="shm", mem="1G",
        netdevs=(f"dgram,id=peer,local.type=unix,local.path={local},"
                 f"remote.type=unix,remote.path={remote}",),
        devices=(f"virtio-net-pci,romfile=,netdev=peer,mac=52:54:00:78:00:{index:02x}",))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-sweep", dest="sweep", action="store_false",
                        help="no plots over the message's size")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    results = Results()
    lab = Lab("bench")
    begun = time.monotonic()
    try:
        lab.up([host_options(index) for index in (1, 2)], owned=True)
        Bench(results, args.rounds, args.sweep).run(lab.hosts)
    except LabError as error:
        print(f"make bench failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        lab.down()
        (folder / "results.json").write_text(json.dumps(results.values, indent=1),
                                             encoding="ascii")
    text = table(results)
    (folder / "table.txt").write_text(text + "\n", encoding="ascii")
    print(text, flush=True)
    if args.sweep:
        plot(results, folder)
        say(f"plots: {', '.join(str(folder / name) + '.svg' for name in PLOTS)}")
    say(f"done in {time.monotonic() - begun:.0f} s; all values: {folder / 'results.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
