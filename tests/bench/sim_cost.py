#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-sim`: what a packet costs in tern-sim, by the number of cards.

Each card writes 64 KiB messages to ten others through one switch: to one after the other, as an
all-to-all exchange does, so that no port gets more than it can carry, and to all of them at once,
so that queues are long. The figure is the processor's time without that of the set-up, the best of
several runs, since other programs can only make it worse. The numbers of cards take turns, so that
a slow minute of the machine does not change their ratio. The memory is the most that a run has had,
frames in queues included. Both orders are compared with the bar; the exit code is 1 if 'in turn'
misses it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RUNS = 5
PACKETS = 3_000_000
RATE = 100e9
PEERS = 10
CARDS = (10, 100, 1000)
# In turn there is also a row in which each card writes to all others.
ALL_TO_ALL = 100
# The maximum cost of a packet with the most cards, as a multiple of that with the fewest.
BAR = 1.5
SCENARIO = """
duration = "{ns} ns"
sample = "{ns} ns"
switch = [{{ name = "tor" }}]
host = [{{ name = "h", count = {cards} }}]
[[link]]
ends = ["h*", "tor"]
[[flow]]
from = "h*"
to = "h*"
peers = {peers}
size = "64 KiB"
order = "{order}"
"""


def run(program, file):
    """Nanoseconds a packet, and KiB of memory."""
    with subprocess.Popen([program, file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(said)
    return float(re.search(r"(\d+) ns each", said)[1]), usage.ru_maxrss


def write_scenario(order, cards, peers, folder):
    """Returns its file."""
    ns = int(PACKETS / cards / (RATE / 8 / 1130) * 1e9)
    file = pathlib.Path(folder) / f"{cards}-{peers}.toml"
    file.write_text(SCENARIO.format(cards=cards, peers=peers, ns=ns, order=order),
                    encoding="ascii")
    return file


def measure(program, order, folder):
    """Prints a row for each number of cards. Returns how many times as much as with the fewest
    cards a packet costs with the most."""
    cases = [(cards, min(PEERS, cards - 1)) for cards in CARDS]
    if order == "in turn":
        cases.append((ALL_TO_ALL, ALL_TO_ALL - 1))
    files = {case: write_scenario(order, *case, folder) for case in cases}
    runs = [{case: run(program, file) for case, file in files.items()} for _ in range(RUNS)]
    best = {case: min(each[case] for each in runs) for case in cases}
    first = best[cases[0]][0]
    for (cards, peers), (ns, memory) in best.items():
        print(f"{order:8} {cards:6} {cards * peers:6} {1e9 / ns:10.0f} {ns:10.0f} "
              f"{ns / first:12.2f} {memory / cards:9.0f}", flush=True)
    return best[cases[len(CARDS) - 1]][0] / first


def main():
    program = sys.argv[1]
    print("peers     cards    QPs  packets/s  ns/packet  of 10 cards  KiB/card")
    with tempfile.TemporaryDirectory() as folder:
        growth = {order: measure(program, order, folder) for order in ("in turn", "together")}
    print(f"\nThe bar: a packet with {CARDS[-1]} cards costs at most {BAR} times that with "
          f"{CARDS[0]}")
    for order, times in growth.items():
        print(f"{order}: {times:.2f} times, {'met' if times <= BAR else 'MISSED'}")
    return 0 if growth["in turn"] <= BAR else 1


sys.exit(main())
