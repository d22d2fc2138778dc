# SPDX-License-Identifier: GPL-2.0-or-later
"""RDS: reliable datagrams of sockets, and RDMA between the memory of two of them."""

import contextlib
import pathlib

from scenario import LabError, main, wait_until
import upper_layer
from upper_layer import MEBIBYTES, STOP

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/rds_peer.py"
PEER = f"python3 /tmp/{PROGRAM.name}"


class Rds(upper_layer.UpperLayer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for host in cls.hosts:
            host.write_file(f"/tmp/{PROGRAM.name}", PROGRAM.read_bytes())

    def setUp(self):
        super().setUp()
        self.lab.each(lambda host: host.run("modprobe rds_rdma"))  # and not rds_tcp
        self.addCleanup(self.lab.each, lambda host: host.run("modprobe -r rds_rdma"))

    @contextlib.contextmanager
    def sending(self, work):
        """The receiver, while the client sends; then both must end well."""
        self.client.run(f"rm -f {STOP}")
        receiver = self.server.spawn(f"{PEER} receive {self.server.ipv4}")
        # RDS drops what comes to a port that nobody has.
        self.assertTrue(wait_until(lambda: "ready" in receiver.output(), 30), "no receiver")
        sender = self.client.spawn(f"{PEER} send {self.client.ipv4} {self.server.ipv4} {work}")
        try:
            yield receiver
            sender.wait(timeout=120)
            self.assertIn("received all", receiver.wait(timeout=30).out)
        finally:
            for task in (sender, receiver):
                if task.running():
                    task.kill()

    def advance(self, receiver):
        """Returns when the receiver has got more."""
        seen = receiver.output()
        if not wait_until(lambda: receiver.output() != seen or not receiver.running(), 120, 0.2) \
                or not receiver.running():
            raise LabError(f"{self.server.name} receives nothing\n{receiver.give_up()}")

    def test_messages(self):
        with self.cell("RDS: messages", "result"), self.sending(MEBIBYTES * 16):
            pass

    def test_rdma(self):
        for work in ("read", "write"):
            with self.cell(f"RDS: RDMA {work}", "result"), self.sending(work):
                pass

    def survive(self, what, misfortune):
        """Each message comes once, in order, whatever connection it takes."""
        with self.cell(f"RDS: {what}", "result"), self.sending("forever") as receiver:
            self.advance(receiver)
            misfortune()
            self.advance(receiver)
            self.client.run(f"touch {STOP}")


if __name__ == "__main__":
    main()
