# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that a network stack may hand to the driver, though the card cannot send them.

Processes with CAP_NET_RAW, virtual machines and containers choose headers and offloads of their
frames. None may stop a queue, which other users share: the stack does what the card cannot, and
what is too long is dropped.
"""

import json
import pathlib
import re
import struct

from scenario import NETDEV, Options, Scenario, main, pair, wait_until

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/raw_frames.py"
MTU = 1500
NETNS, INNER, OUTER, BRIDGE = "blue", "inner", "outer", "bridge0"

NEEDS_CSUM, GSO_NONE, GSO_TCPV4, GSO_TCPV6 = 1, 0, 1, 4
IPV4, IPV6, VLAN, QINQ, OTHER = 0x0800, 0x86dd, 0x8100, 0x88a8, 0x88b5
ETHERNET, TCP_CHECKSUM = 14, 16


def vnet(csum_start, csum_offset, gso=GSO_NONE, gso_size=0, flags=NEEDS_CSUM):
    header_size = csum_start + 20 if gso else 0
    return struct.pack("<BBHHHH", flags, gso, header_size, gso_size, csum_start, csum_offset)


def ipv4(length, ihl=5, protocol=6, version=4):
    head = struct.pack(">BBHHHBBH4s4s", version << 4 | ihl, 0, length, 1, 0, 64, protocol, 0,
                       bytes([10, 77, 1, 1]), bytes([10, 77, 1, 2]))
    return head + bytes(max(0, 4 * ihl - 20))


def ipv6(length):
    return struct.pack(">IHBB16s16s", 6 << 28, length, 6, 64, bytes(16), bytes(16))


def tcp(words=5):
    return struct.pack(">HHIIBBHHH", 1, 9, 1, 1, words << 4, 0x10, 512, 0, 0) + bytes(
        max(0, 4 * words - 20))


class Frames(Scenario):
    HOSTS = (Options(mtu=MTU), Options(mtu=9000))

    def setUp(self):
        super().setUp()
        self.host, self.peer = self.hosts
        self.macs = [host.run(f"cat /sys/class/net/{NETDEV}/address").out.strip()
                     for host in (self.peer, self.host)]
        self.newer = not self.host.run("uname -r").out.startswith("6.1.")

    def statistics(self, host):
        pairs = re.findall(r"^\s+(\S+): (\d+)$", host.run(f"ethtool -S {NETDEV}").out, re.M)
        return {name: int(value) for name, value in pairs}

    def errors(self):
        """What counts frames that put a queue in error, and restarts of queues."""
        return {name: value for name, value in self.statistics(self.host).items()
                if re.fullmatch(r"eth_tx_errors|[tr]x\d+_errors|ch\d+_recover", name)}

    def counted(self, name):
        """Of the net_device."""
        return int(self.host.run(f"cat /sys/class/net/{NETDEV}/statistics/{name}").out)

    def counters(self):
        """Of the card and the net_device."""
        return self.statistics(self.host) | {name: self.counted(name)
                                             for name in ("tx_packets", "tx_dropped")}

    def await_more(self, name, before):
        grown = wait_until(lambda: self.counted(name) > before, 60)
        self.assertTrue(grown, f"{name} does not pass {before}")

    def ethernet(self, *types):
        """The header, with the ethertypes of its VLAN tags and of the frame."""
        head = bytes.fromhex("".join(self.macs).replace(":", ""))
        for ethertype in types[:-1]:
            head += struct.pack(">HH", ethertype, 5)
        return head + struct.pack(">H", types[-1])

    def check_sending(self, name, frame, expected, protocol=IPV4, newer_refuses=False):
        """Sends one frame, which a counter tells of: (its name, the least growth). The queue works
        as before then. Some frames are not even taken by newer kernels."""
        header, head, length = frame
        counter, growth = expected
        with self.subTest(name):
            errors, before = self.errors(), self.counters()[counter]
            self.assertTrue(errors, "no counters of errors")
            self.host.write_file("/tmp/frames", json.dumps([{
                "name": name, "header": header.hex(), "head": head.hex(), "length": length,
                "protocol": protocol}]).encode())
            said = self.host.run(f"/usr/bin/python3 -B /tmp/{PROGRAM.name} {NETDEV} </tmp/frames")
            refused = [f"{name}: Invalid argument"] if newer_refuses and self.newer else []
            self.assertEqual(json.loads(said.out), refused)
            grown = wait_until(lambda: self.counters()[counter] >= before + growth, 20)
            self.assertTrue(grown, f"{counter}: {before}, then {self.counters()[counter]}")
            self.ping(self.host, self.peer.ipv4)
            self.assertEqual(self.errors(), errors)

    def install(self):
        self.host.write_file(f"/tmp/{PROGRAM.name}", PROGRAM.read_bytes())

    # --- frames with headers of a virtual machine

    def test_checksums(self):
        """A checksum from within the Ethernet header on is the stack's work."""
        self.install()
        head = self.ethernet(OTHER)
        for start in (0, 2, 13):
            # What is not taken cannot be counted.
            self.check_sending(f"checksum from {start}", (vnet(start, 20), head, 100),
                               ("tx_packets", 0 if self.newer else 1), OTHER, newer_refuses=True)
        self.check_sending("checksum at the end", (vnet(20, 78), head, 100), ("eth_tx_csum", 1),
                           OTHER)

    def test_segments(self):
        """The card segments TCP over IPv4 and IPv6 with one VLAN tag, the stack all else. What is
        too long then, or makes no sense, is dropped."""
        self.install()
        plain, start = self.ethernet(IPV4), ETHERNET + 20

        def segmented(at, size=1000, gso=GSO_TCPV4):
            return vnet(at, TCP_CHECKSUM, gso, size)

        by_card, by_stack, dropped = ("eth_tx_tso", 1), ("tx_packets", 4), ("tx_dropped", 1)
        for name, expected, header, head, protocol in (
                ("TCP", by_card, segmented(start), plain + ipv4(3986) + tcp(), IPV4),
                ("TCP, one VLAN tag", by_card, segmented(start + 4),
                 self.ethernet(VLAN, IPV4) + ipv4(3982) + tcp(), VLAN),
                ("TCP over IPv6", by_card, segmented(ETHERNET + 40, 1000, GSO_TCPV6),
                 self.ethernet(IPV6) + ipv6(3946) + tcp(), IPV6),
                ("segments longer than the MTU", dropped, segmented(start, 3000),
                 plain + ipv4(3986) + tcp(), IPV4),
                ("segments of the MTU, with options", dropped, segmented(start, MTU - 40),
                 plain + ipv4(3986) + tcp(15), IPV4),
                ("another ethertype in the frame", by_stack, segmented(start),
                 self.ethernet(OTHER) + ipv4(3986) + tcp(), IPV4),
                ("two VLAN tags", by_stack, segmented(start + 8),
                 self.ethernet(QINQ, VLAN, IPV4) + ipv4(3978) + tcp(), QINQ),
                ("another IP version", by_stack, segmented(start),
                 plain + ipv4(3986, version=6) + tcp(), IPV4),
                ("UDP", dropped, segmented(start), plain + ipv4(3986, protocol=17) + tcp(), IPV4),
                ("IPv6, segments longer than the MTU", dropped,
                 segmented(ETHERNET + 40, 3000, GSO_TCPV6),
                 self.ethernet(IPV6) + ipv6(3946) + tcp(), IPV6),
                ("IPv4 as IPv6", dropped, segmented(ETHERNET + 40, 1000, GSO_TCPV6),
                 self.ethernet(IPV6) + ipv4(3986) + ipv4(20) + tcp(), IPV6)):
            self.check_sending(name, (header, head, 4000), expected, protocol)
        for name, head in (
                ("IP options that the checksum does not skip", ipv4(3986, ihl=6) + tcp()),
                ("a short TCP header", ipv4(3986) + tcp(4))):
            self.check_sending(name, (segmented(start), plain + head, 4000), dropped,
                               newer_refuses=True)

    # --- frames of other interfaces

    def test_bridge(self):
        """A bridge passes on what is longer than the MTU if it is to be segmented: dropped, and
        counted. Pings that fit come through meanwhile."""
        host, inside = self.host, f"ip netns exec {NETNS}"
        # The host would answer ARP requests for the address, too, as long as it has it itself.
        host.run(f"""ip -4 address flush dev {NETDEV} &&
                     ip link add {BRIDGE} type bridge && ip link set {NETDEV} master {BRIDGE} &&
                     ip netns add {NETNS} &&
                     ip link add {OUTER} mtu 3000 type veth peer name {INNER} mtu 3000 &&
                     ip link set {INNER} netns {NETNS} && ip link set {OUTER} master {BRIDGE} &&
                     ip link set {BRIDGE} up && ip link set {OUTER} up &&
                     {inside} ip address add {host.ipv4}/24 dev {INNER} &&
                     {inside} ip link set {INNER} up""")
        try:
            reached = wait_until(lambda: host.run(
                f"{inside} ping -q -c 1 -W 1 {self.peer.ipv4}", check=False).code == 0, 60)
            self.assertTrue(reached, "no ping through the bridge")
            before, dropped = self.errors(), self.counted("tx_dropped")
            sink = self.peer.spawn("socat -u TCP-LISTEN:9997,reuseaddr,fork OPEN:/dev/null")
            pair.await_listener(self.peer, 9997, sink)
            # Linux may send a connection's data one segment at a time, which the bridge drops by
            # itself. So there are many connections. With linger=0 they end with their programs:
            # what is still to be sent does not pass the bridge.
            flood = host.spawn(f"while :; do timeout --foreground 5 {inside} socat -u /dev/zero "
                               f"TCP:{self.peer.ipv4}:9997,linger=0; done")
            self.await_more("tx_dropped", dropped)
            flood.give_up()
            sink.give_up()
            # An open connection would keep the namespace, the veth and received frames in memory.
            connections = f"{inside} ss -Htan exclude time-wait"
            self.assertTrue(wait_until(lambda: not host.run(connections).out, 60),
                            host.run(connections).out)
            host.run(f"{inside} ping -q -i 0.2 -c 3 -w 20 {self.peer.ipv4}")
            self.assertEqual(self.errors(), before)
        finally:
            host.run(f"ip netns del {NETNS}; ip link del {BRIDGE}", check=False)
            host.configure()
            # The peer has learned the MAC of the other end of the veth, and may use it for as long
            # as it takes this entry for reachable, up to 45 s.
            self.peer.run("ip neigh flush all")

    def test_mtu_under_traffic(self):
        """The MTU shrinks while longer frames are on their way, which are dropped."""
        host, peer = self.host, self.peer
        # In the shell's process group, with which it is killed.
        flood = f"timeout --foreground 20 socat -b 8900 -u /dev/zero UDP-SENDTO:{peer.ipv4}:9996"
        before, dropped = self.errors(), self.counted("tx_dropped")
        host.run(f"ip link set {NETDEV} mtu 9000")
        senders = [host.spawn(f"while :; do {flood}; done") for _ in range(2)]
        try:
            for turn in range(100):
                for mtu in (MTU, 9000):
                    host.run(f"ip link set {NETDEV} mtu {mtu}")
                    self.await_more("tx_packets", self.counted("tx_packets") + 100)
                if turn >= 10 and self.counted("tx_dropped") > dropped:
                    break
            self.assertGreater(self.counted("tx_dropped"), dropped)
        finally:
            for sender in senders:
                sender.give_up()
            host.run(f"ip link set {NETDEV} mtu {MTU}", check=False)
        self.ping(host, peer.ipv4)
        self.assertEqual(self.errors(), before)


if __name__ == "__main__":
    main()
