# SPDX-License-Identifier: GPL-2.0-or-later
"""A station on the wire that is nobody's card: it sends what it likes, well-formed or not.

It connects to tern-switch as QEMU does, with frames behind their length, and has addresses of
its own. So it can play a queue pair's peer, and answers come to it, not to a host.
"""

import collections
import contextlib
import dataclasses
import ipaddress
import socket
import struct
import threading
import time

import roce_capture

MAC, IPV4, IPV6 = "52:54:00:66:00:01", "10.77.0.66", "fd77::66"
SOURCE_PORT = 0xc066


def mac_bytes(text):
    return bytes.fromhex(text.replace(":", ""))


@dataclasses.dataclass
class Packet:
    """A RoCE packet, right in every field that is not given otherwise."""
    opcode: int
    qpn: int
    psn: int
    body: bytes = b""           # extended headers and payload
    pad: int | None = None
    version: int = 0
    pkey: int = 0xffff
    wants_ack: bool = True
    target_mac: str = ""
    source: str = IPV4
    target: str = ""
    roce: int = 2
    port: int = 4791
    # Wrong on purpose, as an offset to what is right.
    ip_length: int = 0
    udp_length: int = 0
    ip_checksum: int = 0
    icrc: int = 0
    next_header: int | None = None
    hop_limit: int = 64

    def frame(self):
        pad = -len(self.body) % 4 if self.pad is None else self.pad
        filled = self.body + bytes(-len(self.body) % 4 if self.pad is None else 0)
        flags = pad << 4 | self.version
        bth = struct.pack(">BBHII", self.opcode, flags, self.pkey, self.qpn,
                          self.psn & 0xffffff | self.wants_ack << 31)
        transport = bth + filled + bytes(4)
        if self.roce == 2:
            transport = struct.pack(">HHHH", SOURCE_PORT, self.port,
                                    len(transport) + 8 + self.udp_length, 0) + transport
        ethertype, packet = self._network(transport)
        frame = mac_bytes(self.target_mac) + mac_bytes(MAC) + struct.pack(">H", ethertype)
        return frame + packet[:-4] + struct.pack("<I", self._icrc(packet) ^ self.icrc)

    def _icrc(self, packet):
        header = (20 if packet[0] >> 4 == 4 else 40) + (8 if self.roce == 2 else 0)
        variant = {4: (1, 8, 10, 11), 6: (1, 2, 3, 7)}[packet[0] >> 4]
        if self.roce == 2:
            variant = (*variant, header - 2, header - 1)
        return roce_capture.computed_icrc((header, variant, packet))

    def _network(self, transport):
        source, target = map(ipaddress.ip_address, (self.source, self.target))
        length = len(transport) + self.ip_length
        if source.version == 4 and self.roce == 2:
            header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, self.hop_limit,
                                 17 if self.next_header is None else self.next_header, 0)
            header += source.packed + target.packed
            words = sum(struct.unpack(">10H", header))
            checksum = ~((words & 0xffff) + (words >> 16)) & 0xffff
            checksum = (checksum + self.ip_checksum) & 0xffff
            return 0x0800, header[:10] + struct.pack(">H", checksum) + header[12:] + transport

        def gid(address):
            return address.packed if address.version == 6 else \
                ipaddress.ip_address(f"::ffff:{address}").packed

        usual = 17 if self.roce == 2 else 27
        header = struct.pack(">IHBB", 6 << 28, length,
                             usual if self.next_header is None else self.next_header,
                             self.hop_limit) + gid(source) + gid(target)
        return (0x86dd if self.roce == 2 else 0x8915), header + transport


class Outsider:
    def __init__(self, wire):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(wire.path))
        self._heard = collections.deque(maxlen=100000)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        # The switch learns where to find this address.
        self.send(b"\xff" * 6 + mac_bytes(MAC) + b"\x88\xb5" + bytes(46))

    def _listen(self):
        with contextlib.suppress(OSError), self._socket.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                if frame[:6] == mac_bytes(MAC):
                    self.hear(frame)

    def hear(self, frame):
        self._heard.append((time.time(), frame))

    def send(self, frame):
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def take(self):
        """The RoCE packets that came for this station since the last look."""
        heard = []
        while self._heard:
            heard.append(self._heard.popleft())
        return [roce for roce in (roce_capture.decode(*record) for record in heard) if roce]

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._listener.join(10)
