# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE packets in a capture file."""

import dataclasses
import ipaddress
import struct

ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCE_V1 = 0x0800, 0x86dd, 0x8915
ETHERTYPE_VLAN = 0x8100
PROTOCOL_UDP, PORT_ROCE_V2 = 17, 4791
LINKTYPE_ETHERNET = 1
UDP_HEADER = 8
BTH_SIZE, ICRC_SIZE = 12, 4
PCAP_UNITS = {b"\xa1\xb2\xc3\xd4": 1e-6, b"\xa1\xb2\x3c\x4d": 1e-9}  # of times, by magic


def records(path):
    """(time, frame) of each frame of a pcap file."""
    with open(path, "rb") as capture:
        header = capture.read(24)
        endian = "<" if header[:4] in (magic[::-1] for magic in PCAP_UNITS) else ">"
        unit = PCAP_UNITS.get(header[:4] if endian == ">" else header[3::-1])
        if not unit or len(header) < 24:
            raise ValueError(f"{path} is no pcap file")
        if struct.unpack(endian + "I", header[20:])[0] != LINKTYPE_ETHERNET:
            raise ValueError(f"{path} holds no Ethernet frames")
        while header := capture.read(16):
            if len(header) < 16:
                raise ValueError(f"{path} ends within a frame")
            seconds, fraction, captured, original = struct.unpack(endian + "IIII", header)
            frame = capture.read(captured)
            if len(frame) < captured:
                raise ValueError(f"{path} ends within a frame")
            if captured != original:
                raise ValueError(f"{path} has frames that were cut short")
            yield seconds + fraction * unit, frame


def frames(path):
    """The frames of a pcap file."""
    return (frame for _, frame in records(path))


def network(frame):
    """(ethertype, VLAN tag or None, what follows them)."""
    ethertype = int.from_bytes(frame[12:14], "big")
    if ethertype != ETHERTYPE_VLAN:
        return ethertype, None, frame[14:]
    tag, ethertype = struct.unpack(">HH", frame[14:18])
    return ethertype, tag, frame[18:]


def packet(frame):
    """(headers' length up to the BTH, fields to fill with ones, IP packet) or None if no RoCE."""
    ethertype, _, ip = network(frame)
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


@dataclasses.dataclass
class Roce:
    """What tests ask about a packet."""
    time: float
    source_mac: str
    target_mac: str
    tag: int | None        # of the VLAN, with the priority
    source: str
    target: str
    version: int           # of RoCE
    traffic_class: int
    hop_limit: int
    source_port: int | None
    opcode: int
    pkey: int
    qpn: int
    psn: int
    wants_ack: bool
    pad: int
    body: bytes            # between BTH and ICRC

    @property
    def syndrome(self):
        """That of an acknowledgement's AETH."""
        return self.body[0]


def decode(time, frame):
    """A frame as Roce, or None."""
    roce = packet(frame)
    if not roce:
        return None
    header, _, ip = roce
    ethertype, tag, _ = network(frame)
    if ip[0] >> 4 == 4:
        source, target = (ipaddress.ip_address(ip[at:at + 4]) for at in (12, 16))
        traffic_class, hop_limit = ip[1], ip[8]
    else:
        source, target = (ipaddress.ip_address(ip[at:at + 16]) for at in (8, 24))
        traffic_class, hop_limit = int.from_bytes(ip[:2], "big") >> 4 & 0xff, ip[7]
    version = 1 if ethertype == ETHERTYPE_ROCE_V1 else 2
    port = int.from_bytes(ip[header - 8:header - 6], "big") if version == 2 else None
    code, flags, pkey, qpn, psn = struct.unpack(">BBHII", ip[header:header + BTH_SIZE])
    return Roce(time, frame[6:12].hex(":"), frame[:6].hex(":"), tag, str(source), str(target),
                version, traffic_class, hop_limit, port, code, pkey, qpn & 0xffffff,
                psn & 0xffffff, bool(psn >> 31), flags >> 4 & 3,
                ip[header + BTH_SIZE:-ICRC_SIZE])


def packets(path):
    """The RoCE packets of a capture."""
    return [roce for roce in (decode(*record) for record in records(path)) if roce]
