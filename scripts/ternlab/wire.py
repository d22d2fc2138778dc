# SPDX-License-Identifier: GPL-2.0-or-later
"""The wire: tern-switch, to which every host's network card connects."""

import json
import os
import pathlib
import re
import socket
import struct
import subprocess

from .errors import LabError
from .paths import SWITCH
from .process import Process
from .progress import wait_until

MAX_PORTS = 64  # as many as the switch has
PERCENTAGES = ("loss", "dup", "reorder", "corrupt", "ce")


class Refused(LabError):
    """A command that the switch does not execute, with its reason."""
    def __init__(self, command, reason):
        super().__init__(f"the wire refuses `{command}`: {reason}")
        self.reason = reason


def switch_program():
    switch = pathlib.Path(os.environ.get("TERN_SWITCH", SWITCH))
    if not switch.exists():
        raise LabError(f"{switch} is not built; run `make build`")
    return switch


def ask_switch(*words):
    """What tern-switch prints about a file that it checks. What is wrong with the file, also where,
    is a LabError."""
    done = subprocess.run([switch_program(), *words], capture_output=True, encoding="utf-8",
                          errors="replace", check=False)
    if done.returncode:
        raise LabError(done.stderr.strip().removeprefix("tern-switch: "))
    return json.loads(done.stdout)


class Wire:
    def __init__(self, folder, process=None):
        # In a topology the switch adds a dot and the name of a card. Without "stream" that could be
        # the control socket, or a socket of a host called "wire" (host.py).
        self.path = folder / "wire.stream"
        self.shared_path = folder / "wire.shm"
        self.topology = folder / "topology.toml"  # if there is one
        self._control = folder / "wire.ctl"
        self.process = process

    def start(self, log, owned, tap=""):
        """Starts the parent process of the switch, also again after it was killed. The parent
        replaces a switch that a signal ends by one with the same topology, without faults and
        captures. tap: an interface of this machine that joins the wire."""
        self._control.unlink(missing_ok=True)
        command = [switch_program(), "--listen", self.path, "--shared", self.shared_path,
                   "--control", self._control, "--restart"]
        if self.topology.exists():
            command += ["--topology", self.topology]
        if tap:
            command += ["--tap", tap]
        self.process = Process.start("tern-switch", command, log, owned)
        wait_until(lambda: self._control.exists() or not self.process.alive(), 10)
        if not self.process.alive():
            raise LabError(log.read_text(errors="replace").strip() or "tern-switch died at start")

    def tell(self, command):
        """Sends one command to the switch and returns the text after "ok". Raises Refused if the
        switch refuses it, and a LabError if the switch does not answer. A path in the command is as
        Python has it, in which bytes that are no text are surrogates."""
        # The switch reads lines, and ignores blanks at their ends.
        if re.search("\n|[ \r]$", command):
            raise LabError("the wire takes no line break in a command, and no blank at its end: "
                           f"{command!r}")
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(10)
            try:
                control.connect(str(self._control))
                control.sendall(os.fsencode(f"{command}\n"))
                answer = control.makefile(encoding="utf-8", errors="replace").readline().strip()
            except OSError as error:
                raise LabError(f"the wire does not answer: {error}") from None
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise Refused(command, rest or answer)
        return rest

    def pid(self):
        """The process that is the switch now: self.process is its parent, which replaces it."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self._control))
            told = control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", told)[0]

    def capture(self, path, addresses=(), mirror=False, link=""):
        """Starts a capture of the frames from and to these Ethernet addresses, or of all. In a
        topology it has the frames that arrive by the link or, without a link, at cards."""
        options = [f"host={','.join(addresses)}"] if addresses else []
        options += [f"link={link}"] if link else []
        options += ["mirror"] if mirror else []
        self.tell(" ".join(["capture", *options, str(pathlib.Path(path).absolute())]))

    def stop_capture(self):
        self.tell("capture-stop")

    def add_rules(self, rules):
        """Adds all rules, or none if the switch refuses one; then raises Refused."""
        self.tell("rules " + ";".join(rules))

    def stats(self):
        return self.tell("stats")

    def counters(self):
        """stats() as a table."""
        return {name: int(value) for name, _, value in
                (field.partition("=") for field in self.stats().split())}

    def stop(self):
        if self.process:
            self.process.stop()
            self.process = None
