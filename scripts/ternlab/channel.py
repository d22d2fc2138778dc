# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in a guest, over a virtio serial port: the host's end of scripts/guest/executor.cc."""

import dataclasses
import itertools
import socket
import struct
import threading

from . import pace
from .errors import CommandError, LabError
from .progress import wait_until

# The kinds of frames.
START, INPUT, SIGNAL, OUTPUT, ERROR, EXIT = range(1, 7)
HEADER = struct.Struct("<III")  # the task's number, the kind, the length
CHUNK = 32 << 10
SIGNALS = {"INT": 2, "KILL": 9, "TERM": 15}
LOST = 255  # the exit code of a task whose guest has gone


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


class Channel:
    """The connection to a host's executor. Only the process that started the host has it."""

    commands = 0  # the number of commands run in all guests, for measurements

    def __init__(self, name, path):
        self.name = name
        self._tasks, self._numbers = {}, itertools.count(1)
        self._sending, self._open = threading.Lock(), True
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(self, command, timeout=60, check=True, stdin=b""):
        """Runs a command and returns its Result. Raises a CommandError if it does not end within
        the timeout or, with check, if it fails."""
        task = Task(self, command, merged=False)
        task.write(stdin)
        task.end_input()
        return task.wait(timeout, check)

    def spawn(self, command):
        """Starts a command without input, and returns its Task at once."""
        task = Task(self, command)
        task.end_input()
        return task

    def talk(self, command):
        """Starts a command to whose input the caller writes, and returns its Task."""
        return Task(self, command)

    def tasks(self):
        """The commands that run in the guest now."""
        return {task for task in list(self._tasks.values()) if task.running()}

    def close(self):
        """Closes the connection. Running commands go on, but their tasks end with LOST."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # QEMU has gone before
        self._reader.join()
        self._socket.close()

    # --- of tasks

    def enter(self, task):
        Channel.commands += 1
        number = next(self._numbers)
        self._tasks[number] = task
        if not self._open:
            task.end(LOST)
        return number

    def send(self, number, kind, payload=b""):
        with self._sending:
            try:
                self._socket.sendall(HEADER.pack(number, kind, len(payload)) + payload)
            except OSError:
                pass  # the reader notices, and ends all tasks

    # --- from the guest

    def _read(self):
        try:
            while True:
                number, kind, length = HEADER.unpack(self._exactly(HEADER.size))
                payload = self._exactly(length)
                task = self._tasks.get(number)
                if kind == EXIT:
                    del self._tasks[number]
                    task.end(payload[0])
                else:
                    task.take(kind, payload)
        except (OSError, EOFError):
            self._open = False
            for task in list(self._tasks.values()):
                task.end(LOST)

    def _exactly(self, length):
        parts = bytearray()
        while len(parts) < length:
            part = self._socket.recv(length - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


class Task:
    """A command that runs in a guest, with its output so far."""

    def __init__(self, channel, command, merged=True):
        self._channel, self._text = channel, command
        self._changed = threading.Condition()
        self._streams = {OUTPUT: bytearray(), ERROR: bytearray()}
        self._code = None
        self.thread = threading.get_ident()  # that has started it
        self._number = channel.enter(self)
        channel.send(self._number, START, (b"m" if merged else b"s") + command.encode())

    # --- of the channel's reader

    def take(self, kind, payload):
        with self._changed:
            self._streams[kind] += payload
            self._changed.notify_all()

    def end(self, code):
        with self._changed:
            self._code = code
            self._changed.notify_all()

    # --- what it is given

    def write(self, data):
        for at in range(0, len(data), CHUNK):
            self._channel.send(self._number, INPUT, data[at:at + CHUNK])

    def end_input(self):
        self._channel.send(self._number, INPUT)

    def kill(self, signal="KILL"):
        """Sends the signal to the task's whole process group."""
        self._channel.send(self._number, SIGNAL, bytes([SIGNALS[signal]]))

    # --- what it says

    def running(self):
        return self._code is None

    def failed(self):
        return self._code not in (None, 0)

    def output(self):
        """All that it has said so far."""
        with self._changed:
            return self._streams[OUTPUT].decode(errors="replace")

    def read_line(self, timeout=60):
        """Removes the next line from the output and returns it, or the rest if the task has ended.
        Raises a CommandError at the timeout."""
        out = self._streams[OUTPUT]
        with self._changed:
            self._changed.wait_for(lambda: b"\n" in out or self._code is not None,
                                   pace.scaled(timeout))
            if b"\n" not in out and self._code is None:
                raise CommandError(f"{self._channel.name}: no answer within {timeout} s: "
                                   f"{self._text}\n{out.decode(errors='replace')}")
            line, newline, _ = out.partition(b"\n")
            del out[:len(line) + len(newline)]
            return line.decode(errors="replace")

    def wait(self, timeout=60, check=True):
        with self._changed:
            patience = None if timeout is None else pace.scaled(timeout)
            ended = self._changed.wait_for(lambda: self._code is not None, patience)
        if not ended:
            self.kill()
            with self._changed:
                self._changed.wait_for(lambda: self._code is not None, pace.scaled(10))
            raise CommandError(f"{self._channel.name}: still running after {patience:.0f} s: "
                               f"{self._text}\n{self.said()}")
        if check and self._code:
            raise CommandError(f"{self._channel.name}: exit code {self._code}: {self._text}\n"
                               f"{self.said()}")
        return Result(self._code, *(self._streams[kind].decode(errors="replace")
                                    for kind in (OUTPUT, ERROR)))

    def said(self):
        return "".join(stream.decode(errors="replace") for stream in self._streams.values())

    def give_up(self):
        """Ends it if need be; returns what there is to say about it."""
        late = self.running()
        if late:
            self.kill()
        result = self.wait(check=False)
        fate = "killed" if late else f"exit code {result.code}"
        return f"--- {self._channel.name}, {fate}: {self._text}\n{self.said()}"


def connect(name, path, alive, timeout):
    """The channel of a guest, once it answers. alive() tells whether its QEMU still runs."""
    def connected():
        try:
            return Channel(name, path)
        except OSError:
            return None if alive() else "dead"

    channel = wait_until(connected, timeout)
    if not isinstance(channel, Channel):
        raise LabError(f"{name}: cannot connect to the serial port of its QEMU")
    return channel
