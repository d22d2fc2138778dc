# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that a lab started, known by its id and its birth: no other is ever touched."""

import ctypes
import os
import pathlib
import signal
import subprocess

from .errors import LabError
from .progress import wait_until

PR_SET_PDEATHSIG = 1


def exit_on_signals(error=SystemExit):
    """Has the first SIGTERM or SIGHUP raise the error, with the exit code, so that this program
    takes down what it has started. Later ones must not interrupt that. One that its parent ignores
    (nohup) stays so."""
    signals = [number for number in (signal.SIGTERM, signal.SIGHUP)
               if signal.getsignal(number) == signal.SIG_DFL]

    def end(first, _):
        for number in signals:
            # SIG_IGN would hold for processes that start now, too.
            signal.signal(number, lambda *_: None)
        raise error(128 + first)

    for number in signals:
        signal.signal(number, end)


def _stat(path):
    """The name of a process or thread, and the fields of its stat file from its state on."""
    stat = (pathlib.Path(path) / "stat").read_text(encoding="ascii", errors="replace")
    head, _, tail = stat.rpartition(")")
    return head.partition("(")[2], tail.split()


def _cpu_seconds(fields):
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _birth(pid):
    """The start time of a living process in clock ticks, or None. A process lives until its last
    thread has ended: its sockets are open until then, also when the first thread is a zombie."""
    try:
        _, fields = _stat(f"/proc/{pid}")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, threads, birth = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads < 2 else birth


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    def __init__(self, name, pid, birth, child=None):
        self.name, self.pid, self.birth, self._child = name, pid, birth, child

    @classmethod
    def start(cls, name, command, log, owned):
        """An owned process dies with its maker (a test), another outlives it (a lab)."""
        with open(log, "ab") as output:
            try:
                child = subprocess.Popen(
                    [str(word) for word in command],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_die_with_parent if owned else None)  # noqa: S606
            except OSError as error:
                raise LabError(f"{name} does not start: {error}") from None
        return cls(name, child.pid, _birth(child.pid), child)

    @classmethod
    def this(cls, name):
        """The one that runs this program."""
        return cls(name, os.getpid(), _birth(os.getpid()))

    def alive(self):
        if self._child:
            self._child.poll()
        return self.birth is not None and _birth(self.pid) == self.birth

    def cpu_time(self):
        """The seconds of CPU that it has taken so far; 0 when it has ended."""
        if not self.alive():
            return 0
        return _cpu_seconds(_stat(f"/proc/{self.pid}")[1])

    def thread_times(self):
        """The seconds of CPU that its living threads have taken so far, by the name of the thread.
        Threads of one name are added up."""
        times = {}
        for thread in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                name, fields = _stat(thread)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            times[name] = times.get(name, 0) + _cpu_seconds(fields)
        return times

    def wait(self, timeout):
        return wait_until(lambda: not self.alive(), timeout)

    def stop(self, grace=5):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.alive():
                return
            os.kill(self.pid, number)
            self.wait(grace)

    def kill(self):
        """At once: it cannot clean up anything."""
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
            self.wait(10)

    def to_json(self):
        return {"name": self.name, "pid": self.pid, "birth": self.birth}

    @classmethod
    def from_json(cls, saved):
        return cls(**saved)
