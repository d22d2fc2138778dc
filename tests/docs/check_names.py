#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that docs/architecture.md, its pictures and docs/security.md name what the code has.

A table row or a list item of a page is an entry. In an entry, `path/of/file` in backticks names
a file, relative to the top of the tree, and `function()` or `name` in backticks belongs to the
file named last before it in that entry: the file has to contain the name as a whole word, and to
declare or define the function, which a call of it does not. Files named outside of entries have
to exist, too. The tables under "Layers" have the layers of scripts/layers.toml, and each
function in a picture is in the text.
Each finding of docs/security.md names a test.
"""
import pathlib
import re
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "docs/architecture.md"
SECURITY = TOP / "docs/security.md"
PICTURES = TOP / "docs/pictures"

ENTRY = re.compile(r"(?:\d+\.|[-*]) ")
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"\w[\w.+-]*(?:/[\w.+-]+)+")
NAME = re.compile(r"([A-Za-z_]\w*)(\(\))?")
FUNCTION = re.compile(r"\b([A-Za-z_]\w*)\(\)")
HEADING = re.compile(r"(#+) (.*)")

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# What stands between the end of a statement and the name of a function that is declared: the type,
# and perhaps the class. A call has an operator or nothing there.
TYPE = r"(?:[\w~]|::|[*&<>,\s]|\[\[\w+\]\]|\"C\")*"
HEAD = re.compile(rf"(?:^|[;{{}})]|\b(?:public|private|protected):)\s*({TYPE})$")
NO_TYPES = re.compile(r"\b(?:return|co_return|else|do|throw|new|delete|case|goto|and|or|not)\b")


def declares(source, name):
    """Whether a source in C, C++, Python or shell declares or defines the function."""
    if re.search(rf"^\s*(?:def |#\s*define ){name}\(|^{name}\(\) \{{", source, re.MULTILINE):
        return True
    # A pointer to a function, and an object that is one.
    if re.search(rf"\(\*{name}\)\(|\b{name} = \[", source):
        return True
    source = re.sub(r"^\s*#[^\n]*", ";", COMMENT.sub("", source), flags=re.MULTILINE)
    for found in re.finditer(rf"\b{name}\s*\(", source):
        head = HEAD.search(source[max(0, found.start() - 500):found.start()])
        if head and head[1].strip() and not NO_TYPES.search(head[1]):
            return True
    return False


def split_entries(text):
    """Yields the number of the first line, the text, and whether it is a table row or list item."""
    begin, lines, is_entry = 0, [], False
    for number, line in enumerate(text.splitlines(), 1):
        row = line.startswith("|")
        item = ENTRY.match(line) is not None
        inner = line.startswith(" ")
        if row or item or not inner or not line.strip():
            if lines:
                yield begin, "\n".join(lines), is_entry
            begin, lines, is_entry = number, [], row or item
        lines.append(line)
    if lines:
        yield begin, "\n".join(lines), is_entry


class Checker:
    def __init__(self, page):
        self.page = page
        self.errors = []
        self.sources = {}
        self.functions = set()  # all that the page names

    def complain(self, where, what):
        self.errors.append(f"{where}: {what}")

    def source(self, path):
        if path not in self.sources:
            file = TOP / path
            self.sources[path] = file.read_text(encoding="utf-8") if file.is_file() else None
        return self.sources[path]

    def check_name(self, line, path, name, is_function):
        source = path and self.source(path)
        if source is None:
            if is_function:
                self.complain(f"{self.page.name}:{line}", f"no file is named before {name}()")
            return
        if is_function:
            if not declares(source, name):
                self.complain(f"{self.page.name}:{line}", f"{path} does not declare {name}()")
        elif not re.search(rf"\b{name}\b", source):
            self.complain(f"{self.page.name}:{line}", f"{path} has no {name}")

    def check_entry(self, first, text, is_entry):
        path = None
        for quoted in QUOTED.finditer(text):
            line = first + text.count("\n", 0, quoted.start())
            token = quoted[1]
            if PATH.fullmatch(token):
                if (TOP / token).exists():
                    path = token if (TOP / token).is_file() else None
                else:
                    self.complain(f"{self.page.name}:{line}", f"there is no {token}")
            elif name := NAME.fullmatch(token):
                if name[2]:
                    self.functions.add(name[1])
                if is_entry or name[2]:
                    self.check_name(line, path, name[1], name[2] is not None)

    def check_page(self, text):
        for first, entry, is_entry in split_entries(text):
            self.check_entry(first, entry, is_entry)

    def check_layers(self, text):
        """Compares the first column of the table under `part` with the part in layers.toml."""
        layers = tomllib.loads((TOP / "scripts/layers.toml").read_text(encoding="utf-8"))
        found, part = {}, None
        for line in text.splitlines():
            if heading := HEADING.match(line):
                part = heading[2].strip("`") if len(heading[1]) == 3 else None
                # Only headings in backticks are parts.
                part = part if part and heading[2].startswith("`") else None
            elif part and line.startswith("| ") and not line.startswith("| ---"):
                found.setdefault(part, []).append(line.split("|")[1].strip())
        if not found:
            self.complain(self.page.name, "there are no layers")
        for name, rows in found.items():
            table = layers
            for key in name.split("."):
                table = table.get(key, {})
            expected = [layer["name"] for layer in table.get("layers", [])]
            if rows[1:] != expected:
                self.complain(self.page.name, f"layers of {name}: {rows[1:]}, not {expected}")

    def check_pictures(self, page):
        """A picture names functions of the text, and its .svg is drawn from its .dot."""
        sources = sorted(PICTURES.glob("*.dot"))
        if not sources:
            self.complain("docs/pictures", "there are none")
        for source in sources:
            drawn = source.with_suffix(".svg")
            text = source.read_text(encoding="utf-8").replace(r"\n", "\n")
            functions = set(FUNCTION.findall(text))
            for name in sorted(functions - self.functions):
                self.complain(source.name, f"{name}() is not in {self.page.name}")
            if not drawn.is_file():
                self.complain(source.name, f"there is no {drawn.name}")
            elif functions != set(FUNCTION.findall(drawn.read_text(encoding="utf-8"))):
                self.complain(drawn.name, f"is not what {source.name} says; please draw it again")
            if f"pictures/{drawn.name}" not in page:
                self.complain(source.name, f"{self.page.name} does not show it")

    def check_findings(self, text):
        """The last cell of a row of a table of findings is a file of tests and a name in it."""
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        tested = [row for row in rows if row.rstrip("| ").endswith("test")]
        if not tested:
            self.complain(self.page.name, "there are no findings")
        for row in rows:
            cell = row.rstrip("| ").rsplit("|", 1)[-1]
            if row not in tested and not row.startswith("| ---") and \
                    not re.search(r"`tests/[^`]+` `\w+`", cell):
                self.complain(self.page.name, f"no test: {row}")


def main():
    page = PAGE.read_text(encoding="utf-8")
    checker = Checker(PAGE)
    checker.check_page(page)
    checker.check_layers(page)
    checker.check_pictures(page)
    if not checker.functions:
        checker.complain(PAGE.name, "names no function")

    findings = SECURITY.read_text(encoding="utf-8")
    security = Checker(SECURITY)
    security.check_page(findings)
    security.check_findings(findings)

    errors = checker.errors + security.errors
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
