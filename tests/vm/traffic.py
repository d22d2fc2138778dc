# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest at every size, and what posting and polling cost: no system call."""

import re

from scenario import LabError, Scenario, main, pair

SIZES = [2 ** n for n in range(1, 24)]  # 2 B to 8 MiB


class Traffic(Scenario):
    def sizes(self, program, arguments):
        rows = self.perftest(program, f"-a {arguments}", timeout=300)
        self.assertEqual([int(row[0]) for row in rows], SIZES)

    def test_write_bw_all_sizes(self):
        self.sizes("ib_write_bw", "-n 10")

    def test_read_bw_all_sizes(self):
        self.sizes("ib_read_bw", "-n 10")

    def test_send_bw_all_sizes(self):
        self.sizes("ib_send_bw", "-n 10")

    def test_write_lat_all_sizes(self):
        self.sizes("ib_write_lat", "-n 5")

    def test_read_lat_all_sizes(self):
        self.sizes("ib_read_lat", "-n 5")

    def test_send_lat_all_sizes(self):
        self.sizes("ib_send_lat", "-n 5")

    def test_as_a_user_types_it(self):
        """Without any option: device and GID are what the program itself finds."""
        one, two = self.hosts
        pair.perftest(one, two, "ib_write_bw -n 100", "ib_write_bw -n 100")

    def test_ipv6(self):
        self.perftest("ib_write_bw", "-s 65536 -n 50", ip=6)

    def test_posting_and_polling_make_no_system_call(self):
        """Thousands more iterations, and not a system call more.

        A few may come and go: what the two halves tell each other over TCP
        arrives in as many pieces as it pleases.
        """
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            few, many = (self.system_calls(program, n) for n in (1000, 4000))
            for side, less, more in zip(("server", "client"), few, many):
                self.assertLess(abs(more - less), 20,
                                f"{program}, {side}: {less} system calls in 1000 iterations, "
                                f"{more} in 4000")

    def system_calls(self, program, iterations):
        """Those of each half, as strace counts them."""
        server, client = self.hosts
        strace = "strace -f -c -o /tmp/calls"
        arguments = f"-s 64 -n {iterations}"
        pair.perftest(
            server, client,
            f"{strace} {program} {self.patient(server)} {arguments}",
            f"{strace} {program} {self.patient(client)} {arguments}")
        counts = []
        for host in (server, client):
            summary = host.run("cat /tmp/calls").out
            total = re.search(r"^100\.00\s+\S+\s+\S*?\s+(\d+)\s+.*total$", summary, re.MULTILINE)
            if not total:
                raise LabError(f"strace counted nothing: {summary}")
            counts.append(int(total[1]))
        return counts


if __name__ == "__main__":
    main()
