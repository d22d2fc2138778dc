#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes icrc_vectors.inc: whole RoCE frames whose ICRC others computed.

For RoCEv2 over IPv4 that is scapy's RoCE layer. Scapy does not do it for IPv6
and RoCEv1: there it only builds the headers, and reference_icrc() below reads
the specification literally. The same function must agree with scapy on IPv4,
or nothing is written.
"""

import argparse
import binascii
import struct
import sys

from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

DMAC = '02:00:00:00:00:0b'
SMAC = '02:00:00:00:00:0a'
SGID6 = 'fd00:7e44::a'
DGID6 = 'fd00:7e44::b'

RETH = struct.pack('>QII', 0x0011223344556677, 0x89abcd01, 0x1000)
AETH = bytes([0x1f, 0, 0, 7])
ATOMIC = struct.pack('>QIQQ', 0x8899aabbccddeef0, 0x12345678, 1, 2)
DETH = struct.pack('>II', 0x80010000, 0x000001)
IMM = struct.pack('>I', 0xdeadbeef)


def data(size):
    return bytes((i * 7 + 3) & 0xff for i in range(size))


# name, opcode, extended headers, payload size
PACKETS = [
    ('send_only_0', 0x04, b'', 0),
    ('send_only_1', 0x04, b'', 1),
    ('send_only_imm_2', 0x05, IMM, 2),
    ('send_first_1024', 0x00, b'', 1024),
    ('write_first_256', 0x06, RETH, 256),
    ('write_only_imm_3', 0x0b, RETH + IMM, 3),
    ('write_only_4096', 0x0a, RETH, 4096),
    ('read_request', 0x0c, RETH, 0),
    ('read_response_only_5', 0x10, AETH, 5),
    ('read_response_middle_512', 0x0e, b'', 512),
    ('acknowledge', 0x11, AETH, 0),
    ('atomic_acknowledge', 0x12, AETH + bytes(range(8)), 0),
    ('compare_swap', 0x13, ATOMIC, 0),
    ('fetch_add', 0x14, ATOMIC, 0),
    ('uc_send_last_7', 0x22, b'', 7),
    ('uc_write_only_imm_512', 0x2b, RETH + IMM, 512),
    ('ud_send_only_256', 0x64, DETH, 256),
    ('ud_send_only_imm_6', 0x65, DETH + IMM, 6),
]

# What a router may change, and other header fields, one set per packet in turn.
VARIANTS = [
    {'tos': 0, 'hops': 64, 'flow': 0, 'fecn': 0, 'becn': 0},
    {'tos': 0x6a, 'hops': 1, 'flow': 0xabcde, 'fecn': 1, 'becn': 0},
    {'tos': 0xff, 'hops': 255, 'flow': 0xfffff, 'fecn': 0, 'becn': 1},
]


def transport(index, opcode, ext, size, variant):
    payload = data(size) + bytes(-size % 4)
    bth = BTH(opcode=opcode, solicited=index & 1, migreq=1, padcount=-size % 4,
              pkey=0xffff, fecn=variant['fecn'], becn=variant['becn'],
              dqpn=0x11 + index, ackreq=index & 1, psn=0xfffffe + index & 0xffffff)
    return bth, Raw(ext + payload)


def masked(network, kind):
    """The packet with ones where routers may write (IBA 7.8.1, A17.3.3)."""
    packet = bytearray(network)
    if kind == 'ipv4':
        packet[1] = packet[8] = 0xff
        packet[10:12] = b'\xff\xff'
        at = 20
    else:
        packet[0] |= 0x0f
        packet[1:4] = b'\xff\xff\xff'
        packet[7] = 0xff
        at = 40
    if kind != 'grh':
        packet[at + 6:at + 8] = b'\xff\xff'
        at += 8
    packet[at + 4] = 0xff
    return bytes(packet)


def reference_icrc(network, kind):
    """@network: from the network header, without the ICRC. Eight ones for the LRH."""
    crc = binascii.crc32(b'\xff' * 8 + masked(network, kind))
    return struct.pack('<I', crc)


def frame_ipv4(link, bth, body, variant):
    udp = UDP(sport=0xc123, dport=4791, chksum=0)
    frame = bytes(link / IP(src='10.7.0.1', dst='10.7.0.2', id=0, flags='DF',
                            tos=variant['tos'], ttl=variant['hops']) / udp / bth / body)
    expected = reference_icrc(frame[len(link):-4], 'ipv4')
    if frame[-4:] != expected:
        sys.exit(f'scapy has {frame[-4:].hex()}, the reference {expected.hex()}')
    return frame


def frame_ipv6(link, bth, body, variant):
    bth.icrc = 0
    udp = UDP(sport=0xc123, dport=4791, chksum=0)
    frame = bytes(link / IPv6(src=SGID6, dst=DGID6, tc=variant['tos'], fl=variant['flow'],
                              hlim=variant['hops']) / udp / bth / body)
    return frame[:-4] + reference_icrc(frame[len(link):-4], 'ipv6')


def frame_grh(link, bth, body, variant):
    bth.icrc = 0
    carried = bytes(bth / body)
    link.lastlayer().type = 0x8915
    grh = IPv6(src=SGID6, dst=DGID6, tc=variant['tos'], fl=variant['flow'],
               hlim=variant['hops'], nh=0x1b, plen=len(carried))
    frame = bytes(link / Raw(bytes(grh) + carried))
    return frame[:-4] + reference_icrc(frame[len(link):-4], 'grh')


PATHS = [('ipv4', frame_ipv4), ('ipv6', frame_ipv6), ('roce_v1', frame_grh)]


def vectors():
    for path, make in PATHS:
        for index, (name, opcode, ext, size) in enumerate(PACKETS):
            variant = VARIANTS[index % len(VARIANTS)]
            link = Ether(dst=DMAC, src=SMAC)
            if index % 4 == 3:
                link = link / Dot1Q(vlan=42, prio=5)
            bth, body = transport(index, opcode, ext, size, variant)
            yield f'{path}_{name}', make(link, bth, body, variant)


def text():
    lines = ['/* SPDX-License-Identifier: GPL-2.0-or-later */',
             '/* Made by make_icrc_vectors.py: do not edit. */']
    for name, frame in vectors():
        digits = frame.hex()
        lines.append(f'{{"{name}",')
        rows = [digits[i:i + 88] for i in range(0, len(digits), 88)]
        lines += [f'\t"{row}"' for row in rows]
        lines[-1] += '},'
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument('--write', metavar='FILE')
    action.add_argument('--check', metavar='FILE', help='fail if FILE is not what would be written')
    args = parser.parse_args()

    if args.write:
        with open(args.write, 'w', encoding='ascii') as out:
            out.write(text())
        return 0
    with open(args.check, encoding='ascii') as committed:
        if committed.read() == text():
            return 0
    print(f'{args.check} differs: run {sys.argv[0]} --write {args.check}', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
