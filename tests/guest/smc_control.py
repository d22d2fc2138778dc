#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What smcr and smcss of smc-tools do, of which Debian has no package:

  smc_control.py add EID     agree on SMC version 2 with hosts that have the same enterprise ID
  smc_control.py versions    print the version of each link group, a line each
  smc_control.py settle      wait until SMC aborts no connection
"""
import socket
import struct
import sys
import time

NETLINK_SOCK_DIAG, NETLINK_GENERIC = 4, 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
# Of <linux/smc.h>
FAMILY = "SMC_GEN_NETLINK"
SMC_NETLINK_GET_LGR_SMCR, SMC_NETLINK_ADD_UEID = 2, 10
SMC_NLA_EID_TABLE_ENTRY, SMC_MAX_EID_LEN = 1, 32  # the end of the string not included
SMC_GEN_LGR_SMCR, SMC_NLA_LGR_R_V2_COMMON, SMC_NLA_LGR_V2_VER = 2, 7, 0
# Of <linux/sock_diag.h>, <linux/socket.h> and net/smc/smc.h
SOCK_DIAG_BY_FAMILY, AF_SMC, SMC_PEERABORTWAIT = 20, 43, 26

HEADER = struct.Struct("=IHHII")       # struct nlmsghdr
GENERIC = struct.Struct("=BBH")        # struct genlmsghdr
ATTRIBUTE = struct.Struct("=HH")       # struct nlattr
DIAG_REQUEST = struct.Struct("=Bxxx48x")  # struct smc_diag_req
DIAG_ANSWER = struct.Struct("=BB")     # struct smc_diag_msg's family and state
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


def ask(netlink, kind, flags, body):
    """What follows the header in each answer; an OSError if the kernel refuses."""
    netlink.send(HEADER.pack(HEADER.size + len(body), kind, NLM_F_REQUEST | flags, 1, 0) + body)
    answers = []
    while True:
        data = netlink.recv(1 << 16)
        while data:
            size, kind, *_ = HEADER.unpack_from(data)
            message, data = data[HEADER.size:size], data[size + -size % 4:]
            if kind in (NLMSG_ERROR, NLMSG_DONE):
                error, = struct.unpack_from("=i", message)
                if error:
                    raise OSError(-error, "SMC's netlink")
                return answers
            answers.append(message)


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        name = FAMILY.encode() + b"\0"
        answer, = self.call(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                            attribute(CTRL_ATTR_FAMILY_NAME, name))
        self.family, = struct.unpack("=H", answer[CTRL_ATTR_FAMILY_ID])

    def call(self, family, command, payload=b"", flags=NLM_F_ACK):
        """The attributes of each answer."""
        answers = ask(self.socket, family, flags, GENERIC.pack(command, 1, 0) + payload)
        return [attributes(answer[GENERIC.size:]) for answer in answers]

    def add(self, eid):
        self.call(self.family, SMC_NETLINK_ADD_UEID,
                  attribute(SMC_NLA_EID_TABLE_ENTRY, eid.ljust(SMC_MAX_EID_LEN).encode() + b"\0"))

    def versions(self):
        for answer in self.call(self.family, SMC_NETLINK_GET_LGR_SMCR, flags=NLM_F_DUMP):
            group = attributes(answer[SMC_GEN_LGR_SMCR])
            common = attributes(group.get(SMC_NLA_LGR_R_V2_COMMON, b""))
            yield common.get(SMC_NLA_LGR_V2_VER, b"\1")[0]


def settle():
    """Returns when no socket is in SMC_PEERABORTWAIT, where SMC unlocks it for a while."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as diag:
        def states():
            answers = ask(diag, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, DIAG_REQUEST.pack(AF_SMC))
            return [DIAG_ANSWER.unpack_from(answer)[1] for answer in answers]

        while SMC_PEERABORTWAIT in states():
            time.sleep(0.1)


def main():
    if sys.argv[1] == "add":
        Netlink().add(sys.argv[2])
    elif sys.argv[1] == "settle":
        settle()
    else:
        print(*Netlink().versions(), sep="\n")


main()
