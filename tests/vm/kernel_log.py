# SPDX-License-Identifier: GPL-2.0-or-later
"""What a healthy kernel never says."""

import re

TROUBLE = re.compile(
    r"\bWARNING:|\bBUG\b|\bOops\b|Call Trace|general protection|[Kk]ernel panic"
    r"|KASAN|KFENCE|KCSAN|UBSAN|[Uu]nable to handle|[Bb]ad page|page allocation failure"
    r"|list_\w+ corruption|lockup|LOCKUP|blocked for more than|\bstall|[Ss]tall detected"
    r"|possible (circular|recursive|irq)|suspicious RCU|inconsistent lock|still held"
    r"|sleeping function|scheduling while atomic|refcount_t|use-after-free|\b[Ll]eak"
    r"|DMAR:.*[Ff]ault|DMA-API|NETDEV WATCHDOG|nobody cared|unregister_netdevice: waiting")

# Said at every boot, and harmless.
HARMLESS = re.compile(
    r"kmemleak: Kernel memory leak detector initialized"
    r"|(RETBleed|Spectre|MDS|MMIO Stale Data|TAA).*leak"
    r"|RCU CPU stall warnings timeout set"
    # A program's fault, which its exit code tells.
    r"|traps: \S+\[\d+\] (general protection|trap)")

# Whole reports of faults that others have: by the place that reports them.
REPORT = re.compile(r"^[^\n]*-\[ cut here \]-.*?-\[ end trace \w+ \]-", re.DOTALL | re.MULTILINE)
KNOWN = re.compile(
    # With an SRQ a channel of ib_srpt has no buffers of its own, and drops them all the same.
    r"WARNING: [^\n]* at drivers/infiniband/ulp/srpt/ib_srpt\.c:\d+ srpt_cache_put\+")


def trouble(text):
    """The lines of a kernel's log that tell of trouble."""
    text = REPORT.sub(lambda report: "" if KNOWN.search(report[0]) else report[0], text)
    return [line for line in text.splitlines()
            if TROUBLE.search(line) and not HARMLESS.search(line)]
