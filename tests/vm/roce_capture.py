# SPDX-License-Identifier: GPL-2.0-or-later
"""RoCE packets in a capture file, and their ICRC computed from the frame alone.

The ICRC (IBA vol. 1, annexes A16 and A17) is Ethernet's CRC-32 over eight
bytes of ones, which stand for InfiniBand's local route header, and the packet
from its IP header on, with ones for every field that a router may change.
"""

import pathlib
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

# pylint: disable=wrong-import-position
from ternlab.roce import (  # noqa: E402
    ICRC_SIZE, decode, frames, network, packet, packets, records)

__all__ = ["ICRC_SIZE", "complaints", "computed_icrc", "decode", "frames", "network", "opcode",
           "packet", "packets", "records", "stored_icrc", "tshark"]


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
    for time, frame, _ in records(path):
        roce = packet(frame)
        if roce and stored_icrc(roce) != computed_icrc(roce) and frame[6:12].hex(":") != relay:
            found.append((time, f"wrong ICRC: {frame.hex()}"))
    return found
