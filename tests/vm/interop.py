# SPDX-License-Identifier: GPL-2.0-or-later
"""Tern and Linux's Soft-RoCE, which shares no code with it, on one wire: each must understand
the other, and each drops what has a wrong ICRC."""

from scenario import Options, Scenario, main


# rxe allows more outstanding reads than Tern; perftest leaves it to us to agree.
READS = "-o 16"


class Interop(Scenario):
    HOSTS = (Options(), Options(nic="virtio"))

    def both_ways(self):
        return self.hosts, self.hosts[::-1]

    def test_network(self):
        tern, rxe = self.hosts
        for address in (rxe.ipv4, rxe.ipv6):
            self.ping(tern, address, size=8000)
        self.transfer(tern, rxe, mebibytes=4)
        self.transfer(rxe, tern, mebibytes=4)

    def test_pingpong(self):
        for hosts in self.both_ways():
            self.pingpong("-n 100 -c", hosts=hosts)
            self.pingpong("-n 20 -c -s 100000", hosts=hosts)
            self.pingpong("-n 100 -c -e", hosts=hosts)

    def test_traffic(self):
        for hosts in self.both_ways():
            for ip in (4, 6):
                for program in ("ib_write_bw", f"ib_read_bw {READS}", "ib_send_bw"):
                    self.perftest(program, "-s 65536 -n 50", hosts=hosts, ip=ip)
                self.perftest("ib_write_lat", "-s 3 -n 50", hosts=hosts, ip=ip)
                self.perftest(f"ib_atomic_bw {READS}", "-n 100", hosts=hosts, ip=ip)

    def test_path_mtus(self):
        for hosts in self.both_ways():
            for mtu in (256, 1024):
                self.perftest("ib_write_bw", f"-m {mtu} -s 10000 -n 20", hosts=hosts)
                self.perftest(f"ib_read_bw {READS}", f"-m {mtu} -s 10000 -n 20", hosts=hosts)


if __name__ == "__main__":
    main()
