# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in a guest and sends or receives over RDS, for which Debian 12 has no tools.

rds_peer.py receive ADDRESS
    says "ready", receives until the sender has ended, and checks all of it
rds_peer.py send ADDRESS PEER WORK
    WORK is a number of messages; "forever", until /tmp/stop appears; "read" or "write", which the
    peer then does by RDMA with memory that messages name; "atomics", which the peer does with a
    word of a file
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
DATA, READ, WRITE, ATOMICS, END = range(5)
MESSAGE = random.Random(1).randbytes((64 << 10) - HEADER.size)
BLOCK, BLOCKS = 1 << 20, 16  # what RDMA moves
LOG_INTERVAL = 64
# RDS grants a peer atomics only on memory that it registers on demand, as it cannot pin its pages.
# A file of a file system with DAX is such memory.
FILE, PAGE, WORD = "/mnt/dax/word", 4096, 8
WORD_AT = 64     # of the page
TOGETHER = 32    # atomics under way
ALL = (1 << 64) - 1

# linux/rds.h
RDMA_ARGS, RDMA_DEST, RDMA_MAP, RDMA_STATUS = 1, 2, 3, 4
FADD, CSWP, MASKED_FADD, MASKED_CSWP = 6, 7, 8, 9
RDMA_WRITE, FENCE, USE_ONCE, NOTIFY, SILENT = 0x1, 0x2, 0x8, 0x20, 0x40


def block(number):
    return random.Random(number).randbytes(BLOCK)


class Memory:
    """A block in pages of its own."""

    def __init__(self, file=-1, size=BLOCK):
        self.bytes = mmap.mmap(file, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))

    def word(self, at):
        return int.from_bytes(self.bytes[at:at + WORD], "little")


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
        elif kind == ATOMICS:
            last = Atomics(sock, peer, extra[RDMA_DEST]).run()
            sock.sendto(HEADER.pack(last, ATOMICS), peer)
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


class Atomics:
    """Atomics on a word of the sender's memory."""

    def __init__(self, sock, peer, cookie):
        self.sock, self.peer, self.cookie = sock, peer, cookie
        self.memory = Memory(size=PAGE)
        self.value = 0

    def post(self, kind, number, *operands):
        """The former value will be in word @number; its status has that number."""
        operands += (0,) * (4 - len(operands))
        arguments = struct.pack("=8sQQQQQQQQ", self.cookie, self.memory.address + WORD * number,
                                WORD_AT, *operands, NOTIFY | SILENT, number)
        self.sock.sendmsg([], [(socket.SOL_RDS, kind, arguments)], 0, self.peer)

    def done(self, count):
        """The former values, when all have succeeded. One call tells of several."""
        left = set(range(count))
        while left:
            for _, kind, status in self.sock.recvmsg(0, 1024)[1]:
                number, failed = struct.unpack_from("=Qi", status)
                expect((kind, failed), (RDMA_STATUS, 0))
                left.remove(number)
        return [self.memory.word(WORD * number) for number in range(count)]

    def one(self, kind, *operands, after):
        self.post(kind, 0, *operands)
        expect(hex(self.done(1)[0]), hex(self.value))
        self.value = after

    def many(self, kind, *operands, step):
        """Several at the same time, each of which finds what another one left."""
        for number in range(TOGETHER):
            self.post(kind, number, *operands)
        expect(sorted(self.done(TOGETHER)),
               [self.value + step * number for number in range(TOGETHER)])
        self.value += step * TOGETHER

    def run(self):
        self.one(FADD, 0x1122334455667788, after=0x1122334455667788)
        self.one(FADD, ALL, after=0x1122334455667787)
        self.one(CSWP, 0x1122334455667787, 0xcafe, after=0xcafe)
        self.one(CSWP, 0x1122334455667787, 0xdead, after=0xcafe)
        # compare, swap, which bits to compare, which to swap
        self.one(MASKED_CSWP, 0xff00, 0x1234, 0x00f0, 0xff00, after=0xcafe)
        self.one(MASKED_CSWP, 0x00f0, 0x1234, 0x00f0, 0xff00, after=0x12fe)
        self.one(MASKED_CSWP, 0, 0xffffffff00000000, 0, ALL ^ 0xffff, after=0xffffffff000012fe)
        # The carry leaves the word, but no half of it.
        self.one(MASKED_FADD, 0x1_0000_0001, 1 << 31, after=0x12ff)
        self.one(MASKED_FADD, 0xffff_ed01, 1 << 31, after=0)
        self.one(MASKED_FADD, ALL, 0, after=ALL)
        self.one(MASKED_FADD, 1, 0, after=0)
        self.many(FADD, 3, step=3)
        self.many(MASKED_FADD, 0x0_8000_0000_0001, 1 << 55, step=0x0_8000_0000_0001)
        self.one(FADD, 0, after=self.value)
        return self.value


# --- the sender

def send(sock, peer, work):
    if work == "atomics":
        number = lend_word(sock, peer)
    elif work in ("read", "write"):
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


def lend_word(sock, peer):
    with open(FILE, "w+b") as file:
        file.write(bytes(PAGE))
        file.flush()
        memory, cookie = Memory(file.fileno(), PAGE), ctypes.c_uint64()
    mapping = struct.pack("=QQQQ", memory.address, PAGE, ctypes.addressof(cookie), RDMA_WRITE)
    send_mapped(sock, peer, HEADER.pack(0, ATOMICS), mapping)
    last, kind = HEADER.unpack(control(sock)[0])
    expect(kind, ATOMICS)
    expect(hex(memory.word(WORD_AT)), hex(last))
    expect(memory.bytes[:WORD_AT] + memory.bytes[WORD_AT + WORD:], bytes(PAGE - WORD))
    return 1


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
