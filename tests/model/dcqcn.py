# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of a DCQCN flow, from the equations of the paper.

Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 3.1 and
figure 7. It is written from the paper alone, to be compared with what the card does.
"""

import heapq


class ReactionPoint:
    """One flow. Times are in ns, rates in bits per second.

    Its timers are events of a queue, as in a simulator: run(until) lets those happen that are due.
    """

    def __init__(self, line, g=1 / 256, period=55000, timer=55000, byte_counter=10e6, stages=5,
                 additive=40e6, hyper=200e6, least=1e6, alpha=1.0):
        self.line, self.g, self.least = line, g, least
        self.alpha_period, self.timer_period, self.byte_counter = period, timer, byte_counter
        self.stages, self.additive, self.hyper = stages, additive, hyper
        self.current = self.target = line   # R_C and R_T
        self.alpha = alpha
        self.timer_count = self.byte_count = 0  # T and BC
        self.sent_bytes = 0
        self.events = []

    def cnp(self, now):
        """Equation (1); all counters and timers start anew."""
        self.run(now)
        self.target = self.current
        self.current = max(self.current * (1 - self.alpha / 2), self.least)
        self.alpha = (1 - self.g) * self.alpha + self.g
        self.timer_count = self.byte_count = self.sent_bytes = 0
        self.events = []
        self._start(now + self.timer_period, self._on_timer)
        self._start(now + self.alpha_period, self._on_alpha)

    def sent(self, now, size):
        self.run(now)
        self.sent_bytes += size
        while self.sent_bytes >= self.byte_counter:
            self.sent_bytes -= self.byte_counter
            self.byte_count += 1
            self._increase()

    def rate(self, now):
        self.run(now)
        return self.current

    def run(self, until):
        while self.events and self.events[0][0] <= until:
            when, _, event = heapq.heappop(self.events)
            event(when)

    def _start(self, when, event):
        heapq.heappush(self.events, (when, event.__name__, event))

    def _on_alpha(self, now):
        """Equation (2): no CNP for a period."""
        self.alpha *= 1 - self.g
        self._start(now + self.alpha_period, self._on_alpha)

    def _on_timer(self, now):
        self.timer_count += 1
        self._increase()
        self._start(now + self.timer_period, self._on_timer)

    def _increase(self):
        """Figure 7, equations (3) and (4): of the increases by either, the first F are fast
        recovery; beyond that the target rises, faster when both have passed F."""
        both = min(self.timer_count, self.byte_count)
        if both > self.stages:
            self.target += (both - self.stages) * self.hyper
        elif max(self.timer_count, self.byte_count) > self.stages:
            self.target += self.additive
        self.target = min(self.target, self.line)
        self.current = (self.target + self.current) / 2
