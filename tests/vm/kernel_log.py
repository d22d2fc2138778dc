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
    # When a namespace has been disabled and enabled again, nvmet finds that the subsystem still has
    # it, though it was removed first.
    r"|WARNING: [^\n]* at drivers/nvme/target/core\.c:\d+ nvmet_subsys_free\+"
    # A device that is removed while rdma_resolve_addr() runs takes the ID from it, which warns.
    r"|WARNING: [^\n]* at drivers/infiniband/core/cma\.c:\d+ rdma_resolve_addr\+"
    # remap_pfn_range() that runs out of memory half way unmaps the whole range, and the x86 code
    # warns of pages that were never mapped.
    r"|WARNING: [^\n]* at arch/x86/mm/pat/memtype\.c:\d+ (untrack_pfn|get_pat_info)\+"
    # The kernel warns if a workqueue that frees memory waits for one that may need memory. SCSI's
    # workqueue of sessions waits so for runtime power management, if a target's device is removed
    # at that moment. Such a warning counts only if it names a workqueue of the driver.
    r"|workqueue: WQ_MEM_RECLAIM (?![^\n]*\btern)[^\n]* is flushing !WQ_MEM_RECLAIM "
    # ib_uverbs_open_qp() does not initialise the mutex of the QP's multicast groups.
    r"|WARNING: [^\n]* at kernel/locking/mutex\.c:\d+ __mutex_lock\+[\s\S]*?<TASK>\s*?\n"
    r"([^\n]*\] +\? [^\n]*\n)*[^\n]*\] +ib_uverbs_(at|de)tach_mcast\+"
    # Memory may be in several regions, each with a mapping of its own. dma-debug expects one.
    r"|DMA-API: [^\n]*(cacheline tracking EEXIST|exceeded \d+ overlapping mappings)")
# Leaks of others that kmemleak reports, by the function that has allocated the object. Older
# kernels write its address before its name.
KNOWN_LEAKS = re.compile(
    r"^ +(\[<\w+>\] )?("
    # UVERBS_METHOD_GET_CONTEXT frees a context that it cannot use, and keeps its reference to the
    # task: ib_core lacks rdma_restrack_put() there.
    r"copy_process|copy_creds|taskstats_exit"
    # flow_resources_alloc() allocates two arrays. If the first allocation fails, the function does
    # not free the second array.
    r"|flow_resources_alloc)\+", re.MULTILINE)


STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ")
# FRAME matches a line of a stack trace. The kernel puts a question mark before an address on
# the stack of which it does not know whether it is a return address.
FRAME = re.compile(r"^ *(?P<guess>\? +)?(?P<function>[\w.]+)\+0x[0-9a-f]+/0x")
# The instruction at which a processor could not go on, and why.
FAULTING = re.compile(r"^RIP: [0-9a-f]+:(?P<place>\S+\+0x[0-9a-f]+)/0x")
FATAL = re.compile(r"\bOops\b|general protection|[Uu]nable to handle|NULL pointer")


def trouble(text):
    """The lines of a kernel's log that tell of trouble, without their times. The functions of a
    stack stand in the line of its "Call Trace", after the faulting instruction, if there is one.
    What ends a kernel comes first, then stacks: CI shows the beginning."""
    text = REPORT.sub(lambda report: "" if KNOWN.search(report[0]) else report[0], text)
    lines = [STAMP.sub("", line) for line in text.splitlines()]
    found, place = [], []
    for number, line in enumerate(lines):
        if fault := FAULTING.search(line):
            place = [fault["place"]]
        if not TROUBLE.search(line) or HARMLESS.search(line):
            continue
        if "Call Trace" in line:
            line = f"{line} {' < '.join(place + callers(lines[number + 1:]))}"
            place = []
        found.append(line)
    return sorted(found, key=lambda line: (not FATAL.search(line), "Call Trace" not in line))


def callers(lines):
    """The functions of the stack with which the lines begin, the innermost first."""
    functions = []
    for line in lines:
        if frame := FRAME.search(line):
            if not frame["guess"]:
                functions.append(frame["function"])
        elif not re.fullmatch(r" *<\w+>", line):
            break
    return functions


def leaks(text):
    """The reports of kmemleak, but for those of KNOWN_LEAKS."""
    reports = re.split(r"^(?=unreferenced object )", text, flags=re.MULTILINE)
    return [report for report in reports if report and not KNOWN_LEAKS.search(report)]
