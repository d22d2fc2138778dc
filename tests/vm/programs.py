# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs between two hosts, or on one with itself, each judged by both its halves."""

import contextlib
import itertools
import json
import os
import re
import time

from agent import Agent
import report
from scenario import CommandError, LabError, PATIENT, RXE, Scenario, pair, wait_until
from table import Table

# `make test-all` asks for every cell of a matrix, `make test` for each row and column.
EVERY_CELL = os.environ.get("TERN_CELLS") == "all"

RPING_PORT, CM_PORT, UDADDY_PORT = 7174, 7471, 7174
PING = "ping data: rdma-ping-"  # what rping prints for each answer

# With -R the halves of perftest talk over one connection of RDMA CM and measure on others, for
# which a slow server may not listen yet: it does not answer, or rejects. The client says so, and
# then ends or waits for ever.
EARLY = re.compile(r"RDMA_CM_EVENT_(UNREACHABLE; error: 1|REJECTED; error: 8)\b")
CHANCES = 5


class Programs(Scenario):
    """Tests note their programs in a table, which is printed when all have run."""

    TITLE = "program"
    COLUMNS = ("two hosts", "one host")
    OBJECTS = ("ctx", "cm_id", "qp", "srq", "cq", "mr", "pd")  # of which programs leave none

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = Table(cls.TITLE, *cls.COLUMNS)
        report.COST.tables.append(cls.table)
        cls.addClassCleanup(lambda: print(f"\n{cls.table}", flush=True))
        for host in cls.hosts:
            # As rdma-core has systemd do it; the guests' udev does it, too, at its own pace.
            host.run("modprobe rdma_ucm; until [ -e /dev/infiniband/rdma_cm ]; do sleep 0.1; done",
                     timeout=20)
        cls.devices = {host.name: host.rdma_device() for host in cls.hosts}
        cls.clean = {host.name: cls.in_use(host) for host in cls.hosts}

    def setUp(self):
        super().setUp()
        self.rows = itertools.count()
        self.addCleanup(self.check_resources)

    @classmethod
    def in_use(cls, host):
        """How many of each of the device's objects there are."""
        table = json.loads(host.run(f"rdma -j resource show {cls.devices[host.name]}").out)[0]
        return {kind: table[kind] for kind in cls.OBJECTS}

    def check_resources(self):
        """Whatever the programs did, the kernel has nothing of it left."""
        for host in self.hosts:
            left = wait_until(lambda: self.in_use(host) == self.clean[host.name], 10, 0.3)
            self.assertTrue(left, f"{host.name} keeps objects: {self.in_use(host)}, at first "
                                  f"{self.clean[host.name]}")

    @contextlib.contextmanager
    def cell(self, row, column):
        """A cell of the table, and a part of the test that may fail while others go on. Yields a
        function that notes another text for the cell than the time that the part has taken."""
        with self.subTest(f"{row}, {column}"):
            begun = time.monotonic()
            self.table.set(row, column, "FAILED")
            noted = []
            yield noted.append
            self.table.set(row, column, "".join(noted) or f"ok {time.monotonic() - begun:4.1f} s")

    def everywhere(self, row, action):
        """action(hosts) between two hosts and on one with itself, or in turn on one of these."""
        one, two = self.hosts[:2]
        for column, hosts in self.sample(list(zip(self.COLUMNS, ((one, two), (one, one))))):
            with self.cell(row, column):
                action(hosts)

    def sample(self, columns):
        """All columns, or for each row of a test the next one."""
        return columns if EVERY_CELL else [columns[next(self.rows) % len(columns)]]

    @staticmethod
    def covering(rows, columns):
        """All pairs, or as few as have each row and each column once."""
        rows, columns = list(rows), list(columns)
        if EVERY_CELL:
            return list(itertools.product(rows, columns))
        return [(rows[n % len(rows)], columns[n % len(columns)])
                for n in range(max(len(rows), len(columns)))]

    # --- verbs, step by step

    @contextlib.contextmanager
    def connected(self, on_demand=False, **how):
        """An agent on each of two hosts, and their RC QPs, which are connected."""
        agents = [Agent(host, self.devices[host.name], on_demand=on_demand)
                  for host in self.hosts[:2]]
        try:
            qpns = [agent.create(service="RC") for agent in agents]
            for end, agent in enumerate(agents):
                peer = agents[1 - end].host
                agent.connect(local=qpns[end], qpn=qpns[1 - end], psn=5, rq_psn=5,
                              gid="0000:" * 5 + "ffff:0a4d:{:04x}".format(peer.index),
                              gid_index=agent.host.gid_index(agent.device), mtu=3, qkey=0, **how)
            yield agents, qpns
        finally:
            for agent in agents:
                agent.close()

    # --- the pingpongs of ibverbs-utils

    def any_pingpong(self, program, arguments, hosts, ip=4, kind="RoCE v2", timeout=60):
        """-c makes most of them compare what arrives."""
        server, client = hosts

        def command(host):
            device = self.devices[host.name]
            gid_index = host.gid_index(device, self.address(host, ip), kind)
            return f"{PATIENT} {program} {arguments} -d {device} -g {gid_index}"

        return pair.run_pair(server, command(server), client,
                             f"{command(client)} {server.ipv4}", timeout=timeout)

    # --- RDMA CM

    def cm_pair(self, server_command, client_command, hosts, port=CM_PORT, timeout=60):
        server, client = hosts
        return pair.run_pair(server, server_command, client, client_command, port=port,
                             timeout=timeout, ready=pair.await_cm_listener)

    def rping(self, hosts, arguments="-C 20 -S 1000", ip=4):
        """-V compares; the server's READs and WRITEs do all the work."""
        server = self.address(hosts[0], ip)
        said = self.cm_pair(f"rping -s -V {arguments} -a {'::' if ip == 6 else '0.0.0.0'}",
                            f"rping -c -V -v {arguments} -a {server} | cut -c -40; "
                            "exit ${PIPESTATUS[0]}", hosts, RPING_PORT)
        self.assertIn(PING, said)

    def ucmatose(self, hosts, arguments="-c 3 -C 10 -S 3000", ip=4):
        server = self.address(hosts[0], ip)
        said = self.cm_pair(f"ucmatose -b {server} {arguments}",
                            f"ucmatose -s {server} {arguments}", hosts)
        self.assertIn("return status 0", said)

    def udaddy(self, hosts, arguments="-c 3 -C 10 -S 1000", ip=4):
        server = self.address(hosts[0], ip)
        said = self.cm_pair(f"udaddy -b {server} {arguments}",
                            f"udaddy -s {server} {arguments}", hosts, UDADDY_PORT)
        self.assertIn("data transfers complete", said)
        self.assertIn("return status 0", said)

    def mckey(self, hosts, group, ip=4, receiver="", sender=""):
        """The receiver ends when all messages have come; on errors it ends well, too."""
        receiving, sending = hosts
        output = "/tmp/mckey"

        def joined(host, _, task):
            def said():
                return host.run(f"cat {output}", check=False).out

            if not wait_until(lambda: task.failed() or "joined dgid" in said(), 20):
                raise CommandError(f"{host.name} did not join {group}")

        common = f"-m {group} -C 20 -S 500"
        said = pair.run_pair(
            receiving, f"stdbuf -oL mckey {common} -b {self.address(receiving, ip)} {receiver} "
            f">{output} 2>&1; cat {output}; grep -q 'data transfers complete' {output}; "
            f"code=$?; rm {output}; exit $code",
            sending, f"mckey {common} -b {self.address(sending, ip)} -s {sender}",
            timeout=40, ready=joined)
        self.assertIn("data transfers complete", said)

    def stream(self, hosts, program="rstream", arguments="-S 65536 -C 10 -I 2", ip=4):
        """rsockets; -T v compares what arrives."""
        server = self.address(hosts[0], ip)
        said = self.cm_pair(f"{program} -b {server} -T v {arguments}",
                            f"{program} -s {server} -T v {arguments}", hosts)
        self.assertRegex(said, r"\d\.\d\ds")

    def cm_perftest(self, hosts, program, arguments="", timeout=60):
        """perftest that connects by RDMA CM."""
        server, client = hosts
        for chances in reversed(range(CHANCES)):
            try:
                return pair.perftest(server, client, f"{program} -R {arguments}",
                                     f"{program} -R {arguments}", timeout=timeout,
                                     ready=pair.await_cm_listener)
            except LabError as error:
                if not EARLY.search(str(error)) or not chances:
                    raise
        raise AssertionError("there is always a last chance")

    def skip_on_rxe(self, why):
        """With TERN_TEST_DEVICE=rxe alone; Tern has it all."""
        if RXE:
            self.skipTest(f"rxe: {why}")
