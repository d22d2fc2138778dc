# SPDX-License-Identifier: GPL-2.0-or-later
"""What `lab query` and `lab why` make of the states of cards."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import query  # noqa: E402
from ternlab.errors import LabError  # noqa: E402
from ternlab.why import Reason, Why  # noqa: E402

QPN, PEER = 0x11, 0x12


def mac(host):
    return f"52:54:00:77:00:0{host}"


def qp_of(number, peer, host, **more):
    requester = {"waits_for": "", "una": 5, "next_psn": 6, "requests": 1, "retries_left": 7,
                 "ssn": 3, "credit_limit_ssn": 2, **more.pop("requester", {})}
    return {"number": number, "type": "RC", "state": "RTS", "failure": "", "srqn": 0,
            "dest_qpn": peer, "dmac": mac(host), "retry_cnt": 7, "faults": {},
            "sq": {"blocks": 64, "pi": 3, "ci": 3},
            "rq": {"entries": 64, "posted": 1, "claimed": False},
            "requester": requester, "responder": {"expected_psn": 9}, **more}


def card_of(host, *qps, **more):
    engine = {"engine": 0, "mac": mac(host), "link": True, "enabled": True, "fatal": "NONE",
              "last_fatal": "NONE",
              "commands": {"entries": 16, "pi": 9, "ci": 9, "running": "", "qpn": 0},
              "counters": {"tx_frames": 3, "rx_frames": 0},
              "eqs": [{"number": 1, "vector": 0, "entries": 16, "pi": 4, "ci": 4, "armed": True,
                       "without_room": 0}],
              "cqs": [], "srqs": [], "wqs": [], "qps": list(qps), **more.pop("engine", {})}
    return {"path": "/machine/peripheral/card0", "running": True, "bus_master": True,
            "msix": "on", "engines": [engine], **more}


class Reasons(unittest.TestCase):
    def reason(self, sender, peer=None, receiver=None, card=None):
        """Of a QP whose peer is another; peer: its card, or an error."""
        receiver = receiver or qp_of(PEER, QPN, 1)
        cards = {"host1": card_of(1, sender, **(card or {})),
                 "host2": peer if peer is not None else card_of(2, receiver)}
        line = str(Why(cards).of_qp("host1", QPN))
        self.assertTrue(line.startswith("host1 QP 0x11 (RC, "), line)
        return line.partition("): ")[2]

    @staticmethod
    def sender(**requester):
        return qp_of(QPN, PEER, 2, requester=requester)

    def test_peer_gone(self):
        sender = self.sender(waits_for="retry", retries_left=4)
        waits = "waits for an acknowledgement of PSN 5, retry 3 of 7"
        self.assertEqual(self.reason(sender, card_of(2)), f"{waits}: host2 has no QP 0x12")
        error = qp_of(PEER, QPN, 1, state="ERR", failure="REM_ACCESS_ERR")
        self.assertEqual(self.reason(sender, receiver=error),
                         f"{waits}: host2 QP 0x12 is in state ERR (REM_ACCESS_ERR)")
        self.assertEqual(self.reason(sender, LabError("host2: its QEMU does not answer")),
                         f"{waits}: host2: its QEMU does not answer")
        self.assertEqual(self.reason(sender, card_of(3)),
                         f"{waits}: no host of the lab has its peer's MAC {mac(2)}")
        self.assertEqual(self.reason(sender, card_of(2, engine={"link": False})),
                         f"{waits}: host2: the link is down")
        self.assertEqual(self.reason(sender, card_of(2, engine={"qps_not_listed": 1})), waits)
        self.assertEqual(self.reason(sender, card={"engine": {"link": False}}),
                         f"{waits}: the link is down")

    def test_receiver_not_ready(self):
        empty = qp_of(PEER, QPN, 1, rq={"entries": 64, "posted": 0, "claimed": False})
        self.assertEqual(self.reason(self.sender(waits_for="receive"), receiver=empty),
                         "is answered by RNR NAKs (receiver not ready); "
                         "host2 QP 0x12 has no receive posted")

    def test_credits(self):
        self.assertEqual(self.reason(self.sender(waits_for="credits")),
                         "waits for credits: message 3 is posted, the peer has receives up to "
                         "message 2")

    def test_page_fault(self):
        fault = {"key": 0x100, "addr": 0x7000, "length": 8}
        text = "pages of key 0x100 at 0x7000: the driver has not answered the page fault"
        sender = qp_of(QPN, PEER, 2, faults={"requester": fault})
        self.assertEqual(self.reason(sender), f"waits, as it sends from {text}")
        self.assertEqual(self.reason(sender, card={"msix": "masked"}),
                         f"waits, as it sends from {text}, as MSI-X is masked")
        receiver = qp_of(PEER, QPN, 1, faults={"responder": fault})
        self.assertEqual(self.reason(self.sender(waits_for="receive"), receiver=receiver),
                         "is answered by RNR NAKs (receiver not ready); "
                         f"host2 QP 0x12 waits for {text}")

    def test_failed(self):
        failed = qp_of(QPN, PEER, 2, state="ERR", failure="RETRY_EXC_ERR")
        self.assertEqual(self.reason(failed, card_of(2)),
                         "has failed with RETRY_EXC_ERR; host2 has no QP 0x12")

    def test_idle(self):
        self.assertEqual(self.reason(self.sender()), "has nothing to send")
        self.assertEqual(self.reason(qp_of(QPN, 0, 2, state="INIT")), "is not connected")
        self.assertEqual(self.reason(self.sender(waits_for="rate")), "waits for its rate limit")
        self.assertEqual(self.reason(self.sender(waits_for="pause")),
                         "waits, as a pause frame has stopped the priority of its frames")

    def test_unanswered_command(self):
        commands = {"entries": 16, "pi": 3, "ci": 2, "running": "MODIFY_QP", "qpn": QPN}
        held = {"engine": {"commands": commands}}
        self.assertEqual(self.reason(self.sender(), card=held),
                         "the card has not answered its MODIFY_QP")
        commands["qpn"] = PEER
        self.assertEqual(self.reason(self.sender(), card=held),
                         "admin commands not answered: 1, MODIFY_QP under way")

    def test_card(self):
        def said(**card):
            return list(map(str, Why({"host1": card_of(1, **card)}).of_host("host1")))
        self.assertEqual(said(), [])
        commands = {"entries": 16, "pi": 3, "ci": 2, "running": "", "qpn": 0}
        self.assertEqual(
            said(engine={"fatal": "AQ_DMA", "commands": commands}, bus_master=False),
            ["host1: the card has stopped (AQ_DMA): it cannot read or write the admin queue, "
             "as bus mastering is off; admin commands not answered: 1"])
        self.assertEqual(said(engine={"commands": {**commands, "running": "RESIZE_CQ"}}),
                         ["host1: admin commands not answered: 1, RESIZE_CQ under way"])
        self.assertEqual(
            said(engine={"enabled": False, "last_fatal": "EQ_DMA"}),
            ["host1: the driver has given the card up, which had stopped (EQ_DMA): it cannot "
             "write an event queue"])
        self.assertEqual(said(engine={"enabled": False}, msix="off"),
                         ["host1: no driver has enabled the card"])
        self.assertEqual(said(running=False), ["host1: the virtual machine is paused"])
        self.assertEqual(said(msix="masked"),
                         ["host1: MSI-X is masked: the driver gets no interrupts"])

    def test_all_that_wait(self):
        cards = {"host1": card_of(1, self.sender(waits_for="retry", retries_left=6),
                                  qp_of(0x20, PEER, 2), qp_of(0x21, PEER, 2, state="ERR")),
                 "host2": card_of(2)}
        self.assertEqual(Why(cards).of_host("host1"), [
            Reason("host1", "waits for an acknowledgement of PSN 5, retry 1 of 7: "
                   "host2 has no QP 0x12", QPN, "RC", "RTS"),
            Reason("host1", "in error: its host has moved it there, or a queue of it cannot be "
                   "used", 0x21, "RC", "ERR")])


class Text(unittest.TestCase):
    def test_tables(self):
        lines = query.text("host1", card_of(1, qp_of(QPN, PEER, 2)))
        self.assertIn("enabled, fatal NONE, link up, MSI-X on, commands 9 posted, 9 done",
                      lines[0])
        self.assertEqual(lines[1], "counters: tx_frames 3")
        rows = {line.split()[0]: line.split() for line in lines if line}
        self.assertEqual(rows["QP"][:4], ["QP", "type", "state", "dest_qpn"])
        self.assertEqual(rows["0x11"][:4], ["0x11", "RC", "RTS", "0x12"])
        self.assertIn("more", query.text("host1", card_of(1, engine={
            "qps": [qp_of(QPN, PEER, 2)], "qps_not_listed": 5}))[-1])


class Host:
    """A host whose QEMU answers with these cards, or fails with this error."""
    name = "host1"

    def __init__(self, answer):
        self._answer = answer

    cards = property(lambda self: self)

    def control(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, command, **_):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer if command == "query-tern" else None


class BadInput(unittest.TestCase):
    def test_refusals(self):
        for answer, qpn, message in (
                ([card_of(1)], 0x99, "host1 has no QP 0x99"),
                ([], None, "host1 has no Tern card"),
                (TimeoutError("timed out"), None, "host1: its QEMU does not answer: timed out"),
                (LabError("query-tern: no such command"), None, "host1: query-tern: no such")):
            with self.assertRaisesRegex(LabError, message):
                query.card_of(Host(answer), qpn=qpn)


if __name__ == "__main__":
    unittest.main()
