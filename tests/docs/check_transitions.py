# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of QP transitions in docs/hardware.md is that of the card.

It is made of the rules in qemu/rnic/transport/qp_attr.cc; --write puts it into the page.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/hardware.md"
RULES = TOP / "qemu/rnic/transport/qp_attr.cc"
HEAD = "| from | to | types | required | optional |\n| --- | --- | --- | --- | --- |\n"
TYPES = ("RC", "XRC_INI", "XRC_TGT", "UC", "UD", "GSI", "RAW", "ETH")


class Constants(dict):
    """Sets by the names of the source: TERN_QP_x is an attribute, TERN_QPT_x a type."""

    def evaluate(self, expression):
        """A set: names joined by "|", or "a & ~b"."""
        if "&" in expression:
            all_of, without = expression.split("& ~")
            return self.evaluate(all_of) - self.evaluate(without)
        found = set()
        for name in (word.strip() for word in expression.split("|")):
            if name in self:
                found |= self[name]
            elif name != "0":
                found.add(re.sub("^TERN_QP_", "", name))
        return found


def read_rules(source):
    """[(from, to, types, required, optional)]"""
    names = Constants()
    states = dict(re.findall(r"constexpr auto (k\w+) = TERN_QPS_(\w+);", source))
    for name, bit in re.findall(r"constexpr Types (k\w+) = 1u << TERN_QPT_(\w+);", source):
        names[name] = {bit}
    for name, value in re.findall(r"constexpr (?:Types|uint32_t) (k\w+) = ([^;<]+);", source):
        names[name] = names.evaluate(" ".join(value.replace("/*", ";").split(";")[0].split()))
    table = source.partition("constexpr Rule kRules[] = {")[2].partition("\n};")[0]
    table = re.sub(r"/\*.*?\*/", "", table, flags=re.DOTALL)
    for body in re.findall(r"\{([^{}]+)\}", table):
        before, after, *sets = (" ".join(field.split()) for field in body.split(","))
        yield states[before], states[after], *map(names.evaluate, sets)


def table_of(rules):
    """Markdown; types with the same attributes share a row."""
    steps = {}
    for before, after, types, required, optional in rules:
        for kind in types:
            sets = steps.setdefault((before, after), {}).setdefault(kind, (set(), set()))
            sets[0].update(required)
            sets[1].update(optional)
    rows = ""
    for (before, after), kinds in steps.items():
        shared = {}
        for kind in filter(kinds.get, TYPES):
            sets = tuple(" ".join(sorted(part)) for part in kinds[kind])
            shared.setdefault(sets, []).append(kind)
        for (required, optional), who in shared.items():
            rows += f"| {before} | {after} | {', '.join(who)} | {required} | {optional} |\n"
    return HEAD + rows


def main(arguments):
    table = table_of(read_rules(RULES.read_text(encoding="utf-8")))
    page = PAGE.read_text(encoding="utf-8")
    before, found, rest = page.partition(HEAD)
    rows = re.match(r"(\|.*\n)*", rest)[0]
    if not found or table.count("\n") < 20:
        print(f"{PAGE}: no table of transitions, or {RULES} cannot be read")
        return 1
    if found + rows == table:
        return 0
    if arguments != ["--write"]:
        print(f"{PAGE}: the table of transitions is not that of {RULES}; "
              f"run {pathlib.Path(__file__).relative_to(TOP)} --write")
        return 1
    PAGE.write_text(before + table + rest[len(rows):], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
