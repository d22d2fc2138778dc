# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows with DCQCN that share a link, packet by packet: what the fluid model leaves out.

Written from Zhu et al., 2015 (section 3.1, figures 5 to 7), as dcqcn.py, which is the sender's
part. The receiver sends a CNP for a marked packet unless it has sent one in the last interval; the
switch marks by the length of the queue that a packet leaves behind.
"""

import heapq
import random

import dcqcn

SECOND = 1e9


class SharedLink:
    """Flows that always have something to send. Times in ns, rates in bits per second, sizes in
    bytes: of the frame, and of what it takes on the wire."""

    def __init__(self, flows, line, frame, wire, marking, seed, delay=2000, interval=50000):
        self.frame, self.wire, self.marking = frame, wire, marking
        self.delay, self.interval = delay, interval
        self.service = wire * 8 * SECOND / line
        self.senders = [dcqcn.ReactionPoint(line) for _ in range(flows)]
        self.notified = [-interval] * flows  # when the last CNP of a flow was sent
        self.random = random.Random(seed)
        self.waiting = []                    # flows of the packets in the queue, the next one last
        self.area, self.changed = 0.0, 0.0   # the queue's integral over time
        self.busy_until = 0.0
        self.sent = [0] * flows
        self.events, self.scheduled = [], 0
        for flow in range(flows):
            # Not in step: they begin within 10 us.
            self._at(self.random.uniform(0, 10000), flow, self._send)

    def run(self, until):
        """Returns the integral of the queue's length since the last call."""
        while self.events[0][0] <= until:
            now, _, flow, action = heapq.heappop(self.events)
            action(now, flow)
        self._integrate(until)
        area, self.area = self.area, 0.0
        return area

    def _integrate(self, now):
        self.area += len(self.waiting) * self.frame * (now - self.changed)
        self.changed = now

    def _at(self, when, flow, action):
        self.scheduled += 1
        heapq.heappush(self.events, (when, self.scheduled, flow, action))

    def _send(self, now, flow):
        self._at(now + self.delay / 2, flow, self._arrive)
        sender = self.senders[flow]
        sender.sent(now, self.frame)
        self.sent[flow] += 1
        # The rate is that of frames, without what they take on the wire besides.
        rate = min(sender.rate(now), sender.line * self.frame / self.wire)
        self._at(now + self.frame * 8 * SECOND / rate, flow, self._send)

    def _arrive(self, now, flow):
        self._integrate(now)
        self.waiting.insert(0, flow)
        if self.busy_until <= now:
            self._start(now)

    def _start(self, now):
        """The next packet of the queue goes."""
        self._integrate(now)
        flow = self.waiting.pop()
        self.busy_until = now + self.service
        self._at(self.busy_until, flow, self._depart)
        kmin, kmax, share = self.marking
        length = len(self.waiting) * self.frame
        chance = 0 if length <= kmin else 1 if length >= kmax else (
            share * (length - kmin) / (kmax - kmin))
        if self.random.random() < chance and now - self.notified[flow] >= self.interval:
            self.notified[flow] = now
            self._at(self.busy_until + self.delay, flow, self._notify)

    def _depart(self, now, _flow):
        if self.waiting:
            self._start(now)

    def _notify(self, now, flow):
        self.senders[flow].cnp(now)
