# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in a guest, over one shared ssh connection."""

import contextlib
import dataclasses
import subprocess

from .errors import CommandError


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


class Ssh:
    def __init__(self, name, image, port, control):
        self.name = name
        options = {
            "Port": port, "User": "root", "IdentityFile": image.ssh_key, "IdentitiesOnly": "yes",
            "UserKnownHostsFile": image.known_hosts, "HostKeyAlias": "tern-guest",
            "StrictHostKeyChecking": "yes", "LogLevel": "ERROR", "ConnectTimeout": 30,
            "ControlMaster": "auto", "ControlPath": control, "ControlPersist": 600,
        }
        # No configuration of the user's applies to hosts that he never named.
        self.options = ["-F", "none"]
        for key, value in options.items():
            self.options += ["-o", f"{key}={value}"]

    def command(self, *words, flags=()):
        return ["ssh", *self.options, *flags, "127.0.0.1", *words]

    def run(self, command, timeout=60, check=True, stdin=""):
        try:
            done = subprocess.run(self.command(command), input=stdin, capture_output=True,
                                  text=True, errors="replace", timeout=timeout, check=False)
        except subprocess.TimeoutExpired as late:
            seen = b"".join(filter(None, (late.stdout, late.stderr))).decode(errors="replace")
            raise CommandError(
                f"{self.name}: still running after {timeout} s: {command}\n{seen}") from None
        if check and done.returncode:
            raise CommandError(f"{self.name}: exit code {done.returncode}: {command}\n"
                               f"{done.stdout}{done.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    def spawn(self, command):
        return Task(self, command)

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
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(self.command(flags=("-O", "exit")), capture_output=True, timeout=5,
                           check=False)


class Task:
    """A command that runs in a guest while we do something else."""

    def __init__(self, ssh, command):
        self._ssh, self._text = ssh, command
        # sshd gives each command a session of its own, so the shell leads a group.
        self._local = subprocess.Popen(
            ssh.command(f"echo $$; {command}"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self._group = self._local.stdout.readline().strip()

    def running(self):
        return self._local.poll() is None

    def failed(self):
        return self._local.poll() not in (None, 0)

    def give_up(self):
        """Ends it if need be; returns what there is to say about it."""
        late = self.running()
        if late:
            self.kill()
        result = self.wait(check=False)
        fate = "killed" if late else f"exit code {result.code}"
        return f"--- {self._ssh.name}, {fate}: {self._text}\n{result.out}"

    def wait(self, timeout=60, check=True):
        try:
            out, _ = self._local.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            out, _ = self._local.communicate()
            raise CommandError(f"{self._ssh.name}: still running after {timeout} s: "
                               f"{self._text}\n{out}") from None
        if check and self._local.returncode:
            raise CommandError(f"{self._ssh.name}: exit code {self._local.returncode}: "
                               f"{self._text}\n{out}")
        return Result(self._local.returncode, out, "")

    def kill(self, signal="KILL"):
        if self._group.isdigit():
            self._ssh.run(f"kill -{signal} -- -{self._group}", check=False)
