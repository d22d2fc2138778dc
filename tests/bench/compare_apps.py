#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-apps`: what RDMA gives its users in the kernel and programs, in place of TCP.

The same two hosts use Tern's RDMA, TCP over Tern's net_device, TCP over virtio-net and Soft-RoCE in
turns. The median of some rounds counts; on a busy machine the ratios do. What an operation costs in
time of the processors, both hosts' QEMUs together, depends less on what else runs. A third table
tells which threads of QEMU take it.
"""

import argparse
import itertools
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "vm"), str(TESTS.parent / "scripts")]

# pylint: disable=wrong-import-position
from compare import Results, host_options, ratio  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.lab import Lab  # noqa: E402
from ternlab.paths import BUILD  # noqa: E402
from ternlab.progress import say, step  # noqa: E402
from user_programs import PROGRAMS  # noqa: E402
from users import ROUTES, RXE, SECONDS, TERN, users  # noqa: E402


# Threads of QEMU, by their names.
THREADS = {"processors": re.compile(r"CPU \d+/"), "card": re.compile("tern$"),
           "rest of QEMU": re.compile("")}


def cpu_times(hosts):
    """The CPU seconds that the hosts' QEMUs have taken so far, by the kind of thread."""
    times = dict.fromkeys(THREADS, 0.0)
    for host in hosts:
        for name, seconds in host.process.thread_times().items():
            kind = next(kind for kind, names in THREADS.items() if names.match(name))
            times[kind] += seconds
    return times


class Bench:
    def __init__(self, results, hosts, kinds):
        self.results = results
        self.users = [kind(hosts) for kind in kinds]
        self.hosts = hosts
        self.warm = set()  # users and routes that have run before
        self.hopeless = set()  # users that do not get through rxe

    def run(self, rounds):
        for user in self.users:
            user.prepare()
        turns = itertools.product(range(1, rounds + 1), self.users)
        for (number, user), route in itertools.product(turns, ROUTES):
            if route in user.routes and (user.name, route) not in self.hopeless:
                with step(f"round {number} of {rounds}: {user.name}, {route.name}"):
                    self.measure(user, route)

    def measure(self, user, route):
        try:
            with route.stack(self.hosts), user.attached(route) as attached:
                self.warm_up(user, route, attached)
                for metric in user.metrics:
                    begun = cpu_times(self.hosts)
                    rate = user.measure(route, attached, metric)
                    ended = cpu_times(self.hosts)
                    self.results.add(key(user, metric), route.name, rate / metric.unit)
                    if not user.has_cost:
                        continue
                    costs = {kind: (ended[kind] - begun[kind]) / (rate * SECONDS) * 1e6
                             for kind in THREADS}
                    self.results.add(cost_key(user, metric), route.name, sum(costs.values()))
                    for kind, cost in costs.items():
                        self.results.add(thread_key(user, metric, kind), route.name, cost)
        except LabError as error:
            if route != RXE:
                raise
            self.hopeless.add((user.name, route))
            say(f"{user.name} does not get through {route.name}: {error}")

    def warm_up(self, user, route, attached):
        if (user.name, route) not in self.warm:
            user.warm_up(route, attached)
        self.warm.add((user.name, route))


# --- how it is told

def key(user, metric):
    return f"{user.name}: {metric.title}"


def cost_key(user, metric):
    return f"{key(user, metric)}, CPU us"


def thread_key(user, metric, kind):
    return f"{cost_key(user, metric)}, {kind}"


def table(results, users):
    rows = [(user, metric) for user in users for metric in user.metrics]
    costly = [row for row in rows if row[0].has_cost]
    lines = part("", results, [key(*row) for row in rows], ratio)
    if costly:
        lines += ["", *part("CPU us an operation", results, [cost_key(*row) for row in costly],
                            lambda ours, theirs: ratio(theirs, ours)),
                  "", *threads(results, costly)]
    return "\n".join(lines)


def part(title, results, rows, compare):
    """Lines, with how many times better Tern is than each other."""
    names = [route.name for route in ROUTES]
    others = [name for name in names if name != TERN.name]
    lines = [f"{title:<36}" + "".join(f"{name:>12}" for name in names)
             + "".join(f"{'to ' + name:>14}" for name in others)]
    for row in rows:
        medians = {name: results.median(row, name) for name in names}
        lines.append(f"{row.removesuffix(', CPU us'):<36}" + "".join(
            f"{'-' if medians[name] is None else format(medians[name], '.0f'):>12}"
            for name in names) + "".join(
                f"{compare(medians[TERN.name], medians[name]):>14}" for name in others))
    return lines


def threads(results, rows):
    """Lines: which threads take the time of an operation over Tern."""
    lines = [f"{'CPU us an operation over Tern':<36}" + "".join(f"{kind:>14}" for kind in THREADS)]
    for row in rows:
        medians = [results.median(thread_key(*row, kind), TERN.name) for kind in THREADS]
        if None not in medians:
            figures = [f"{median:.0f} ({median / sum(medians):.0%})" for median in medians]
            lines.append(f"{key(*row):<36}" + "".join(f"{figure:>14}" for figure in figures))
    return lines


def plot(results, users, folder):
    """apps.svg: each route's figure, as a multiple of TCP's over virtio-net or else of rxe's."""
    names = [route.name for route in ROUTES]
    data, picture = folder / "apps.dat", folder / "apps.svg"
    lines = ["\t".join(["row", *names])]
    for row in (key(user, metric) for user in users for metric in user.metrics):
        medians = [results.median(row, name) for name in names]
        base = medians[2] or medians[3]
        lines.append("\t".join([f'"{row}"', *("?" if m is None or not base else f"{m / base:.3f}"
                                              for m in medians)]))
    data.write_text("\n".join(lines) + "\n", encoding="ascii")
    script = f"""
        set terminal svg size 1000,600 background "white"
        set output "{picture}"
        set title "Throughput, TCP over virtio-net = 1"
        set datafile missing "?"
        set datafile separator tab
        set style data histogram
        set style fill solid
        set logscale y
        set grid ytics
        set xtics rotate by -40
        plot for [n=2:{len(names) + 1}] "{data}" using n:xtic(1) title columnheader(n)
    """
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    return picture


def main():
    kinds = [*users(), *PROGRAMS]
    names = [kind.name for kind in kinds]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--users", nargs="+", choices=names, default=names)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in kinds if kind.name in args.users]
    results = Results()
    lab = Lab("bench-apps")
    begun = time.monotonic()
    try:
        lab.up([host_options(index) for index in (1, 2)], owned=True)
        Bench(results, lab.hosts, kinds).run(args.rounds)
    except LabError as error:
        print(f"make bench-apps failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        lab.down()
        (folder / "apps.json").write_text(json.dumps(results.values, indent=1), encoding="ascii")
    text = table(results, kinds)
    (folder / "apps.txt").write_text(text + "\n", encoding="ascii")
    print(text, flush=True)
    say(f"done in {time.monotonic() - begun:.0f} s; all values: {folder / 'apps.json'}; "
        f"plot: {plot(results, kinds, folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
