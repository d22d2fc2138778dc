# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that come in two halves, one on each of two hosts."""

import json
import re

from .errors import CommandError, LabError
from .progress import wait_until

PERFTEST_PORT = 18515  # and that of rdma-core's pingpongs
# perftest's -u. A runnable thread may wait for a second beside busy processes, and the retries of
# perftest's own 14 last for two seconds. With 18 each of them comes after 1.3 s: the card waits for
# 4.096 us * 2^18 and another 0.25 s.
ACK_TIMEOUT = 18
# At its end perftest measures the CPU's frequency, and fails or reports infinite times where
# the measurements spread: on a busy machine.
SPREAD = "Correlation coefficient"
# Programs whose server has nothing to measure.
PASSIVE = re.compile(r"\bib_(read|atomic)_lat\b")


def await_listener(host, port, task=None, timeout=30):
    """Waits until a process in the guest listens on a TCP port, or until the task has failed.
    Raises a CommandError if neither happens within the timeout."""
    # By the guest's shell alone: to start a process takes a tenth of a second under TCG.
    listening = f"""
        for table in /proc/net/tcp /proc/net/tcp6; do
            while read _ local _ state _; do
                [ "${{local##*:}} $state" != "{port:04X} 0A" ] || exit 0
            done <$table
        done
        exit 1"""
    if not wait_until(lambda: host.run(listening, check=False).code == 0
                      or task and task.failed(), timeout):
        raise CommandError(f"{host.name}: nobody listens on port {port}")


def await_cm_listener(host, port, task=None, timeout=30):
    """Like await_listener(), for a port of RDMA CM, which /proc/net/tcp does not list. The wait
    also ends when the task has ended, with or without an error."""
    def listening():
        ids = json.loads(host.run("rdma -j resource show cm_id").out or "[]")
        return any(cm_id["state"] == "LISTEN" and cm_id.get("src-addr", "").endswith(f":{port}")
                   for cm_id in ids)

    if not wait_until(lambda: listening() or task and not task.running(), timeout):
        raise CommandError(f"{host.name}: nobody listens on RDMA CM's port {port}")


def run_pair(*both, **how):
    """As run_both(), but returns what the client printed."""
    return run_both(*both, **how)[1]


def run_both(*both, **how):
    """Both have to succeed; returns what the server and what the client printed.

    The two hosts with their commands, and as options those of _once().
    """
    for chances in reversed(range(12)):
        try:
            return _once(*both, **how)
        except LabError as error:
            if SPREAD not in str(error) or not chances:
                raise
    raise AssertionError("there is always a last chance")


def _once(server, server_command, client, client_command, port=PERFTEST_PORT, timeout=120,
          ready=await_listener):
    """ready(host, port, task) returns when the server can be asked."""
    serving = server.spawn(server_command)
    asking = None
    try:
        ready(server, port, serving)
        if not serving.failed():
            asking = client.spawn(client_command)
            # A half that fails often leaves the other waiting for ever.
            wait_until(lambda: not asking.running() or serving.failed(), timeout)
        if not serving.failed():
            asked = asking.wait(timeout=1).out
            served = serving.wait(timeout=30).out
            if SPREAD in served + asked:
                raise LabError(f"no result:\n{served}\n{asked}")
            return served, asked
        trouble = f"{server.name} failed"
    except CommandError as error:
        trouble = str(error).partition("\n")[0]
    halves = [half.give_up() for half in (serving, asking) if half]
    raise LabError("\n".join([trouble, *halves]))


def perftest(server, client, server_command, client_command, address=None, timeout=120,
             ready=await_listener):
    """Runs a perftest program and returns the rows of the client's table, as numbers.

    The server's, which has only the last where it just waits, must end with the same messages.

    _bw: bytes, iterations, peak MB/s, average MB/s, million messages/s
    _lat: bytes, iterations, min, max, typical, average, deviation, 99 %, 99.9 %, in us
    """
    client_command += f" {address or server.ipv4}"
    for command in server_command, client_command:
        check_options(command)
    served, asked = run_both(server, server_command, client, client_command,
                             timeout=timeout, ready=ready)
    result = _rows(client, client_command, asked)
    if not PASSIVE.search(server_command):
        last = _rows(server, server_command, served)[-1]
        if last[0] != result[-1][0]:
            raise LabError(f"{client_command}: {server.name} has another result:\n{served}")
    return result


def check_options(command):
    """Newer versions of perftest refuse an option that occurs twice; the older take the last."""
    own = command[re.search(r"\b(ib|raw)_\w+", command).start():]
    options = re.findall(r"\s(--?[A-Za-z][\w-]*)", own)
    twice = sorted({option for option in options if options.count(option) > 1})
    if twice:
        raise LabError(f"{command}: {', '.join(twice)} occurs twice")


def _rows(host, command, said):
    _, heading, table = said.partition("#bytes")
    # The deviation can come out as "-nan".
    rows = [[float(number) for number in line.split()]
            for line in table.splitlines() if re.fullmatch(r"\s*\d+(\s+(-?nan|[\d.]+))+\s*", line)]
    if not heading or not rows:
        raise LabError(f"{host.name}: no result in the output of {command}:\n{said}")
    return rows
