# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the wire: rules from the command line or a file for the switch, and how they are shown.

The switch judges the rules (docs/wire.md); here names of hosts become their addresses.
"""

import fnmatch
import json
import re

from .errors import LabError
from .wire import PERCENTAGES, Refused, ask_switch

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
        found += [name] if ADDRESS.fullmatch(name) else _macs(lab, name)
    return ",".join(found)


def _macs(lab, name):
    """The addresses of a host, or of the cards of a topology whose names match."""
    return [mac for host in lab.hosts for mac, (card, _) in zip(host.macs(), host.options.edges)
            if fnmatch.fnmatchcase(card, name)] or lab.host(name).macs()


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


def add_file(lab, path):
    """Adds the rules of a TOML file, all or none. The file may be a topology, too."""
    rules = ask_switch("--describe-rules", path)["rules"]

    def refuse(rule, key, reason):
        line = next((word["line"] for word in rule["words"] if word["key"] == key), rule["line"])
        raise LabError(f"{path}:{line}: rule.{key}: {reason}")

    lines = []
    for rule in rules:
        action, *conditions = [(word["key"], word.get("value")) for word in rule["words"]]
        try:
            lines.append(_rule(lab, action[1], conditions))
        except BadRule as error:
            refuse(rule, error.key, error.reason)
    try:
        lab.wire.add_rules(lines)
    except Refused as error:
        found = REFUSAL.fullmatch(error.reason)
        if not found:
            raise LabError(f"{path}: {error.reason}") from None
        refuse(rules[int(found[1]) - 1], found[2], found[3])


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
