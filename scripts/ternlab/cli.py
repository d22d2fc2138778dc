# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/lab: the command line."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from . import faults as wire_faults
from . import inject as injections
from . import ladder as ladders
from . import query as queries
from . import own_disk, ssh, stack, topology
from .errors import SYSTEM, LabError, explain
from .host import MAX_CARDS, NETDEV, WIRES, Options
from .lab import LOCK, MAX_NAME, Lab, NoLab, is_name
from .paths import COMMAND
from .process import exit_on_signals
from .progress import say
from .watch import watch as watch_lab
from .why import Why
from .wire import PERCENTAGES

DESCRIPTION = "Brings up hosts with Tern cards on one wire, and works on them."
EPILOG = f"""\
hosts are named host1, host2, ... (as its file says with --topology) or 1, 2, ...;
"all" means every one

  {COMMAND} up 2
  {COMMAND} run all -- ibv_devinfo
  {COMMAND} shell host1
  {COMMAND} serve host1 -- ib_write_bw
  {COMMAND} run host2 -- ib_write_bw host1
  {COMMAND} capture start wire.pcap
  {COMMAND} why host1 --qp 0x11
  {COMMAND} add
  {COMMAND} kill host1
  {COMMAND} restart host1
  {COMMAND} down
  {COMMAND} up --topology examples/lab-incast.toml
  {COMMAND} fabric

TERN_STACK chooses what the hosts of a lab that comes up are of, a row of scripts/stacks.txt;
`TERN_STACK=bookworm-6.12 make lab` builds what they need, too
"""


MATCHES = f"""\
a MATCH has some of these words; '' is every frame
  from=HOST, to=HOST, host=HOST   or Ethernet addresses; several with commas
  opcode=NAME,...    WRITE, SEND, READ, READ_RESPONSE, ATOMIC, ACK, NAK, RNR_NAK, CNP, UC_WRITE,
                     SEND_FIRST, UD, 0x0a, ...; ETHERNET is all that is not RoCE
  qp=NUMBER          the destination
  psn=+N, psn=0x..   from the first packet of the flow on, or absolute
  retransmission=yes|no
  nth=N              the n-th frame of all that match
  link=FROM:TO,...   where frames arrive by a link of a topology; * and ? match several

  {COMMAND} faults --drop 'opcode=WRITE psn=+4' --once
  {COMMAND} faults host1 --delay opcode=ACK --by 5ms --every 10
  {COMMAND} faults --drop link=leaf1:spine1 --probability 0.01
"""

# The smallest MTU is IPv6's minimum, as each card has an IPv6 address; the largest is the card's.
# A guest with more CPUs than this would need an IOMMU.
MTUS = 1280, 9000
CPUS = 1, 255
SEEDS = 0, (1 << 64) - 1

# Commands that need no files of the stack. "down" must work even if the stack no longer exists, and
# copied files would be lost in another root file system (scripts/on-stack).
WITHOUT_STACK = ("list", "ladder", "down", "copy", "cp")

# Where in a host the output of a program that serves is.
SERVED = "/tmp/served"
SERVE_TIMEOUT = 60
# For what `status` asks a host; a guest that hangs does not answer.
STATUS_TIMEOUT = 5
# Programs listen on a port of TCP or of RDMA CM, which does not list its ports in /proc/net. The
# program that does may be a child of the command, as with timeout(1).
SERVE = """
family() {{
    all=$1 parents=$1
    while parents=$(pgrep -d, -P "$parents"); do all="$all,$parents"; done
    echo "$all" | tr , "$2"
}}
exec 3>&1 </dev/null >{output} 2>&1 || exit
{{ {command}
}} 3>&- &
pid=$!
for _ in $(seq $(({seconds} * 10))); do
    if {{ ss -Hltnp; rdma resource show cm_id; }} 2>/dev/null |
            grep -Eq "LISTEN.*(pid=| pid )($(family $pid '|'))[, ]"; then
        exit 0
    fi
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill $(family $pid ' ') 2>/dev/null
cat {output} >&3
exit 1"""


