# SPDX-License-Identifier: GPL-2.0-or-later
"""Each tool that is installed has a man page, and both have the same options (and commands)."""

import argparse
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts"))

from ternlab import cli  # noqa: E402

MAN = TOP / "docs/man"
# A page, and the source that names the options, to getopt_long() or by itself.
TOOLS = {"terntop.8": "userspace/tools/terntop.cc", "terntrace.8": "userspace/tools/terntrace.cc",
         "tern-switch.1": "qemu/wire/main.cc", "tern-sim.1": "qemu/sim/main.cc",
         "tern-card.1": "qemu/vfio/options.cc"}
NAMED = re.compile(r'(?:\{"(?=[^"]*", (?:required|no)_argument)|"--)([a-z-]+)"')
DEVICE = "qemu/pci/device.c"
QEMUS = {"mac", "netdev", "link"}  # not in the device's table
OPTION = re.compile(r"--([a-z][a-z-]*)")


def page(name):
    """Its text, with hyphens for what troff prints as such and without changes of font."""
    text = (MAN / name).read_text(encoding="utf-8")
    return re.sub(r"\\f.", "", text.replace(r"\-", "-").replace('"', ""))


def options_of(parser):
    return {option[2:] for action in parser._actions  # argparse has no other list
            for option in action.option_strings if option.startswith("--")}


def lab_parsers():
    """The lab's parser and those of its commands."""
    parser = cli.build_parser()
    (commands,) = (action for action in parser._actions
                   if isinstance(action, argparse._SubParsersAction))
    return parser, commands.choices


def compare(name, text, known, others=frozenset()):
    """Lines on options that only the tool has, or only its page, which may tell of others."""
    told = set(OPTION.findall(text))
    yield from (f"{name} does not tell of --{option}" for option in sorted(known - told))
    yield from (f"{name} tells of --{option}, which does not exist"
                for option in sorted(told - known - others - {"help"}))


def check_lab():
    parser, commands = lab_parsers()
    before, _, rest = page("tern-lab.1").partition(".SH COMMANDS")
    section, _, after = rest.partition(".SH ENVIRONMENT")
    yield from compare("tern-lab.1, outside of COMMANDS,", before + after,
                       options_of(parser) - {"help"})
    told = {}  # what the page tells of a command, which may have several entries
    for entry in section.split("\n.TP\n")[1:]:
        command = re.match(r"\.[A-Z]+ ([a-z]+)", entry)[1]
        told[command] = told.get(command, "") + entry
    if "options of\n.B up\nthat are for each host" in told["add"]:
        of_each_host = options_of(commands["add"]) & options_of(commands["up"])
        told["add"] += "".join(f" --{option}" for option in of_each_host)
    for command in sorted(commands):
        if command in told:
            yield from compare(f"tern-lab.1, {command},", told[command],
                               options_of(commands[command]) - {"help"})
        elif not re.search(rf"(?m)^\.[A-Z]+ {command}\b", section):
            yield f"tern-lab.1 does not tell of the command {command}"


def check_tools():
    options = {name: set(NAMED.findall((TOP / source).read_text(encoding="utf-8"))) - {"help"}
               for name, source in TOOLS.items()}
    for name, known in options.items():
        if not known:
            yield f"{TOOLS[name]}: its options cannot be read"
        yield from compare(name, page(name), known, set().union(*options.values()))


def check_card():
    """Of the card: each property of its own."""
    source = (TOP / DEVICE).read_text(encoding="utf-8")
    known = set(re.findall(r'^\s+DEFINE_PROP_\w+\("([\w-]+)"', source, re.MULTILINE))
    text = page("qemu-system-x86_64-tern.1")
    section = text.partition(".SH PROPERTIES")[2].partition("\n.SH")[0]
    told = set(re.findall(r"^\.TP\n\.BI? ([a-z][\w-]*)", section, re.MULTILINE))
    if not known:
        yield f"{DEVICE}: its properties cannot be read"
    for name in sorted((known | QEMUS) ^ told):
        yield f"qemu-system-x86_64-tern.1 or {DEVICE} alone has the property {name}"


def main():
    errors = [*check_lab(), *check_tools(), *check_card()]
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
