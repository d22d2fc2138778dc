# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host's card says of itself: QEMU's command query-tern. The guest is not asked."""

from .cards import card_id, tell
from .errors import LabError

QPS = ("number", "type", "state", "dest_qpn", "waits_for", "una", "next_psn", "requests",
       "retries_left", "expected_psn", "sq", "rq", "failure")
TABLES = {
    "eqs": ("number", "vector", "entries", "pi", "ci", "armed", "without_room"),
    "cqs": ("number", "eqn", "entries", "pi", "ci", "armed", "failed"),
    "srqs": ("number", "entries", "posted", "limit", "users", "failed"),
    "qps": QPS, "wqs": QPS,
}


def label(host, number):
    """A card's name: that of the host, if it is its first."""
    return f"{host.name} card {number}" if number else host.name


def card_of(host, number=0, qpn=None):
    """The state of a card of the host, of its QPs only qpn."""
    arguments = {} if qpn is None else {"qpn": qpn}
    for card in tell(host, "query-tern", **arguments):
        if card["path"].endswith(f"/{card_id(number)}"):
            if qpn is not None and not find_qp(card, qpn):
                raise LabError(f"{label(host, number)} has no QP {qpn:#x}")
            return card
    raise LabError(f"{host.name} has no Tern card {number}")


def cards_of(lab):
    """The cards of all hosts by label(); an error in place of one that does not answer."""
    def ask(place):
        try:
            return card_of(*place)
        except LabError as error:
            return error

    places = [(host, number) for host in lab.hosts for number in range(host.options.cards)]
    return dict(zip((label(*place) for place in places), lab.each(ask, places)))


def find_qp(card, qpn):
    """The QP of that number, or None."""
    return next((qp for engine in card["engines"] for qp in engine["qps"]
                 if qp["number"] == qpn), None)


def _cell(row, column):
    value = row.get(column, row.get("requester", {}).get(column))
    if value is None:
        value = row.get("responder", {}).get(column, "")
    if column == "sq":
        return f"{value['pi']:#x}-{value['ci']:#x}"
    if column == "rq":
        return f"{value['posted']} of {value['entries']}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:#x}" if column in ("number", "dest_qpn") and value else str(value)


def _table(name, rows, columns):
    cells = [[name[:-1].upper() if column == "number" else column for column in columns]]
    cells += [[_cell(row, column) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
            for row in cells]


def text(name, card):
    """A card's state for people: lines."""
    lines = []
    for engine in card["engines"]:
        commands = engine["commands"]
        lines.append(
            f"{name} engine {engine['engine']}, {engine['mac']}: "
            f"{'enabled' if engine['enabled'] else 'not enabled'}, fatal {engine['fatal']}, "
            f"link {'up' if engine['link'] else 'down'}, MSI-X {card['msix']}, "
            f"commands {commands['pi']} posted, {commands['ci']} done"
            + (f", {commands['running']} under way" if commands["running"] else ""))
        moved = [f"{counter} {value}" for counter, value in engine["counters"].items() if value]
        lines.append("counters: " + (", ".join(moved) or "all 0"))
        for table, columns in TABLES.items():
            if engine[table]:
                lines += ["", *_table(table, engine[table], columns)]
            if f"{table}_not_listed" in engine:
                lines.append(f"and {engine[f'{table}_not_listed']} more")
    return lines