def build_parser():
    parser = argparse.ArgumentParser(prog="lab", description=DESCRIPTION, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", type=_lab_name, metavar="NAME",
                        default=os.environ.get("TERN_LAB") or "lab",
                        help="which lab, as several may be up (default: $TERN_LAB or \"lab\")"
                        ).completer = _labs
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="boot hosts on one wire")
    up.add_argument("count", nargs="?", type=_count, help="how many (default 2)")
    up.add_argument("--topology", default="", metavar="FILE.toml",
                    help="hosts, switches and links with rates: see docs/fabric.md")
    up.add_argument("--tap", default="", metavar="NAME",
                    help="a TAP interface of this machine, which is on the wire, too")
    up.add_argument("--first", type=_count, default=1, metavar="NUMBER",
                    help="of the first host, where several labs share an Ethernet (default 1)")
    _add_host_options(up)
    up.add_argument("--package", dest="packages", action="append", default=[], metavar="FILE.deb",
                    help="install it in the hosts, which then have nothing that is built here")
    up.add_argument("--image", metavar="FILE|STACK",
                    help="a disk image that the hosts boot as it is, or the stack that they are of")
    up.add_argument("--kernel", metavar="BZIMAGE", help="the kernel that the hosts boot")
    up.add_argument("--modules", metavar="FOLDER",
                    help="its /lib/modules/VERSION, if it has not all built in")
    up.add_argument("--json", action="store_true", help="print for programs which hosts are up")

    add = commands.add_parser("add", help="boot more hosts on the wire, while the others run")
    add.add_argument("count", nargs="?", type=_count, default=1, help="how many (default 1)")
    _add_host_options(add)
    add.add_argument("--json", action="store_true", help="print the new ones for programs")
    for name, told in (("remove", "stop a host, and forget it"),
                       ("kill", "end a host at once, as a power cut does"),
                       ("restart", "start a host anew, whether it is up, hangs or is down")):
        changed = commands.add_parser(name, help=told)
        changed.add_argument("host").completer = _hosts

    run = commands.add_parser("run", help="run a command on hosts; its exit code is passed on")
    run.add_argument("--json", action="store_true",
                     help="print status and output of each for programs")
    run.add_argument("hosts").completer = _hosts
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")

    serve = commands.add_parser(
        "serve", help="start a program on a host, and return when it listens for its peer")
    serve.add_argument("host").completer = _hosts
    serve.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")

    shell = commands.add_parser("shell", help="log in to a host")
    shell.add_argument("host").completer = _hosts

    for name in ("copy", "cp"):
        copy = commands.add_parser(name, help="copy files to a host or from it")
        copy.add_argument("paths", nargs="+", metavar="PATH", help="PATH or HOST:PATH")

    capture = commands.add_parser("capture", help="record the wire: start FILE, stop")
    capture.add_argument("action", choices=("start", "stop"))
    capture.add_argument("file", nargs="?", help="pcapng with comments on faults, if named so, "
                         "else pcap")
    capture.add_argument("--host", help="what this host sends and gets").completer = _hosts
    capture.add_argument("--card", type=int, metavar="NUMBER",
                         help="of the host's cards this one only, from 0; default: all")
    capture.add_argument("--link", default="", metavar="FROM:TO",
                         help="what arrives by this link of a topology; * and ? match several")
    capture.add_argument("--mirror", action="store_true",
                         help="pcap in the layout of the packets that Lumina's switch mirrors")

    _add_faults(commands.add_parser(
        "faults", help="show the faults of the wire, or set some", epilog=MATCHES,
        formatter_class=argparse.RawDescriptionHelpFormatter))

    cable = commands.add_parser("cable", help="pull out a card's cable or plug it in")
    cable.add_argument("host").completer = _hosts
    cable.add_argument("card", nargs="?", type=int, default=0, help="default %(default)s")
    cable.add_argument("action", choices=("off", "on", "flap"), help="flap: off for a second")

    injected = commands.add_parser("inject", help="faults of a card, for programs to be tried with")
    injected.add_argument("host").completer = _hosts
    injected.add_argument("card", nargs="?", type=int, default=0, help="default %(default)s")
    injected.add_argument("fault", choices=("error", "slow", "hold", "release", "refuse", "falsify",
                                            "gids"),
                          help="a QP fails; a QP is slow; the card leaves admin commands "
                               "unanswered, or answers them again; it refuses one; it reports "
                               "what is not true; GIDs move to other indices")
    injected.add_argument("--qp", type=_qpn, metavar="NUMBER", help="for error and slow")
    injected.add_argument("--nth", type=int, metavar="NUMBER",
                          help="for refuse: which one from now on, 1 for the next; 0: none")
    injected.add_argument("--answers", type=int, metavar="NUMBER",
                          help="for hold: so many commands are answered before; default 0")
    injected.add_argument("--rate", type=float, metavar="MBPS", help="Mb/s, for slow; 0: no limit")
    injected.add_argument("--every", type=int, metavar="NUMBER",
                          help="for falsify: one of so many completions, events and answers is "
                               "changed; 0: none")
    injected.add_argument("--seed", type=int, metavar="NUMBER",
                          help="for falsify: chooses the changes; default 1")

    link = commands.add_parser("link", help="cut a link between two switches of a topology")
    link.add_argument("ends", nargs=2, metavar="SWITCH")
    link.add_argument("action", choices=("off", "on"))
    fabric = commands.add_parser("fabric", help="what links and queues of a topology count")
    fabric.add_argument("--json", action="store_true", help="for programs")

    asked = commands.add_parser("query", help="what a host's card does; the guest may hang")
    asked.add_argument("--json", action="store_true", help="all that the card tells")
    reason = commands.add_parser("why", help="the reason for which a card or QP does not go on")
    reason.add_argument("--json", action="store_true", help="for programs")
    for parser_of_one in (asked, reason):
        parser_of_one.add_argument("host").completer = _hosts
        parser_of_one.add_argument("card", nargs="?", type=int, default=0,
                                   help="default %(default)s")
        parser_of_one.add_argument("--qp", type=_qpn, metavar="NUMBER", help="of this QP only")

    commands.add_parser("watch", help="a live screen of rates, errors and what waits; q quits")

    drawn = commands.add_parser("ladder", help="draw the RoCE packets of a capture as a sequence")
    drawn.add_argument("file", metavar="FILE.pcap")
    drawn.add_argument("--qp", type=_qpn, metavar="NUMBER", help="of this QP and its peer only")
    form = drawn.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", help="as a picture, in place of text")
    form.add_argument("--json", action="store_true", help="for programs, in place of text")

    for name, told in (("list", "the labs that are up"), ("status", "what is up in one")):
        asked = commands.add_parser(name, help=told)
        asked.add_argument("--json", action="store_true", help="for programs")
    console = commands.add_parser("console", help="print what a host's kernel said")
    console.add_argument("host").completer = _hosts
    commands.add_parser("down", help="stop it all")
    return parser


