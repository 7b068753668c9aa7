"""What limits NCCL through shared memory on two GPUs: rings by number of channels, and kernels that read and write.

    python3 benchmarks/h200/rings_and_kernels.py rings    # torch
    python3 benchmarks/h200/rings_and_kernels.py kernels  # CuPy

`rings` prints bus bandwidths (GB/s) of calls of torch, a process a GPU, by operation and size in MiB; `kernels` what
kernels of 1 to 32 blocks of 512 threads read of host memory, write to it, and do of each while both run, in GB/s a GPU.
"""

from __future__ import annotations

import os
import signal
import sys
import time

MIB = 2**20
WITHOUT_PEERS = {"NCCL_P2P_DISABLE": "1"}
LONG = [("all_reduce", 16), ("all_reduce", 64), ("all_reduce", 256)]
ALL = [*LONG, ("all_gather", 256), ("broadcast", 256), ("sendrecv", 256), ("send", 256)]
SENDS = [("sendrecv", size) for size in (8, 64, 128, 256, 512)]
FIRST = [("all_reduce", 1), ("all_reduce", 4), *ALL, ("reduce_scatter", 256), ("all_reduce", 1024)]
CHANNELS = [{"NCCL_MIN_NCHANNELS": count, "NCCL_MAX_NCHANNELS": count} for count in ("1", "2", "4", "8", "16", "32")]
OTHERS = [
    {"NCCL_BUFFSIZE": "1048576"}, {"NCCL_BUFFSIZE": "16777216"}, {"NCCL_PROTO": "LL128"}, {"NCCL_PROTO": "LL"},
    {"NCCL_CUMEM_HOST_ENABLE": "0"}, {"NCCL_NTHREADS": "256"},
]  # fmt: skip
RUNS = [
    ({**WITHOUT_PEERS, "NCCL_DEBUG": "INFO"}, [*FIRST, ("sendrecv", 16), ("sendrecv", 64)]),
    *(({**WITHOUT_PEERS, **channels}, ALL) for channels in CHANNELS),
    *(({**WITHOUT_PEERS, **setting}, LONG) for setting in OTHERS),
    ({"NCCL_DEBUG": "INFO"}, [*SENDS, ("broadcast", 256)]),
    *(({"NCCL_MAX_P2P_NCHANNELS": count}, SENDS) for count in ("1", "4", "8")),
]


def rings() -> None:
    """Each setting in processes of its own, as NCCL reads its variables once."""
    import torch  # noqa: F401  before the processes part, so that it is read once

    for index, (variables, calls) in enumerate(RUNS):
        children = []
        for rank in (0, 1):
            child = os.fork()
            if child == 0:
                signal.alarm(40)
                rank_of_two(rank, variables, calls, f"/tmp/ranks-{index}")
            children.append(child)
        for child in children:
            os.waitpid(child, 0)


def rank_of_two(rank: int, variables: dict[str, str], calls: list[tuple[str, int]], file: str) -> None:
    """One rank; the first prints."""
    import torch
    import torch.distributed as dist

    os.environ.update(variables)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{file}", rank=rank, world_size=2)
    one, other = (torch.ones(256 * MIB, device="cuda") for _ in range(2))

    def call(operation: str, count: int) -> None:
        message, received = one[:count], other[:count]
        if operation == "all_reduce":
            dist.all_reduce(message)
        elif operation == "all_gather":
            dist.all_gather_into_tensor(message, received[: count // 2])
        elif operation == "reduce_scatter":
            dist.reduce_scatter_tensor(received[: count // 2], message)
        elif operation == "broadcast":
            dist.broadcast(message, 0)
        elif operation == "send":
            dist.send(message, 1) if rank == 0 else dist.recv(message, 0)
        else:
            both = [dist.P2POp(dist.isend, message, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
            for work in dist.batch_isend_irecv(both):
                work.wait()

    rates = {}
    for operation, size in calls:
        count, times = size * MIB // 4, max(3, min(20, 2048 // size))
        for turn in range(3 + times):
            if turn == 3:
                torch.cuda.synchronize()
                begun = time.perf_counter()
            call(operation, count)
        torch.cuda.synchronize()
        share = 0.5 if operation in ("all_gather", "reduce_scatter") else 1.0
        rates[f"{operation} {size}"] = round(share * size * MIB * times / (time.perf_counter() - begun) / 1e9, 1)
    if rank == 0:
        print(variables, rates, flush=True)
    os._exit(0)


KERNEL = r"""extern "C" __global__ void copy(uint4* to, const uint4* from, long count, int times) {
  const long step = (long)gridDim.x * blockDim.x * 8, first = blockIdx.x * blockDim.x * 8L + threadIdx.x;
  for (int turn = 0; turn < times; turn++)
    for (long at = first; at < count; at += step) {
      uint4 held[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3},[%4];"
                     : "=r"(held[i].x), "=r"(held[i].y), "=r"(held[i].z), "=r"(held[i].w)
                     : "l"(from + at + i * blockDim.x) : "memory");
#pragma unroll
      for (int i = 0; i < 8; i++) to[at + i * blockDim.x] = held[i];
    }
}"""


def kernels() -> None:
    """Of one GPU and of both; `swapped`: each reads what the other writes."""
    import cupy

    copy = cupy.RawKernel(KERNEL, "copy")
    streams, memories = [], []
    for gpu in (0, 1):
        with cupy.cuda.Device(gpu):
            streams.append([cupy.cuda.Stream(non_blocking=True) for _ in range(2)])
            memories.append([cupy.zeros(256 * MIB, "u1").data.ptr for _ in range(2)])
    host = [cupy.cuda.alloc_pinned_memory(256 * MIB).ptr for _ in range(4)]

    def rate(gpus: tuple[int, ...], mode: str, blocks: int, size: int, swapped: bool) -> float:
        for times in (1, most := 2048 // size):
            begun = time.perf_counter()
            for gpu in gpus:
                read = host[1 - gpu if swapped else 2 + gpu]
                with cupy.cuda.Device(gpu):
                    if "r" in mode:
                        with streams[gpu][0]:
                            copy((blocks,), (512,), (memories[gpu][0], read, size * MIB // 16, times))
                    if "w" in mode:
                        with streams[gpu][1]:
                            copy((blocks,), (512,), (host[gpu], memories[gpu][1], size * MIB // 16, times))
            for gpu in gpus:
                for stream in streams[gpu]:
                    stream.synchronize()
            taken = time.perf_counter() - begun
        return round(size * MIB * most / taken / 1e9, 1)

    for size in (8, 32, 256):
        for gpus, swapped in (((0,), False), ((0, 1), False), ((0, 1), True)):
            for mode in ("r", "w", "rw"):
                rates = [rate(gpus, mode, blocks, size, swapped) for blocks in (1, 2, 4, 8, 16, 32)]
                print(size, "MiB gpus", len(gpus), "swapped" if swapped else "", mode, rates, flush=True)


if __name__ == "__main__":
    {"rings": rings, "kernels": kernels}[sys.argv[1]]()
