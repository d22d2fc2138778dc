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
    """(time, frame, comments) of each frame of a pcap or pcapng file; pcap has no comments."""
    with open(path, "rb") as capture:
        start = capture.read(4)
        capture.seek(0)
        yield from (_pcapng if start == PCAPNG_MAGIC else _pcap)(path, capture)


def _read(path, capture, size):
    data = capture.read(size)
    if len(data) < size:
        raise ValueError(f"{path} ends within a frame")
    return data


def _check(path, linktype=LINKTYPE_ETHERNET, captured=0, original=0):
    if linktype != LINKTYPE_ETHERNET:
        raise ValueError(f"{path} holds no Ethernet frames")
    if captured != original:
        raise ValueError(f"{path} has frames that were cut short")


def _pcap(path, capture):
    header = capture.read(24)
    endian = "<" if header[:4] in (magic[::-1] for magic in PCAP_UNITS) else ">"
    unit = PCAP_UNITS.get(header[:4] if endian == ">" else header[3::-1])
    if not unit or len(header) < 24:
        raise ValueError(f"{path} is no pcap or pcapng file")
    _check(path, struct.unpack(endian + "I", header[20:])[0])
    while header := capture.read(16):
        if len(header) < 16:
            raise ValueError(f"{path} ends within a frame")
        seconds, fraction, captured, original = struct.unpack(endian + "IIII", header)
        _check(path, captured=captured, original=original)
        yield seconds + fraction * unit, _read(path, capture, captured), []


# Types of pcapng's blocks and codes of their options (draft-ietf-opsawg-pcapng).
SECTION_HEADER, INTERFACE, ENHANCED_PACKET = 0x0a0d0d0a, 1, 6
COMMENT, TIME_RESOLUTION = 1, 9
PCAPNG_MAGIC, BYTE_ORDER = SECTION_HEADER.to_bytes(4, "big"), b"\x1a\x2b\x3c\x4d"


def _blocks(path, capture):
    """(byte order, type, body) of each block."""
    endian = "<"
    while start := capture.read(8):
        start += _read(path, capture, 4)
        if start[:4] == PCAPNG_MAGIC:
            endian = ">" if start[8:] == BYTE_ORDER else "<"
        kind, length = struct.unpack(endian + "II", start[:8])
        if length < 12 or length % 4:
            raise ValueError(f"{path} has a block of {length} bytes")
        yield endian, kind, (start[8:] + _read(path, capture, length - 12))[:-4]


def _options(endian, data):
    while len(data) >= 4:
        code, length = struct.unpack(endian + "HH", data[:4])
        if not code:
            return
        yield code, data[4:4 + length]
        data = data[4 + (length + 3) // 4 * 4:]


def _time_unit(options):
    for code, value in options:
        if code == TIME_RESOLUTION and value:
            return 2.0 ** -(value[0] & 127) if value[0] & 128 else 10.0 ** -value[0]
    return 1e-6


def _pcapng(path, capture):
    units = []  # of each interface
    for endian, kind, body in _blocks(path, capture):
        if kind == SECTION_HEADER:
            units = []
        elif kind == INTERFACE:
            _check(path, struct.unpack(endian + "H", body[:2])[0])
            units.append(_time_unit(_options(endian, body[8:])))
        elif kind == ENHANCED_PACKET:
            number, high, low, captured, original = struct.unpack(endian + "IIIII", body[:20])
            _check(path, captured=captured, original=original)
            if number >= len(units) or len(body) < 20 + captured:
                raise ValueError(f"{path} has a packet that does not fit its block or interface")
            options = body[20 + (captured + 3) // 4 * 4:]
            comments = [value.decode(errors="replace")
                        for code, value in _options(endian, options) if code == COMMENT]
            yield (high << 32 | low) * units[number], body[20:20 + captured], comments


def frames(path):
    """The frames of a capture file."""
    return (frame for _, frame, _ in records(path))


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
    comments: list         # in the capture file

    @property
    def syndrome(self):
        """That of an acknowledgement's AETH."""
        return self.body[0]


def decode(time, frame, comments=()):
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
                ip[header + BTH_SIZE:-ICRC_SIZE], comments)


def packets(path):
    """The RoCE packets of a capture."""
    return [roce for roce in (decode(*record) for record in records(path)) if roce]