def parse(arguments):
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:
        # Only completion needs this package.
        import argcomplete
        argcomplete.autocomplete(parser)
    return parser.parse_args(arguments)


def _add_host_options(parser):
    """What a host is like."""
    parser.add_argument("--cards", type=int, choices=range(1, MAX_CARDS + 1), metavar="N",
                        help=f"cards each, on one wire; default {Options.cards}")
    parser.add_argument("--mtu", type=_within(*MTUS), default=Options.mtu,
                        help="default %(default)s")
    parser.add_argument("--smp", type=_within(*CPUS),
                        help=f"CPUs each; default {Options.smp}, or 1 if TCG runs a disk image")
    parser.add_argument("--mem", type=_memory, default="1G", metavar="SIZE",
                        help="memory of each, with M or G, else MiB; default %(default)s")
    parser.add_argument("--viommu", action="store_true", help="put the cards behind an IOMMU")
    parser.add_argument("--no-load", dest="load", action="store_false",
                        help="leave tern.ko for you to load")
    parser.add_argument("--nic", choices=("tern", "virtio"), default="tern",
                        help="another card on the wire, to compare")
    parser.add_argument("--wire", choices=WIRES, default=Options.wire,
                        help="through shared memory or QEMU's sockets; default %(default)s")
    parser.add_argument("--nic-options", default="", metavar="NAME=VALUE,...",
                        help="more properties of the card")
    parser.add_argument("--kernel-options", default="", metavar="WORDS",
                        help="more words for the kernel's command line")
    parser.add_argument("--share", default="", metavar="FOLDER",
                        help="a folder of this machine, which is /share in the hosts")


