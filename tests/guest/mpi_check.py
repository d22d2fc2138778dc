# SPDX-License-Identifier: GPL-2.0-or-later
"""An MPI program of each rank: point to point, collectives and windows, all results checked.

Sizes are on both sides of what MPI sends eagerly and what it fetches by RDMA.
"""

import array
import sys

from mpi4py import MPI  # pylint: disable=import-error

SIZES = (1, 100, 5000, 20_000)
ROUNDS = 8  # of what is one word at a time
FREE, HELD = 0, 1


def numbers(values):
    return array.array("q", values)


def zeros(count):
    return numbers(bytes(8 * count))


def ring(comm, size):
    """Each value that a rank holds has gone around once, and every rank has added one."""
    rank, ranks = comm.rank, comm.size
    token = numbers(range(size))
    if rank == 0:
        comm.Send(token, dest=1 % ranks)
        comm.Recv(token, source=ranks - 1)
    else:
        comm.Recv(token, source=rank - 1)
        token = numbers(value + 1 for value in token)
        comm.Send(token, dest=(rank + 1) % ranks)
    added = ranks - 1 if rank == 0 else rank
    assert token == numbers(range(added, size + added)), (rank, size)


def all_reduce(comm, size):
    rank, ranks = comm.rank, comm.size
    mine = numbers(rank * value for value in range(size))
    total = zeros(size)
    comm.Allreduce(mine, total)
    ranks_sum = ranks * (ranks - 1) // 2
    assert total == numbers(ranks_sum * value for value in range(size)), (rank, size)


def all_to_all(comm, size):
    """Block `to` of rank `rank` holds values from (rank * ranks + to) * size on."""
    rank, ranks = comm.rank, comm.size
    sent = numbers(range(rank * ranks * size, (rank + 1) * ranks * size))
    received = zeros(ranks * size)
    comm.Alltoall(sent, received)
    for source in range(ranks):
        first = (source * ranks + rank) * size
        assert received[source * size:(source + 1) * size] == numbers(
            range(first, first + size)), (rank, source, size)


def window(comm, size):
    """Each rank writes into the next one's memory, and reads the one's after that."""
    rank, ranks = comm.rank, comm.size
    memory = MPI.Win.Allocate(8 * size, 8, comm=comm)
    memory.Fence()
    written = numbers(range(rank, rank + size))  # MPI may read it until the fence
    memory.Put(written, (rank + 1) % ranks)
    memory.Fence()
    found = zeros(size)
    memory.Get(found, (rank + 2) % ranks)
    memory.Fence()
    writer = (rank + 1) % ranks
    assert found == numbers(range(writer, writer + size)), (rank, size)
    memory.Free()


def counter(comm):
    """All ranks add to one word by Fetch_and_op: each value before is seen once."""
    memory = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
    seen, one = zeros(ROUNDS), numbers([1])
    comm.Barrier()
    memory.Lock_all()
    for turn in range(ROUNDS):
        before = zeros(1)
        memory.Fetch_and_op(one, before, 0)
        memory.Flush(0)
        seen[turn] = before[0]
    memory.Unlock_all()
    everybody = comm.gather(list(seen))
    if comm.rank == 0:
        assert sorted(sum(everybody, [])) == list(range(comm.size * ROUNDS)), everybody
    memory.Free()


def spin_lock(comm):
    """A lock by Compare_and_swap that all ranks spin on guards a number, which each one reads,
    increments and writes."""
    memory = MPI.Win.Allocate(16 if comm.rank == 0 else 0, 8, comm=comm)
    free, held, found, number = numbers([FREE]), numbers([HELD]), zeros(1), zeros(1)
    comm.Barrier()
    memory.Lock_all()
    for _ in range(ROUNDS):
        while True:
            memory.Compare_and_swap(held, free, found, 0)
            memory.Flush(0)
            if found[0] == FREE:
                break
        memory.Get(number, 0, 1)
        memory.Flush(0)
        number[0] += 1
        memory.Put(number, 0, 1)
        memory.Flush(0)
        memory.Fetch_and_op(free, found, 0, op=MPI.REPLACE)
        memory.Flush(0)
    memory.Unlock_all()
    comm.Barrier()
    memory.Lock_all()
    memory.Get(number, 0, 1)
    memory.Flush(0)
    memory.Unlock_all()
    assert number[0] == comm.size * ROUNDS, (comm.rank, number[0])
    memory.Free()


SIZED = {"ring": ring, "allreduce": all_reduce, "alltoall": all_to_all, "window": window}
OTHERS = {"counter": counter, "spin_lock": spin_lock}


def main():
    comm = MPI.COMM_WORLD
    for name in sys.argv[1:] or [*SIZED, *OTHERS]:
        begun = MPI.Wtime()
        if name in SIZED:
            for size in SIZES:
                SIZED[name](comm, size)
        else:
            OTHERS[name](comm)
        hosts = comm.gather(MPI.Get_processor_name())
        if comm.rank == 0:
            print(f"{name}: ok with {comm.size} ranks on {len(set(hosts))} hosts, "
                  f"{MPI.Wtime() - begun:.3f} s", flush=True)


if __name__ == "__main__":
    main()
