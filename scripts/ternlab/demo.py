# SPDX-License-Identifier: GPL-2.0-or-later
"""make run: two hosts, stock programs between them, and a table of what they measured."""

import sys
import time

from .errors import SYSTEM, LabError, explain
from .host import Options
from .lab import Lab
from .pair import perftest
from .process import exit_on_signals
from .progress import say, step

# Few iterations: these are emulated CPUs, and this shows that it works.
RUNS = (
    ("ib_write_bw", "-s 65536 -n 500"),
    ("ib_read_bw", "-s 65536 -n 500"),
    ("ib_send_bw", "-s 65536 -n 500"),
    ("ib_write_bw", "-s 1048576 -n 50"),
    ("ib_write_bw", "-s 8 -n 5000"),
    ("ib_atomic_bw", "-n 1000"),
    ("ib_write_lat", "-s 8 -n 1000"),
    ("ib_read_lat", "-s 8 -n 1000"),
    ("ib_send_lat", "-s 8 -n 1000"),
    ("ib_atomic_lat", "-n 1000"),
)
ROW = "{:<14} {:>9} {:>11} {:>12} {:>14} {:>16}"


def introduce(host):
    """What a person types first."""
    host.run("modprobe tern")
    device = host.rdma_device()
    host.gid_index(device)
    print(f"\n# {host.name}: modprobe tern; ibv_devinfo")
    print(host.run(f"ibv_devinfo -d {device}").out.strip())
    return device


def row(program, result):
    size, iterations = f"{result[0]:.0f} B", f"{result[1]:.0f}"
    if program.endswith("_bw"):
        return ROW.format(program, size, iterations, f"{result[3]:.1f} MB/s",
                          f"{result[4] * 1000:.1f} k/s", "")
    return ROW.format(program, size, iterations, "", "", f"{result[4]:.1f} us")


def measure(server, client):
    table = []
    for program, arguments in RUNS:
        command = f"{program} {arguments}"
        with step(command):
            table.append(row(program, perftest(server, client, command, command)[0]))
    return table


def demonstrate(lab):
    lab.up([Options(), Options()], owned=True)
    for host in lab.hosts:
        introduce(host)
    print("\n# perftest from host2 to host1\n", flush=True)
    table = measure(*lab.hosts)
    print(ROW.format("program", "size", "iterations", "bandwidth", "messages", "typical latency"))
    print("\n".join(table), flush=True)


def main():
    exit_on_signals()
    begun = time.monotonic()
    try:
        lab = Lab("run")
        try:
            demonstrate(lab)
        finally:
            lab.down()
    except LabError as error:
        print(f"make run failed: {error}", file=sys.stderr)
        return 1
    except SYSTEM as error:
        print(f"make run failed: {explain(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    say(f"two hosts booted, measured and gone in {time.monotonic() - begun:.0f} s")
    return 0