def _add_faults(parser):
    parser.add_argument("host", nargs="?",
                        help="a rule is for frames from and to this host").completer = _hosts
    parser.add_argument("--clear", action="store_true", help="a good wire again")
    parser.add_argument("--log", action="store_true", help="print what the faults did")
    parser.add_argument("--json", action="store_true", help="show the faults for programs")
    parser.add_argument("--seed", type=_within(*SEEDS), metavar="NUMBER",
                        help="of the random numbers")
    for name in PERCENTAGES:
        more = "|MATCH" if name in wire_faults.ACTIONS else ""
        parser.add_argument(f"--{name}", metavar="PERCENT" + more, help="of all frames"
                            + (", or a rule" if more else ""))
    for name in wire_faults.ACTIONS:
        if name not in PERCENTAGES:
            parser.add_argument(f"--{name}", metavar="MATCH", help="a rule")
    parser.add_argument("--by", metavar="TIME|N",
                        help="how long a rule delays, or how many frames overtake")
    parser.add_argument("--once", action="store_true", help="the rule acts once")
    parser.add_argument("--every", metavar="N", help="it acts on each n-th match")
    parser.add_argument("--probability", metavar="P", help="it acts on some, 0 to 1")
    parser.add_argument("--file", metavar="RULES.toml", help="rules from a file")


def _labs(**_):
    """Returns what may complete the name of a lab."""
    return [lab.name for lab in Lab.all()]


def _hosts(parsed_args, **_):
    """Returns what may complete the name of a host of the lab that the line names."""
    return [host.name for lab in Lab.all() if lab.name == parsed_args.lab for host in lab.hosts]


def _options(args, has_own_disk):
    """What _add_host_options() has read."""
    if args.share and not os.path.isdir(args.share):
        raise LabError(f"there is no folder {args.share} to share")
    # `restart` may be called in another folder.
    share = os.path.abspath(args.share) if args.share else ""
    options = Options(cards=args.cards or Options.cards, share=share, **{
        name: getattr(args, name) for name in ("mtu", "mem", "viommu", "load", "nic", "wire",
                                               "nic_options", "kernel_options")})
    if has_own_disk:
        return own_disk.options_for(options, args.smp)
    return dataclasses.replace(options, smp=args.smp or Options.smp)


def _take_stack(args):
    """A lab stays with the stack that it was brought up with."""
    if args.command == "up":
        _take_stack_of_image(args)
    else:
        with contextlib.suppress(NoLab):
            _take_stack_of_lab(Lab.find(args.lab))


def _take_stack_of_lab(lab):
    chosen = os.environ.get("TERN_STACK")
    if lab.stack and chosen and chosen != lab.stack:
        raise LabError(f"lab \"{lab.name}\" is of the stack {lab.stack}, and TERN_STACK is "
                       f"{chosen}; leave it empty, or choose another --lab")
    if lab.stack:
        os.environ["TERN_STACK"] = lab.stack


def _take_stack_of_image(args):
    """`up --image STACK` is `TERN_STACK=STACK up`."""
    name = args.image
    if not name or os.path.isfile(name):
        return
    os.environ["TERN_STACK"], args.image = name, None
    try:
        stack.ask()
    except LabError as error:
        raise LabError(f"--image {name} is no file, and {error}") from None


