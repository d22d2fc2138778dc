# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses that change: VLAN devices, another MAC, bonds, with RDMA on top of them."""

import json

import roce_capture
import vlans
from scenario import NETDEV, RXE, Scenario, main, pair, wait_until

VLAN = 100


class Addressing(Scenario):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.restore)

    def restore(self):
        for host in self.hosts:
            host.configure()
            host.run("ip neigh flush all")

    def pingpong_from(self, addresses, port, arguments="-n 100 -c", kind="RoCE v2"):
        """Over the GIDs of these addresses; the programs find each other over that network too."""
        server, client = self.hosts
        commands = [f"ibv_rc_pingpong -p {port} {arguments} -d {host.rdma_device()} "
                    f"-g {host.gid_index(host.rdma_device(), address, kind)}"
                    for host, address in zip(self.hosts, addresses)]
        return pair.run_pair(server, commands[0], client, f"{commands[1]} {addresses[0]}",
                             port=port)

    def gid_goes(self, host, address):
        device = host.rdma_device()
        gone = wait_until(
            lambda: all(address != str(gid.ipv4_mapped) for _, gid, _ in host.gids(device)), 10)
        self.assertTrue(gone, host.gids(device))

    def test_gid_change_event(self):
        """A program that watches hears that the GID table has changed."""
        host = self.hosts[0]
        watcher = self.watch(host)
        self.addCleanup(host.run, f"ip address del 10.81.0.1/24 dev {NETDEV}", check=False)
        host.run(f"ip address add 10.81.0.1/24 dev {NETDEV}")
        # Its words: "  event_type GID table change (18), port 1"
        self.assertTrue(wait_until(lambda: "(18)" in watcher.output(), 10), watcher.output())

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
        self.gid_goes(host, address)

    # --- another MAC

    def mac(self, host):
        return json.loads(host.run(f"ip -j link show {NETDEV}").out)[0]["address"]

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

    def test_bond_comes_and_goes(self):
        host = self.hosts[0]
        for _ in range(3):
            address = self.bond(host)
            host.gid_index(host.rdma_device(), address)
            host.run(f"ip link set {NETDEV} nomaster && ip link del bond0")
            self.gid_goes(host, address)


if __name__ == "__main__":
    main()
