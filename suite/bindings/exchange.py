"""Exchange between two ranks in Python by mpi4py. See README.md.

Before the usual words come ``buffers`` or ``pickled``, and ``single`` or ``default``, the thread level. What is
pickled takes so long that a tenth of the calls is enough. ``PLUMBLINE_MPI4PY`` is the folder of mpi4py.
"""

import ctypes
import gc
import os
import sys

import numpy as np

sys.path.insert(0, os.environ["PLUMBLINE_MPI4PY"])
import mpi4py

style, level, batches, *rest = sys.argv[1:]
if level == "single":
    mpi4py.rc.thread_level = "single"
from mpi4py import MPI  # noqa: E402  the thread level is set before

world = MPI.COMM_WORLD
rank = world.Get_rank()
share = 10 if style == "pickled" else 1
cases = [(int(size), max(1, int(calls) // share)) for size, calls in zip(rest[::2], rest[1::2])]  # noqa: B905


def allocate_pages(size):
    """Return doubles of so many bytes, allocated as the other languages do."""
    address = ctypes.c_void_p()
    wrong = ctypes.CDLL(None).posix_memalign(
        ctypes.byref(address), ctypes.c_size_t(4096), ctypes.c_size_t(size)
    )
    if wrong:
        world.Abort(1)
    return np.frombuffer((ctypes.c_char * size).from_address(address.value), dtype=np.float64)


def value(source, batch, count):
    return 1.0 + (31 * source + 7 * batch + np.arange(count)) % 251


def fill(routine, batch, out, buffer):
    out[:] = value(rank, batch, len(out))
    buffer[:] = out if routine == "bcast" and rank == 0 else 0


def count_wrong(routine, batch, received):
    first, second = (value(source, batch, len(received)) for source in (0, 1))
    if routine == "allreduce":
        expected = first + second
    elif routine == "alltoall":
        own = slice(len(first) // 2 * rank, len(first) // 2 * (rank + 1))
        expected = np.concatenate([first[own], second[own]])
    else:
        expected = first if routine == "bcast" or rank else second
    return float(np.sum(received != expected))


def pingpong_with_buffers(calls, out, buffer):
    peer = 1 - rank
    if rank == 0:
        for _ in range(calls):
            world.Send(out, peer)
            world.Recv(buffer, peer)
    else:
        for _ in range(calls):
            world.Recv(buffer, peer)
            world.Send(out, peer)
    return buffer


def pingpong_pickled(calls, out, buffer):
    peer = 1 - rank
    if rank == 0:
        for _ in range(calls):
            world.send(out, peer)
            buffer = world.recv(source=peer)
    else:
        for _ in range(calls):
            buffer = world.recv(source=peer)
            world.send(out, peer)
    return buffer


def call_with_buffers(routine, calls, out, buffer):
    if routine == "bcast":
        for _ in range(calls):
            world.Bcast(buffer, 0)
    elif routine == "allreduce":
        for _ in range(calls):
            world.Allreduce(out, buffer)
    elif routine == "alltoall":
        for _ in range(calls):
            world.Alltoall(out, buffer)
    elif routine == "barrier":
        for _ in range(calls):
            world.Barrier()
    else:
        buffer = pingpong_with_buffers(calls, out, buffer)
    return buffer


def call_pickled(routine, calls, out, buffer):
    if routine == "bcast":
        mine = buffer
        for _ in range(calls):
            buffer = world.bcast(mine if rank == 0 else None, 0)
    elif routine == "allreduce":
        for _ in range(calls):
            buffer = world.allreduce(out)
    elif routine == "alltoall":
        halves = np.split(out, 2)
        for _ in range(calls):
            received = world.alltoall(halves)
        buffer = np.concatenate(received)
    elif routine == "barrier":
        for _ in range(calls):
            world.barrier()
    else:
        buffer = pingpong_pickled(calls, out, buffer)
    return buffer


def measure(routine, size, calls, out, buffer):
    call = call_with_buffers if style == "buffers" else call_pickled
    seconds, wrong = [], 0.0
    for batch in range(2 * int(batches)):
        fill(routine, batch, out, buffer)
        world.Barrier()
        begin = MPI.Wtime()
        received = call(routine, calls, out, buffer)
        mine = (MPI.Wtime() - begin) / calls / (2 if routine == "pingpong" else 1)
        seconds.append(world.allreduce(mine, MPI.MAX))
        wrong += count_wrong(routine, batch, received)
    wrong = world.allreduce(wrong)
    if rank == 0:
        print(routine, size, int(wrong), *(f"{each:.6e}" for each in seconds[int(batches) :]))


if rank == 0:
    single = MPI.Query_thread() == MPI.THREAD_SINGLE
    print("world", world.size, 0 if single else 3, MPI.Get_library_version().splitlines()[0])
if world.size == 2:
    gc.disable()
    largest = 2 * cases[-1][0]
    outs, ins = allocate_pages(largest), allocate_pages(largest)
    for name in ("pingpong", "bcast", "allreduce", "alltoall"):
        for bytes_, count in cases:
            length = bytes_ // 8 * (2 if name == "alltoall" else 1)
            measure(name, bytes_, count, outs[:length], ins[:length])
    measure("barrier", 0, cases[0][1], outs[:0], ins[:0])
    if rank == 0:
        print("end", flush=True)
