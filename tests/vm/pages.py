# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of README.md ("Use it"), docs/troubleshooting.md and docs/fabric.md, run as written.

The tutorial has tutorial.py. What any page names is checked by tests/docs/check_commands.py, and
what the tables of docs/troubleshooting.md say by inside.py and see_inside.py.
"""

import contextlib
import re

from page_run import Page, sections
from programs import Programs
from scenario import Options, main, wait_until
from ternlab.paths import CHECKOUT

README = CHECKOUT / "README.md"
TROUBLESHOOTING = CHECKOUT / "docs/troubleshooting.md"
FABRIC = CHECKOUT / "docs/fabric.md"
LIST = re.compile(r"(?:^ {4}\S.*\n)+", re.MULTILINE)
# This test leaves these out: `watch` needs a terminal (test_watch.py runs it), and the others
# start or end a lab (test_fabric does) or hosts of one that outlives its commands (lab.py).
ELSEWHERE = ("scripts/lab watch", "make lab", "scripts/lab down", "scripts/lab up",
             "scripts/lab fabric", "scripts/lab add", "scripts/lab kill", "scripts/lab restart")
FOREVER = 7  # of rnr_retry
STOPS_CARD = "The card has stopped"


class Pages(Page, Programs):
    # As in see_inside.py: probes and several processors of QEMU 7.2 do not go together.
    HOSTS = (Options(smp=1), Options(smp=1))

    def assert_succeeds(self, command):
        code, said = self.run_here(command)
        with self.subTest(command):
            self.assertEqual(code, 0, said)

    def exchange(self, agents, qpns):
        agents[1].receive(local=qpns[1], offset=0, length=100)
        agents[0].send(local=qpns[0], opcode="SEND", length=100)
        agents[0].completions(local=qpns[0], kind="send")

    def test_readme(self):
        """The list of the section "Use it", up to another lab."""
        (text,) = (text for name, text in sections(README.read_text(encoding="utf-8"))
                   if name == "Use it")
        lines = [line[4:] for line in LIST.search(text)[0].splitlines()]
        self.assertIn("scripts/lab run all -- ibv_devinfo", lines)
        with self.connected() as (agents, qpns):
            serving = ""
            for line in lines:
                if line.startswith(ELSEWHERE):
                    continue
                if line.startswith("scripts/lab serve"):
                    serving = f"{line}\n"  # which ends with the program that asks
                    continue
                self.assert_succeeds(serving + line.replace("0x11", hex(qpns[0])))
                serving = ""
                if "capture start" in line:
                    self.exchange(agents, qpns)  # so that there is something to draw

    @contextlib.contextmanager
    def waiting(self):
        """A QP of host1 that waits for a receive of its peer: the numbers of both."""
        with self.connected(rnr_retry=FOREVER) as (agents, qpns):
            agents[0].send(local=qpns[0], opcode="SEND", length=100)
            self.assertTrue(wait_until(lambda: "no receive posted" in self.run_here(
                f"scripts/lab why host1 --qp {qpns[0]}")[1], 20))
            yield qpns
            agents[1].receive(local=qpns[1], offset=0, length=100)
            agents[0].completions(local=qpns[0], kind="send")

    def test_troubleshooting(self):
        """The card is stopped last, as no QP outlives that."""
        parts = dict(sections(TROUBLESHOOTING.read_text(encoding="utf-8")))
        stops_card = parts.pop(STOPS_CARD)
        with self.waiting() as (number, _):
            text = "".join(parts.values()).replace("0x11", hex(number))
            self.assertGreater(self.run_scripts(re.sub(r"\b17\b", str(number), text)), 5)
        self.assertGreater(self.run_scripts(stops_card), 1)

    def test_fabric(self):
        """In a lab of its own, which the page brings up."""
        name = f"{self.lab.name}.topology"
        self.addCleanup(self.run_here, "scripts/lab down", name)
        self.assertGreater(self.run_scripts(FABRIC.read_text(encoding="utf-8"), name), 1)


if __name__ == "__main__":
    main()
