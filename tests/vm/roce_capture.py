# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE packets in a capture file, and their ICRC computed from the frame alone.

The ICRC (IBA vol. 1, annexes A16 and A17) is Ethernet's CRC-32 over eight
bytes of ones, which stand for InfiniBand's local route header, and the packet
from its IP header on, with ones for every field that a router may change.
"""

import struct
import zlib

ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCE_V1 = 0x0800, 0x86dd, 0x8915
PROTOCOL_UDP, PORT_ROCE_V2 = 17, 4791
LINKTYPE_ETHERNET = 1
UDP_HEADER = 8


def frames(path):
    """The frames of a pcap file."""
    with open(path, "rb") as capture:
        magic = capture.read(4)
        order = {0xa1b2c3d4: "", 0xa1b23c4d: ""}
        endian = "<" if struct.unpack("<I", magic)[0] in order else ">"
        if struct.unpack(endian + "I", magic)[0] not in order:
            raise ValueError(f"{path} is no pcap file")
        *_, link = struct.unpack(endian + "HHiIII", capture.read(20))
        if link != LINKTYPE_ETHERNET:
            raise ValueError(f"{path} holds no Ethernet frames")
        while header := capture.read(16):
            _, _, captured, original = struct.unpack(endian + "IIII", header)
            if captured != original:
                raise ValueError("a frame was cut short")
            yield capture.read(captured)


def packet(frame):
    """(headers' length up to the BTH, fields to fill with ones, IP packet) or None if no RoCE."""
    ethertype = int.from_bytes(frame[12:14], "big")
    ip = frame[14:]
    if ethertype == ETHERTYPE_IPV4 and ip[9] == PROTOCOL_UDP:
        header, variant = (ip[0] & 15) * 4, (1, 8, 10, 11)  # TOS, TTL, checksum
        ip = ip[:int.from_bytes(ip[2:4], "big")]
    elif ethertype == ETHERTYPE_IPV6 and ip[6] == PROTOCOL_UDP:
        header, variant = 40, (1, 2, 3, 7)  # traffic class, flow label, hop limit
        ip = ip[:40 + int.from_bytes(ip[4:6], "big")]
    elif ethertype == ETHERTYPE_ROCE_V1:
        return 40, (1, 2, 3, 7), ip[:40 + int.from_bytes(ip[4:6], "big")]
    else:
        return None
    if int.from_bytes(ip[header + 2:header + 4], "big") != PORT_ROCE_V2:
        return None
    return header + UDP_HEADER, (*variant, header + 6, header + 7), ip  # and UDP's checksum


def opcode(roce):
    header, _, ip = roce
    return ip[header]


def stored_icrc(roce):
    return int.from_bytes(roce[2][-4:], "little")


def computed_icrc(roce):
    header, variant, ip = roce
    masked = bytearray(ip[:-4])
    for place in (*variant, header + 4):  # and the BTH's reserved byte with FECN and BECN
        masked[place] = 0xff
    if ip[0] >> 4 == 6:
        masked[0] |= 0x0f  # the other half of the traffic class
    return zlib.crc32(masked, zlib.crc32(b"\xff" * 8))
