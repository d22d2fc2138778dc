# SPDX-License-Identifier: GPL-2.0-or-later
"""QMP's commands that inject faults: what they refuse. What they do is in tests/vm/failover.py."""

from machine import CardTest

CARD = "/machine/peripheral/card"


class Inject(CardTest):
    def refused(self, why, command, **arguments):
        with self.assertRaisesRegex(RuntimeError, why):
            self.machine.qmp(command, **arguments)

    def test_arguments(self):
        for command, more in (("tern-fail-qp", {}), ("tern-slow-qp", {"rate": 1})):
            good = {"path": CARD, "qpn": 7, **more}
            self.refused("arguments are needed", command, path=CARD)
            self.refused("arguments are needed", command, **good, another=1)
            for path in ("/machine", "/nowhere", 5):
                self.refused("path of a card", command, **{**good, "path": path})
            for qpn in (-1, 1 << 24, "x"):
                self.refused("qpn: a number from 0 to", command, **{**good, "qpn": qpn})
        for rate in (-1, 400000001, "x"):
            self.refused("rate: a number from 0 to", "tern-slow-qp", path=CARD, qpn=7, rate=rate)

    def test_hold_commands(self):
        good = {"path": CARD, "hold": True, "answers": 0}
        self.refused("arguments are needed", "tern-hold-commands", path=CARD, hold=True)
        self.refused("arguments are needed", "tern-hold-commands", **good, another=1)
        self.refused("path of a card", "tern-hold-commands", **{**good, "path": "/machine"})
        for hold in (1, "on"):
            self.refused("hold: true or false", "tern-hold-commands", **{**good, "hold": hold})
        for answers in (-1, 1 << 32, "x"):
            self.refused("answers: a number from 0 to", "tern-hold-commands",
                         **{**good, "answers": answers})

    def test_refuse_command(self):
        self.refused("arguments are needed", "tern-refuse-command", path=CARD)
        self.refused("path of a card", "tern-refuse-command", path="/machine", nth=1)
        for nth in (-1, 1 << 32, "x"):
            self.refused("nth: a number from 0 to", "tern-refuse-command", path=CARD, nth=nth)

    def test_falsify(self):
        self.refused("arguments are needed", "tern-falsify", path=CARD, every=1)
        self.refused("path of a card", "tern-falsify", path="/machine", every=1, seed=1)
        for wrong in (-1, 1 << 32, "x"):
            self.refused("every: a number from 0 to", "tern-falsify", path=CARD, every=wrong,
                         seed=1)
            self.refused("seed: a number from 0 to", "tern-falsify", path=CARD, every=1,
                         seed=wrong)

    def test_no_such_qp(self):
        self.refused("no QP 7 that could fail", "tern-fail-qp", path=CARD, qpn=7)
        self.refused("has no QP 7", "tern-slow-qp", path=CARD, qpn=7, rate=1)

    def test_stopped_machine(self):
        self.machine.qmp("stop")
        self.refused("the machine is stopped", "tern-fail-qp", path=CARD, qpn=7)
        self.machine.qmp("cont")
