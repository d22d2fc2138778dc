# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of a TIMELY flow, from the equations of the papers.

Mittal et al., RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, algorithm 1, and Zhu
et al., ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY, CoNEXT 2016, algorithm 2. It
is written from the papers, to be compared with what the card does. docs/fabric.md says what neither
paper has: the bound of a decrease, and what follows a loss.
"""


class Sender:
    """One flow. Times are in us, rates in Mb/s."""

    def __init__(self, line, additive=40, low=50, high=500, least_time=20, beta=819 / 1024,
                 alpha=896 / 1024, least=1):
        self.line, self.least = line, least
        self.additive = additive              # delta
        self.low, self.high = low, high       # T_low and T_high
        self.least_time = least_time          # D_minRTT
        self.beta, self.alpha = beta, alpha
        self.gain = beta / 32                 # of the error; 0.008 in the paper of 2016
        self.rate = line
        self._forget()

    def completion(self, time):
        """A segment was acknowledged @time after it was sent."""
        gradient = self._gradient(time)
        if time < self.low:
            self._free(gradient)
        elif time <= self.high:
            self._in_between(time, gradient)
        else:
            self._above(time)

    def loss(self):
        """The peer has missed a packet."""
        self._forget()
        self._set(self.rate / 2)

    def timeout(self):
        """Nothing was acknowledged for long."""
        self._forget()
        self._set(min(self.rate / 2, self.line / 16))

    def _forget(self):
        self.previous, self.difference, self.completions = None, 0.0, 0

    def _gradient(self, time):
        if self.previous is not None:
            self.difference += self.alpha * (time - self.previous - self.difference)
        else:
            self.difference *= 1 - self.alpha
        self.previous = time
        return self.difference / self.least_time

    def _free(self, gradient):
        """Algorithm 1, with its hyperactive increase after five completions that do not rise."""
        self.completions = 0 if gradient > 0 else self.completions + 1
        times = 5 if self.completions >= 5 else 1
        self._set(self.rate + times * self.additive)

    def _in_between(self, time, gradient):
        """Algorithm 2: the weight of the decrease is 0 up to a gradient of -1/4, 1 from 1/4 on."""
        self.completions = 0
        if gradient <= -1 / 4:
            weight = 0
        elif gradient >= 1 / 4:
            weight = 1
        else:
            weight = 2 * gradient + 1 / 2
        error = (time - self.low) / self.low
        self._set(self.additive * (1 - weight)
                  + self.rate * max(1 - self.gain * weight * error, 1 / 2))

    def _above(self, time):
        """Algorithm 1, but not less than just below T_high."""
        self.completions = 0
        error = (time - self.low) / self.low
        factor = min(1 - self.beta * (1 - self.high / time), 1 - self.gain * error)
        self._set(self.rate * max(factor, 1 / 2))

    def _set(self, rate):
        self.rate = min(max(rate, self.least), self.line)