def up(args):
    if args.topology and (args.count is not None or args.cards):
        raise LabError("the topology says how many hosts and cards there are")
    if args.topology and args.tap:
        raise LabError("the TAP interfaces of a topology are in its file: [[host]] tap")
    if args.modules and not args.kernel:
        raise LabError("--modules FOLDER is for a kernel, which --kernel BZIMAGE names")
    if args.kernel and args.packages:
        raise LabError("--kernel and --package: packages build the driver for Debian's kernel only")
    if args.image and (args.kernel or args.packages or args.kernel_options):
        raise LabError("--image boots what the image has, without --package, --kernel and "
                       "--kernel-options")
    options = _options(args, args.image)
    hosts = (topology.hosts(args.topology, options) if args.topology
             else [options] * (2 if args.count is None else args.count))
    lab = Lab(args.lab)
    lab.up(hosts, topology=args.topology, tap=args.tap, first=args.first, packages=args.packages,
           kernel=args.kernel, modules=args.modules,
           disk=args.image and os.path.abspath(args.image))
    names = ", ".join(host.name for host in lab.hosts)
    say(f"{names} up; try: {COMMAND} run all -- ibv_devinfo")
    if args.json:
        print(json.dumps([_describe(host) for host in lab.hosts], indent=2))


def add(args):
    lab = Lab.find(args.lab)
    fresh = lab.add([_options(args, lab.has_own_disk)] * args.count)
    say(f"{', '.join(host.name for host in fresh)} up")
    if args.json:
        print(json.dumps([_describe(host) for host in fresh], indent=2))


def remove(args):
    Lab.find(args.lab).remove(args.host)


def kill(args):
    Lab.find(args.lab).kill(args.host)


def restart(args):
    Lab.find(args.lab).restart(args.host)


def _command(args):
    """One word is a line for the guest's shell, several are the words of a command."""
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise LabError(f"{args.command} what? {COMMAND} {args.command} HOST -- COMMAND")
    return words[0] if len(words) == 1 else " ".join(map(_quote, words))


def run(args):
    command = _command(args)
    lab = Lab.find(args.lab)
    hosts = lab.select(args.hosts)
    logins = {host: host.ssh for host in hosts}  # so that nothing runs if one of them is down
    if len(hosts) == 1 and not args.json:
        return subprocess.run(hosts[0].ssh.command(command), check=False).returncode

    results = lab.each(lambda host: logins[host].run(command), hosts)
    if args.json:
        print(json.dumps([{"name": host.name, "status": result.returncode,
                           "stdout": result.stdout, "stderr": result.stderr}
                          for host, result in zip(hosts, results)], indent=2))
    for host, result in zip(hosts, [] if args.json else results):
        for text, stream in ((result.stdout, sys.stdout), (result.stderr, sys.stderr)):
            for line in text.splitlines():
                print(f"{host.name}: {line}", file=stream)
    return next((result.returncode for result in results if result.returncode), 0)


def _quote(word):
    return "'" + word.replace("'", "'\\''") + "'"


def serve(args):
    login = Lab.find(args.lab).host(args.host).ssh
    done = login.run(SERVE.format(command=_command(args), output=SERVED, seconds=SERVE_TIMEOUT))
    if done.returncode:
        raise LabError(f"{args.host}: the program does not listen\n{done.stdout}{done.stderr}"
                       .rstrip())


def shell(args):
    command = Lab.find(args.lab).host(args.host).ssh.command(flags=("-t",))
    os.execvp(command[0], command)


