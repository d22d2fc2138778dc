# SPDX-License-Identifier: GPL-2.0-or-later
"""The layouts and numbers in docs/hardware.md are those of the headers of the interface.

Both are made of include/tern/tern_hw*.h; --write puts them into the page.
"""

import pathlib
import re
import struct
import sys
import textwrap

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/hardware.md"
# In the order of the page
HEADERS = [TOP / f"include/tern/tern_hw{part}.h"
           for part in ("", "_queues", "_objects", "_admin", "_counters")]
FORMATS = {"u8": "<B", "le16": "<H", "le32": "<I", "le64": "<Q", "be16": ">H", "be32": ">I"}
WIDTH = 160
ROW = "| {} | {} | {} | {} | {} |\n"
LAYOUTS = "## 13. Layouts\n"
NUMBERS = "## 14. Numbers\n"


def quoted(comment):
    """Puts names of constants, types and fields into backquotes."""
    return re.sub(r"(?<!`)\b((?:TERN_|[a-z]+_|__)\w+\*?)", r"`\1`", comment)


def sentence(comment):
    """Returns a comment with a capital letter, unless it begins with a name, and a full stop."""
    if "_" not in comment.split(maxsplit=1)[0]:
        comment = comment[0].upper() + comment[1:]
    return comment.rstrip(".") + "."


def paragraphs(comment):
    """Returns the text of a comment of one or more lines, without its marks."""
    lines = [line.strip().lstrip("*").strip() for line in comment.split("\n")]
    text = "\n".join(lines).strip()
    return "\n\n".join(part.replace("\n", " ") for part in re.split(r"\n{2,}", text))


def titled(title, comment):
    """Returns what stands above a table: @title with the comment that the headers have for it."""
    if not comment:
        return f"\n{title}:\n\n"
    parts = f"{title}. {quoted(sentence(comment))}".split("\n\n")
    return "\n" + "\n\n".join(textwrap.fill(part, WIDTH) for part in parts) + "\n\n"


def plain(tail):
    """Returns the text of a comment at the end of a line, or nothing."""
    found = re.search(r"/\* (.*) \*/", tail)
    return found[1] if found else ""


def members(body, rest):
    """Returns the rows of an enum; @rest is what follows its brace."""
    rows, following = [], 0
    for line in body.split("\n"):
        found = re.match(r"\s*(TERN_\w+)(?: = (\w+))?,?", line)
        if found:
            value = found[2] or str(following)
            following = int(value.rstrip("u"), 0) + 1
            rows.append((found[1], value, plain(line) or plain(rest)))
        elif plain(line):
            rows.append(("", "", plain(line)))
    return rows


