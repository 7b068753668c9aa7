"""What provoked_torch.py, provoked_scripts.py and provoked_notebooks.py share: memory, times and ranks of torch."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
import torch.distributed as dist

MEGA = 1_000_000
GPU = "cuda:0" if torch.cuda.device_count() else "cpu"  # by NVML: ranks are forked; a CPU only where this is tested
OTHER = "cuda:1" if GPU != "cpu" else GPU
Programs = Mapping[str, Callable[[], None]]
LARGE = (16 * MEGA, 64 * MEGA, 256 * MEGA)


def synchronize() -> None:
    """Wait for all GPUs, in a rank for its own."""
    for device in range(torch.cuda.device_count()) if not dist.is_initialized() else [dist.get_rank()]:
        if GPU != "cpu":
            torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Mean time of a call, all GPUs done, after one to warm up."""
    work()
    synchronize()
    begun = time.perf_counter()
    for _ in range(times):
        work()
    synchronize()
    return (time.perf_counter() - begun) / times


def once(work: Callable[[], object]) -> float:
    """Time of one call, all GPUs done."""
    synchronize()
    begun = time.perf_counter()
    work()
    synchronize()
    return time.perf_counter() - begun


def host(size: int, pinned: bool = True) -> Any:
    """Host memory of `size` bytes, written."""
    memory = torch.ones(size // 4)
    return memory.pin_memory() if pinned and GPU != "cpu" else memory


def on_gpu(size: int, device: str = GPU) -> Any:
    """GPU memory of `size` bytes, written."""
    return torch.ones(size // 4, device=device)


def device() -> str:
    """The GPU of this rank."""
    return f"cuda:{dist.get_rank()}" if GPU != "cpu" else "cpu"


def collective(name: str, data: Any, ranks: int) -> tuple[Callable[[], Any], float]:
    """A collective of torch on `data`, and its bus bandwidth over its algorithm bandwidth as nccl-tests counts it."""
    rank, part = dist.get_rank(), data.numel() // ranks
    share = torch.ones_like(data[:part])
    if name == "all_reduce":
        return lambda: dist.all_reduce(data), 2 * (ranks - 1) / ranks
    if name == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(share, data), (ranks - 1) / ranks
    if name == "all_gather":
        return lambda: dist.all_gather_into_tensor(data, share), (ranks - 1) / ranks
    other = torch.empty_like(data)
    if name == "all_to_all":
        return lambda: dist.all_to_all_single(other, data), (ranks - 1) / ranks
    operations = [dist.P2POp(dist.isend, data, (rank + 1) % ranks), dist.P2POp(dist.irecv, other, (rank - 1) % ranks)]
    return lambda: [work.wait() for work in dist.batch_isend_irecv(operations)], 1


def of_all(time_s: float) -> list[float]:
    """The times of all ranks."""
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, time_s)
    return found


def say(text: str) -> None:
    """Print on rank 0."""
    if not dist.get_rank():
        print(text, flush=True)


def run(alone: Programs, together: Programs, gloo: Collection[str] = ()) -> None:
    """Run the program of the command line: `alone` here, `together` in a process for each GPU, by NCCL or by gloo."""
    name = sys.argv[1]
    if name in alone:
        alone[name]()
        return
    ranks = torch.cuda.device_count() or 2
    backend = "gloo" if GPU == "cpu" or name in gloo else "nccl"
    torch.multiprocessing.start_processes(_rank, (together[name], ranks, backend), ranks, start_method="fork")


def _rank(rank: int, program: Callable[[], None], ranks: int, backend: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", GLOO_SOCKET_IFNAME="lo")
    if GPU != "cpu":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, rank=rank, world_size=ranks)
    program()
    dist.all_reduce(torch.ones(1, device=device()))  # nobody leaves before all are done
    synchronize()
    dist.destroy_process_group()
