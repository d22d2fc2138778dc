# SPDX-License-Identifier: GPL-2.0-or-later
"""Many hosts write to one through a topology: streams, and the cards' congestion control.

The scenario of the fabric and its benchmark use this.
"""

import contextlib

from ternlab import pair, query

PFC_CLASS = 26 << 2  # DSCP 26: priority 3
ENDLESS = 600        # seconds; whoever starts a stream ends it
ACK_TIMEOUT = 18     # of perftest: with its own 14, senders that wait for a processor give up


def jain(values):
    """Jain's index of fairness: 1 if all are equal."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def parameters_folder(host):
    """The congestion control parameters (mlx5's names) of the host's first card."""
    device = host.run(f"readlink /sys/class/infiniband/{host.rdma_device()}/device").out
    return f"/sys/kernel/debug/tern/{device.strip().rsplit('/', 1)[-1]}/cc_params"


def set_parameters(host, **parameters):
    folder = parameters_folder(host)
    host.run("".join(f"echo {value} >{folder}/{name} || exit\n"
                     for name, value in parameters.items()))


def get_parameters(host, names):
    """Their values, by name."""
    folder = parameters_folder(host)
    return {name: int(host.run(f"cat {folder}/{name}").out) for name in names}


def is_paced(host):
    """Whether a QP of the host waits for its rate."""
    return any(qp["paced"] for engine in query.card_of(host)["engines"] for qp in engine["qps"])


def _command(host, port, arguments, address):
    device = host.rdma_device()
    return (f"ib_write_bw -s 65536 -t 16 -u {ACK_TIMEOUT} -D {ENDLESS} -p {port} "
            f"{arguments} -d {device} -x {host.gid_index(device, address)}")


@contextlib.contextmanager
def streams(receiver, senders, arguments="", cgroup=None, addresses=None):
    """WRITEs from each of the senders, until the end of the block. The programs run in the cgroup
    (a folder) if one is given, and have the GIDs of these addresses of the hosts. Yields their
    tasks."""
    def command(host, port):
        return enter + _command(host, port, arguments, addresses and addresses[host])

    enter = f"echo $$ >{cgroup}/cgroup.procs; exec " if cgroup else ""
    tasks = []
    try:
        for port, sender in enumerate(senders, pair.PERFTEST_PORT):
            serving = receiver.spawn(command(receiver, port))
            tasks.append(serving)
            pair.await_listener(receiver, port, serving)
            tasks.append(sender.spawn(f"{command(sender, port)} {receiver.ipv4}"))
        yield tasks
    finally:
        for task in tasks:
            task.kill()
            task.wait(check=False)