class Headers:
    """The structs of the headers: {name: [(offset, size, type, field, comment)]} and sizes."""

    def __init__(self, source):
        self.source, self.structs, self.comments = source, {}, {}
        self.sizes = {kind: struct.calcsize(form) for kind, form in FORMATS.items()}
        aligns = dict(self.sizes)
        for above, name, body in re.findall(
                r"^(?:/\*((?:(?!\*/).)*)\*/\n)?struct (\w+) \{\n(.*?)^\};", source, re.M | re.S):
            self.comments[name] = paragraphs(above)
            body = re.sub(r"\tunion \{.*?(\n\t\t__u8 body.*?)\n\t\};", r"\1", body, flags=re.S)
            rows, offset, align = [], 0, 1
            for kind, field, count, comment in re.findall(
                    r"^\t+(?:(?:struct |__)(\w+) (\w+)(?:\[(\w+)\])?;[ \t]*)?"
                    r"(?:/\* (.*?) \*/)?$", body, re.M):
                if not kind:
                    rows.append(("", "", "", "", comment))
                    continue
                own = aligns[kind]
                if offset % own:
                    raise ValueError(f"{name}.{field}: the compiler puts padding before it")
                size = self.sizes[kind] * (self.number(count) if count else 1)
                text = kind + (f"[{self.number(count)}]" if count else "")
                rows.append((offset, size, text, field, comment))
                offset, align = offset + size, max(align, own)
            members = re.sub(r"/\*.*?\*/", "", body, flags=re.S).count(";")
            if offset % align or members != sum(1 for row in rows if row[3]):
                raise ValueError(f"{name}: padding at its end, or a member that cannot be read")
            self.structs[name], self.sizes[name], aligns[name] = rows, offset, align

    def number(self, text):
        """Returns the value of a number, a constant or, of TERN_CC_COUNT, an enum's size."""
        if text.isdigit():
            return int(text)
        value = re.search(rf"\b{text} = (\d+)", self.source)
        if value:
            return int(value[1])
        names = self.source[:self.source.index(f"\t{text},")].rpartition("\nenum ")[2]
        return len(re.findall(r"^\tTERN_\w+,", names, re.M))

    def layouts(self):
        """Returns a table for each struct."""
        text = ""
        for name, rows in self.structs.items():
            text += titled(f"`{name}`, {self.sizes[name]} bytes", self.comments[name])
            text += ROW.format(*"offset bytes type field meaning".split()) + "| --- " * 5 + "|\n"
            for offset, size, kind, field, comment in rows:
                comment = quoted(comment)
                place = (f"0x{offset:02x}", size, kind, f"`{field}`") if field else 4 * [""]
                text += ROW.format(*place, comment)
        return re.sub(" {2,}", " ", text)

    def groups(self):
        """Returns the enums and macros, in order: [(enum, comment, [(name, value, comment)])].

        The comment is the one that ends in the line before; an enum without a name and a group of
        macros must have one. A row without a name is a heading inside an enum. Macros belong
        together up to the next empty line or comment.
        """
        groups, comment, together = [], "", False
        for found in re.finditer(
                r"^enum ?(?P<enum>\w*) \{(?P<body>.*?)\}(?P<rest>;[^\n]*)"
                r"|^#define (?P<macro>TERN_\w+)[ \t]+(?P<value>[^\s/]+( << \w+\))?)(?P<tail>[^\n]*)"
                r"|^/\*(?P<comment>(?:(?!\*/).)*)\*/$|^(?P<other>[^\n]*)$",
                self.source, re.M | re.S):
            if found["macro"]:
                if not together:
                    groups.append(("", comment, []))
                groups[-1][2].append((found["macro"], found["value"], plain(found["tail"])))
            elif found["body"]:
                groups.append((found["enum"], comment, members(found["body"], found["rest"])))
            elif found["comment"]:
                comment = paragraphs(found["comment"])
            else:
                comment = ""
            together = bool(found["macro"])
        groups = [group for group in groups if group[2]]
        for enum, comment, rows in groups:
            if not enum and (not comment or comment.startswith("---")):
                raise ValueError(f"{rows[0][0] or rows[1][0]}: no comment says what this group is")
        return groups

    def numbers(self):
        """Returns a table for each enum and group of macros."""
        text = ""
        for enum, comment, rows in self.groups():
            if enum:
                text += titled(f"enum `{enum}`", comment)
            else:
                text += f"\n{quoted(sentence(comment)).rstrip('.')}:\n\n"
            text += "| name | value | meaning |\n" + "| --- " * 3 + "|\n"
            for name, value, meaning in rows:
                text += f"| {f'`{name}`' if name else ''} | {value} | {quoted(meaning)} |\n"
        return re.sub(" {2,}", " ", text)


def main(arguments):
    headers = Headers("".join(path.read_text(encoding="utf-8") for path in HEADERS))
    page = PAGE.read_text(encoding="utf-8")
    wanted, found, section = page.partition(LAYOUTS)
    wanted += found + section.partition("\n\n`tern_hw_")[0] + "\n" + headers.layouts()
    section = section.partition(NUMBERS)[2]
    wanted += "\n" + NUMBERS + section.partition("\n\nPCI identity")[0] + "\n" + headers.numbers()
    if not section or len(headers.structs) < 50:
        print(f"{PAGE}: no layouts or no numbers, or the headers cannot be read")
        return 1
    if wanted == page:
        return 0
    if arguments != ["--write"]:
        print(f"{PAGE}: a layout or a number is not that of the headers; "
              f"run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
