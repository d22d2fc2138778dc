# SPDX-License-Identifier: GPL-2.0-or-later
"""The cards behind an IOMMU, strictly: each address that they use has to be mapped."""

from scenario import NETDEV, Options, Scenario, main


class Viommu(Scenario):
    HOSTS = (Options(viommu=True), Options(viommu=True))

    def test_the_card_is_translated(self):
        for host in self.hosts:
            group = host.run(f"cat /sys/class/net/{NETDEV}/device/iommu_group/type").out
            self.assertEqual(group.strip(), "DMA")

    def test_network(self):
        one, two = self.hosts
        self.ping(one, two.ipv4, size=8972)
        self.transfer(one, two)
        self.transfer(two, one)

    def test_pingpong(self):
        self.pingpong("-n 200 -c")
        self.pingpong("-n 200 -c -e")

    def test_traffic(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            self.perftest(program, "-a -n 5", timeout=300)
        self.perftest("ib_atomic_bw", "-n 200")
        self.perftest("ib_write_lat", "-n 100")

    def test_unmapped_on_reload(self):
        """A card whose mappings have gone says nothing to them any more."""
        one = self.hosts[0]
        one.run("rmmod tern && modprobe tern", timeout=60)
        one.configure()
        self.pingpong("-n 20 -c")


if __name__ == "__main__":
    main()