def copy(args):
    if len(args.paths) < 2:
        raise LabError(f"copy what where? {COMMAND} copy PATH... HOST:PATH, or back")
    # As scp has it: where a slash comes before the colon, the path is one of this machine.
    parts = [re.fullmatch("([^:/]*)(:.*)", path, re.DOTALL) for path in args.paths]
    named = {part[1] for part in parts if part}
    if len(named) != 1:
        raise LabError("copy between here and one host: write its paths as HOST:PATH")
    host = Lab.find(args.lab).host(named.pop())
    *sources, target = [part[2] if part else path for part, path in zip(parts, args.paths)]
    host.ssh.copy(sources, target)


def capture(args):
    lab = Lab.find(args.lab)
    if args.action == "stop":
        lab.wire.stop_capture()
    elif args.file:
        lab.wire.capture(args.file, _captured(lab, args), args.mirror, args.link)
    else:
        raise LabError(f"capture where to? {COMMAND} capture start FILE")


def _captured(lab, args):
    """The addresses of the cards whose frames a capture is to have; none: all frames."""
    if not args.host and args.card is not None:
        raise LabError("--card NUMBER is for a host, which --host HOST names")
    if not args.host:
        return []
    host = lab.host(args.host)
    if args.card is None:
        return host.macs()
    # A card need not be Tern's, as only the switch takes part.
    if args.card not in range(host.options.cards):
        raise LabError(f"{host.name} has no card {args.card}")
    return [host.macs()[args.card]]


def _percentages(args):
    """{name: percentage} of the options with a number; other values are matches of rules."""
    found = {}
    for name in PERCENTAGES:
        value = getattr(args, name)
        with contextlib.suppress(TypeError, ValueError):
            found[name] = float(value)
        is_rule = value is None or name in wire_faults.ACTIONS and name not in found
        if not is_rule and not 0 <= found.get(name, -1) <= 100:
            raise LabError(f"--{name} needs a percentage from 0 to 100")
    return found


def _rule(args, percentages):
    """(action, match, other conditions) of the rule that the options give, or None."""
    given = [name for name in wire_faults.ACTIONS
             if getattr(args, name) is not None and name not in percentages]
    others = [(key, getattr(args, key)) for key in ("host", "by", "every", "probability")
              if getattr(args, key) is not None] + [("once", None)] * args.once
    if len(given) + (args.file is not None) > 1:
        raise LabError("one rule at a time, please; a file may have several")
    if not given and others:
        raise LabError(f"{others[0][0]} is for a rule, such as --drop opcode=WRITE")
    return (given[0], getattr(args, given[0]), others) if given else None


def faults(args):
    lab = Lab.find(args.lab)
    percentages = _percentages(args)
    rule = _rule(args, percentages)
    chosen = args.file or percentages or rule or args.seed is not None
    if args.log and (args.clear or chosen):
        raise LabError("--log shows what the faults have done, and sets none")
    if args.log:
        print(wire_faults.log(lab), end="")
        return
    if args.json and (args.clear or chosen):
        raise LabError("--json shows the faults and sets none")
    if args.clear and chosen:
        raise LabError("--clear goes without other faults, so that none is lost if they are wrong")
    if args.clear:
        lab.wire.tell("clear")
        return
    if not chosen:
        state = wire_faults.state_of(lab)
        print(json.dumps(state, indent=2) if args.json else "\n".join(wire_faults.text(state)))
        return
    lab.wire.tell(f"fault-log {lab.fault_log}")
    # The switch may refuse rules, so add them first: nothing else is then set after a refusal.
    if args.file:
        wire_faults.add_file(lab, args.file)
    if rule:
        wire_faults.add(lab, *rule)
    if args.seed is not None:
        lab.wire.tell(f"seed {args.seed}")
    for name, percent in percentages.items():
        lab.wire.tell(f"{name} {percent:g}")


def _card_of(args):
    """The host and the number of its card that the line names."""
    host = Lab.find(args.lab).host(args.host)
    if args.card not in range(host.options.cards) or host.options.nic != "tern":
        raise LabError(f"{host.name} has no Tern card {args.card}")
    return host, args.card


