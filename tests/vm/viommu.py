# SPDX-License-Identifier: GPL-2.0-or-later
"""The cards behind an IOMMU: each address that they use has to be mapped.

The first host has the cards forget an address as soon as it is unmapped, the second has them
forget all at once, now and then.
"""

from scenario import NETDEV, Options, Scenario, main

DEVICE = f"/sys/class/net/{NETDEV}/device"
ATS_CONTROL = 0x106


class Viommu(Scenario):
    HOSTS = (Options(viommu=True), Options(viommu=True, kernel_options="iommu.strict=0"))

    def test_the_card_is_translated(self):
        for host, kind in zip(self.hosts, ("DMA", "DMA-FQ")):
            group = host.run(f"cat {DEVICE}/iommu_group/type").out
            self.assertEqual(group.strip(), kind)

    def test_the_card_may_keep_translations(self):
        for host in self.hosts:
            control = host.run(f"od -An -tx2 -j{ATS_CONTROL} -N2 {DEVICE}/config").out
            self.assertEqual(int(control, 16) >> 15, 1, "the kernel has not enabled ATS")

    def test_mappings_come_and_go(self):
        """Programs get the addresses that others have just given back. All data is compared."""
        def register(port):
            for _ in range(10):
                self.pingpong("-s 262144 -n 20 -c", port=port)

        def check():
            self.verbs_check("stress rereg rereg-in-use odp-churn odp-implicit-churn",
                             "--seconds 10", seed=5)

        self.lab.each(lambda job: job(), [check, lambda: register(18610), lambda: register(18611)])

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
        self.unload(one)
        one.run("modprobe tern")
        one.configure()
        self.pingpong("-n 20 -c")


if __name__ == "__main__":
    main()
