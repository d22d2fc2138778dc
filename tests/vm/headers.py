# SPDX-License-Identifier: GPL-2.0-or-later
"""What packets' headers say, for every service: RoCE version, VLAN and priority, traffic class, hop
limit, source port, MTU; and GIDs that come and go while programs run."""

import contextlib

import roce_capture
import vlans
from incast import streams
from programs import Programs
from scenario import LabError, NETDEV, RXE, main, pair, wait_until

V1, V2 = "IB/RoCE v1", "RoCE v2"
VLAN = 7
PINGPONGS = {"RC": "ibv_rc_pingpong -c", "UC": "ibv_uc_pingpong -c", "UD": "ibv_ud_pingpong -c"}
OWN_MACS = {f"52:54:00:77:00:{index:02x}" for index in (1, 2)}


class Headers(Programs):
    TITLE, COLUMNS = "headers", ("result",)

    @contextlib.contextmanager
    def captured(self):
        """A list that has the RoCE packets of the block in the end; all of them decode."""
        path = self.lab.logs / "headers.pcap"
        packets = []
        self.lab.wire.capture(path)
        try:
            yield packets
        finally:
            self.lab.wire.stop_capture()
        self.assertEqual(roce_capture.complaints(path), [])
        packets += [roce for roce in roce_capture.packets(path) if roce.source_mac in OWN_MACS]
        self.assertTrue(packets, "no RoCE packet on the wire")

    def run_with(self, program, addresses, kind=V2, arguments="-n 20", hosts=None):
        """A pingpong between the GIDs of two addresses; the wire's packets."""
        server, client = hosts or self.hosts
        # The kernel waits a second for the Ethernet address of the peer's GID.
        self.ping(client, addresses[server] + f"%{NETDEV}" * addresses[server].startswith("fe80"))

        def command(host):
            device = self.devices[host.name]
            index = host.gid_index(device, addresses[host], kind)
            return f"{program} {arguments} -d {device} -g {index}"

        with self.captured() as packets:
            pair.run_pair(server, command(server), client, f"{command(client)} {server.ipv4}")
        return packets

    def addresses(self, ip=4):
        return {host: self.address(host, ip) for host in self.hosts}

    def link_local(self):
        return {host: host.run(f"ip -6 -o address show dev {NETDEV} scope link").out.split()[3]
                .partition("/")[0] for host in self.hosts}

    def kinds_of_addresses(self):
        return [("IPv4", self.addresses()), ("IPv6", self.addresses(6)),
                ("link-local", self.link_local())]

    # --- versions

    def test_roce_v1(self):
        self.skip_on_rxe("no RoCEv1")
        for (service, program), (name, addresses) in self.covering(
                PINGPONGS.items(), self.kinds_of_addresses()):
            with self.cell(f"RoCEv1, {service}, {name} GID", "result"):
                packets = self.run_with(program, addresses, V1)
                self.assertEqual({roce.version for roce in packets}, {1})

    def test_roce_v2(self):
        for (service, program), (name, addresses) in self.covering(
                PINGPONGS.items(), reversed(self.kinds_of_addresses())):
            with self.cell(f"RoCEv2, {service}, {name} GID", "result"):
                packets = self.run_with(program, addresses)
                self.assertEqual({roce.version for roce in packets}, {2})
                self.assertEqual({roce.source for roce in packets}, set(addresses.values()))

    # --- what the application chooses

    def measure(self, arguments, ip=4, program="ib_send_bw"):
        with self.captured() as packets:
            self.perftest(program, f"-n 20 -s 2048 {arguments}", ip=ip)
        return packets

    def test_traffic_class(self):
        """DSCP and ECN are the traffic class, as it is; ECN 2 is what data of RC has anyway."""
        for service, ip in self.covering(("RC", "UD"), (4, 6)):
            with self.cell(f"traffic class, {service}, IPv{ip}", "result"):
                packets = self.measure(f"-c {service} --tclass=106", ip)
                self.assertEqual({roce.traffic_class for roce in packets}, {106})

    def test_dscp_in_tshark(self):
        """As another decodes it: 106 is DSCP 26, AF31, and ECN 2."""
        path = self.lab.logs / "headers.pcap"
        self.measure("--tclass=106")
        with self.cell("DSCP, ECN by tshark", "result"):
            said = roce_capture.tshark(path, "infiniband", "-T", "fields", "-e",
                                       "ip.dsfield.dscp", "-e", "ip.dsfield.ecn")
            self.assertEqual(set(said.splitlines()), {"26\t2"})

    def test_hop_limit(self):
        """Linux takes it from the route, whatever the program asks for."""
        settings = ("net.ipv4.ip_default_ttl", f"net.ipv6.conf.{NETDEV}.hop_limit")
        try:
            for host in self.hosts:
                for name in settings:
                    host.run(f"sysctl -q -w {name}=17")
            for (service, program), ip in self.covering(PINGPONGS.items(), (4, 6)):
                with self.cell(f"hop limit, {service}, IPv{ip}", "result"):
                    packets = self.run_with(program, self.addresses(ip))
                    self.assertEqual({roce.hop_limit for roce in packets}, {17})
        finally:
            for host in self.hosts:
                for name in settings:
                    host.run(f"sysctl -q -w {name}=64")

    def test_type_of_service(self):
        """RDMA CM's type of service becomes the traffic class."""
        with self.cell("type of service by RDMA CM", "result"), self.captured() as packets:
            self.ucmatose(self.hosts, "-c 1 -C 10 -S 1000 -t 104")
        data = [roce for roce in packets if roce.qpn != 1]
        self.assertTrue(data)
        # The passive side learns it from the request.
        self.assertEqual({roce.traffic_class >> 2 for roce in data}, {104 >> 2})

    def test_source_ports(self):
        """Each QP has a port of its own, so that a network can spread them, and keeps it."""
        with self.cell("source ports of 16 QPs", "result"):
            packets = self.measure("-q 16", program="ib_write_bw")
            ports = {}
            for roce in packets:
                ports.setdefault((roce.source, roce.qpn), set()).add(roce.source_port)
            self.assertEqual({len(each) for each in ports.values()}, {1})
            for host in self.hosts:
                own = set.union(*(each for (source, _), each in ports.items()
                                  if source == host.ipv4))
                self.assertGreaterEqual(min(own), 0xc000)  # A17.4.3.1
                self.assertGreater(len(own), 8, f"{host.name} uses {own}")

    def test_path_mtus(self):
        """The netdev's MTU bounds the path's; both ends' programs agree on the smaller."""
        try:
            for netdev, largest in ((1500, 1024), (2200, 2048), (4200, 4096)):
                for host in self.hosts:
                    host.run(f"ip link set {NETDEV} mtu {netdev}")
                for service in ("RC", "UC"):
                    with self.cell(f"MTU {netdev}: {largest}, {service}", "result"):
                        self.assertTrue(wait_until(lambda: all(
                            f"active_mtu:\t\t{largest}" in
                            host.run(f"ibv_devinfo -d {self.devices[host.name]}").out
                            for host in self.hosts), 10))
                        packets = self.run_with(PINGPONGS[service], self.addresses(),
                                                arguments=f"-n 10 -s 10000 -m {largest}")
                        self.assertEqual(max(len(roce.body) for roce in packets), largest)
                with self.cell(f"MTU {netdev}: {largest}, UD", "result"):
                    self.run_with(PINGPONGS["UD"], self.addresses(),
                                  arguments=f"-n 10 -s {largest}")
        finally:
            for host in self.hosts:
                host.run(f"ip link set {NETDEV} mtu {host.options.mtu}")

    # --- VLANs

    def vlan(self):
        return vlans.added(self.hosts, VLAN, "egress-qos-map 0:0 6:6")

    def test_vlan(self):
        with self.vlan() as addresses:
            self.ping(self.hosts[1], addresses[self.hosts[0]])
            for service, program in PINGPONGS.items():
                with self.cell(f"VLAN, {service}", "result"):
                    packets = self.run_with(program, addresses)
                    self.assertEqual({(roce.tag or 0) & 0xfff for roce in packets}, {VLAN})
            with self.cell("VLAN, RDMA CM", "result"):
                server, client = self.hosts
                self.cm_pair("rping -s -V -C 10", f"rping -c -V -C 10 -a {addresses[server]}",
                             self.hosts, 7174)
            if not RXE:
                for service, program in PINGPONGS.items():
                    with self.cell(f"VLAN, RoCEv1, {service}", "result"):
                        packets = self.run_with(program, addresses, V1)
                        self.assertEqual({roce.tag & 0xfff for roce in packets}, {VLAN})
        for host in self.hosts:
            self.await_gid_gone(host, self.devices[host.name], str(addresses[host]))

    def test_priority(self):
        """The service level is the tag's priority."""
        self.skip_on_rxe("no priorities in its tags")
        with self.vlan() as addresses:
            for service, program in PINGPONGS.items():
                with self.cell(f"VLAN priority, {service}", "result"):
                    packets = self.run_with(program, addresses, arguments="-n 20 -l 5")
                    self.assertEqual({roce.tag >> 13 for roce in packets}, {5})
            with self.cell("VLAN priority by RDMA CM's type of service", "result"):
                server, client = self.hosts
                with self.captured() as packets:
                    # Linux maps 0x10, low delay, to its priority 6 and that, here, to the tag's 6.
                    self.cm_pair(f"ucmatose -b {addresses[server]} -c 1 -C 5 -S 100",
                                 f"ucmatose -s {addresses[server]} -c 1 -C 5 -S 100 -t 16",
                                 self.hosts)
                requests = {roce.tag >> 13 for roce in packets
                            if roce.qpn != 1 and roce.source == addresses[client]}
                self.assertEqual(requests, {6})

    def test_vlans_are_apart(self):
        """A QP on the VLAN and one without do not hear each other, though all else fits."""
        with self.vlan() as addresses:
            server, client = self.hosts
            alias = f"{addresses[client]}/32 dev lo"
            client.run(f"ip address add {alias}")
            self.addCleanup(client.run, f"ip address del {alias}")
            command = "ibv_rc_pingpong -n 5 -d {} -g {}"
            device = self.devices[server.name]
            serve = command.format(device, server.gid_index(device, addresses[server]))
            device = self.devices[client.name]
            ask = f"{command.format(device, client.gid_index(device))} {server.ipv4}"
            with self.cell("VLAN to none: not heard", "result"):
                refused = 0 if RXE else server.hw_counter("rx_addr_err")
                with self.assertRaisesRegex(LabError, "retry counter exceeded"):
                    pair.run_pair(server, serve, client, ask, timeout=15)
                if not RXE:  # which has no such counter
                    self.assertGreater(server.hw_counter("rx_addr_err"), refused)

    # --- changes while programs run

    @contextlib.contextmanager
    def traffic(self, addresses=None):
        """WRITEs from the client to the server, which are under way before the block and after it.
        Yields a function that waits for more of them."""
        server, client = self.hosts
        with streams(server, [client], addresses=addresses) as tasks:
            def go_on():
                self.await_traffic(client, *tasks)

            go_on()
            yield go_on
            go_on()

    def test_gids_come_and_go(self):
        self.skip_on_rxe("ends WRITEs with REM_INV_REQ_ERR when it has to retransmit")
        with self.cell("addresses come and go under traffic", "result"):
            with self.traffic():
                for turn in range(4):
                    for host in self.hosts:
                        extra = f"10.79.{turn}.{host.index}"
                        host.run(f"ip address add {extra}/24 dev {NETDEV}")
                        host.gid_index(self.devices[host.name], extra)
                        host.run(f"ip address del {extra}/24 dev {NETDEV}")

    def test_own_gid_goes_and_returns(self):
        """A QP keeps the address that it was given, in the card; the next ones get the new."""
        host = self.hosts[1]
        device = self.devices[host.name]
        extra = {each: f"10.79.9.{each.index}" for each in self.hosts}
        for each, address in extra.items():
            each.run(f"ip address add {address}/24 dev {NETDEV}")
            self.addCleanup(each.run, f"ip address del {address}/24 dev {NETDEV}", check=False)
        with self.cell("an address goes under traffic", "result"):
            self.run_with(PINGPONGS["RC"], extra)
            with self.traffic(extra) as go_on:
                host.run(f"ip address del {extra[host]}/24 dev {NETDEV}")
                self.await_gid_gone(host, device, extra[host])
                go_on()
                host.run(f"ip address add {extra[host]}/24 dev {NETDEV}")
                host.gid_index(device, extra[host])
            self.run_with(PINGPONGS["RC"], extra)


if __name__ == "__main__":
    main()
