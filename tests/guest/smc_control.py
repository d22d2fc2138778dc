#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What smcr of smc-tools does, of which Debian has no package:

  smc_control.py add EID     agree on SMC version 2 with hosts that have the same enterprise ID
  smc_control.py versions    print the version of each link group, a line each
"""
import socket
import struct
import sys

NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
# Of <linux/smc.h>
FAMILY = "SMC_GEN_NETLINK"
SMC_NETLINK_GET_LGR_SMCR, SMC_NETLINK_ADD_UEID = 2, 10
SMC_NLA_EID_TABLE_ENTRY, SMC_MAX_EID_LEN = 1, 32  # the end of the string not included
SMC_GEN_LGR_SMCR, SMC_NLA_LGR_R_V2_COMMON, SMC_NLA_LGR_V2_VER = 2, 7, 0

HEADER = struct.Struct("=IHHII")       # struct nlmsghdr
GENERIC = struct.Struct("=BBH")        # struct genlmsghdr
ATTRIBUTE = struct.Struct("=HH")       # struct nlattr
TYPE_MASK = 0x3fff


def padded(data):
    return data + bytes(-len(data) % 4)


def attribute(kind, data):
    return padded(ATTRIBUTE.pack(ATTRIBUTE.size + len(data), kind) + data)


def attributes(data):
    """The bytes of each attribute by its type."""
    found = {}
    while len(data) >= ATTRIBUTE.size:
        size, kind = ATTRIBUTE.unpack_from(data)
        found[kind & TYPE_MASK] = data[ATTRIBUTE.size:size]
        data = data[size + -size % 4:]
    return found


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        name = FAMILY.encode() + b"\0"
        answer, = self.call(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                            attribute(CTRL_ATTR_FAMILY_NAME, name))
        self.family, = struct.unpack("=H", answer[CTRL_ATTR_FAMILY_ID])

    def call(self, family, command, payload=b"", flags=NLM_F_ACK):
        """The attributes of each answer; an OSError if the kernel refuses."""
        body = GENERIC.pack(command, 1, 0) + payload
        self.socket.send(HEADER.pack(HEADER.size + len(body), family, NLM_F_REQUEST | flags, 1, 0)
                         + body)
        answers = []
        while True:
            data = self.socket.recv(1 << 16)
            while data:
                size, kind, *_ = HEADER.unpack_from(data)
                message, data = data[HEADER.size:size], data[size + -size % 4:]
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    error, = struct.unpack_from("=i", message)
                    if error:
                        raise OSError(-error, f"{FAMILY}: command {command}")
                    return answers
                answers.append(attributes(message[GENERIC.size:]))

    def add(self, eid):
        self.call(self.family, SMC_NETLINK_ADD_UEID,
                  attribute(SMC_NLA_EID_TABLE_ENTRY, eid.ljust(SMC_MAX_EID_LEN).encode() + b"\0"))

    def versions(self):
        for answer in self.call(self.family, SMC_NETLINK_GET_LGR_SMCR, flags=NLM_F_DUMP):
            group = attributes(answer[SMC_GEN_LGR_SMCR])
            common = attributes(group.get(SMC_NLA_LGR_R_V2_COMMON, b""))
            yield common.get(SMC_NLA_LGR_V2_VER, b"\1")[0]


def main():
    if sys.argv[1] == "add":
        Netlink().add(sys.argv[2])
    else:
        print(*Netlink().versions(), sep="\n")


main()
