# SPDX-License-Identifier: GPL-2.0-or-later
"""A sequence diagram of the RoCE packets in a capture: text for a terminal, or SVG."""

import dataclasses
import html
import re
import struct

from . import roce
from .errors import LabError

PSNS = 1 << 24
SERVICES = {0x00: "", 0x20: "UC ", 0x60: "UD ", 0xa0: "XRC "}
CNP = 0x81
SEND, WRITE = ("first", "middle", "last", "last imm", "only", "only imm"), \
              ("first", "middle", "last", "last imm", "only", "only imm")
OPERATIONS = {
    **{0x00 + at: f"SEND {part}" for at, part in enumerate(SEND)},
    **{0x06 + at: f"WRITE {part}" for at, part in enumerate(WRITE)},
    0x0c: "READ request", 0x0d: "READ response first", 0x0e: "READ response middle",
    0x0f: "READ response last", 0x10: "READ response only", 0x11: "ACK", 0x12: "ATOMIC response",
    0x13: "COMPARE_SWAP", 0x14: "FETCH_ADD", 0x16: "SEND last inv", 0x17: "SEND only inv",
    0x1c: "FLUSH", 0x1d: "ATOMIC WRITE",
}
# Of RC, with opcodes of Tern's own (docs/hardware.md, section 10).
MASKED = {0xd3: "MASKED COMPARE_SWAP", 0xd4: "MASKED FETCH_ADD"}
RESPONSES = range(0x0d, 0x13)
WITH_RETH = (0x06, 0x0a, 0x0b, 0x0c, 0x1d)
ACK = 0x11
# AETH's kinds, NAK codes, credits and RNR timers: IBA vol. 1, 9.3.1 and tables 45 and 46.
NAKS = ("PSN sequence error", "invalid request", "remote access error",
        "remote operational error", "invalid RD request")
RNR_TIMERS = (65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
              1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152)
NO_CREDITS = 31
MOST_HOSTS = 6
# The switch's comment on a packet, and what a label says about it.
FAULT = re.compile(r"fault: (\w+)(?: (\d+)(?:us)?)?, ")
FAULTS = {"drop": "dropped", "corrupt": "corrupted", "mark": "marked CE",
          "duplicate": "duplicated", "delay": "delayed by {:g} ms",
          "reorder": "behind the next {:g}"}
RUN = 4  # middle packets from which on one line stands for all


@dataclasses.dataclass
class Step:
    """An arrow: one packet, or several in a row."""
    time: float
    source: str
    target: str
    qpn: int
    kind: str    # request, response, nak, again, cnp
    name: str
    psn: int
    more: str
    faults: tuple = ()  # what the switch did to it, as labels say
    packets: int = 1

    @property
    def label(self):
        if self.kind == "cnp":
            return ", ".join((f"CNP to QP {self.qpn:#x}", *self.faults))
        psns = f"PSN {self.psn}"
        if self.packets > 1:
            psns += f" to {(self.psn + self.packets - 1) % PSNS}, {self.packets} packets"
        again = ", again" if self.kind == "again" else ""
        named = ", ".join(filter(None, (f"{self.name} {psns}", self.more))) + again
        return ", ".join((named, *self.faults))

    @property
    def style(self):
        """What it looks like: its kind, unless it does not arrive."""
        return "dropped" if FAULTS["drop"] in self.faults else self.kind


