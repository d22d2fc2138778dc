# SPDX-License-Identifier: GPL-2.0-or-later
"""A station between two hosts that gives FLUSHes the ICRC which rxe wants.

rxe of Linux 6.2 and later, 6.12 too, computes the ICRC of a FLUSH over the transport headers
twice, as it has no note of where their payload would begin (offset RXE_PAYLOAD of its table of
opcodes). Two of its kind understand each other; from all others it drops FLUSHes as damaged.
"""

import contextlib
import struct
import zlib

import roce_capture
from outsider import MAC, Outsider, mac_bytes
from scenario import NETDEV

FLUSH = 0x1c


class Relay(Outsider):
    """What one host sends to the other goes by way of it; the way back is direct."""

    def __init__(self, wire, target_mac):
        self._target = mac_bytes(target_mac)
        self.flushes = []  # as they came
        super().__init__(wire)

    def hear(self, frame):
        roce = roce_capture.packet(frame)
        if roce and roce_capture.opcode(roce) == FLUSH:
            self.flushes.append(frame)
            header, _, ip = roce
            again = zlib.crc32(ip[header:-roce_capture.ICRC_SIZE], roce_capture.computed_icrc(roce))
            frame = frame[:-roce_capture.ICRC_SIZE] + struct.pack("<I", again)
        self.send(self._target + mac_bytes(MAC) + frame[12:])


@contextlib.contextmanager
def between(lab, sender, receiver):
    """Over IPv4, for as long as the context lasts."""
    mac = receiver.run(f"cat /sys/class/net/{NETDEV}/address").out.strip()
    relay = Relay(lab.wire, mac)
    neighbour = f"{receiver.ipv4} lladdr %s dev {NETDEV} nud %s"
    sender.run("ip neigh replace " + neighbour % (MAC, "permanent"))
    try:
        yield relay
    finally:
        sender.run("ip neigh replace " + neighbour % (mac, "reachable"))
        relay.close()
