# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a QP, or a card, does not go on, by what the cards say (query.py).

The cards of all hosts are looked at, since a QP mostly waits for its peer.
"""

import dataclasses

from .query import find_qp

FATAL = {
    "AQ_CONFIG": "the driver has given it a bad admin queue",
    "AQ_DMA": "it cannot read or write the admin queue",
    "AQ_INDEX": "the driver has posted more commands than the admin queue holds",
    "EQ_DMA": "it cannot write an event queue",
}


def _stop(fatal, card):
    return (f"({fatal}): {FATAL.get(fatal, 'unknown reason')}"
            + ("" if card["bus_master"] else ", as bus mastering is off"))


def card_reasons(card):
    """What keeps the whole card from working."""
    reasons = []
    if not card["running"]:
        reasons.append("the virtual machine is paused")
    for engine in card["engines"]:
        commands = engine["commands"]
        waiting = (commands["pi"] - commands["ci"]) % (1 << 32)
        if engine["fatal"] != "NONE":
            reasons.append("the card has stopped " + _stop(engine["fatal"], card)
                           + (f"; admin commands not answered: {waiting}" if waiting else ""))
        elif not engine["enabled"] and engine["last_fatal"] != "NONE":
            reasons.append("the driver has given the card up, which had stopped "
                           + _stop(engine["last_fatal"], card))
        elif not engine["enabled"]:
            reasons.append("no driver has enabled the card")
        elif waiting:
            reasons.append(f"admin commands not answered: {waiting}, "
                           f"{commands['running'] or 'none'} under way")
        if not engine["link"]:
            reasons.append("the link is down")
    if card["msix"] != "on" and any(engine["enabled"] for engine in card["engines"]):
        reasons.append(f"MSI-X is {card['msix']}: the driver gets no interrupts")
    return reasons


def _fault(fault, card):
    silent = "" if card["msix"] == "on" else f", as MSI-X is {card['msix']}"
    return (f"pages of key {fault['key']:#x} at {fault['addr']:#x}: "
            f"the driver has not answered the page fault{silent}")


@dataclasses.dataclass
class Reason:
    """Says why a card, or one of its QPs, does not go on."""
    card: str  # as query.label() names it
    reason: str
    qp: int | None = None
    type: str | None = None
    state: str | None = None

    def __str__(self):
        qp = "" if self.qp is None else f" QP {self.qp:#x} ({self.type}, {self.state})"
        return f"{self.card}{qp}: {self.reason}"


class Why:
    """The reasons of one lab: its cards as query.cards_of() has them."""

    def __init__(self, cards):
        self._cards = cards

    def of_host(self, name):
        """The card's reasons, or else those of its QPs that wait or have failed."""
        card = self._cards[name]
        reasons = card_reasons(card)
        if reasons:
            return [Reason(name, reason) for reason in reasons]
        return [self.of_qp(name, qp["number"]) for engine in card["engines"]
                for qp in engine["qps"] if self._stands_still(qp)]

    @staticmethod
    def _stands_still(qp):
        waits = qp.get("requester", {}).get("waits_for")
        return waits not in (None, "", "turn") or qp["faults"] or qp["state"] in ("ERR", "SQE")

    def of_qp(self, name, qpn):
        card = self._cards[name]
        qp = find_qp(card, qpn)
        return Reason(name, self._reason(card, qp), qpn, qp["type"], qp["state"])

    def _reason(self, card, qp):
        for engine in card["engines"]:
            if engine["commands"]["qpn"] == qp["number"]:
                return f"the card has not answered its {engine['commands']['running']}"
        if qp["state"] in ("ERR", "SQE"):
            if qp["failure"]:
                return f"has failed with {qp['failure']}{self._of_peer(qp, '; ')}"
            return "in error: its host has moved it there, or a queue of it cannot be used"
        for side, verb in (("requester", "sends from"), ("responder", "receives into")):
            if side in qp["faults"]:
                return f"waits, as it {verb} " + _fault(qp["faults"][side], card)
        requester = qp.get("requester", {"waits_for": ""})
        return {
            "": self._idle, "acknowledgement": self._unanswered, "retry": self._unanswered,
            "receive": self._refused, "credits": self._refused,
        }.get(requester["waits_for"], self._other)(card, qp)

    def _idle(self, card, qp):
        if qp["state"] in ("RESET", "INIT"):
            return "is not connected"
        stopped = card_reasons(card)
        return stopped[0] if stopped else "has nothing to send"

    def _other(self, _, qp):
        waits = qp["requester"]["waits_for"]
        return {"room": "waits for the peer's host, which takes no frames",
                "pause": "waits, as a pause frame has stopped the priority of its frames",
                "rate": "waits for its rate limit",
                "turn": "has its turn soon"}.get(waits, f"waits for {waits}")

    def _unanswered(self, card, qp):
        requester = qp["requester"]
        retries = qp["retry_cnt"] - requester["retries_left"]
        text = (f"waits for an acknowledgement of PSN {requester['una']}, "
                f"retry {retries} of {qp['retry_cnt']}")
        stopped = card_reasons(card)
        return text + (f": {stopped[0]}" if stopped else self._of_peer(qp, ": "))

    def _refused(self, _, qp):
        requester = qp["requester"]
        if requester["waits_for"] == "credits":
            text = (f"waits for credits: message {requester['ssn']} is posted, the peer has "
                    f"receives up to message {requester['credit_limit_ssn']}")
        else:
            text = "is answered by RNR NAKs (receiver not ready)"
        return text + self._of_peer(qp, "; ")

    def _of_peer(self, qp, separator):
        """What is wrong at the other end; "" if nothing is known."""
        reason = self._at_peer(qp)
        return f"{separator}{reason}" if reason else ""

    def _at_peer(self, qp):
        if "dmac" not in qp:
            return ""
        for name, card in self._cards.items():
            if isinstance(card, Exception):
                continue
            if any(engine["mac"] == qp["dmac"] for engine in card["engines"]):
                return self._end(name, card, qp["dest_qpn"])
        silent = [str(card) for card in self._cards.values() if isinstance(card, Exception)]
        return silent[0] if silent else f"no host of the lab has its peer's MAC {qp['dmac']}"

    @staticmethod
    def _end(name, card, qpn):
        peer = find_qp(card, qpn)
        stopped = card_reasons(card)
        if stopped:
            return f"{name}: {stopped[0]}"
        if not peer and any("qps_not_listed" in engine for engine in card["engines"]):
            return ""
        if not peer:
            return f"{name} has no QP {qpn:#x}"
        if peer["state"] not in ("RTR", "RTS", "SQD"):
            failure = f" ({peer['failure']})" if peer["failure"] else ""
            return f"{name} QP {qpn:#x} is in state {peer['state']}{failure}"
        if "responder" in peer["faults"]:
            return f"{name} QP {qpn:#x} waits for " + _fault(peer["faults"]["responder"], card)
        if not peer["srqn"] and not peer["rq"]["posted"] and not peer["rq"]["claimed"]:
            return f"{name} QP {qpn:#x} has no receive posted"
        return ""
