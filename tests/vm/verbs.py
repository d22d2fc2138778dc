# SPDX-License-Identifier: GPL-2.0-or-later
"""The RDMA device as rdma-core's and iproute2's own programs see it."""

import json
import re
import time

from scenario import NETDEV, RXE, Scenario, main, pair, wait_until


# Of enum ibv_event_type.
PORT_ACTIVE, PORT_ERR = "9", "10"


class Verbs(Scenario):
    def test_udev_loads_the_driver(self):
        for host in self.hosts:
            # Nobody has run modprobe in these guests: scripts/guest/boot does not.
            self.assertEqual(host.driver(), "virtio_net" if RXE else "tern")
        if not RXE:
            alias = self.hosts[0].run("modinfo -F alias tern").out
            self.assertIn("pci:v00001234d00007E44", alias)
            self.hosts[0].run("modprobe tern")

    def test_ibv_devinfo(self):
        for host in self.hosts:
            device = host.rdma_device()
            host.gid_index(device)
            info = host.run(f"ibv_devinfo -v -d {device}").out
            self.assertRegex(info, r"state:\s+PORT_ACTIVE")
            self.assertRegex(info, r"link_layer:\s+Ethernet")
            self.assertRegex(info, r"max_mtu:\s+4096")
            self.assertRegex(info, r"active_mtu:\s+4096")
            self.assertRegex(info, r"atomic_cap:\s+ATOMIC_(HCA|GLOB)")
            if not RXE:
                self.assertIn("BAD_PKEY_CNTR", info)
                self.assertIn("BAD_QKEY_CNTR", info)
            most = int(re.search(r"max_sge:\s+(\d+)", info)[1])
            if not RXE:
                self.assertEqual(most, 30)  # TERN_MAX_SEND_SGE, all of which vm.checks uses
            self.assertIn(f"::ffff:{host.ipv4}, RoCE v2", info)
            self.assertIn(f"{host.ipv6}, RoCE v2", info)

    def test_ibv_devices(self):
        host = self.hosts[0]
        self.assertIn(host.rdma_device(), host.run("ibv_devices").out)

    def test_beside_all_providers(self):
        """With the providers of all cards that rdma-core knows, which the image puts aside."""
        beside = "/etc/libibverbs.d.others"
        for host in self.hosts:
            self.assertGreater(int(host.run(f"ls {beside} | wc -l").out), 10)
            host.run(f"cp {beside}/* /etc/libibverbs.d")
            self.addCleanup(host.run, f"cd {beside} && rm -f $(printf '/etc/libibverbs.d/%s ' *)")
        self.assertIn(self.hosts[0].rdma_device(), self.hosts[0].run("ibv_devices").out)
        self.pingpong("-n 20 -c")

    def test_gid_table_follows_addresses(self):
        host = self.hosts[0]
        device = host.rdma_device()
        host.run(f"ip address add 10.78.0.1/24 dev {NETDEV}")
        for kind in ("RoCE v2",) if RXE else ("RoCE v2", "IB/RoCE v1"):
            host.gid_index(device, "10.78.0.1", kind)
        host.run(f"ip address del 10.78.0.1/24 dev {NETDEV}")
        self.await_gid_gone(host, device, "10.78.0.1")

    def test_active_mtu_follows_interface(self):
        host = self.hosts[0]
        device = host.rdma_device()
        try:
            host.run(f"ip link set {NETDEV} mtu 1500")
            small = wait_until(
                lambda: re.search(r"active_mtu:\s+1024", host.run(f"ibv_devinfo -d {device}").out),
                10)
            self.assertTrue(small)
        finally:
            host.run(f"ip link set {NETDEV} mtu {host.options.mtu}")

    def test_pingpong(self):
        self.pingpong("-n 200 -c")

    def test_pingpong_with_events(self):
        self.pingpong("-n 200 -c -e")

    def test_pingpong_sizes_and_mtus(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            self.pingpong(f"-n 20 -c -m {mtu} -s {3 * mtu + 1}")
        self.pingpong("-n 5 -c -m 4096 -s 1048576")

    def test_rdma_link(self):
        host = self.hosts[0]
        device = host.rdma_device()
        self.assertRegex(host.run(f"rdma link show {device}/1").out,
                         f"state ACTIVE physical_state LINK_UP netdev {NETDEV}")

    def test_rdma_resource(self):
        """A running program's objects are listed, by its name, and gone after it."""
        server, client = self.hosts
        device = server.rdma_device()
        command = "ib_send_bw -F -s 4096 -D 6"
        before = self.resources(server, device)
        task = server.spawn(f"{command} {self.patient(server)}")
        asking = None
        try:
            pair.await_listener(server, pair.PERFTEST_PORT)
            asking = client.spawn(f"{command} {self.patient(client)} {server.ipv4}")
            used = wait_until(lambda: self.programs(server, device), 30)
            self.assertTrue(used, "`rdma resource show qp` never named ib_send_bw")
            during = self.resources(server, device)
            for kind in ("pd", "cq", "qp", "mr"):
                self.assertGreater(during[kind], before[kind], kind)
            self.assertEqual({qp["type"] for qp in used}, {"RC"})
            asking.wait(timeout=60)
            task.wait(timeout=60)
        finally:
            for program in filter(None, (task, asking)):
                if program.running():
                    program.kill()
        # The kernel frees what a program has left after its end.
        wait_until(lambda: self.resources(server, device) == before, 20)
        self.assertEqual(self.resources(server, device), before)

    def resources(self, host, device):
        table = json.loads(host.run(f"rdma -j resource show {device}").out)[0]
        return {kind: table[kind] for kind in ("pd", "cq", "qp", "mr")}

    def programs(self, host, device):
        table = json.loads(host.run(f"rdma -j resource show qp link {device}/1").out or "[]")
        return [qp for qp in table if qp.get("comm", "").startswith("ib_send_bw")]

    def test_rdma_statistic(self):
        host = self.hosts[0]
        before = host.hw_counters()
        self.assertTrue(before, "no hardware counters")
        self.pingpong("-n 100")
        after = host.hw_counters()
        grown = {name: after[name] - before[name] for name in after if after[name] > before[name]}
        self.assertTrue(any(by >= 100 for by in grown.values()),
                        f"no counter noticed 100 messages: {grown}")

    def test_asynchronous_event(self):
        """The port going down and coming back is told to a program that watches, once."""
        host = self.hosts[0]

        def seen():
            """The port's states, as in "  event_type port error (10), port 1"."""
            return re.findall(rf"event_type .*\(({PORT_ACTIVE}|{PORT_ERR})\)", watcher.output())

        watcher = self.watch(host)
        try:
            for change in ("down", "up"):
                before = len(seen())
                host.run(f"ip link set {NETDEV} {change}")
                self.assertTrue(wait_until(lambda: len(seen()) > before, 10), seen())
            time.sleep(2)  # Linux reports the state of a link once a second, if it changes often
            self.assertEqual(seen(), [PORT_ERR, PORT_ACTIVE])
        finally:
            host.configure()


if __name__ == "__main__":
    main()
