# SPDX-License-Identifier: GPL-2.0-or-later
"""VLAN interfaces on the cards' interfaces."""

import contextlib

from scenario import NETDEV


def name_of(number):
    return f"{NETDEV}.{number}"


def add(host, number, options=""):
    """An interface of the VLAN of this number, with OPTIONS of `ip link add type vlan`. Returns its
    address."""
    name, address = name_of(number), f"10.78.{number}.{host.index}"
    host.run(f"ip link add link {NETDEV} name {name} type vlan id {number} {options} && "
             f"ip link set {name} up && ip address add {address}/24 dev {name}")
    return address


def remove(host, number):
    """Does nothing if there is none."""
    host.run(f"ip link del {name_of(number)}", check=False)


@contextlib.contextmanager
def added(hosts, number, options=""):
    """add() on each of the hosts, until the end of the block. Yields their addresses."""
    try:
        yield {host: add(host, number, options) for host in hosts}
    finally:
        for host in hosts:
            remove(host, number)
