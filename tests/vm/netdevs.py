# SPDX-License-Identifier: GPL-2.0-or-later
"""The card on QEMU's other networks, each by a card of its own in the same hosts."""

import json
import os

from scenario import Options, PATIENT, Scenario, main, pair, wait_until

# Of this process, below those that the kernel gives to others.
FIRST_PORT = 12000 + 2 * (os.getpid() % 10000)
UDP_PORTS = {1: FIRST_PORT, 2: FIRST_PORT + 1}


def mac(kind, host):
    return f"52:54:00:78:{kind:02x}:{host:02x}"


DGRAM, SOCKET, USER = 1, 2, 3


def options(host):
    peer = 3 - host
    return Options(netdevs=(
        "dgram,id=dgram,local.type=unix,remote.type=unix,"
        f"local.path={{folder}}/dgram{host},remote.path={{folder}}/dgram{peer}",
        f"socket,id=socket,udp=127.0.0.1:{UDP_PORTS[peer]},localaddr=127.0.0.1:{UDP_PORTS[host]}",
        "user,id=user,net=10.0.9.0/24",
    ), devices=(
        f"tern,netdev=dgram,mac={mac(DGRAM, host)}",
        f"tern,netdev=socket,mac={mac(SOCKET, host)}",
        f"tern,netdev=user,mac={mac(USER, host)}",
    ))


class Netdevs(Scenario):
    HOSTS = (options(1), options(2))

    def interface(self, host, kind):
        """The name of that card's interface, once udev has named it for good: udev knows of an
        interface that is there, and has dealt with it when `udevadm settle` returns."""
        def found():
            links = json.loads(host.run("ip -j link show").out)
            return next((link["ifname"] for link in links
                         if link["address"] == mac(kind, host.index)), None)

        self.assertTrue(wait_until(found, 30), mac(kind, host.index))
        host.run("udevadm settle")
        return found()

    def configure(self, host, kind, address):
        """The interface of that card, up; returns its name."""
        name = self.interface(host, kind)
        host.run(f"ip link set {name} up && ip address replace {address}/24 dev {name}")
        return name

    def point_to_point(self, kind):
        commands = []
        for host in self.hosts:
            address = f"10.78.{kind}.{host.index}"
            device = host.rdma_device_of(self.configure(host, kind, address))
            commands.append(f"{PATIENT} ibv_rc_pingpong -c -n 200 -d {device} "
                            f"-g {host.gid_index(device, address)}")
        server, client = self.hosts
        self.ping(client, f"10.78.{kind}.1", size=1000)
        pair.run_pair(server, commands[0], client, f"{commands[1]} {server.ipv4}")

    def test_dgram(self):
        self.point_to_point(DGRAM)

    def test_socket(self):
        self.point_to_point(SOCKET)

    def test_user(self):
        """QEMU's own network stack answers pings to the gateway."""
        for host in self.hosts:
            self.configure(host, USER, "10.0.9.15")
            self.ping(host, "10.0.9.2")


if __name__ == "__main__":
    main()
