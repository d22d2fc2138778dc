# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver goes and comes back, also while programs use its device.

TERN_RELOADS says how often test_again_and_again loads it.
"""

import os

from scenario import NETDEV, Scenario, main, pair, wait_until

RELOADS = int(os.environ.get("TERN_RELOADS", "5"))


class Reload(Scenario):
    def tearDown(self):
        super().tearDown()
        one = self.hosts[0]
        one.run(f"[ -e /sys/class/net/{NETDEV} ] || modprobe tern")
        one.configure()
        self.pingpong("-n 20 -c")

    def test_again_and_again(self):
        one, two = self.hosts
        for _ in range(RELOADS):
            self.unload(one)
            one.run("modprobe tern")
            one.configure()
            one.gid_index(one.rdma_device())
            self.ping(one, two.ipv4, count=1)

    def test_both_hosts_at_once(self):
        self.lab.each(self.unload)
        self.lab.each(lambda host: host.run("modprobe tern"))
        self.lab.each(lambda host: host.configure())

    def test_rmmod_while_in_use(self):
        """The module may be busy, but nothing hangs, and it goes once the program has."""
        one = self.hosts[0]
        watcher = self.watch(one)
        refused = one.run("rmmod tern", check=False, timeout=60)
        if refused.code:
            self.assertIn("in use", refused.err)
            one.configure()
            one.rdma_device()
        watcher.kill()
        watcher.wait(check=False)
        if refused.code:
            self.unload(one)

    def test_unbind_under_an_open_device(self):
        one = self.hosts[0]
        watcher = self.watch(one)
        slot = one.pci()
        one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/unbind", timeout=60)
        self.assertEqual(one.run("rdma link").out.strip(), "")
        one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/bind", timeout=60)
        one.configure()
        one.rdma_device()
        watcher.kill()
        watcher.wait(check=False)

    def test_unbind_under_traffic(self):
        """Both programs end in an error sooner or later, as does no kernel."""
        one, two = self.hosts
        command = "ib_write_bw -s 65536 -D 600"
        server = one.spawn(f"{command} {self.verbs(one)}")
        pair.await_listener(one, pair.PERFTEST_PORT)
        client = two.spawn(f"{command} {self.verbs(two)} {one.ipv4}")
        slot = one.pci()
        # Until then the halves wait for each other over TCP, which goes with the card.
        self.await_traffic(two, server, client)
        try:
            one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/unbind", timeout=60)
            self.assertTrue(wait_until(client.failed, 60), "the client waits for ever")
        finally:
            client.give_up()
        one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/bind", timeout=60)
        one.configure()
        one.rdma_device()
        # It hears of the client's end by TCP, which works again.
        self.assertTrue(wait_until(server.failed, 60), "the server waits for ever")

    def test_fatal_error(self):
        """A card that can reach its rings no more: its users hear of it, and a new start helps."""
        one = self.hosts[0]
        slot, address = one.pci(), f"10.81.0.1/24 dev {NETDEV}"
        watcher = self.watch(one)
        # The command register, without bus mastering; an address then asks for a GID.
        one.run(f"printf '\\002' | dd of=/sys/bus/pci/devices/{slot}/config "
                "bs=1 seek=4 conv=notrunc status=none")
        one.run(f"ip address add {address}; ip address del {address}", timeout=90)
        # The words of ibv_asyncwatch: "  event_type local catastrophic error (8), port 1"
        heard = wait_until(lambda: "(8)" in watcher.output(), 30)
        watcher.kill()
        watcher.wait(check=False)
        for action in ("unbind", "bind"):
            one.run(f"echo {slot} >/sys/bus/pci/drivers/tern/{action}", timeout=60)
        one.configure()
        self.assertTrue(heard, watcher.output())


if __name__ == "__main__":
    main()