def inject(args):
    host, card = _card_of(args)
    if (args.qp is None) != (args.fault not in ("error", "slow")):
        raise LabError("--qp NUMBER is for the faults error and slow, which need it")
    for option, fault in (("rate", "slow"), ("nth", "refuse"), ("every", "falsify")):
        if (getattr(args, option) is None) != (args.fault != fault):
            raise LabError(f"--{option} is for the fault {fault}, which needs it")
    for option, fault in (("seed", "falsify"), ("answers", "hold")):
        if getattr(args, option) is not None and args.fault != fault:
            raise LabError(f"--{option} is for the fault {fault}")
    if args.fault == "falsify":
        injections.falsify(host, card, args.every, 1 if args.seed is None else args.seed)
    elif args.fault == "refuse":
        injections.refuse_command(host, card, args.nth)
    elif args.fault == "gids":
        injections.move_gids(host, card)
    elif args.fault in ("hold", "release"):
        injections.hold_commands(host, card, args.fault == "hold", args.answers or 0)
    elif args.fault == "error":
        injections.fail_qp(host, card, args.qp)
    elif not 0 <= args.rate <= injections.MOST_MBPS:
        raise LabError(f"--rate needs Mb/s from 0 to {injections.MOST_MBPS}")
    else:
        injections.slow_qp(host, card, args.qp, args.rate)


def cable(args):
    host, _ = _card_of(args)
    if args.action == "off":
        host.set_cable(False, args.card)
        return
    try:
        if args.action == "flap":
            host.set_cable(False, args.card)
            time.sleep(1)
    finally:
        host.set_cable(True, args.card)


def link(args):
    topology.set_link(Lab.find(args.lab).wire, args.ends, args.action == "on")


def fabric(args):
    told = topology.report(Lab.find(args.lab).wire)
    print(json.dumps(told, indent=2) if args.json else "\n".join(topology.text(told)))


def _lab_name(text):
    if is_name(text):
        return text
    raise argparse.ArgumentTypeError(
        f"\"{text}\" is no name of a lab: it has letters, digits, \"_\", \".\" and \"-\", begins "
        f"with a letter or a digit, has at most {MAX_NAME} characters, and does not end in {LOCK}")


def _count(text):
    with contextlib.suppress(ValueError):
        if int(text) > 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text} is no number of hosts")


def _within(least, most):
    """A type of numbers."""
    def number(text):
        with contextlib.suppress(ValueError):
            if least <= int(text) <= most:
                return int(text)
        raise argparse.ArgumentTypeError(f"{text} is no number from {least} to {most}")
    return number


def _memory(text):
    """Adds M to a size without a unit, which -m takes for MiB but a memory backend for bytes."""
    if not re.fullmatch("0*[1-9][0-9]*[MG]?", text.upper()):
        raise argparse.ArgumentTypeError(
            f"{text} is no size of memory: a number with M or G, such as 512M")
    return text.upper() if text[-1] in "MmGg" else f"{text}M"


def _qpn(text):
    with contextlib.suppress(ValueError):
        if 0 < int(text, 0) < 1 << 24:
            return int(text, 0)
    raise argparse.ArgumentTypeError(f"{text} is no number of a QP: 1 to {(1 << 24) - 1:#x}")


def query(args):
    host = Lab.find(args.lab).host(args.host)
    card = queries.card_of(host, args.card, args.qp)
    if args.json:
        print(json.dumps(card, indent=2))
    else:
        print("\n".join(queries.text(queries.label(host, args.card), card)))


def why(args):
    lab = Lab.find(args.lab)
    host = lab.host(args.host)
    name = queries.label(host, args.card)
    cards = {**queries.cards_of(lab), name: queries.card_of(host, args.card, args.qp)}
    told = Why(cards)
    reasons = told.of_host(name) if args.qp is None else [told.of_qp(name, args.qp)]
    if args.json:
        print(json.dumps([dataclasses.asdict(reason) for reason in reasons], indent=2))
    else:
        print("\n".join(map(str, reasons)) or f"{name}: nothing waits")


def watch(args):
    watch_lab(Lab.find(args.lab))


