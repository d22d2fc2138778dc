# SPDX-License-Identifier: GPL-2.0-or-later
"""Valkey over RDMA: a server on one host, its clients on the other."""

import contextlib
import hashlib
import pathlib
import random
import subprocess

from programs import Programs
from scenario import LabError, NETDEV, main, pair, wait_until
from ternlab.paths import SCRIPTS

PORT = 6379
SERVER, CLIENT, BENCHMARK = "valkey-server", "valkey-cli", "valkey-benchmark"
COUNT = 500
# Valkey's receive buffers have 1 MiB, so the largest values take several of them.
SIZES = (1, 100, 4096, 65536, 3 << 20)
IDLE = {"ctx": 1, "cm_id": 1, "pd": 1}  # what a server without clients has
KEPT = ("pd", "cq")  # what the server keeps of each connection: see objects()


def build():
    """Returns the folder of the programs."""
    made = subprocess.run([SCRIPTS / "valkey"], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        raise LabError("Valkey could not be built; see above")
    return pathlib.Path(made.stdout.strip())


def install(folder, server, client):
    for host, programs in ((server, (SERVER,)), (client, (CLIENT, BENCHMARK))):
        for program in programs:
            host.write_file(f"/usr/bin/{program}", (folder / program).read_bytes())
            host.run(f"chmod +x /usr/bin/{program}")
    # Valkey calls rdma_resolve_addr() without a time limit. ib_core ignores an ARP reply that
    # arrives before ib_core has queued its request, and repeats the request only after the time
    # limit.
    client.run(f"ip neigh replace {server.ipv4} lladdr {server.macs()[0]} "
               f"dev {NETDEV} nud permanent")


@contextlib.contextmanager
def served(server, address, transport="rdma"):
    """Yields the server's task. It has no port of the other transport, so that nothing can go by
    another way."""
    options, ready = {
        "rdma": (f"--port 0 --rdma-bind {address} --rdma-port {PORT}", pair.await_cm_listener),
        "tcp": (f"--port {PORT} --bind {address}", pair.await_listener)}[transport]
    serving = server.spawn(f"exec {SERVER} {options} --protected-mode no --save '' --dir /tmp")
    try:
        ready(server, PORT, serving)
        if not serving.running():
            raise LabError(f"{SERVER} has ended:\n{serving.give_up()}")
        yield serving
    finally:
        serving.give_up()


def command(program, address, arguments, transport="rdma"):
    option = {"rdma": "--rdma", "tcp": ""}[transport]
    return f"{program} {option} -h {address} -p {PORT} {arguments}"


class Valkey(Programs):
    COLUMNS = ("result",)

    @classmethod
    def setUpClass(cls):
        folder = build()
        super().setUpClass()
        cls.server, cls.client = cls.hosts
        install(folder, *cls.hosts)

    def setUp(self):
        super().setUp()
        self.serving = self.enterContext(served(self.server, self.server.ipv4))
        # The server goes on creating and destroying objects after it has begun to listen.
        self.at_first = {kind: count + IDLE.get(kind, 0)
                         for kind, count in self.clean[self.server.name].items()}
        self.assertTrue(wait_until(lambda: self.in_use(self.server) == self.at_first, 20),
                        f"{self.in_use(self.server)}, not {self.at_first}")

    def command(self, program, arguments):
        return command(program, self.server.ipv4, arguments)

    def ask(self, arguments, stdin=b"", timeout=120):
        return self.client.run(self.command(CLIENT, arguments), stdin=stdin, timeout=timeout).out

    def load(self, clients, arguments):
        """A benchmark, once the server has accepted all of its clients.

        Valkey 9.1 starts a timer for each connection before it accepts it. If it cannot, as the
        client has gone meanwhile, the timer remains, and ends the server three seconds later: it
        reads a connection that was never made (rdmaKeepaliveTimeProc).
        """
        task = self.client.spawn("exec " + self.command(BENCHMARK, f"-c {clients} {arguments}"))
        wait_until(lambda: not task.running() or self.objects()["qp"] >= clients, 60)
        if not task.running() or self.objects()["qp"] < clients:
            raise LabError(f"{BENCHMARK} has not {clients} connections:\n{task.give_up()}")
        return task

    def objects(self):
        """How many objects of each kind the server has more than at its start.

        Valkey 9.1 closes a connection in the wrong order: it destroys the CQ and the PD first,
        which the kernel refuses, as the QP still uses both, and then the QP. So one CQ and one PD
        of each connection remain until the server ends, with any card: Soft-RoCE shows it, too.
        """
        now = self.in_use(self.server)
        return {kind: now[kind] - self.at_first[kind] for kind in now}

    def assert_clients_gone(self):
        """Waits until nothing of the clients remains but what objects() names. Returns the number
        of PDs that remain."""
        def left():
            return {kind: count for kind, count in self.objects().items()
                    if count and kind not in KEPT}

        gone = wait_until(lambda: not left(), 20)
        if not self.serving.running():
            raise LabError(f"{SERVER} has ended:\n{self.serving.give_up()}")
        self.assertTrue(gone, left())
        counts = self.objects()
        self.assertEqual(counts["pd"], counts["cq"])
        return counts["pd"]

    def test_values(self):
        """Many values over one connection: what was SET comes back."""
        chance = random.Random(1)
        values = {f"key{i}": chance.randbytes(chance.randrange(1, 2000)).hex()
                  for i in range(COUNT)}
        with self.cell(f"{COUNT} values", "result"):
            said = self.ask("", "".join(f"SET {key} {value}\n"
                                        for key, value in values.items()).encode())
            self.assertEqual(said.split(), ["OK"] * COUNT)
            said = self.ask("", "".join(f"GET {key}\n" for key in values).encode())
            self.assertEqual(hashlib.sha256(said.encode()).hexdigest(),
                             hashlib.sha256("".join(f"{value}\n" for value in values.values())
                                            .encode()).hexdigest())
        self.assert_clients_gone()

    def test_sizes(self):
        """Values of all sizes, each over connections of its own."""
        for size in SIZES:
            with self.cell(f"a value of {size} bytes", "result"):
                self.client.run(f"head -c {size} /dev/urandom >/tmp/value")
                self.assertEqual(self.ask("-x SET value </tmp/value").strip(), "OK")
                # The client adds a newline.
                sums = self.client.run(
                    f"{self.command(CLIENT, 'GET value')} | head -c -1 | sha256sum; "
                    "sha256sum </tmp/value; rm /tmp/value").out.split()[::2]
                self.assertEqual(*sums)
        self.assert_clients_gone()

    def test_connections(self):
        """The server keeps one PD and one CQ of each connection that has ended, and no more."""
        connections = 20
        with self.cell(f"{connections} connections", "result"):
            for _ in range(connections):
                self.assertEqual(self.ask("PING").strip(), "PONG")
            # A later Valkey may keep none.
            self.assertIn(self.assert_clients_gone(), (0, connections))

    def test_benchmark(self):
        with self.cell("valkey-benchmark, 20 clients", "result"):
            said = self.client.run(
                self.command(BENCHMARK, "-c 20 -n 5000 -d 1000 -t set,get --csv"), timeout=180).out
            self.assertRegex(said, r'(?s)"SET","\d.*"GET","\d')
        self.assert_clients_gone()

    def test_cable_out(self):
        """The connections survive: what was lost is sent again."""
        def sent_again():
            return sum(host.hw_counter("roce_retrans_pkts") for host in self.hosts)

        with self.cell("cable out for a while", "result"):
            task = self.load(5, "-n 16000 -d 1000 -t set --csv")
            before = sent_again()
            self.client.set_cable(False)
            try:
                noticed = wait_until(lambda: sent_again() > before, 30, 0.2)
            finally:
                self.client.set_cable(True)
            self.assertTrue(noticed, "nobody has sent anything again")
            self.assertRegex(task.wait(timeout=180).out, r'"SET","\d')
        self.assert_clients_gone()

    def test_client_killed(self):
        """In the middle of its requests; the server goes on, for the next ones, too."""
        with self.cell("client killed", "result"):
            task = self.load(5, "-l -d 1000 -t set")
            task.kill()
            task.wait(check=False)
            self.assertEqual(self.ask("PING").strip(), "PONG")
        self.assert_clients_gone()


if __name__ == "__main__":
    main()
