# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scenarios report of a guest kernel's log."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/vm"))

from kernel_log import leaks, trouble  # noqa: E402

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

# remap_pfn_range() without memory: Linux 6.12 warns in another function than 6.1.
UNMAPPED = """\
[  133.883201] ------------[ cut here ]------------
[  133.884376] WARNING: CPU: 0 PID: 439 at arch/x86/mm/pat/memtype.c:983 {function}+0x273/0x2e0
[  133.889375] Call Trace:
[  133.889525]  <TASK>
[  133.890423]  untrack_pfn+0xb5/0x3f0
[  133.899857]  </TASK>
[  133.900692] ---[ end trace 0000000000000000 ]---
"""

# kmemleak writes the addresses of the functions up to Linux 6.1.
LEAK = """\
unreferenced object 0xffff88805f818000 (size 6464):
  comm "program", pid 1411, jiffies 4295231737
  hex dump (first 32 bytes):
    02 40 00 00 00 00 00 00 00 00 00 00 00 00 00 00  .@..............
  backtrace (crc 1e01ec):
    {address}kmem_cache_alloc_node_noprof+0x289/0x320
    {address}{function}+0x3dc/0x6730
    {address}kernel_clone+0xd2/0x680
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

    def test_unmapping_of_what_was_not_mapped(self):
        for function in ("untrack_pfn", "get_pat_info"):
            self.assertEqual(trouble(UNMAPPED.format(function=function)), [])
        self.assertEqual(len(trouble(UNMAPPED.format(function="tern_mmap"))), 2)

    def test_leaks_of_others(self):
        for address in ("", "[<00000000c0ffee00>] "):
            known = LEAK.format(address=address, function="copy_process")
            own = LEAK.format(address=address, function="tern_copy_process")
            self.assertEqual(leaks(known + own + known), [own])

    def test_healthy(self):
        self.assertEqual(trouble("[    9.000000] tern 0000:00:04.0: ready\n"), [])


if __name__ == "__main__":
    unittest.main()
