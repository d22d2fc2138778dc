# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of a host's card, for programs to be tried with: a QP that fails, a slow QP, admin
commands without an answer or refused, a card that reports what is not true, GIDs at other indices.
The guest moves its GIDs, QEMU makes the other faults (qemu/pci/inject.c)."""

import ipaddress
import json

from .cards import card_id, netdev, tell
from .errors import LabError

# Rates of QPs are kb/s.
MOST_MBPS = 400000


def _path(card):
    return f"/machine/peripheral/{card_id(card)}"


def fail_qp(host, card, qpn):
    """Moves the QP to ERR and has the card raise the event of a fatal error."""
    tell(host, "tern-fail-qp", path=_path(card), qpn=qpn)


def slow_qp(host, card, qpn, mbps):
    """Limits the QP's sending rate, in Mb/s, until the QP is reset; 0: no limit."""
    tell(host, "tern-slow-qp", path=_path(card), qpn=qpn, rate=round(mbps * 1000))


def hold_commands(host, card, hold, answers=0):
    """Each engine answers so many admin commands more. The next one stays unanswered, and none
    follows, until they are no longer held, or the card is reset."""
    tell(host, "tern-hold-commands", path=_path(card), hold=hold, answers=answers)


def refuse_command(host, card, nth):
    """The card refuses the nth admin command from now on for lack of resources; 0: none."""
    tell(host, "tern-refuse-command", path=_path(card), nth=nth)


def falsify(host, card, every, seed):
    """The card falsifies one in `every` completions, events and answers, until the card is reset.
    The seed determines the changes. every=0: none."""
    tell(host, "tern-falsify", path=_path(card), every=every, seed=seed)


def _ask(host, command):
    done = host.ssh.run(command)
    if done.returncode:
        raise LabError(f"{host.name}: {done.stderr.strip()}")
    return done.stdout


def _places(host, card):
    """The first index of each GID of the card."""
    told = _ask(host, f"cd /sys/class/infiniband/*/device/net/{netdev(card)}/../../infiniband/*/"
                      "ports/1/gids && grep -s . *")
    places = {}
    for line in told.splitlines():
        index, gid = line.split(":", 1)
        address = ipaddress.ip_address(gid)
        address = address.ipv4_mapped or address
        places[address] = min(int(index), places.get(address, int(index)))
    return places


def move_gids(host, card):
    """Takes the addresses of the card's interface away and gives them back in the opposite order
    of their GIDs: the same GIDs are at other indices then, and programs get the events."""
    name = netdev(card)
    told = json.loads(_ask(host, f"ip -json address show dev {name} scope global"))
    # Addresses of another scope are there, too, as empty tables.
    addresses = [ipaddress.ip_interface(f"{info['local']}/{info['prefixlen']}")
                 for interface in told for info in interface["addr_info"] if info]
    if len(addresses) < 2:
        raise LabError(f"{host.name}: {name} has no two addresses that could change places")
    places = _places(host, card)
    addresses.sort(key=lambda address: places.get(address.ip, 0), reverse=True)
    steps = [f"ip address delete {address} dev {name}" for address in addresses]
    steps += [f"ip address add {address} dev {name}" + " nodad" * (address.version == 6)
              for address in addresses]
    _ask(host, " && ".join(steps))
