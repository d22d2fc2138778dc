# SPDX-License-Identifier: GPL-2.0-or-later
"""The layouts in docs/hardware.md, and its bytes of a WRITE, are those of the header.

Both are made of include/tern/tern_hw.h; --write puts them into the page.
"""

import pathlib
import re
import struct
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/hardware.md"
HEADER = TOP / "include/tern/tern_hw.h"
FORMATS = {"u8": "<B", "le16": "<H", "le32": "<I", "le64": "<Q", "be16": ">H", "be32": ">I"}
ROW = "| {} | {} | {} | {} | {} |\n"
LAYOUTS = "## 12. Layouts\n"
EXAMPLE = "The bytes of that WRITE and of its CQE:\n"

# The example in the page: what it says in words, field by field. Other fields are zero.
WRITE = [
    ("tern_hw_ctrl_seg", {"opcode": 0x03, "flags": 0x01, "segs": 3}),
    ("tern_hw_raddr_seg", {"addr": 0x7F0012345000, "rkey": 0x00000407}),
    ("tern_hw_data_seg", {"addr": 0x558800A01040, "length": 4096, "lkey": 0x00000203}),
    ("tern_hw_cqe", {"byte_len": 4096, "timestamp": 1000000000, "qpn": 0x11, "opcode": 0x03,
                     "phase": 1}),
]


class Header:
    """The structs of the header: {name: [(offset, size, type, field, comment)]} and sizes."""

    def __init__(self, source):
        self.source, self.structs = source, {}
        self.sizes = {kind: struct.calcsize(form) for kind, form in FORMATS.items()}
        aligns = dict(self.sizes)
        for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", source, re.M | re.S):
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
            text += f"\n`{name}`, {self.sizes[name]} bytes:\n\n"
            text += ROW.format(*"offset bytes type field meaning".split()) + "| --- " * 5 + "|\n"
            for offset, size, kind, field, comment in rows:
                comment = re.sub(r"\b(TERN_\w+\*?)", r"`\1`", comment)
                place = (f"0x{offset:02x}", size, kind, f"`{field}`") if field else 4 * [""]
                text += ROW.format(*place, comment)
        return re.sub(" {2,}", " ", text)

    def pack(self, name, values):
        """Returns the bytes of a struct whose fields are numbers."""
        image = bytearray(self.sizes[name])
        fields = {field: (offset, kind) for offset, _, kind, field, _ in self.structs[name]}
        for field, value in values.items():
            struct.pack_into(FORMATS[fields[field][1]], image, fields[field][0], value)
        return image

    def example(self):
        """Returns a hex dump of WRITE, an indented block."""
        text = "\n"
        for name, values in WRITE:
            image = self.pack(name, values)
            for at in range(0, len(image), 16):
                text += f"    {name[8:]:10}{at:02x}  {image[at:at + 16].hex(' ', 4)}\n"
        return text


def main(arguments):
    header = Header(HEADER.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    wanted = re.sub(f"({EXAMPLE})(\n|    .*\n)*", lambda found: found[1] + header.example() + "\n",
                    page)
    wanted, found, section = wanted.partition(LAYOUTS)
    wanted += found + section.partition("\n\n`tern_hw_")[0] + "\n" + header.layouts()
    if EXAMPLE not in page or not found or len(header.structs) < 50:
        print(f"{PAGE}: no layouts or no example, or {HEADER} cannot be read")
        return 1
    if wanted == page:
        return 0
    if arguments != ["--write"]:
        print(f"{PAGE}: a layout or the example is not that of {HEADER}; "
              f"run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
