# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE packets in a capture file, and their ICRC computed from the frame alone.

The ICRC (IBA vol. 1, annexes A16 and A17) is Ethernet's CRC-32 over eight
bytes of ones, which stand for InfiniBand's local route header, and the packet
from its IP header on, with ones for every field that a router may change.
"""

import dataclasses
import ipaddress
import struct
import subprocess
import zlib

ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ROCE_V1 = 0x0800, 0x86dd, 0x8915
ETHERTYPE_VLAN = 0x8100
PROTOCOL_UDP, PORT_ROCE_V2 = 17, 4791
LINKTYPE_ETHERNET = 1
UDP_HEADER = 8
BTH_SIZE, ICRC_SIZE = 12, 4


def records(path):
    """(time, frame) of each frame of a pcap file."""
    with open(path, "rb") as capture:
        magic = capture.read(4)
        order = {0xa1b2c3d4: 1e-6, 0xa1b23c4d: 1e-9}
        endian = "<" if struct.unpack("<I", magic)[0] in order else ">"
        unit = order.get(struct.unpack(endian + "I", magic)[0])
        if not unit:
            raise ValueError(f"{path} is no pcap file")
        *_, link = struct.unpack(endian + "HHiIII", capture.read(20))
        if link != LINKTYPE_ETHERNET:
            raise ValueError(f"{path} holds no Ethernet frames")
        while header := capture.read(16):
            seconds, fraction, captured, original = struct.unpack(endian + "IIII", header)
            if captured != original:
                raise ValueError("a frame was cut short")
            yield seconds + fraction * unit, capture.read(captured)


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


# Upper protocols that tshark guesses from any payload, and then finds wrong. Above TCP there are
# too many to name; what Scenario.transfer() sends to its port is declared to be mere data.
GUESSES = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband_sdp",
           "fcoib", "infiniband.eoib")
NO_GUESSES = ("-d", "tcp.port==9999,data",
              *(word for name in GUESSES for word in ("--disable-protocol", name)))


def tshark(path, only, *more):
    """What tshark prints about the frames that its filter chooses."""
    done = subprocess.run(["tshark", "-r", path, "-Y", only, *NO_GUESSES, *more],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"tshark: {done.stderr}")
    return done.stdout.strip()


def complaints(path, relay=None):
    """[(time, what is wrong with the frame)] by tshark's dissection and by the ICRCs, of which
    those from the address of a relay are wrong on purpose."""
    wrong = "_ws.malformed || ip.checksum.status == Bad || udp.length.bad"
    lines = tshark(path, wrong, "-o", "ip.check_checksum:TRUE", "-T", "fields",
                   "-e", "frame.time_epoch", "-e", "frame.number", "-e", "_ws.col.Info")
    found = []
    for line in lines.splitlines():
        time, number, said = line.split("\t", 2)
        found.append((float(time), f"frame {number}: tshark: {said}"))
    for time, frame in records(path):
        roce = packet(frame)
        if roce and stored_icrc(roce) != computed_icrc(roce) and frame[6:12].hex(":") != relay:
            found.append((time, f"wrong ICRC: {frame.hex()}"))
    return found
