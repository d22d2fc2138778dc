# SPDX-License-Identifier: GPL-2.0-or-later
"""What the pages have people type is there, and links lead somewhere.

Commands are indented lines, lines of ```console blocks that begin with "$ " or "host1# ", and what
is in backquotes. `scripts/lab` lines go through its parser; `make` names targets; a script, an
option of a script or tool, a file, a variable and a property of the card have to exist. Words in
capitals stand for something else. Whether the commands do what the pages say is the matter of
tests/vm/tutorial.py and tests/vm/pages.py.
"""

import contextlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import cli  # noqa: E402

PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").glob("*.md"))]
# What has the options of a program that is built.
SOURCES = {
    "tern-switch": "qemu/wire/main.cc", "tern-card": "qemu/vfio/options.cc",
    "tern-sim": "qemu/sim/main.cc",
    "terntop": "userspace/tools/terntop.cc", "terntrace": "userspace/tools/terntrace.cc",
}
DEVICE = "qemu/pci/device.c"
QEMUS = ("help", "id", "mac", "netdev")  # properties that any network card has
LAB = ("scripts/lab", "tern-lab")
# Places of the checkout; what is below build/ is made.
PLACE = re.compile(r"(?<![\w/])(?:docs|examples|include|kernel|qemu|scripts|tests|userspace)/"
                   r"[\w./-]*\w(?![\w*/])")
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
VARIABLE = re.compile(r"\b(TERN_[A-Z_]*[A-Z])\b")
PROPERTY = re.compile(r"\btern,([\w=/.,-]*\w)")


def lines_of(page):
    """(number of the line, what may be a command) of a page."""
    console = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            console = line == "```console"
        elif console:
            command = re.match(r"(?:\$|\w+#) (.*)", line)
            if command:
                yield number, command[1]
        elif re.match(r" {4,}\S", line):
            yield number, line.strip().removesuffix("\\")
        else:
            for span in SPAN.finditer(line):
                yield number, span[1]


def words_of(command):
    """The words up to a pipe, a redirection or a comment; [] for what no shell would take."""
    command = re.split(r"\s#\s| \| |\s[<>;&]", command)[0]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def plain(words):
    """A line of the lab without what stands for a choice: [OPTIONAL] is left out, a|b is a."""
    words = [word for word in words if not word.startswith("[")]
    return ["1" if word in ("N", "CARD", "NUMBER") else word.split("|")[0] for word in words]


class Checker:
    def __init__(self):
        self.errors, self.checked = [], 0
        makefile = (TOP / "Makefile").read_text(encoding="utf-8")
        self.targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
        self.texts = {}
        self.code = self.everything()

    @staticmethod
    def everything():
        """All words of the tree but those of its pages, for names of variables."""
        found = subprocess.run(
            ["grep", "-rhoE", "TERN_[A-Z_]*[A-Z]", "Makefile", ".ci", "include", "qemu", "scripts",
             "tests", "userspace", "kernel", "CMakeLists.txt"], cwd=TOP, text=True,
            stdout=subprocess.PIPE, check=True).stdout
        return set(found.split())

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (TOP / path).read_text(encoding="utf-8", errors="replace")
        return self.texts[path]

    def lab(self, words):
        """Returns what is wrong with a line of the lab, or nothing."""
        if "--help" in words:
            words = words[:words.index("--help")]
        if not words:
            return ""
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                cli.parse(plain(words))
        except SystemExit:
            return said.getvalue().strip().rpartition("\n")[2]
        return ""

    def options(self, name, words):
        """Options of a script or tool that its source does not have."""
        source = self.text(SOURCES.get(name, name))
        for word in words:
            option = re.match(r"--([a-z][a-z-]+)", word)
            if option and option[1] != "help" and not re.search(
                    rf'(--|"){option[1]}\b', source):
                yield f"{name} has no option --{option[1]}"

    def command(self, words):
        """What is wrong with a command."""
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        name = os.path.basename(words[0]) if words and words[0].startswith("build/") else \
            words[0] if words else ""
        if name in LAB:
            # A subcommand alone stands for all that it does.
            wrong = len(words) > 2 and self.lab(words[1:])
            if wrong:
                yield wrong
            elif len(words) == 2 and not words[1].startswith("-") and \
                    not hasattr(cli, {"cp": "copy", "list": "list_labs"}.get(words[1], words[1])):
                yield f"the lab has no {words[1]}"
        elif name == "make":
            yield from (f"make has no target {word}" for word in words[1:]
                        if re.fullmatch(r"[a-z][a-z-]*", word) and word not in self.targets)
        elif name in SOURCES or name.startswith("scripts/") and (TOP / name).is_file():
            yield from self.options(name, words[1:])
        else:
            return
        self.checked += 1

    def span(self, text):
        """What is wrong with anything that a page has people type."""
        yield from self.command(words_of(text))
        for place in PLACE.findall(text):
            if not (TOP / place).exists():
                yield f"there is no {place}"
        for variable in VARIABLE.findall(text):
            if variable not in self.code and not any(
                    word.startswith(variable + "_") for word in self.code):
                yield f"nothing knows {variable}"
        for given in PROPERTY.findall(text):
            for name in re.findall(r"(?:^|,)([a-z][\w-]*)", given):
                if name not in QEMUS and f'"{name}"' not in self.text(DEVICE):
                    yield f"the card has no property {name}"

    def links(self, page, text):
        for target in LINK.findall(text):
            if target.startswith("http"):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            if not file.exists():
                yield f"the link {target} leads nowhere"
            elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
                yield f"the link {target} leads to no heading"

    def page(self, page):
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(TOP)
        for number, span in lines_of(text):
            self.errors += [f"{name}:{number}: {wrong}" for wrong in self.span(span)]
        self.errors += [f"{name}: {wrong}" for wrong in self.links(page, text)]


def anchors(text):
    """As GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(text)}


def main():
    checker = Checker()
    for page in PAGES:
        checker.page(page)
    if checker.checked < 100:
        checker.errors.append(f"only {checker.checked} commands: the pages cannot be read")
    print("\n".join(checker.errors) or f"{checker.checked} commands", file=sys.stderr)
    return 1 if checker.errors else 0


if __name__ == "__main__":
    sys.exit(main())
