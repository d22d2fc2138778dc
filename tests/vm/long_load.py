# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's users of RDMA under load, one after the other. On a wire that loses nothing no
packet is lost, and none is sent again.

TERN_LOAD_USERS=nfs,rds chooses some of them, TERN_LOAD_SECONDS says for how long each works.
"""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

# pylint: disable=wrong-import-position
import upper_layer  # noqa: E402
from programs import Programs  # noqa: E402
from scenario import main  # noqa: E402
from users import TERN, users  # noqa: E402

SECONDS = int(os.environ.get("TERN_LOAD_SECONDS", "6"))
USERS = {kind.__name__.lower(): kind for kind in users()}
CHOSEN = [name for name in os.environ.get("TERN_LOAD_USERS", "").split(",") if name] or list(USERS)
LEAST = 100  # packets of a host; otherwise its user has gone by another way
# Counters of a card that move when a packet was lost or came late.
TROUBLE = ("local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "duplicate_ack",
           "duplicate_request", "out_of_sequence", "sent_seq_err")


class LongLoad(Programs):
    TITLE, COLUMNS = "user", ("packets to the server", "back")
    OBJECTS = upper_layer.UpperLayer.OBJECTS

    def test_users(self):
        for name in CHOSEN:
            with self.subTest(name):
                for column in self.COLUMNS:
                    self.table.set(name, column, "FAILED")
                user = USERS[name](self.hosts)
                user.prepare()
                with user.attached(TERN) as attached:
                    moved, whole = self.without_drops(lambda: self.load(user, attached))
                self.assertTrue(whole, "the wire has lost packets each time")
                self.check(moved)
                for column, host in zip(self.COLUMNS, reversed(moved)):
                    self.table.set(name, column, str(host["sent_pkts"]))

    def load(self, user, attached):
        """How far the counters of each host move. Each kind of work has a part of the time."""
        before = self.counters()
        for metric in user.metrics:
            user.measure(TERN, attached, metric, max(1, SECONDS // len(user.metrics)))
        return [{counter: value - then[counter] for counter, value in now.items()}
                for then, now in zip(before, self.counters())]

    def counters(self):
        self.settle()
        return [host.hw_counters() for host in self.hosts]

    def check(self, moved):
        """All that one host has sent has come to the other one. A host sends again only what a
        receiver without a buffer has asked for by an RNR NAK."""
        self.assertEqual([{counter: host[counter] for counter in TROUBLE if host[counter]}
                          for host in moved], [{}, {}])
        for host in moved:
            if not host["rcvd_rnr_err"]:
                self.assertEqual(host["roce_retrans_pkts"], 0)
        server, client = moved
        self.assertEqual((server["sent_pkts"], client["sent_pkts"]),
                         (client["rcvd_pkts"], server["rcvd_pkts"]))
        for host in moved:
            self.assertGreater(host["sent_pkts"], LEAST)


if __name__ == "__main__":
    main()
