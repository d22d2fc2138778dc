# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scenarios report of a guest kernel's log."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))

from kernel_log import trouble  # noqa: E402

SPLAT = """\
[    9.000000] tern 0000:00:04.0: ready
[   42.034168] list_del corruption. prev->next should be ffff8e930b422538, but was 0000000000000000
[   42.034170] ------------[ cut here ]------------
[   42.034171] kernel BUG at lib/list_debug.c:62!
[   42.034180] RIP: 0010:__list_del_entry_valid_or_report+0xa8/0xe0
[   42.034190] Call Trace:
[   42.034191]  <TASK>
[   42.034192]  ? __die_body.cold+0x19/0x27
[   42.034193]  first_function+0x10/0x20 [a_module]
[   42.034194]  second.isra.0+0x30/0x40
[   42.034195]  </TASK>
[   42.034196] Modules linked in: a_module
[   42.034197]  not_of_the_stack+0x1/0x2
"""

FLUSH = """\
[   59.286385] ------------[ cut here ]------------
[   59.286572] workqueue: WQ_MEM_RECLAIM first:one [a_module] is flushing !WQ_MEM_RECLAIM second:two
[   59.289859] WARNING: CPU: 0 PID: 28 at kernel/workqueue.c:3767 check_flush_dependency+0x106/0x130
[   59.292823] Call Trace:
[   59.301637]  __flush_work+0xe9/0x3a0
[   59.302696] ---[ end trace 0000000000000000 ]---
"""


class KernelLog(unittest.TestCase):
    def test_stack_comes_first(self):
        self.assertEqual(trouble(SPLAT), [
            "Call Trace: __list_del_entry_valid_or_report+0xa8 < first_function < second.isra.0",
            "list_del corruption. prev->next should be ffff8e930b422538, but was 0000000000000000",
            "kernel BUG at lib/list_debug.c:62!"])

    def test_oops_comes_before_its_stack(self):
        oops = SPLAT.replace("kernel BUG at lib/list_debug.c:62!",
                             "Oops: general protection fault: 0000 [#1] PREEMPT SMP NOPTI")
        self.assertRegex(trouble(oops)[0], "^Oops: general protection")
        self.assertRegex(trouble(oops)[1], "^Call Trace: __list_del_entry_valid_or_report")

    def test_stack_with_callers_in_the_log(self):
        """CONFIG_PRINTK_CALLER puts the task or the processor after the time."""
        text = SPLAT.replace("] ", "][   T62] ")
        self.assertEqual(trouble(text), trouble(SPLAT))

    def test_workqueues_of_others(self):
        self.assertEqual(trouble(FLUSH), [])
        for name in ("first:one", "second:two"):
            self.assertEqual(len(trouble(FLUSH.replace(name, f"tern_x:tern_{name[-3:]}"))), 2)

    def test_healthy(self):
        self.assertEqual(trouble("[    9.000000] tern 0000:00:04.0: ready\n"), [])


if __name__ == "__main__":
    unittest.main()
