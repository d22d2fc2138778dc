# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own users of the card, MADs and the CM above all: they come, and they go with it."""

import json

from scenario import LabError, NETDEV, Scenario, main, wait_until

RPING_PORT = 7174


class KernelUsers(Scenario):
    def test_general_services_qp(self):
        for host in self.hosts:
            device = host.rdma_device()
            qps = json.loads(host.run(f"rdma -j resource show qp link {device}/1").out)
            gsi = [qp for qp in qps if qp["type"] == "GSI"]
            self.assertEqual([(qp["lqpn"], qp["state"], qp["comm"]) for qp in gsi],
                             [(1, "RTS", "ib_core")])

    def test_unbind_under_connections(self):
        """Both ends of a connection die by themselves, and ours does not keep the card."""
        one = self.hosts[0]
        slot = one.pci()
        with self.connection() as connection:
            one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/unbind", timeout=60)
            self.assertEqual(one.run("rdma link").out.strip(), "")
            ended = wait_until(lambda: not any(task.running() for task in connection.tasks), 60)
            said = [task.said() for task in connection.tasks]
            self.assertTrue(ended, said)
            self.assertIn("device removal", said[0])
        self.rebind(one, slot)

    def test_dead_card_under_connections(self):
        """A function-level reset behind the driver's back: what was posted ends as flushed."""
        one = self.hosts[0]
        slot = one.pci()
        with self.connection():
            one.run(f"setpci -s {slot} CAP_EXP+8.w=8000:8000")
            dead = wait_until(lambda: "the card was reset by others" in one.run("dmesg").out, 30)
            self.assertTrue(dead, "the driver has not seen that the card is gone")
            self.replug(one, slot)  # the reset took its BARs too
        self.come_back(one)

    def test_remove_and_rescan(self):
        one = self.hosts[0]
        slot = one.pci()
        with self.connection():
            self.replug(one, slot)
        self.come_back(one)

    def connection(self):
        return Connection(*self.hosts[:2])

    def rebind(self, host, slot):
        host.run(f"echo {slot} >/sys/bus/pci/drivers/tern/bind", timeout=60)
        self.come_back(host)

    @staticmethod
    def replug(host, slot):
        host.run(f"echo 1 >/sys/bus/pci/devices/{slot}/remove", timeout=60)
        host.run("echo 1 >/sys/bus/pci/rescan")

    def come_back(self, host):
        """The card is as good as new: a connection to it lives."""
        self.assertTrue(wait_until(
            lambda: host.run(f"ip link show {NETDEV}", check=False).code == 0, 30))
        host.configure()
        host.rdma_device()
        with self.connection():
            pass


class Connection:
    """An rping from the second host to the first, in full swing."""

    def __init__(self, server, client):
        self.server, self.client, self.tasks = server, client, []

    def __enter__(self):
        self.tasks.append(self.server.spawn(
            f"rping -s -P -a {self.server.ipv4} -p {RPING_PORT}"))
        self.await_resource(self.server, "cm_id", "state LISTEN")
        self.tasks.append(self.client.spawn(
            f"rping -c -C 1000000 -a {self.server.ipv4} -p {RPING_PORT}"))
        for host in (self.server, self.client):
            self.await_resource(host, "qp", "type RC state RTS")
        return self

    def await_resource(self, host, kind, sign):
        there = wait_until(lambda: any(
            sign in line and "rping" in line
            for line in host.run(f"rdma resource show {kind}").out.splitlines()), 30)
        if not there:
            raise LabError("\n".join([f"{host.name}: rping has no {kind} with {sign}",
                                      *[task.give_up() for task in self.tasks]]))

    def __exit__(self, *error):
        for task in self.tasks:
            if task.running():
                task.kill()
            task.wait(check=False)


if __name__ == "__main__":
    main()
