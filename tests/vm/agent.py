# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of tests/guest/verbs_agent.py: verbs in a guest, step by step."""

import json
import pathlib

from scenario import LabError
from ternlab import pace

GUEST = pathlib.Path(__file__).resolve().parents[1] / "guest"
PROGRAM, CONSTANTS = GUEST / "verbs_agent.py", GUEST / "verbs_constants.py"
BUFFER = 1 << 17
# Seconds of the reference machine: until the guest gives up a step that waits, and until it must
# have answered.
PATIENCE, ANSWER = 30, 60


class AgentError(LabError):
    """A step failed in the guest; errno names the error if the kernel gave one."""

    def __init__(self, text, errno=None):
        super().__init__(text)
        self.errno = errno


class Agent:
    """agent.create(service="RC") and the like are the methods of the program in the guest."""

    def __init__(self, host, device=None, buffer=BUFFER, on_demand=False):
        self.host = host
        self.device = device or host.rdma_device()
        for path in (PROGRAM, CONSTANTS):
            host.write_file(f"/tmp/{path.name}", path.read_bytes())
        self._task = host.channel.talk(f"exec python3 -B /tmp/{PROGRAM.name}")
        self._answer("start")
        opened = self.open(device=self.device, size=buffer, on_demand=on_demand)
        self.address, self.rkey = opened["address"], opened["rkey"]
        self._optional = {"SEND_INV": opened["windows"], "ATOMIC_WRITE": opened["atomic_write"]}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        return lambda **arguments: self._do(name, **arguments)

    def _do(self, name, **arguments):
        self._task.write((json.dumps([name, arguments]) + "\n").encode())
        return self._answer(f"{name} {arguments}")

    def poll(self, patience=PATIENCE, **arguments):
        """Completions of any status, fewer than @count if time is up."""
        return self._do("poll", timeout=pace.scaled(patience), **arguments)

    def completions(self, count=1, **arguments):
        """As poll(), but all of them must come, and be of success."""
        found = self.poll(count=count, **arguments)
        if [done["status"] for done in found] != [0] * count:
            raise AssertionError(f"{self.host.name}: {found} instead of {count} good completions")
        return found

    def next_event(self):
        return self._do("next_event", patience=round(pace.scaled(PATIENCE)))

    def can(self, operation):
        """Whether the device has what not every one has."""
        return self._optional.get(operation, True)

    def _answer(self, step):
        line = self._task.read_line(ANSWER)
        try:
            answer = json.loads(line)
        except ValueError:
            raise AgentError(f"{self.host.name}: the agent ended at {step}:\n{line}\n"
                             f"{self._task.give_up()}") from None
        if "error" in answer:
            raise AgentError(f"{self.host.name}: {answer['error']}", answer.get("errno"))
        return answer["ok"]

    def close(self):
        """Closes the device, too: the program ends with its input."""
        self._task.end_input()
        self._task.wait(timeout=20, check=False)
