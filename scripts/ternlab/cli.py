# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/lab: the command line."""

import argparse
import os
import subprocess
import sys

from . import stack, wire
from .errors import LabError
from .host import NETDEV, WIRES, Options
from .lab import Lab
from .progress import say

DESCRIPTION = "Brings up hosts with Tern cards on one wire, and works on them."
EPILOG = """\
hosts are named host1, host2, ... or 1, 2, ...; "all" means every one

  scripts/lab up 2
  scripts/lab run all -- ibv_devinfo
  scripts/lab shell host1
  scripts/lab capture start wire.pcap
  scripts/lab down

TERN_STACK chooses what the hosts that come up are of, a row of scripts/stacks.txt;
`TERN_STACK=bookworm-6.12 make lab` builds what they need, too
"""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="lab", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default=os.environ.get("TERN_LAB", "lab"), metavar="NAME",
                        help="which lab, as several may be up (default: $TERN_LAB or \"lab\")")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="boot hosts on one wire")
    up.add_argument("count", nargs="?", type=int, default=2, help="how many (default 2)")
    up.add_argument("--mtu", type=int, default=Options.mtu, help="default %(default)s")
    up.add_argument("--smp", type=int, default=Options.smp, help="CPUs each; default %(default)s")
    up.add_argument("--mem", default="1G", help="memory of each; default %(default)s")
    up.add_argument("--viommu", action="store_true", help="put the cards behind an IOMMU")
    up.add_argument("--no-load", dest="load", action="store_false",
                    help="leave tern.ko for you to load")
    up.add_argument("--nic", choices=("tern", "virtio"), default="tern",
                    help="another card on the wire, to compare")
    up.add_argument("--wire", choices=WIRES, default=Options.wire,
                    help="through shared memory or QEMU's sockets; default %(default)s")
    up.add_argument("--nic-options", default="", metavar="NAME=VALUE,...",
                    help="more properties of the card")
    up.add_argument("--kernel-options", default="", metavar="WORDS",
                    help="more words for the kernel's command line")

    run = commands.add_parser("run", help="run a command on hosts; its exit code is passed on")
    run.add_argument("hosts")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")

    shell = commands.add_parser("shell", help="log in to a host")
    shell.add_argument("host")

    for name in ("copy", "cp"):
        copy = commands.add_parser(name, help="copy files to a host or from it")
        copy.add_argument("paths", nargs="+", metavar="PATH", help="PATH or HOST:PATH")

    capture = commands.add_parser("capture", help="record the wire: start FILE, stop")
    capture.add_argument("action", choices=("start", "stop"))
    capture.add_argument("file", nargs="?")

    faults = commands.add_parser("faults", help="make the wire a bad one, or good again")
    for fault in wire.FAULTS:
        faults.add_argument(f"--{fault}", type=float, default=0, metavar="PERCENT")
    faults.add_argument("--seed", type=int)

    commands.add_parser("status", help="what is up")
    console = commands.add_parser("console", help="print what a host's kernel said")
    console.add_argument("host")
    commands.add_parser("down", help="stop it all")
    return parser.parse_args(arguments)


def up(args):
    options = Options(**{name: getattr(args, name) for name in (
        "mtu", "smp", "mem", "viommu", "load", "nic", "wire", "nic_options", "kernel_options")})
    lab = Lab(args.lab)
    lab.up([options] * args.count)
    names = ", ".join(host.name for host in lab.hosts)
    say(f"{names} up; try: scripts/lab run all -- ibv_devinfo")


def run(args):
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise LabError("run what? scripts/lab run HOST -- COMMAND")
    # One word is a line for the guest's shell, several are the words of a command.
    command = words[0] if len(words) == 1 else " ".join(map(_quote, words))
    lab = Lab.find(args.lab)
    hosts = lab.select(args.hosts)
    if len(hosts) == 1:
        return subprocess.run(hosts[0].ssh.command(command), check=False).returncode

    results = lab.each(lambda host: host.ssh.run(command), hosts)
    for host, result in zip(hosts, results):
        for text, stream in ((result.stdout, sys.stdout), (result.stderr, sys.stderr)):
            for line in text.splitlines():
                print(f"{host.name}: {line}", file=stream)
    return next((result.returncode for result in results if result.returncode), 0)


def _quote(word):
    return "'" + word.replace("'", "'\\''") + "'"


def shell(args):
    command = Lab.find(args.lab).host(args.host).ssh.command(flags=("-t",))
    os.execvp(command[0], command)


def copy(args):
    if len(args.paths) < 2:
        raise LabError("copy what where? scripts/lab copy PATH... HOST:PATH, or back")
    named = {path.partition(":")[0] for path in args.paths if ":" in path}
    if len(named) != 1:
        raise LabError("copy between here and one host: write its paths as HOST:PATH")
    host = Lab.find(args.lab).host(named.pop())
    *sources, target = [path[path.index(":"):] if ":" in path else path for path in args.paths]
    host.ssh.copy(sources, target)


def capture(args):
    lab = Lab.find(args.lab)
    if args.action == "stop":
        lab.wire.stop_capture()
    elif args.file:
        lab.wire.capture(args.file)
    else:
        raise LabError("capture where to? scripts/lab capture start FILE")


def faults(args):
    lab = Lab.find(args.lab)
    if args.seed is not None:
        lab.wire.tell(f"seed {args.seed}")
    for fault in wire.FAULTS:
        lab.wire.tell(f"{fault} {getattr(args, fault):g}")


def status(args):
    lab = Lab.find(args.lab)
    for host in lab.hosts:
        if host.process.alive():
            link = host.ssh.run(f"readlink /sys/class/net/{NETDEV}/device/driver").stdout
            driver = link.strip().rpartition("/")[2] or "no driver for its card"
            print(f"{host.name}  up, pid {host.process.pid}, {host.ipv4} {host.ipv6} "
                  f"on {NETDEV} ({driver}), ssh port {host.port}")
        else:
            print(f"{host.name}  dead; `scripts/lab console {host.name}` may tell why")
    print(f"wire   {lab.wire.stats() if lab.wire.process.alive() else 'dead'}")
    print(f"logs   {lab.logs}")


def console(args):
    print(Lab.find(args.lab).host(args.host).console(), end="")


def down(args):
    Lab.find(args.lab).down()


def main(arguments):
    args = parse(arguments)
    action = {"cp": copy}.get(args.command) or globals()[args.command]
    try:
        stack.enter()
        return action(args) or 0
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
