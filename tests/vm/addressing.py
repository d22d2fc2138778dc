# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses that change: VLAN devices, macvlans, another MAC, bonds, with RDMA on top of them."""

import json
import unittest

import roce_capture
import vlans
from scenario import NETDEV, PATIENT, RXE, Scenario, main, pair, wait_until

VLAN = 100
MACVLAN = "macvlan0"
RPING_PORT = 7174


class Addressing(Scenario):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.restore)

    def restore(self):
        for host in self.hosts:
            host.configure()
            host.run("ip neigh flush all")
        self.meet()

    def pingpong_from(self, addresses, port, arguments="-n 100 -c", kind="RoCE v2"):
        """Over the GIDs of these addresses; the programs find each other over that network too."""
        server, client = self.hosts
        commands = []
        for host, address in zip(self.hosts, addresses):
            device = host.rdma_device()
            commands.append(f"{PATIENT} ibv_rc_pingpong -p {port} {arguments} -d {device} "
                            f"-g {host.gid_index(device, address, kind)}")
        return pair.run_pair(server, commands[0], client, f"{commands[1]} {addresses[0]}",
                             port=port)

    def test_gid_change_event(self):
        """A program that watches hears that the GID table has changed."""
        host = self.hosts[0]
        watcher = self.watch(host)
        self.addCleanup(host.run, f"ip address del 10.81.0.1/24 dev {NETDEV}", check=False)

        def events():
            """In its words: "  event_type GID table change (18), port 1"."""
            return watcher.output().count("(18)")

        # An address has a GID of each version of RoCE, and each of these an event.
        versions = 1 if RXE else 2
        for action in ("add", "del"):
            before = events()
            host.run(f"ip address {action} 10.81.0.1/24 dev {NETDEV}")
            self.assertTrue(wait_until(lambda n=before: events() >= n + versions, 10),
                            watcher.output())

    # --- VLANs

    def vlan(self, host):
        """A VLAN interface on the card's; its address."""
        self.addCleanup(vlans.remove, host, VLAN)
        return vlans.add(host, VLAN)

    def test_vlan(self):
        one, two = self.hosts
        addresses = [self.vlan(host) for host in self.hosts]
        self.ping(one, addresses[1])
        self.transfer(one, two, mebibytes=2, address=addresses[1])
        path = self.lab.logs / "vlan.pcap"
        self.lab.wire.capture(path)
        try:
            for port, kind in enumerate(("RoCE v2",) if RXE else ("RoCE v2", "IB/RoCE v1"), 18701):
                self.pingpong_from(addresses, port, kind=kind)
        finally:
            self.lab.wire.stop_capture()
        tags = roce_capture.tshark(path, "infiniband", "-T", "fields", "-e", "vlan.id").split()
        self.assertGreaterEqual(len(tags), 200)
        self.assertEqual(set(tags), {str(VLAN)})

    def test_vlan_goes(self):
        """A VLAN device that goes takes its GIDs with it."""
        host = self.hosts[0]
        address = self.vlan(host)
        host.gid_index(host.rdma_device(), address)
        vlans.remove(host, VLAN)
        self.await_gid_gone(host, host.rdma_device(), address)

    # --- macvlans

    def macvlan(self, host):
        """A macvlan on the card's interface; its address."""
        address = f"10.88.0.{host.index}"
        own_only = f"sysctl -q net.ipv4.conf.{NETDEV}.arp_ignore"
        self.addCleanup(host.run, f"ip link del {MACVLAN}; {own_only}=0", check=False)
        # Else the card's interface answers for the macvlan, too, with its own MAC.
        host.run(f"{own_only}=1 && "
                 f"ip link add link {NETDEV} name {MACVLAN} type macvlan mode bridge && "
                 f"ip link set {MACVLAN} up && ip address add {address}/24 dev {MACVLAN}")
        return address

    def roce_macs(self, name, run):
        """The pairs of source and destination of the RoCE frames that are sent during run()."""
        path = self.lab.logs / f"{name}.pcap"
        self.lab.wire.capture(path)
        try:
            run()
        finally:
            self.lab.wire.stop_capture()
        told = roce_capture.tshark(path, "infiniband", "-T", "fields",
                                   "-e", "eth.src", "-e", "eth.dst")
        return {tuple(line.split()) for line in told.splitlines()}

    def rping(self, address):
        arguments = f"-C 20 -S 1000 -a {address}"
        pair.run_pair(self.hosts[0], f"rping -s -V {arguments}",
                      self.hosts[1], f"rping -c -V {arguments}",
                      port=RPING_PORT, ready=pair.await_cm_listener)

    def macs_between(self, hosts, interface):
        one, two = (self.mac(host, interface) for host in hosts)
        return {(one, two), (two, one)}

    @unittest.skipIf(RXE, "rxe sends from its own interface only")
    def test_macvlan(self):
        """A macvlan's GID is used with the macvlan's MAC, and TCP works next to it."""
        one, two = self.hosts
        addresses = [self.macvlan(host) for host in self.hosts]
        self.ping(one, addresses[1])
        self.transfer(one, two, mebibytes=2, address=addresses[1])
        # Without a capture the hosts exchange frames directly if they share memory.
        self.pingpong_from(addresses, 18731, "-s 65536 -n 200 -c")
        self.rping(addresses[0])

        def run():
            for port, kind in enumerate(("RoCE v2", "IB/RoCE v1"), 18732):
                self.pingpong_from(addresses, port, kind=kind)
            self.rping(addresses[0])

        self.assertEqual(self.roce_macs("macvlan", run), self.macs_between(self.hosts, MACVLAN))
        # The card's own GIDs are used with its own MAC, as ever.
        self.assertEqual(self.roce_macs("beside_macvlan", lambda: self.pingpong(port=18734)),
                         self.macs_between(self.hosts, NETDEV))

    @unittest.skipIf(RXE, "rxe sends from its own interface only")
    def test_macvlan_mac_change(self):
        addresses = [self.macvlan(host) for host in self.hosts]
        self.pingpong_from(addresses, 18735)
        for host in self.hosts:
            host.run(f"ip link set {MACVLAN} address 02:00:00:00:be:{host.index:02x}")
            host.run("ip neigh flush all")
        macs = self.roce_macs("macvlan_mac_change", lambda: self.pingpong_from(addresses, 18736))
        self.assertEqual(macs, self.macs_between(self.hosts, MACVLAN))
        self.assertIn(("02:00:00:00:be:01", "02:00:00:00:be:02"), macs)

    @unittest.skipIf(RXE, "rxe sends from its own interface only")
    def test_macvlan_within_host(self):
        """The card loops back what it sends to the macvlan itself."""
        host = self.hosts[0]
        device = host.rdma_device()
        index = host.gid_index(device, self.macvlan(host))
        command = f"{PATIENT} ibv_rc_pingpong -p 18737 -n 100 -c -d {device} -g {index}"
        macs = self.roce_macs("macvlan_within_host", lambda: pair.run_pair(
            host, command, host, f"{command} {host.ipv4}", port=18737))
        self.assertEqual(macs, set())

    # --- another MAC

    def mac(self, host, interface=NETDEV):
        return json.loads(host.run(f"ip -j link show {interface}").out)[0]["address"]

    def set_mac(self, host, mac):
        host.run(f"ip link set {NETDEV} address {mac}")
        for other in self.hosts:
            other.run("ip neigh flush all")

    def test_mac_change(self):
        """Whoever connects after it uses the new MAC; who was connected before is cut off."""
        server, client = self.hosts
        old = self.mac(server)
        self.addCleanup(self.set_mac, server, old)
        command = f"ib_write_bw -s 4096 -D 600 {self.patient(server)}"
        task = server.spawn(command)
        pair.await_listener(server, pair.PERFTEST_PORT)
        asking = client.spawn(f"ib_write_bw -s 4096 -D 600 {self.patient(client)} {server.ipv4}")
        try:
            self.assertTrue(wait_until(lambda: self.in_rts(client), 20))
            self.set_mac(server, "02:00:00:00:be:ef")
            result = asking.wait(timeout=60, check=False)
            self.assertNotEqual(result.code, 0)
            self.assertIn("Completion with error", result.out)
        finally:
            for program in (task, asking):
                program.give_up()
        self.ping(client, server.ipv4)
        self.pingpong("-n 100 -c", port=18711)
        self.set_mac(server, old)
        self.pingpong("-n 100 -c", port=18712)

    def in_rts(self, host):
        device = host.rdma_device()
        shown = host.run(f"rdma -j resource show qp link {device}/1").out
        return any(qp["type"] == "RC" and qp["state"] == "RTS" for qp in json.loads(shown or "[]"))

    # --- bonds

    def bond(self, host):
        address = f"10.80.0.{host.index + 1}"
        self.addCleanup(host.run, f"ip link set {NETDEV} nomaster; ip link del bond0; "
                        f"ip link set {NETDEV} up", check=False)
        host.run("modprobe bonding max_bonds=0 && "
                 "ip link add bond0 type bond mode active-backup miimon 100 && "
                 f"ip link set {NETDEV} down && ip link set {NETDEV} master bond0 && "
                 f"ip link set bond0 up && ip address add {address}/24 dev bond0")
        return address

    def test_bond(self):
        """The card as the only leg of a bond: the bond's addresses are its GIDs."""
        addresses = [self.bond(host) for host in self.hosts]
        for host, address in zip(self.hosts, addresses):
            host.gid_index(host.rdma_device(), address)
        self.assertTrue(wait_until(
            lambda: self.hosts[0].run(f"ping -c 1 -W 1 {addresses[1]}", check=False).code == 0, 10))
        self.pingpong_from(addresses, 18721)
        self.change_leg(self.hosts[0], addresses[0])
        self.pingpong_from(addresses, 18722)

    def change_leg(self, host, address):
        """Another leg of the bond becomes the active one, and then the card again: the bond's
        addresses are GIDs of the active leg alone."""
        active = "/sys/class/net/bond0/bonding/active_slave"
        self.addCleanup(host.run, "ip link del spare0")
        host.run("ip link add spare0 type dummy && ip link set spare0 master bond0")
        host.run(f"echo spare0 >{active}")
        self.await_gid_gone(host, host.rdma_device(), address)
        host.run(f"echo {NETDEV} >{active}")
        host.gid_index(host.rdma_device(), address)

    def test_bond_comes_and_goes(self):
        host = self.hosts[0]
        for _ in range(3):
            address = self.bond(host)
            host.gid_index(host.rdma_device(), address)
            host.run(f"ip link set {NETDEV} nomaster && ip link del bond0")
            self.await_gid_gone(host, host.rdma_device(), address)


if __name__ == "__main__":
    main()
