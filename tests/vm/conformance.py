# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own test suite on one card, and on Soft-RoCE in the same guest for reference.

What is expected is docs/conformance-STACK.md, which this test writes anew (to the lab's folder)
and compares: a regression fails, and so does a new skip, or one that is gone. What Soft-RoCE
passes is told by `make test-all`, not judged.
"""

import collections
import difflib
import json
import pathlib
import re
import textwrap

from programs import EVERY_CELL
from scenario import Options, Scenario, main, wait_until
from ternlab import stack

RUNNER = pathlib.Path(__file__).resolve().parents[1] / "guest/pyverbs_suite.py"
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
INSTALLED, SUITE = "/usr/share/doc/rdma-core/tests", "/tmp/suite"
# Of other cards' own interfaces.
FOREIGN = ("mlx5", "efa")
REFERENCE, REFERENCE_MAC = "rxe0", "52:54:00:72:00:01"

HEADING = """<!-- SPDX-License-Identifier: GPL-2.0-or-later -->
# rdma-core's test suite on Tern

The python tests that come with rdma-core {version} (Debian's python3-pyverbs), without those for
{foreign}, on one card with the stack {stack} (kernel {kernel}), and on Linux's Soft-RoCE (rxe) in
the same guest for reference. `tests/vm/conformance.py` runs them, and fails when the result
differs from this page.
"""

# What the suite's reasons mean here, by a part of them.
MEANINGS = {
    "cuda-python": "These tests need the memory of an NVIDIA GPU, which no guest has.",
    "/dev/dri/": "These tests need the memory of an AMD or Intel GPU, which no guest has. "
                 "`tern_verbs_check` has cases with dma-bufs of vgem and of udmabuf.",
    "CC_DMA_BOUNCE": "These tests are for guests whose memory is encrypted, as DMA goes through "
                     "bounce buffers there.",
    "DMA Handle": "A DMA handle names the cache of a CPU into which a card should write. The "
                  "kernel gets the steering tag of that cache from a method (_DSM) of the "
                  "firmware, which QEMU's firmware lacks, and a card in QEMU sends no TLPs that "
                  "could carry the tag. So handles would be accepted and have no effect.",
    "No PHC": "The card has a clock, but the driver registers no PTP clock. The second test wants "
              "the times of completions by a clock that `phc_ctl` can set. The provider converts "
              "them to CLOCK_REALTIME by itself, so the kernel would have to share the offset and "
              "the rate of its PTP clock with each process. Without time stamps of Ethernet "
              "frames, which the card lacks, too, PTP could not use the clock.",
}


class Result(collections.namedtuple("Result", "name outcome why")):
    @property
    def module(self):
        return self.name.split(".")[1]

    @property
    def test(self):
        return self.name.rpartition(".")[2]


def without_reference(page):
    """The page's lines, those of the table of modules without their last column."""
    return [line.rpartition(" | ")[0] if re.fullmatch(r"\|.*\| \d+ \|", line) else line
            for line in page.splitlines()]


class Conformance(Scenario):
    HOSTS = (Options(mem="2G", netdevs=("user,id=reference",), devices=(
        f"virtio-net-pci,netdev=reference,romfile=,mac={REFERENCE_MAC}",)),)

    def setUp(self):
        super().setUp()
        host = self.host = self.hosts[0]
        self.stack = stack.ask()
        host.run(f"mkdir -p {SUITE} && cp -r {INSTALLED} {SUITE}/tests && "
                 f"gunzip -f {SUITE}/tests/*.gz && sysctl -qw vm.nr_hugepages=64")
        host.write_file(f"{SUITE}/{RUNNER.name}", RUNNER.read_bytes())
        host.run(f"""
            netdev=$(grep -l {REFERENCE_MAC} /sys/class/net/*/address | cut -d / -f 5)
            ip link set $netdev up && modprobe rdma_rxe &&
            rdma link add {REFERENCE} type rxe netdev $netdev""")
        names = host.run(f"cd {SUITE}/tests && ls test_*.py").out.split()
        self.modules = [name.removesuffix(".py") for name in names
                        if not any(word in name for word in FOREIGN)]

    def run_modules(self, device, modules):
        """What the process that ran them ended with, and their results."""
        names = " ".join(f"tests.{module}" for module in modules)
        ran = self.host.run(f"cd /tmp && python3 -B {SUITE}/{RUNNER.name} {SUITE} "
                            f"--dev {device} {names} 2>&1", check=False, timeout=900)
        results = []
        for line in ran.out.splitlines():
            try:
                results.append(Result(*json.loads(line)))
            except (ValueError, TypeError):
                continue  # what a test prints
        return ran, results

    def run_suite(self, device):
        """Its results. A test that brings the process down is an error, and the module's last."""
        results, left = [], self.modules
        while left:
            ran, some = self.run_modules(device, left)
            results += some
            if not ran.code:
                break
            died = some[-1].module if some else left[0]
            results.append(Result(f"tests.{died}.process", "error", ran.out[-2000:]))
            left = left[left.index(died) + 1:]
        return results

    def resources(self):
        """How many objects of each kind the card's device has."""
        summary = self.host.run(f"rdma -j resource show {self.host.rdma_device()}").out
        return json.loads(summary)[0]

    def page(self, tern, reference):
        def count(results, module, outcome):
            return sum(result.module == module and result.outcome == outcome
                       for result in results)

        def row(name, *cells):
            return f"| {name} | " + " | ".join(map(str, cells)) + " |"

        version = self.host.run("dpkg-query -W -f '${source:Upstream-Version}' rdma-core").out
        lines = HEADING.format(version=version, foreign=" and ".join(FOREIGN),
                               stack=self.stack, kernel=stack.ask("kernel")).splitlines()
        lines += ["", row("module", "tests", "passed", "skipped", "passed on rxe"),
                  row("---", *["---:"] * 4)]
        for module in self.modules:
            lines.append(row(module, sum(result.module == module for result in tern),
                             count(tern, module, "passed"), count(tern, module, "skipped"),
                             count(reference, module, "passed")))
        lines.append(row("all", len(tern), *(
            sum(result.outcome == outcome for result in tern) for outcome in
            ("passed", "skipped")), sum(result.outcome == "passed" for result in reference)))
        lines += ["", "What is skipped, and why:", "",
                  row("module", "test", "reason, as the suite gives it"), row("---", "---", "---")]
        lines += [row(result.module, result.test, result.why)
                  for result in tern if result.outcome == "skipped"]
        lines += self.meanings(result.why for result in tern if result.outcome == "skipped")
        return "\n".join(lines) + "\n"

    @staticmethod
    def meanings(reasons):
        """The page's lines about those of MEANINGS that the reasons have."""
        text = "\n".join(reasons)
        found = {part: meaning for part, meaning in MEANINGS.items() if part in text}
        lines = ["", "What these reasons mean:"] if found else []
        for part, meaning in found.items():
            lines += ["", *textwrap.wrap(f"- `{part}`: {meaning}", 100, subsequent_indent="  ")]
        return lines

    def test_suite(self):
        before = self.resources()
        tern = self.run_suite(self.host.rdma_device())
        wait_until(lambda: self.resources() == before, 20)
        self.assertEqual(self.resources(), before, "something is left behind")
        reference = self.run_suite(REFERENCE) if EVERY_CELL else []
        page = self.page(tern, reference)
        print(f"\n{page}")
        for result in tern:
            if result.outcome not in ("passed", "skipped"):
                with self.subTest(result.name):
                    self.fail(f"{result.outcome}: {result.why}")
        kept = DOCS / f"conformance-{self.stack}.md"
        written = self.lab.logs / kept.name
        written.write_text(page, encoding="utf-8")
        expected = kept.read_text(encoding="utf-8") if kept.exists() else ""
        difference = "\n".join(
            difflib.unified_diff(expected.splitlines(), page.splitlines(), lineterm=""))
        if difference:
            print(f"{written} and {kept} differ:\n{difference}")
        self.assertEqual(without_reference(page), without_reference(expected))


if __name__ == "__main__":
    main()