def distance(psn, other):
    """Signed, of 24-bit PSNs."""
    return (psn - other + PSNS // 2) % PSNS - PSNS // 2


def read(path):
    """The RoCE packets of a capture, of which there is one at least."""
    found = []
    try:
        for record in roce.records(path):
            try:
                found.append(roce.decode(*record))
            except (IndexError, struct.error):
                continue  # too short for what its headers announce
    except struct.error:
        raise LabError(f"{path} has a block that is too short") from None
    except (OSError, ValueError) as error:
        raise LabError(str(error)) from None
    found = [packet for packet in found if packet]
    if not found:
        raise LabError(f"{path} has no RoCE packet")
    return found


def _is_response(packet):
    return packet.opcode & 0x1f in RESPONSES


def _way(packet):
    return packet.source, packet.target, packet.qpn


def of_qp(packets, qpn):
    """Those to and from QP qpn. A packet names its destination alone; the QP at the other end is
    the one whose packets answer, or are answered by, what is sent to this one."""
    ways = {}
    for packet in packets:
        requests, responses = ways.setdefault(_way(packet), (set(), set()))
        (responses if _is_response(packet) else requests).add(packet.psn)
    chosen = {way for way in ways if way[2] == qpn}
    if not chosen:
        there = sorted({way[2] for way in ways})
        listed = ", ".join(f"{number:#x}" for number in there[:10])
        raise LabError(f"no packet of QP {qpn:#x}; there are {listed}"
                       + (" and more" if len(there) > 10 else ""))
    for source, target, number in list(chosen):
        requests, responses = ways[source, target, number]
        common = {way: len(requests & back[1]) + len(responses & back[0])
                  for way, back in ways.items() if way[:2] == (target, source)}
        best = max(common, key=common.get, default=None)
        if best and common[best]:
            chosen.add(best)
    return [packet for packet in packets if _way(packet) in chosen]


def _syndrome(packet):
    """(kind, name, detail) of an acknowledgement."""
    value = packet.body[0] & 31
    if packet.body[0] >> 5 == 1:
        return "nak", "RNR NAK", f"wait {RNR_TIMERS[value] / 100:g} ms"
    if packet.body[0] >> 5 == 3:
        return "nak", "NAK", NAKS[value] if value < len(NAKS) else f"code {value}"
    credits = "" if value == NO_CREDITS else f", credits code {value}"
    return "response", "ACK", f"MSN {int.from_bytes(packet.body[1:4], 'big')}{credits}"


def _faults(comments):
    """What the switch did to a packet, once each: copies of it may have had the same fault."""
    found = [match.groups() for match in map(FAULT.match, comments) if match]
    return tuple(dict.fromkeys(
        FAULTS[name].format(int(amount or 0) / (1000 if name == "delay" else 1))
        for name, amount in found if name in FAULTS))


def _step(packet, begun, ends):
    """ends: the highest PSN of the requests of each way so far."""
    operation = packet.opcode & 0x1f
    service = 0 if packet.opcode in MASKED else packet.opcode & 0xe0
    name = MASKED.get(packet.opcode) or SERVICES.get(service, "") + OPERATIONS.get(
        operation, f"opcode {packet.opcode:#04x}")
    extra = 4 if service == 0xa0 and not _is_response(packet) else 0
    kind, more = "response" if _is_response(packet) else "request", ""
    if packet.opcode == CNP:
        kind = "cnp"
    elif operation == ACK and packet.body:
        kind, name, more = _syndrome(packet)
    elif kind == "request":
        last = ends.get(_way(packet))
        if service in (0x00, 0xa0) and last is not None \
                and distance(packet.psn, last) <= 0:
            kind = "again"
        else:
            ends[_way(packet)] = packet.psn
        if operation in WITH_RETH and len(packet.body) >= 16 + extra:
            more = f"{int.from_bytes(packet.body[extra + 12:extra + 16], 'big')} B"
        elif operation <= 5:
            more = f"{max(0, len(packet.body) - extra - packet.pad)} B in packet"
    return Step(packet.time - begun, packet.source, packet.target, packet.qpn, kind, name,
                packet.psn, more, _faults(packet.comments))


def _joins(step, before):
    return ("middle" in step.name and not step.faults and not before.faults
            and (step.kind, step.name, step.source, step.qpn) ==
            (before.kind, before.name, before.source, before.qpn)
            and distance(step.psn, before.psn) == before.packets)


def steps(packets):
    """The arrows; a run of middle packets is one."""
    ends, joined, found = {}, [], []
    for packet in packets:
        found.append(_step(packet, packets[0].time, ends))
    at = 0
    while at < len(found):
        run = dataclasses.replace(found[at])
        while at + run.packets < len(found) and _joins(found[at + run.packets], run):
            run.packets += 1
        if run.packets < RUN:
            joined += found[at:at + run.packets]
        else:
            joined.append(dataclasses.replace(run, more=""))
        at += run.packets
    return joined


def hosts(arrows):
    """Addresses in the order in which requests have them: a capture may begin with an answer."""
    requests_first = sorted(arrows, key=lambda step: step.kind not in ("request", "again"))
    found = list(dict.fromkeys(end for step in requests_first
                               for end in (step.source, step.target)))
    if len(found) > MOST_HOSTS:
        raise LabError(f"packets of {len(found)} addresses; choose a QP with --qp")
    return found


# --- as text

MARGIN = 14  # of the times
HEADS = {"again": "=", "nak": "x", "cnp": "~"}


def _text_shaft(step, room, to_right):
    """An arrow that takes as many characters."""
    shaft = HEADS.get(step.kind, "-")
    if step.style == "dropped":  # ends on its way
        arrow = f"{shaft * 2} {step.label} {shaft * 2}"[:room - 1]
        return f"{arrow}X".ljust(room) if to_right else f"X{arrow}".rjust(room)
    body = f" {step.label} "[:room - 4].center(room - 2, shaft)
    return f"{shaft}{body}>" if to_right else f"<{body}{shaft}"


def _text_arrow(step, names, width):
    left, right = sorted((names.index(step.source), names.index(step.target)))
    room = (right - left) * width - 1
    if left == right:  # a packet to the own host is an arrow that comes back
        arrow = f"<{HEADS.get(step.kind, '-') * 2} {step.label}"
    else:
        arrow = _text_shaft(step, room, step.source == names[left])
    line = list("|".ljust(width) * (len(names) - 1) + "|")
    start = left * width + 1
    line[start:start + len(arrow)] = arrow
    return "".join(line).rstrip()


def text(arrows):
    """Lines for a terminal."""
    names = hosts(arrows)
    width = max(24, *(len(step.label) + (20 if step.style == "dropped" else 8)
                      for step in arrows), *map(len, names))
    heading = "".join(name.ljust(width) for name in names)
    lines = [" " * MARGIN + heading.rstrip()]
    for step in arrows:
        lines.append(f"{step.time * 1e3:10.3f} ms " + _text_arrow(step, names, width))
    return lines


# --- as SVG

COLUMN, ROW, TOP, LEFT, LEGEND_COLUMN = 460, 24, 60, 110, 190
STYLE = """
text { font: 12px monospace; fill: #222 } .axis { stroke: #bbb }
line.request { stroke: #1f5fa8 } line.response { stroke: #2e7d32 }
line.again { stroke: #d97706; stroke-dasharray: 6 3 } line.nak { stroke: #c62828 }
line.cnp { stroke: #7b1fa2; stroke-dasharray: 2 3 } line.dropped { stroke: #c62828 }
text.again { fill: #b45309 } text.nak { fill: #c62828 } text.cnp { fill: #7b1fa2 }
text.dropped { fill: #c62828 } path.cross { stroke: #c62828; stroke-width: 2 }
"""
LEGEND = (("request", "request"), ("response", "response"), ("again", "sent again"),
          ("nak", "NAK"), ("cnp", "congestion notification"),
          ("dropped", "dropped by the switch"))


def _svg_text(x, y, words, style="", anchor="middle"):
    return (f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{style}">'
            f"{html.escape(words)}</text>")


def _svg_arrow(step, names, y):
    start, end = (LEFT + names.index(name) * COLUMN for name in (step.source, step.target))
    if start == end:
        end = start + 40
    middle, head = (start + end) / 2, "head"
    if step.style == "dropped":
        end, head = middle, "cross"
    return [f'<line class="{step.style}" x1="{start}" y1="{y}" x2="{end:g}" y2="{y + 6}" '
            f'marker-end="url(#{head})"/>',
            _svg_text(middle, y - 3, step.label, step.style)]


def svg(arrows):
    """A picture of the same."""
    names = hosts(arrows)
    used = [entry for entry in LEGEND if entry[0] in {step.style for step in arrows}]
    width = LEFT + max((len(names) - 1) * COLUMN + 110, len(used) * LEGEND_COLUMN)
    bottom = TOP + len(arrows) * ROW
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 50}">',
           f"<style>{STYLE}</style>",
           '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="9" refY="4" '
           'orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="#444"/></marker>'
           '<marker id="cross" markerWidth="10" markerHeight="10" refX="5" refY="5">'
           '<path class="cross" d="M1,1 L9,9 M1,9 L9,1"/></marker></defs>',
           f'<rect width="{width}" height="{bottom + 50}" fill="white"/>']
    for column, name in enumerate(names):
        x = LEFT + column * COLUMN
        out += [_svg_text(x, 24, name),
                f'<line class="axis" x1="{x}" y1="34" x2="{x}" y2="{bottom}"/>']
    for row, step in enumerate(arrows):
        y = TOP + row * ROW
        out += [_svg_text(8, y + 4, f"{step.time * 1e3:.3f} ms", anchor="start"),
                *_svg_arrow(step, names, y)]
    for number, (kind, words) in enumerate(used):
        x = LEFT + number * LEGEND_COLUMN
        out += [f'<line class="{kind}" x1="{x}" y1="{bottom + 26}" x2="{x + 30}" '
                f'y2="{bottom + 26}"/>', _svg_text(x + 36, bottom + 30, words, anchor="start")]
    return "\n".join([*out, "</svg>", ""])