def ladder(args):
    packets = ladders.read(args.file)
    if args.qp is not None:
        packets = ladders.of_qp(packets, args.qp)
    arrows = ladders.steps(packets)
    if args.json:
        print(json.dumps([dataclasses.asdict(arrow) for arrow in arrows], indent=2))
        return
    if not args.svg:
        print("\n".join(ladders.text(arrows)))
        return
    pathlib.Path(args.svg).write_text(ladders.svg(arrows), encoding="utf-8")


def _describe(host):
    return {"name": host.name, "alive": host.process.alive(), "pid": host.process.pid,
            "ipv4": host.ipv4, "ipv6": host.ipv6, "ssh_port": host.port}


def list_labs(args):
    labs = [{"lab": lab.name, "hosts": [_describe(host) for host in lab.hosts]}
            for lab in Lab.all()]
    if args.json:
        print(json.dumps(labs, indent=2))
        return
    for lab in labs:
        alive = sum(host["alive"] for host in lab["hosts"])
        print(f"{lab['lab']}  {alive} of {len(lab['hosts'])} hosts up")


def _ask_driver(host):
    """Returns the driver of the host's card for `status`, or why the host does not tell."""
    try:
        done = host.ssh.run(f"readlink /sys/class/net/{NETDEV}/device/driver", STATUS_TIMEOUT)
    except LabError as error:
        return {"error": str(error).removeprefix(f"{host.name}: ")}
    if done.returncode == ssh.FAILED:
        return {"error": done.stderr.strip() or "ssh has failed"}
    return {"driver": done.stdout.strip().rpartition("/")[2]}


def _ask_hosts(lab):
    """Asks all at the same time, so that those that hang cost one timeout."""
    told = [_describe(host) for host in lab.hosts]
    up = [(host, about) for host, about in zip(lab.hosts, told) if about["alive"]]
    for (_, about), more in zip(up, lab.each(_ask_driver, [host for host, _ in up])):
        about.update(more)
    return told


def _ask_wire(wire):
    """Returns its counters or None, and what there is to read of it."""
    if not wire.process.alive():
        return None, "dead"
    try:
        counters = wire.counters()
    except LabError as error:
        return None, str(error)
    return counters, " ".join(f"{name}={value}" for name, value in counters.items())


def _line_of(host):
    if not host["alive"]:
        return (f"{host['name']}  down; `{COMMAND} console {host['name']}` may tell why, "
                f"`{COMMAND} restart {host['name']}` starts it anew")
    place = f"pid {host['pid']}, {host['ipv4']} {host['ipv6']}"
    if "error" in host:
        return f"{host['name']}  {place}, does not answer: {host['error']}"
    driver = host["driver"] or "no driver for its card"
    return f"{host['name']}  up, {place} on {NETDEV} ({driver}), ssh port {host['ssh_port']}"


def status(args):
    lab = Lab.find(args.lab)
    hosts = _ask_hosts(lab)
    counters, text = _ask_wire(lab.wire)
    if args.json:
        print(json.dumps({"lab": lab.name, "hosts": hosts, "logs": str(lab.logs),
                          "wire": counters}, indent=2))
    else:
        print("\n".join([*map(_line_of, hosts), f"wire   {text}", f"logs   {lab.logs}"]))
    return 0 if counters and all("driver" in host for host in hosts) else 1


def console(args):
    print(Lab.find(args.lab).host(args.host).console(), end="")


def down(args):
    Lab.find(args.lab).down()


def main(arguments):
    args = parse(arguments)
    exit_on_signals()
    action = {"cp": copy, "list": list_labs}.get(args.command) or globals()[args.command]
    try:
        if args.command not in WITHOUT_STACK:
            _take_stack(args)
            stack.enter()
        status = action(args) or 0
        sys.stdout.flush()
        return status
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has ended, as `head` does. Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except SYSTEM as error:
        print(f"lab: {explain(error)}", file=sys.stderr)
        return 1
