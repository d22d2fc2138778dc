# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of congestion control's parameters in docs/fabric.md is that of the code.

Their order, names and defaults are in parameters.h, their ranges in parameters.cc, their numbers in
the header.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/fabric.md"
HEADER = TOP / "include/tern/tern_hw_admin.h"
CODE = TOP / "qemu/rnic/congestion"


def value(text):
    """Returns the number that the code means by @text."""
    named = {"INT32_MAX": 2**31 - 1, "Dcqcn": 1, "Timely": 2}
    name = re.search(r"(\w+)\)?$", text)[1]
    return named[name] if name in named else int(text.replace("'", ""))


def of_code():
    """Returns {name: (least, most, default)}, in the order of the struct."""
    fields = (CODE / "parameters.h").read_text(encoding="utf-8")
    defaults = re.findall(r"^\tuint32_t (\w+) = ([^;]+);", fields, re.M)
    source = (CODE / "parameters.cc").read_text(encoding="utf-8")
    for name, number in re.findall(r"^constexpr uint32_t (k\w+) = ([\d']+);", source, re.M):
        source = re.sub(rf"\b{name}\b", number, source)
    ranges = {name: (value(least), value(most)) for name, least, most in re.findall(
        r"\{&P::(\w+), ([\d']+), ([^}]+)\}", source)}
    if list(ranges) != [name for name, _ in defaults]:
        raise ValueError("parameters.cc and parameters.h have different parameters")
    return {name: (*ranges[name], value(default)) for name, default in defaults}


def of_page():
    """Returns the same of the page."""
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([\d,]+) to ([\d,]+) \| ([\d,]+) \|",
                      PAGE.read_text(encoding="utf-8"), re.M)
    return {name: tuple(int(number.replace(",", "")) for number in numbers)
            for name, *numbers in rows}


def main():
    code, page = of_code(), of_page()
    numbers = [name.lower() for name in re.findall(
        r"^\tTERN_CC_((?:RP|NP|PFC)_\w+),", HEADER.read_text(encoding="utf-8"), re.M)]
    faults = []
    if numbers != list(code):
        faults.append(f"{HEADER}: enum tern_hw_congestion_param has another order than the code")
    if list(page) != list(code):
        faults.append(f"{PAGE}: the parameters or their order are not those of the code")
    for name in code.keys() & page.keys():
        if code[name] != page[name]:
            faults.append(f"{PAGE}: {name} is {page[name]}, in the code {code[name]}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults or not code else 0


if __name__ == "__main__":
    sys.exit(main())
