# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in a guest and sends or receives over RDS, for which Debian 12 has no tools.

rds_peer.py receive ADDRESS
    says "ready", receives until the sender has ended, and checks all of it
rds_peer.py send ADDRESS PEER WORK
    WORK is a number of messages; "forever", until /tmp/stop appears; "read" or "write", which the
    peer then does by RDMA with memory that messages name
"""

import ctypes
import mmap
import os
import random
import socket
import struct
import sys
import time

SENDER, RECEIVER = 4001, 4000  # ports
STOP = "/tmp/stop"
HEADER = struct.Struct("<QB")  # of a message: its number, and what it asks for
DATA, READ, WRITE, END = range(4)
MESSAGE = random.Random(1).randbytes((64 << 10) - HEADER.size)
BLOCK, BLOCKS = 1 << 20, 16  # what RDMA moves
LOG_INTERVAL = 64

# linux/rds.h
RDMA_ARGS, RDMA_DEST, RDMA_MAP, RDMA_STATUS = 1, 2, 3, 4
RDMA_WRITE, FENCE, USE_ONCE, NOTIFY = 0x1, 0x2, 0x8, 0x20


def block(number):
    return random.Random(number).randbytes(BLOCK)


class Memory:
    """A block in pages of its own."""

    def __init__(self):
        self.bytes = mmap.mmap(-1, BLOCK)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))


def control(sock):
    """The next message and the control data that came with it."""
    data, ancillary, _, peer = sock.recvmsg(len(MESSAGE) + HEADER.size, 1024)
    return data, {kind: value for level, kind, value in ancillary if level == socket.SOL_RDS}, peer


def expect(what, wanted):
    if what != wanted:
        sys.exit(f"{what!r} came where {wanted!r} should")


# --- the receiver

def receive(sock):
    """Each message comes once, in order."""
    memory, number, early = Memory(), 0, []
    while True:
        data, extra, peer = early.pop() if early else control(sock)
        expect(HEADER.unpack_from(data)[0], number)
        kind = HEADER.unpack_from(data)[1]
        if kind == END:
            break
        if kind == DATA:
            expect(data[HEADER.size:] == MESSAGE, True)
        else:
            move(sock, peer, number, kind, memory, extra[RDMA_DEST])
            expect_done(sock, number, early)
            if kind == READ:
                expect(memory.bytes[:] == block(number), True)
        number += 1
        if number % LOG_INTERVAL == 0:
            print("received", number, flush=True)
    sock.sendto(HEADER.pack(number, END), peer)
    print("received all", flush=True)


def move(sock, peer, number, kind, memory, cookie):
    """One RDMA operation with the sender's memory, and a message behind it."""
    if kind == WRITE:
        memory.bytes[:] = block(number)
    local = (ctypes.c_uint64 * 2)(memory.address, BLOCK)
    flags = NOTIFY | (RDMA_WRITE if kind == WRITE else FENCE)
    arguments = struct.pack("=8sQQQQQQ", cookie, 0, BLOCK, ctypes.addressof(local), 1, flags,
                            number)
    sock.sendmsg([HEADER.pack(number, kind)], [(socket.SOL_RDS, RDMA_ARGS, arguments)], 0, peer)


def expect_done(sock, number, early):
    """The status of an operation, which the next message may overtake."""
    while True:
        message = control(sock)
        if RDMA_STATUS in message[1]:
            expect(struct.unpack_from("=Qi", message[1][RDMA_STATUS]), (number, 0))
            return
        early.append(message)


# --- the sender

def send(sock, peer, work):
    if work in ("read", "write"):
        number = lend(sock, peer, WRITE if work == "write" else READ)
    else:
        number = 0
        while not os.path.exists(STOP) if work == "forever" else number < int(work):
            sock.sendto(HEADER.pack(number, DATA) + MESSAGE, peer)
            number += 1
    sock.sendto(HEADER.pack(number, END), peer)
    expect(control(sock)[0], HEADER.pack(number, END))


def send_mapped(sock, peer, message, mapping):
    """Memory is registered with a connection, which the first attempt to send only begins."""
    while True:
        try:
            return sock.sendmsg([message], [(socket.SOL_RDS, RDMA_MAP, mapping)], 0, peer)
        except BlockingIOError:
            time.sleep(0.05)


def lend(sock, peer, kind):
    memory, cookie = Memory(), ctypes.c_uint64()
    mapping = struct.pack("=QQQQ", memory.address, BLOCK, ctypes.addressof(cookie), USE_ONCE
                          | (RDMA_WRITE if kind == WRITE else 0))
    for number in range(BLOCKS):
        memory.bytes[:] = bytes(BLOCK) if kind == WRITE else block(number)
        send_mapped(sock, peer, HEADER.pack(number, kind), mapping)
        expect(control(sock)[0], HEADER.pack(number, kind))
        if kind == WRITE:
            expect(memory.bytes[:] == block(number), True)
    return BLOCKS


def main():
    what, address, *more = sys.argv[1:]
    with socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET) as sock:
        if what == "receive":
            sock.bind((address, RECEIVER))
            print("ready", flush=True)
            receive(sock)
        else:
            sock.bind((address, SENDER))
            send(sock, (more[0], RECEIVER), more[1])


main()
