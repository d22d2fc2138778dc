# SPDX-License-Identifier: GPL-2.0-or-later
"""A card is taken out of a running machine, under traffic, and put back.

TERN_UNPLUGS says how often each test does so.
"""

import contextlib
import os

from scenario import NETDEV, Scenario, main, pair, wait_until

UNPLUGS = int(os.environ.get("TERN_UNPLUGS", "2"))
GUEST_TIMEOUT = 60


class Unplug(Scenario):
    @contextlib.contextmanager
    def traffic(self, host, peer):
        """RDMA in both directions, TCP from the host, and threads that read the card's registers
        and statistics. The peer's program must notice that the card is gone."""
        command = "ib_write_bw -b -s 65536 -D 600"
        sink = peer.spawn("socat -u TCP-LISTEN:9998 OPEN:/dev/null")
        pair.await_listener(peer, 9998, sink)
        server = host.spawn(f"{command} {self.verbs(host)}")
        pair.await_listener(host, pair.PERFTEST_PORT, server)
        client = peer.spawn(f"{command} {self.verbs(peer)} {host.ipv4}")
        others = [sink, client, host.spawn(f"socat -u /dev/zero TCP:{peer.ipv4}:9998"),
                  host.spawn(f"while ethtool -S {NETDEV}; do :; done >/dev/null"),
                  host.spawn(f"ibv_asyncwatch -d {host.rdma_device()}")]
        try:
            self.await_traffic(peer, server, *others)
            yield
            self.assertTrue(wait_until(client.failed, GUEST_TIMEOUT), "the client waits for ever")
        finally:
            for task in (server, *others):
                task.give_up()

    def take_out(self, turn, before=lambda host: None):
        """Takes out the card of one host or the other, and puts it back."""
        host, peer = self.hosts if turn % 2 else self.hosts[::-1]
        with self.traffic(host, peer):
            before(host)
            host.unplug_card(0, GUEST_TIMEOUT)
        self.assertEqual(host.run("rdma link; lspci -d 1234:7e44").out, "")
        host.plug_card(0)
        host.configure()
        host.rdma_device()
        self.meet()
        self.pingpong("-n 20 -c")

    def test_under_traffic(self):
        """The guest is asked first, as by `device_del` of QEMU or `virsh detach-device`."""
        for turn in range(UNPLUGS):
            self.take_out(turn)

    def test_gone_before(self):
        """The card no longer answers when the guest hears of it, as after a surprise removal:
        registers read as all-ones, and nothing that the driver writes arrives."""
        for turn in range(UNPLUGS):
            self.take_out(turn, self.stop_answering)

    def stop_answering(self, host):
        host.run(f"setpci -s {host.pci()} COMMAND=0:6")


if __name__ == "__main__":
    main()
