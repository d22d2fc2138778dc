# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the wire: rules from the command line or a file for the switch, and how they are shown.

The switch judges the rules (docs/wire.md); here names of hosts become their addresses.
"""

import json
import pathlib
import re
import tomllib

from .errors import LabError
from .wire import PERCENTAGES, Refused

ACTIONS = ("drop", "corrupt", "mark", "duplicate", "delay", "reorder", "count")
HOST_KEYS = ("from", "to", "host")
ADDRESS = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
# What the switch says about a wrong rule: its position, the key and the reason.
REFUSAL = re.compile(r"rule (\d+): ([^:]*): (.*)")


class BadRule(LabError):
    """What is wrong with a rule, and with which key of it."""
    def __init__(self, key, reason):
        super().__init__(f"{key}: {reason}")
        self.key, self.reason = key, reason


def _addresses(lab, value):
    """Ethernet addresses for hosts and addresses, separated by commas."""
    found = []
    for name in value.split(","):
        found += [name] if ADDRESS.fullmatch(name) else lab.host(name).macs()
    return ",".join(found)


def _rule(lab, action, conditions):
    """The rule as the switch reads it. Conditions are pairs of key and text; that of a word that
    stands alone is None."""
    words = [_word("action", action)]
    for key, value in conditions:
        if key in HOST_KEYS and value:
            try:
                value = _addresses(lab, value)
            except LabError as error:
                raise BadRule(key, error) from None
        words.append(_word(key, key if value is None else f"{key}={value}"))
    return " ".join(words)


def _word(key, word):
    """The word, if the switch reads it as one."""
    if not re.fullmatch(r"[^\s;]+", word):
        raise BadRule(key, f"{json.dumps(word)} has a blank or a semicolon")
    return word


def add(lab, action, match, others):
    """Adds a rule. Match: conditions in a string, as "opcode=WRITE psn=+4"; others: more of them,
    as pairs."""
    parts = [word.partition("=") for word in match.split()]
    conditions = [(key, value if equals else None) for key, equals, value in parts]
    try:
        lab.wire.add_rules([_rule(lab, action, conditions + others)])
    except Refused as error:
        found = REFUSAL.fullmatch(error.reason)
        raise BadRule(found[2], found[3]) if found else error


# --- from a file

def _text(key, value):
    """A value of TOML as the switch reads it; None for what stands alone."""
    if key == "once" and value is True:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float, str)):
        return str(value)
    raise BadRule(key, "needs a string or a number")


def _rule_of_table(lab, table):
    if not isinstance(table, dict):
        raise BadRule("rule", "needs a table")
    if not isinstance(table.get("action"), str):
        raise BadRule("action", "is missing, or no string; there are " + ", ".join(ACTIONS))
    conditions = [(key, _text(key, value)) for key, value in table.items()
                  if key != "action" and (key, value) != ("once", False)]
    return _rule(lab, table["action"], conditions)


def _line_of(text, number, key):
    """The line of that key in the number-th [[rule]], else the line of the latter, else 1."""
    seen, found = 0, 1
    for at, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[\s*rule\s*\]\]", line)
        seen += header is not None
        if header and seen == number:
            found = at
        elif seen == number and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return at
    return found


def add_file(lab, path):
    """Adds the rules of a TOML file, all or none. The file may be a topology, too."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: {error}") from None
    for key in tables:
        if key != "rule" and "link" not in tables:
            raise LabError(f"{path}: {key}: there is no such key; rules are tables [[rule]]")
    rules = tables.get("rule", [])
    if not isinstance(rules, list) or not rules:
        raise LabError(f"{path}: rule: there is no table [[rule]]")

    def refuse(number, key, reason):
        raise LabError(f"{path}:{_line_of(text, number, key)}: {key}: {reason}")

    lines = []
    for number, table in enumerate(rules, 1):
        try:
            lines.append(_rule_of_table(lab, table))
        except BadRule as error:
            refuse(number, error.key, error.reason)
    try:
        lab.wire.add_rules(lines)
    except Refused as error:
        found = REFUSAL.fullmatch(error.reason)
        if not found:
            raise LabError(f"{path}: {error.reason}") from None
        refuse(int(found[1]), found[2], found[3])


# --- shown

def _with_names(lab, text):
    """The text with names of hosts in place of their addresses."""
    for host in lab.hosts:
        macs = host.macs()
        for found in (",".join(macs), *macs):
            text = text.replace(found, host.name)
    return text


def state_of(lab):
    """Returns which faults are set, as the switch tells it, with names of hosts in the rules."""
    state = json.loads(lab.wire.tell("faults"))
    for rule in state["rules"]:
        rule["text"] = _with_names(lab, rule["text"])
    return state


def text(state):
    """Lines that tell which faults are set."""
    lines = [f"{name} {state[name]:g} %" for name in PERCENTAGES if state[name]]
    for rule in state["rules"]:
        spent = ", will not act again" if rule["spent"] else ""
        lines.append(f"rule {rule['rule']}: {rule['text']}: "
                     f"matched {rule['matched']}, hit {rule['hits']}{spent}")
    return lines or ["no faults are set"]


def log(lab):
    """The log of faults, one in a line of JSON."""
    path = lab.fault_log
    return _with_names(lab, path.read_text(encoding="utf-8")) if path.exists() else ""
