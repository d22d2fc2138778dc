# SPDX-License-Identifier: GPL-2.0-or-later
"""Many hosts write to one through a topology: streams, and the cards' congestion control.

The scenario of the fabric and its benchmark use this.
"""

import contextlib

from ternlab import pair, query

PFC_CLASS = 26 << 2  # DSCP 26: priority 3
ENDLESS = 600        # seconds; whoever starts a stream ends it


def jain(values):
    """Jain's index of fairness: 1 if all are equal."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def parameters_folder(host, card=0):
    """The congestion control parameters (mlx5's names) of a card."""
    return f"/sys/kernel/debug/tern/{host.pci(card)}/cc_params"


def set_parameters(host, card=0, **parameters):
    folder = parameters_folder(host, card)
    host.run("".join(f"echo {value} >{folder}/{name} || exit\n"
                     for name, value in parameters.items()))


def get_parameters(host, names, card=0):
    """Their values, by name."""
    folder = parameters_folder(host, card)
    return {name: int(host.run(f"cat {folder}/{name}").out) for name in names}


def is_paced(host):
    """Whether a QP of the host waits for its rate."""
    return any(qp["paced"] for engine in query.card_of(host)["engines"] for qp in engine["qps"])


def _command(host, card, port, arguments, address):
    device = host.rdma_device(card=card)
    index = host.gid_index(device, address or host.addresses(card)[0])
    return (f"ib_write_bw -s 65536 -t 16 -u {pair.ACK_TIMEOUT} -D {ENDLESS} -p {port} "
            f"{arguments} -d {device} -x {index}")


@contextlib.contextmanager
def streams(receiver, senders, arguments="", cgroup=None, addresses=None, card=0,
            port=pair.PERFTEST_PORT):
    """WRITEs from each of the senders, until the end of the block. The programs run in the cgroup
    (a folder) if one is given, and have the GIDs of these addresses of the hosts, or else of this
    card's. They take ports from @port on. Yields their tasks."""
    def command(host, port):
        return enter + _command(host, card, port, arguments, addresses and addresses[host])

    enter = f"echo $$ >{cgroup}/cgroup.procs; exec " if cgroup else ""
    tasks = []
    try:
        for port, sender in enumerate(senders, port):
            serving = receiver.spawn(command(receiver, port))
            tasks.append(serving)
            pair.await_listener(receiver, port, serving)
            tasks.append(sender.spawn(f"{command(sender, port)} {receiver.ipv4}"))
        yield tasks
    finally:
        for task in tasks:
            task.kill()
            task.wait(check=False)
