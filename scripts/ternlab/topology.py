# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's topology: the hosts that a file names (docs/fabric.md), and what its links count."""

import dataclasses
import json

from .errors import LabError
from .progress import say
from .wire import ask_switch


def hosts(path, options):
    """Returns Options for each host of the file, which tern-switch reads: those given, and the
    host's name and its cards with their links' rates. Says which keys of the file have no effect in
    a lab."""
    told = ask_switch("--describe", path)
    if told["unused"]:
        rules = "; `lab faults --file` sets the rules" * ("rule" in told["unused"])
        say(f"{path}: only tern-sim uses {', '.join(told['unused'])}{rules}")
    return [dataclasses.replace(
        options, name=host["name"], cards=len(host["cards"]),
        edges=tuple((card["name"], card["mbps"]) for card in host["cards"]))
        for host in told["hosts"]]


def report(wire):
    """The counters of all links, queues, switches and cards, as docs/fabric.md has them."""
    if not wire.topology.exists():
        raise LabError("this lab has no topology; `up --topology FILE` gives it one")
    return json.loads(wire.tell("fabric"))


def set_link(wire, ends, plugged):
    report(wire)
    wire.tell(f"link {ends[0]} {ends[1]} {'up' if plugged else 'down'}")


def text(told):
    """report() for people, in lines."""
    lines = [f"{'link':24} {'Mb/s':>7} {'state':>5} {'frames':>10} {'bytes':>13} {'lost':>8} "
             f"{'pauses':>8} {'storms':>8}"]
    for link in told["links"]:
        for end, peer in (link["ends"], link["ends"][::-1]):
            lines.append(
                f"{end['name'] + ' to ' + peer['name']:24} {link['rate'] / 1e6:7.0f} "
                f"{'up' if link['up'] else 'down':>5} {end['tx_frames']:10} {end['tx_bytes']:13} "
                f"{end['lost']:8} {sum(end['pauses_sent']):8} {end['pause_storms']:8}")
    lines += ["", f"{'queue':24} {'priority':>8} {'length':>8} {'longest':>8} {'frames':>10} "
                  f"{'marked':>8} {'dropped':>8}"]
    for link in told["links"]:
        for end, peer in (link["ends"], link["ends"][::-1]):
            lines += [f"{end['name'] + ' to ' + peer['name']:24} {queue['priority']:8} "
                      f"{queue['length']:8} {queue['max_length']:8} {queue['frames']:10} "
                      f"{queue['marked']:8} {queue['dropped']:8}" for queue in end["queues"]]
    lines += ["", f"{'switch':24} {'flooded':>8} {'filtered':>8} {'no path':>8} "
                  f"{'beyond the headroom':>20}"]
    lines += [f"{switch['name']:24} {switch['flooded']:8} {switch['filtered']:8} "
              f"{switch['unreachable']:8} {switch['pfc_dropped']:20}"
              for switch in told["switches"]]
    return lines
