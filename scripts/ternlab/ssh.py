# SPDX-License-Identifier: GPL-2.0-or-later
"""How a person gets into a guest: over one shared ssh connection."""

import contextlib
import os
import subprocess

from .errors import CommandError

FAILED = 255  # the exit code of ssh itself


class Ssh:
    def __init__(self, name, image, port, control):
        self.name, self._control = name, control
        options = {
            "Port": port, "User": "root", "IdentityFile": image.ssh_key, "IdentitiesOnly": "yes",
            "UserKnownHostsFile": image.known_hosts or os.devnull, "HostKeyAlias": "tern-guest",
            "StrictHostKeyChecking": "yes" if image.known_hosts else "no",
            "LogLevel": "ERROR", "ConnectTimeout": 30,
            "ControlMaster": "auto", "ControlPath": control, "ControlPersist": 600,
        }
        # No configuration of the user's applies to hosts that he never named.
        self.options = ["-F", "none"]
        for key, value in options.items():
            self.options += ["-o", f"{key}={value}"]

    def command(self, *words, flags=()):
        return ["ssh", *self.options, *flags, "127.0.0.1", *words]

    def probe(self, timeout):
        """Whether it lets us in, as a subprocess.CompletedProcess."""
        # ssh takes the first value of an option.
        return subprocess.run(["ssh", "-o", f"ConnectTimeout={timeout}", "-o", "BatchMode=yes",
                               *self.options, "127.0.0.1", "true"], stdin=subprocess.DEVNULL,
                              check=False, capture_output=True, text=True, errors="replace")

    def run(self, command, timeout=None):
        """A subprocess.CompletedProcess with what it printed. Raises a CommandError if it has not
        ended in time."""
        try:
            return subprocess.run(self.command(command), stdin=subprocess.DEVNULL, check=False,
                                  capture_output=True, text=True, errors="replace",
                                  timeout=timeout)
        except subprocess.TimeoutExpired:
            raise CommandError(f"{self.name}: no answer within {timeout} s") from None

    def copy(self, sources, destination):
        """Paths in the guest begin with a colon."""
        def path(text):
            return f"127.0.0.1{text}" if text.startswith(":") else str(text)

        done = subprocess.run(["scp", "-q", "-r", *self.options, *map(path, sources),
                               path(destination)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandError(f"{self.name}: copying failed: {done.stderr.strip()}")

    def close(self):
        """Ends the shared connection, if there is one."""
        if self._control.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(self.command(flags=("-O", "exit")), capture_output=True, timeout=5,
                               check=False)
