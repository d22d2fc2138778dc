# SPDX-License-Identifier: GPL-2.0-or-later
"""A live screen of the lab, by what the cards say (query.py). The guests are not asked."""

import curses
import sys
import time

from .errors import LabError
from .paths import COMMAND
from .query import cards_of
from .why import Why

INTERVAL = 1.0
# Counters that only grow when something is wrong.
ERRORS = ("bad", "drop", "error", "exceeded", "fault", "malformed", "nak", "no_buffer", "no_qp",
          "out_of_sequence", "overruns", "retransmits", "revoked", "timeouts")
BULK = ("frames", "bytes", "packets")


def is_error(counter):
    return any(part in counter for part in ERRORS)


def sample(lab):
    """(time, cards as cards_of() has them)."""
    return time.monotonic(), cards_of(lab)


def _counters(card):
    """Of all engines together."""
    total = {}
    for engine in card["engines"]:
        for counter, value in engine["counters"].items():
            total[counter] = total.get(counter, 0) + value
    return total


class Screen:
    """The lines of the screen: what changed since the sample before, and since the first."""

    def __init__(self, name, first):
        self._name = name
        self._first = self._before = first

    def lines(self, now):
        """The next sample; the lines that it makes."""
        time_before, before = self._before
        self._before = now
        seconds = max(now[0] - time_before, 1e-6)
        hosts, moving, errors = [], [], []
        for name, card in now[1].items():
            if isinstance(card, Exception):
                hosts.append(f"{name:12} {card}")
                continue
            count = _counters(card)
            rates = self._growth(count, before[name])
            hosts.append(self._host(name, card, rates, seconds))
            moving += [f"  {name:12} {counter:24} {grown / seconds:12.0f}"
                       for counter, grown in rates.items()
                       if grown and not is_error(counter) and not counter.endswith(BULK)]
            grown = self._growth(count, self._first[1][name])
            errors += [f"  {name:12} {counter:24} {value:12}" for counter, value in grown.items()
                       if value and is_error(counter)]
        waits = [f"  {reason}" for name, card in now[1].items()
                 if not isinstance(card, Exception) for reason in Why(now[1]).of_host(name)]
        return [
            f"lab \"{self._name}\", q quits", "",
            "host         card     link  QPs   sent Mb/s  received Mb/s  sent frames/s  received",
            *hosts,
            "", "counters that move, per second", *moving,
            "", "errors since the start of this screen", *errors,
            "", "what waits", *waits]

    @staticmethod
    def _growth(count, before):
        if isinstance(before, Exception):
            return dict.fromkeys(count, 0)
        before = _counters(before)
        # A card that was reset begins again at 0.
        return {counter: value - before.get(counter, 0) if value >= before.get(counter, 0)
                else value for counter, value in count.items()}

    @staticmethod
    def _host(name, card, rates, seconds):
        engines = card["engines"]
        state = ("paused" if not card["running"] else
                 "stopped" if any(engine["fatal"] != "NONE" for engine in engines) else
                 "on" if all(engine["enabled"] for engine in engines) else "off")
        link = "up" if all(engine["link"] for engine in engines) else "down"
        qps = sum(len(engine["qps"]) + engine.get("qps_not_listed", 0) for engine in engines)
        sent, received = (rates[f"{way}_bytes"] * 8e-6 / seconds for way in ("tx", "rx"))
        frames = [rates[f"{way}_frames"] / seconds for way in ("tx", "rx")]
        return (f"{name:12} {state:8} {link:5} {qps:4} {sent:11.1f} {received:14.1f} "
                f"{frames[0]:14.0f} {frames[1]:9.0f}")


def _loop(window, lab):
    curses.curs_set(0)
    window.timeout(int(INTERVAL * 1000))
    screen = Screen(lab.name, sample(lab))
    key = 0
    while key != ord("q"):
        height, width = window.getmaxyx()
        window.erase()
        for row, line in enumerate(screen.lines(sample(lab))[:height]):
            window.insnstr(row, 0, line, width)
        window.refresh()
        key = window.getch()


def watch(lab):
    """Until q."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise LabError(f"watch needs a terminal; `{COMMAND} query` does not")
    try:
        curses.wrapper(_loop, lab)
    except curses.error as error:
        raise LabError(f"the terminal cannot show it: {error}") from None
