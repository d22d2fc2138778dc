# SPDX-License-Identifier: GPL-2.0-or-later
"""How many messages a second MPI moves from the first rank to the second.

    mpi_rate.py BYTES DEPTH SECONDS

The second rank answers after DEPTH messages with one of 8 bytes: with a depth of 1 they take turns.
"""

import sys

from mpi4py import MPI  # pylint: disable=import-error

ANSWER = 8


def main():
    size, depth, seconds = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    # Persistent requests need less Python code for each message. Under TCG that code takes longer
    # than the message itself.
    messages, answer = [bytearray(size) for _ in range(depth)], bytearray(ANSWER)
    if comm.rank == 0:
        first = [comm.Send_init(message, 1) for message in messages]
        then = [comm.Recv_init(answer, 1)]
    else:
        first = [comm.Recv_init(message, 0) for message in messages]
        then = [comm.Send_init(answer, 0)]
    start, wait = MPI.Prequest.Startall, MPI.Request.Waitall
    turns, took = 1, 0.0
    while took < seconds:
        turns *= 2
        comm.Barrier()
        begun = MPI.Wtime()
        for _ in range(turns):
            start(first)
            wait(first)
            start(then)
            wait(then)
        took = comm.bcast(MPI.Wtime() - begun)
    if comm.rank == 0:
        print(f"{turns * depth / took:.3f} messages/s", flush=True)


if __name__ == "__main__":
    main()
