# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends frames with a struct virtio_net_hdr, as virtual machines and containers hand them on.

    raw_frames.py INTERFACE <FRAMES

FRAMES is JSON: a list of {"name", "header" and "head" in hex, "length", "protocol"}; a frame is its
head and zeros up to its length. Prints the names of those that the kernel refused, as JSON.
"""

import json
import socket
import sys

SOL_PACKET, PACKET_VNET_HDR = 263, 15


def main():
    refused = []
    for frame in json.load(sys.stdin):
        data = bytes.fromhex(frame["header"]) + bytes.fromhex(frame["head"])
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            try:
                sender.sendto(data + bytes(frame["length"] - len(frame["head"]) // 2),
                              (sys.argv[1], frame["protocol"]))
            except OSError as error:
                refused.append(f"{frame['name']}: {error.strerror}")
    print(json.dumps(refused))


main()
