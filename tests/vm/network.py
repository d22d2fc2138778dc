# SPDX-License-Identifier: GPL-2.0-or-later
"""The Ethernet function: what any network card has to do."""

import re

from scenario import NETDEV, RXE, Scenario, main


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


if __name__ == "__main__":
    main()
