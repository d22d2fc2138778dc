# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that come in two halves, one on each of two hosts."""

import json
import re

from .errors import CommandError, LabError
from .progress import wait_until

PERFTEST_PORT = 18515  # and that of rdma-core's pingpongs


def await_listener(host, port, task=None, timeout=30):
    """Until somebody in the guest listens on a TCP port, or the task that should has failed."""
    listening = f"grep -qE ':{port:04X} [0-9A-F:]+ 0A ' /proc/net/tcp /proc/net/tcp6"
    if not wait_until(lambda: host.run(listening, check=False).code == 0
                      or task and task.failed(), timeout):
        raise CommandError(f"{host.name}: nobody listens on port {port}")


def await_cm_listener(host, port, task=None, timeout=30):
    """The same for a port of RDMA CM, which /proc/net/tcp does not know."""
    def listening():
        ids = json.loads(host.run("rdma -j resource show cm_id").out or "[]")
        return any(cm_id["state"] == "LISTEN" and cm_id.get("src-addr", "").endswith(f":{port}")
                   for cm_id in ids)

    if not wait_until(lambda: listening() or task and not task.running(), timeout):
        raise CommandError(f"{host.name}: nobody listens on RDMA CM's port {port}")


def run_pair(server, server_command, client, client_command, port=PERFTEST_PORT, timeout=120,
             ready=await_listener):
    """Both have to succeed; returns what the client printed.

    ready(host, port, task) returns when the server can be asked.
    """
    serving = server.spawn(server_command)
    asking = None
    try:
        ready(server, port, serving)
        if not serving.failed():
            asking = client.spawn(client_command)
            # A half that fails often leaves the other waiting for ever.
            wait_until(lambda: not asking.running() or serving.failed(), timeout)
        if not serving.failed():
            result = asking.wait(timeout=1)
            serving.wait(timeout=30)
            return result.out
        trouble = f"{server.name} failed"
    except CommandError as error:
        trouble = str(error).partition("\n")[0]
    halves = [half.give_up() for half in (serving, asking) if half]
    raise LabError("\n".join([trouble, *halves]))


def perftest(server, client, server_command, client_command, address=None, timeout=120,
             ready=await_listener):
    """Runs a perftest program and returns the rows of its table, as numbers.

    _bw: bytes, iterations, peak MB/s, average MB/s, million messages/s
    _lat: bytes, iterations, min, max, typical, average, deviation, 99 %, 99.9 %, in us
    """
    client_command += f" {address or server.ipv4}"
    for chances in reversed(range(5)):
        try:
            said = run_pair(server, server_command, client, client_command, timeout=timeout,
                            ready=ready)
            break
        except LabError as error:
            # At its end perftest measures the CPU's frequency, and reports nothing where
            # the measurements spread: on a busy machine.
            if "Correlation coefficient" not in str(error) or not chances:
                raise
    _, heading, table = said.partition("#bytes")
    # The deviation can come out as "-nan".
    rows = [[float(number) for number in line.split()]
            for line in table.splitlines() if re.fullmatch(r"\s*\d+(\s+(-?nan|[\d.]+))+\s*", line)]
    if not heading or not rows:
        raise LabError(f"{client.name}: no result in the output of {client_command}:\n{said}")
    return rows
