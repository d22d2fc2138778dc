# SPDX-License-Identifier: GPL-2.0-or-later
"""What the card tells QEMU's monitors of itself, and QEMU's trace events."""

import json
import unittest

from machine import HW, CardTest, Machine
from test_hotplug import Hotplug


class Query(CardTest):
    def state(self, **arguments):
        (card,) = self.machine.qmp("query-tern", **arguments)
        return card

    def test_before_a_driver(self):
        card = self.state()
        self.assertEqual(card["path"], "/machine/peripheral/card")
        self.assertEqual((card["running"], card["bus_master"], card["msix"]), (True, True, "off"))
        (engine,) = card["engines"]
        self.assertEqual(engine["mac"], "02:54:45:52:4e:01")
        self.assertEqual((engine["link"], engine["enabled"]), (True, False))
        self.assertEqual(engine["fatal"], "NONE")
        self.assertEqual(engine["qps"], [])
        self.assertIn("rx_no_qp", engine["counters"])
        self.assertEqual(set(engine["counters"].values()), {0})

    def test_driver(self):
        self.card.enable_msix()
        self.card.enable()
        self.card.query_device()
        card = self.state()
        self.assertEqual(card["msix"], "on")
        self.assertEqual(card["engines"][0]["commands"],
                         {"entries": 16, "pi": 1, "ci": 1, "refuse_in": 0, "running": "",
                          "qpn": 0})
        self.card.write(2, self.card.capability(0x11) + 2, 0xc000)
        self.assertEqual(self.state()["msix"], "masked")

    def test_stopped_card(self):
        self.card.enable(aq=1 << 60)
        self.card.submit(0, HW.AQ_QUERY_DEVICE)
        self.card.wait(lambda: self.card.reg("STATUS") & HW.STATUS_FATAL)
        self.assertEqual(self.state()["engines"][0]["fatal"], "AQ_DMA")

    def test_stopped_machine(self):
        self.machine.qmp("stop")
        self.assertFalse(self.state()["running"])
        self.machine.qmp("cont")

    def test_arguments(self):
        self.assertEqual(self.state(qpn=7)["engines"][0]["qps"], [])
        for wrong in ({"qpn": "x"}, {"qpn": -1}, {"qpn": 1 << 32}, {"qp": 1}, {"qpn": 1, "x": 1}):
            with self.assertRaisesRegex(RuntimeError, "query-tern takes qpn"):
                self.state(**wrong)

    def test_human_monitor(self):
        said = self.machine.hmp("qom-get /machine/peripheral/card state")
        self.assertEqual(json.loads(said)["engines"][0]["fatal"], "NONE")

    def test_trace(self):
        self.machine.hmp("trace-event tern_cmd_* on")
        self.machine.hmp("trace-event tern_reg_write on")
        self.card.enable()
        self.card.query_device()
        self.machine.hmp("trace-event tern_* off")
        self.card.query_device(1)
        log = self.machine.log()
        self.assertIn(f"tern_reg_write card engine 0 offset {HW.REG_AQ_PI:#x} value 0x1\n", log)
        self.assertIn("tern_cmd_start card engine 0 id 0 QUERY_DEVICE\n", log)
        self.assertIn("tern_cmd_done card engine 0 id 0 QUERY_DEVICE status OK\n", log)
        self.assertNotIn("tern_reg_read", log)
        self.assertEqual(log.count("tern_cmd_start"), 1)

    def test_events(self):
        states = self.machine.qmp("trace-event-get-state", name="tern_*")
        names = {event["name"] for event in states}
        self.assertEqual(len(names), 15)
        self.assertIn("tern_qp_state", names)


class QueryOfNone(Hotplug):
    """Cards that come and go."""

    def test_many_times(self):
        self.assertEqual(self.machine.qmp("query-tern"), [])
        self.plug()
        self.assertEqual(len(self.machine.qmp("query-tern")), 1)
        self.unplug()
        self.assertEqual(self.machine.qmp("query-tern"), [])

    test_quit_with_commands_under_way = None


class TraceFromTheStart(unittest.TestCase):
    def test_option(self):
        machine = Machine("-trace", "tern_reg_*", "-device", "tern,id=card")
        machine.hmp("qom-get /machine/peripheral/card state")
        self.assertEqual(machine.qmp("trace-event-get-state", name="tern_reg_read"),
                         [{"name": "tern_reg_read", "state": "enabled", "vcpu": False}])
        self.assertEqual(machine.quit(), 0)


del Hotplug  # its own tests are those of test_hotplug
