# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of docs/ run as written: their commands, in order, print what the page shows.

In a ```console block a line that begins with "$ " is a command for this machine, one that begins
with "host1# " a command for that host, as root. Successive commands for one place are one script,
which has to succeed. Other lines are what the commands print. Numbers, runs of blanks and the
length of arrows may differ, and "..." stands for any text.
"""

import dataclasses
import doctest
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from scenario import RXE, Scenario, pair
from ternlab import pace
from ternlab.cli import SERVED
from ternlab.paths import BUILD, CHECKOUT, SCRIPTS

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:\$|(\w+)#) ")
SERVE = re.compile(r"^scripts/lab serve (\S+) ", re.MULTILINE)
# What the program that serves has printed, once no process has that file as its output. A program
# that goes on is waited for in vain.
AT_ITS_END = f"""timeout 20 sh -c 'while ls -l /proc/[0-9]*/fd/1 2>/dev/null | grep -q {SERVED}
do sleep 0.2; done'; cat {SERVED}"""
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
# It matches no part of a name, an address or a GID. A number of six digits may be hexadecimal.
NUMBER = re.compile(r"(?<![\w.:])(0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{6,}|\d+(\.\d+)?)(?![\w.:])")
SHAFT = re.compile(r"([-=~x])\1+")
OMITTED = re.compile(r"\s*\.\.\.\s*")
RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TIMEOUT = 100
HERE = None  # the place of "$ "


@dataclasses.dataclass
class Script:
    line: int             # of its block in the text
    place: str            # a host, or HERE
    commands: str = ""
    transcript: str = ""  # what a terminal shows


def scripts(text):
    """Those of all blocks."""
    for block in BLOCK.finditer(text):
        script = None
        for line in block[1].splitlines(keepends=True):
            command = COMMAND.match(line)
            if command and (script is None or script.place != command[1]):
                if script:
                    yield script
                script = Script(text.count("\n", 0, block.start()) + 1, command[1])
            if command:
                line = line[command.end():]
                script.commands += line
            script.transcript += line
        yield script


def sections(text):
    """Heading and text of each part."""
    _, *parts = HEADING.split(text)
    return zip(parts[::2], parts[1::2])


def plain(text):
    """What has to be equal of a text. What perftest called MB, 2^20 bytes, is MiB in newer
    versions."""
    text = text.replace("[MiB/sec]", "[MB/sec]")
    return SHAFT.sub(r"\1", NUMBER.sub("0", text))


def same(wanted, said):
    expected = OMITTED.sub("...", plain(wanted))  # which may stand for nothing
    return doctest.OutputChecker().check_output(expected, plain(said), RULES)


class Page(Scenario):
    """Tests run pages in a folder that looks like the checkout and vanishes in the end."""

    @classmethod
    def setUpClass(cls):
        if RXE:
            raise unittest.SkipTest("the pages are about Tern")
        super().setUpClass()

    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name, place in (("scripts", SCRIPTS), ("build", BUILD),
                            ("examples", CHECKOUT / "examples")):
            (self.folder / name).symlink_to(place)

    def run_here(self, commands, lab=None):
        """(exit code, what a terminal shows). Where perftest cannot tell the processor's frequency
        on a busy machine, once more from the last program that serves, as pair.py does."""
        said = ""
        for _ in range(self.CHANCES):
            code, more = self.run_once(commands, lab)
            said += more
            served = list(SERVE.finditer(more))
            if not code or not served or not self.is_spread(more, served[-1][1], lab):
                break
            commands = commands[list(SERVE.finditer(commands))[len(served) - 1].start():]
            said = said[:list(SERVE.finditer(said))[-1].start()]
        return code, said

    def is_spread(self, said, server, lab):
        """Whether perftest's measurements of the frequency spread, at either end. Then the server
        has ended, too: it would keep its port from the next one."""
        _, served = self.run_once(f'scripts/lab run {server} -- "{AT_ITS_END}"', lab)
        return pair.SPREAD in said + served

    def run_once(self, commands, lab):
        """bash -v prints each command before it runs it."""
        script = self.folder / "script"
        script.write_text(commands, encoding="utf-8")
        done = subprocess.run(
            ["bash", "-ev", script], cwd=self.folder, stdin=subprocess.DEVNULL,
            timeout=pace.scaled(TIMEOUT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace",
            env={**os.environ, "TERN_LAB": lab or self.lab.name}, check=False)
        return done.returncode, done.stdout

    def run_in(self, name, commands):
        """The same in a host."""
        (host,) = (host for host in self.hosts if host.name == name)
        host.write_file("/tmp/script", commands.encode())
        done = host.run("exec bash -ev /tmp/script 2>&1", check=False, timeout=TIMEOUT)
        return done.code, done.out

    def run_scripts(self, text, lab=None):
        """Returns how many there are."""
        count = 0
        for count, script in enumerate(scripts(text), 1):
            code, said = (self.run_here(script.commands, lab) if script.place is HERE
                          else self.run_in(script.place, script.commands))
            with self.subTest(f"the block at line {script.line}: {script.commands}"):
                self.assertTrue(
                    code == 0 and same(script.transcript, said), f"exit code {code}; the page has\n"
                    f"{script.transcript}\nbut here it is\n{said}")
        return count
