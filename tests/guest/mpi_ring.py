# SPDX-License-Identifier: GPL-2.0-or-later
"""An MPI program of each rank: messages around a ring, and all-reduces, all results checked.

Sizes are on both sides of what MPI sends eagerly and what it fetches by RDMA.
"""

import array

from mpi4py import MPI  # pylint: disable=import-error

SIZES = (1, 100, 5000, 100_000)


def ring(comm, size):
    """Each value that a rank holds has gone around once, and every rank has added one."""
    rank, ranks = comm.rank, comm.size
    token = array.array("q", range(size))
    if rank == 0:
        comm.Send(token, dest=1 % ranks)
        comm.Recv(token, source=ranks - 1)
    else:
        comm.Recv(token, source=rank - 1)
        token = array.array("q", (value + 1 for value in token))
        comm.Send(token, dest=(rank + 1) % ranks)
    added = ranks - 1 if rank == 0 else rank
    assert token == array.array("q", range(added, size + added)), (rank, size)


def reduce(comm, size):
    rank, ranks = comm.rank, comm.size
    mine = array.array("q", (rank * value for value in range(size)))
    total = array.array("q", bytes(8 * size))
    comm.Allreduce(mine, total)
    ranks_sum = ranks * (ranks - 1) // 2
    assert total == array.array("q", (ranks_sum * value for value in range(size))), (rank, size)


def main():
    comm = MPI.COMM_WORLD
    for size in SIZES:
        ring(comm, size)
        reduce(comm, size)
    hosts = comm.gather(MPI.Get_processor_name())
    if comm.rank == 0:
        print(f"ring and all-reduce ok: {comm.size} ranks on {len(set(hosts))} hosts")


if __name__ == "__main__":
    main()
