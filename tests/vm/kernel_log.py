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
    r"|DMA-API: (preallocated \d+ debug entries|debugging enabled)"
    r"|rcu:.*use-after-free debug is enabled"
    # A process that touched its memory did not get a page, and tries again.
    r"|VM_FAULT_OOM leaked out to the #PF handler"
    # It follows a report of dma-debug.
    r"|DMA-API: Mapped at:"
    r"|kasan: KernelAddressSanitizer initialized"
    r"|(RETBleed|Spectre|MDS|MMIO Stale Data|TAA).*leak"
    r"|RCU CPU stall warnings timeout set"
    # A program's fault, which its exit code tells.
    r"|traps: \S+\[\d+\] (general protection|trap)")

# Whole reports of faults that others have: by the place that reports them.
REPORT = re.compile(r"^[^\n]*-\[ cut here \]-.*?-\[ end trace \w+ \]-", re.DOTALL | re.MULTILINE)
KNOWN = re.compile(
    # With an SRQ a channel of ib_srpt has no buffers of its own, and drops them all the same.
    r"WARNING: [^\n]* at drivers/infiniband/ulp/srpt/ib_srpt\.c:\d+ srpt_cache_put\+"
    # remap_pfn_range() that runs out of memory half way unmaps the whole range, and the x86 code
    # warns of pages that were never mapped.
    r"|WARNING: [^\n]* at arch/x86/mm/pat/memtype\.c:\d+ untrack_pfn\+"
    # ib_uverbs_open_qp() does not initialise the mutex of the QP's multicast groups.
    r"|WARNING: [^\n]* at kernel/locking/mutex\.c:\d+ __mutex_lock\+[\s\S]*?<TASK>\s*?\n"
    r"([^\n]*\] +\? [^\n]*\n)*[^\n]*\] +ib_uverbs_(at|de)tach_mcast\+"
    # Memory may be in several regions, each with a mapping of its own. dma-debug expects one.
    r"|DMA-API: [^\n]*(cacheline tracking EEXIST|exceeded \d+ overlapping mappings)")
# Leaks of others that kmemleak reports, by the function that has allocated the object.
KNOWN_LEAKS = re.compile(
    # UVERBS_METHOD_GET_CONTEXT frees a context that it cannot use, and keeps its reference to the
    # task: ib_core lacks rdma_restrack_put() there.
    r"\] (copy_process|copy_creds|taskstats_exit)\+"
    # flow_resources_alloc() allocates two arrays. If the first allocation fails, the function does
    # not free the second array.
    r"|\] flow_resources_alloc\+")


def trouble(text):
    """The lines of a kernel's log that tell of trouble."""
    text = REPORT.sub(lambda report: "" if KNOWN.search(report[0]) else report[0], text)
    return [line for line in text.splitlines()
            if TROUBLE.search(line) and not HARMLESS.search(line)]


def leaks(text):
    """The reports of kmemleak, but for those of KNOWN_LEAKS."""
    reports = re.split(r"^(?=unreferenced object )", text, flags=re.MULTILINE)
    return [report for report in reports if report and not KNOWN_LEAKS.search(report)]
