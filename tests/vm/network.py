# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet function: what any network card has to do."""

import re
import unittest

from scenario import NETDEV, RXE, Scenario, main, wait_until

NAPI = f"/sys/class/net/{NETDEV}"  # with the settings of its polling
SMALLEST_RING = 64


class Network(Scenario):
    def test_ping(self):
        one, two = self.hosts
        for address in (two.ipv4, two.ipv6):
            self.ping(one, address)

    def test_ping_jumbo(self):
        one, two = self.hosts
        self.ping(one, two.ipv4, size=9000 - 20 - 8)
        self.ping(one, two.ipv6, size=9000 - 40 - 8)

    def test_tcp(self):
        one, two = self.hosts
        self.transfer(one, two)
        self.transfer(two, one, address=f"[{one.ipv6}]")

    def test_mtu(self):
        one, two = self.hosts
        try:
            for mtu in (1500, 4200, 9000, 1500):
                for host in self.hosts:
                    host.run(f"ip link set {NETDEV} mtu {mtu}")
                self.ping(one, two.ipv4, size=mtu - 28)
            beyond = one.run(f"ping -q -M do -c 1 -W 2 -s {1500 - 27} {two.ipv4}", check=False)
            self.assertNotEqual(beyond.code, 0)
            self.transfer(one, two, mebibytes=4)
            if not RXE:
                refused = one.run(f"ip link set {NETDEV} mtu 9001", check=False)
                self.assertNotEqual(refused.code, 0)
        finally:
            for host in self.hosts:
                host.run(f"ip link set {NETDEV} mtu {host.options.mtu}")

    def test_down_and_up(self):
        one, two = self.hosts
        one.run(f"ip link set {NETDEV} down")
        lost = two.run(f"ping -q -c 1 -W 1 {one.ipv4}", check=False)
        self.assertNotEqual(lost.code, 0)
        one.configure()
        self.ping(two, one.ipv4)
        self.ping(two, one.ipv6)

    def test_ethtool(self):
        one, two = self.hosts
        info = one.run(f"ethtool -i {NETDEV}").out
        self.assertIn(f"driver: {'virtio_net' if RXE else 'tern'}\n", info)
        self.assertRegex(info, r"bus-info: 0000:\d\d:\d\d\.\d")
        link = one.run(f"ethtool {NETDEV}").out
        self.assertIn("Link detected: yes", link)
        if not RXE:
            fields = one.run(f"ethtool -n {NETDEV} rx-flow-hash tcp4").out
            self.assertIn("IP SA\nIP DA\nL4 bytes 0 & 1", fields)
            fields = one.run(f"ethtool -n {NETDEV} rx-flow-hash sctp4").out
            self.assertIn("IP SA\nIP DA\n", fields)
            self.assertNotIn("L4", fields)

        before = self.statistics(one)
        self.ping(one, two.ipv4, count=5)
        after = self.statistics(one)
        self.assertEqual(before.keys(), after.keys())
        grown = [name for name in after if after[name] >= before[name] + 5]
        self.assertTrue(grown, f"no counter noticed 5 pings: {after}")

    def statistics(self, host):
        heading, *lines = host.run(f"ethtool -S {NETDEV}").out.splitlines()
        self.assertEqual(heading, "NIC statistics:")
        pairs = [re.fullmatch(r"\s+(\S+): (\d+)", line) for line in lines]
        self.assertNotIn(None, pairs, lines)  # a counter without a name
        return {name: int(value) for name, value in (pair.groups() for pair in pairs)}

    def test_interface_counters(self):
        one, two = self.hosts
        read = f"cat /sys/class/net/{NETDEV}/statistics/{{rx,tx}}_{{packets,bytes}}"
        before = [int(n) for n in one.run(f"bash -c '{read}'").out.split()]
        self.ping(one, two.ipv4, size=1000, count=5)
        after = [int(n) for n in one.run(f"bash -c '{read}'").out.split()]
        grown = [new - old for old, new in zip(before, after)]
        for count, least in zip(grown, (5, 5 * 1000, 5, 5 * 1000)):
            self.assertGreaterEqual(count, least, f"rx packets, bytes, tx packets, bytes: {grown}")

    def counted(self, host, name):
        """Of the net_device."""
        return int(host.run(f"cat /sys/class/net/{NETDEV}/statistics/{name}").out)

    def send_multicasts(self, host, count=1000):
        """Datagrams to all hosts, which nobody answers."""
        host.run(f"bash -c 'for ((n = 0; n < {count}; n++)); do echo >&3; done "
                 f"3>/dev/udp/ff02::1%{NETDEV}/9'")

    @unittest.skipIf(RXE, "virtio's driver does not count them")
    def test_multicast(self):
        """Multicast frames that arrive are counted, others are not."""
        one, two = self.hosts
        before = self.counted(one, "multicast")
        self.transfer(two, one, mebibytes=16)  # in more than 1000 frames
        self.assertLess(self.counted(one, "multicast"), before + 1000)
        before = self.counted(one, "multicast")

        def counted():
            self.send_multicasts(two, 100)
            return self.counted(one, "multicast") >= before + 1000

        self.assertTrue(wait_until(counted, 30), (before, self.counted(one, "multicast")))

    def missed(self, host):
        """How many frames the card and the net_device have counted."""
        return self.statistics(host)["eth_rx_no_buffer"], self.counted(host, "rx_missed_errors")

    def miss(self, host, peer):
        """The host's card misses frames of the peer: it has few buffers, and the driver, which
        gives it new ones when it polls, polls only once a second."""
        ring = re.findall(r"RX:\s+(\d+)", host.run(f"ethtool -g {NETDEV}").out)[1]
        host.run(f"ethtool -G {NETDEV} rx {SMALLEST_RING}")
        host.run(f"echo 1000000 >{NAPI}/napi_defer_hard_irqs;"
                 f"echo 60000000000 >{NAPI}/gro_flush_timeout")
        before = self.missed(host)
        grown = [0, 0]

        def look():
            grown[:] = [new - old for old, new in zip(before, self.missed(host))]
            return grown

        def dropped():
            self.send_multicasts(peer)
            return look()[0] > 0

        try:
            self.assertTrue(wait_until(dropped, 30), "the card has not missed a frame")
            self.assertTrue(wait_until(lambda: len(set(look())) == 1, 20), grown)
        finally:
            host.run(f"echo 0 >{NAPI}/gro_flush_timeout; echo 0 >{NAPI}/napi_defer_hard_irqs;"
                     f"ethtool -G {NETDEV} rx {ring}")

    @unittest.skipIf(RXE, "virtio's driver does not count them")
    def test_missed(self):
        """What the card drops for want of a buffer is counted, also over a reset of the card. What
        comes while the interface is down is not missed."""
        one, two = self.hosts
        self.miss(one, two)
        _, before = self.missed(one)
        one.run(f"devlink dev reload pci/{one.pci()}")
        self.await_carrier("1", one)
        self.assertGreaterEqual(self.missed(one)[1], before)
        self.miss(one, two)

        one.run(f"ip link set {NETDEV} down")
        card, net = self.missed(one)

        def arrived():
            two.run(f"ping -q -c 1 -W 1 {one.ipv4}", check=False)
            return self.missed(one)[0] > card

        self.assertTrue(wait_until(arrived, 20))
        one.configure()
        one.run(f"ip link set {NETDEV} down")  # counts what has been missed up to now
        self.assertEqual(self.missed(one)[1], net)
        one.configure()


if __name__ == "__main__":
    main()
