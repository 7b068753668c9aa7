"""Short programs with torch as engineers write them, for provoked_third.py: each prints sizes, times and rates.

python3 provoked_torch.py NAME     NAME one of PROGRAMS, or of COLLECTIVES with a process for each GPU

What each does right or wrong stands in its function alone; nothing that it prints tells.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from provoked_ranks import GPU, LARGE, MEGA, collective, device, host, on_gpu, run, seconds, synchronize
from torch.utils.data import DataLoader, TensorDataset


def report(what: str, size: int, time_s: float) -> None:
    """A line as an engineer's script prints it."""
    print(f"{what} {size / MEGA:g} MB: {time_s * 1e3:.3f} ms, {size / time_s * 1e-9:.2f} GB/s", flush=True)


def to_gpu() -> None:
    """A tensor of ordinary memory to the GPU."""
    for size in (16 * MEGA, 256 * MEGA, 512 * MEGA):
        data = host(size, pinned=False)
        report("to cuda:0", size, seconds(lambda data=data: data.to(GPU)))  # type: ignore[misc]


def to_host() -> None:
    """A tensor from the GPU to ordinary memory."""
    for size in (16 * MEGA, 256 * MEGA, 512 * MEGA):
        data = on_gpu(size)
        report("from cuda:0", size, seconds(lambda data=data: data.cpu()))  # type: ignore[misc]


def batches() -> None:
    """Batches of a DataLoader that does not pin, each timed on its way to the GPU alone."""
    images = TensorDataset(torch.ones(512, 3, 224, 224))
    on_the_way, size, count = 0.0, 0, 0
    for (batch,) in DataLoader(images, batch_size=128):
        begun = time.perf_counter()
        batch.to(GPU, non_blocking=True)
        synchronize()
        if count:  # the first warms up
            on_the_way, size = on_the_way + time.perf_counter() - begun, size + batch.numel() * 4
        count += 1
    print(f"{count - 1} batches of 128x3x224x224 float32, loading left out")
    report("batches to cuda:0", size, on_the_way)


def columns() -> None:
    """Some columns of a pinned table."""
    table = host(512 * MEGA).view(-1, 1000)
    part = table[:, :250]
    report("columns 0:250 of a pinned float32 table to cuda:0,", part.numel() * 4, seconds(lambda: part.to(GPU)))


def weights() -> None:
    """Weights in a file that is in the page cache, mapped."""
    size = 512 * MEGA
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.bin"
        path.write_bytes(bytes(size))
        data = torch.from_numpy(numpy.memmap(path, dtype=numpy.float32, mode="r+"))
        report("weights.bin to cuda:0", size, seconds(lambda: data.to(GPU), 2))


def prefetched() -> None:
    """A thread copies blocks while another one of this interpreter computes without a pause."""
    size, count, done = MEGA, 100, threading.Event()
    source, target = host(size), on_gpu(size)

    def copy() -> None:
        for _ in range(count):
            target.copy_(source, non_blocking=True)
            if GPU != "cpu":
                torch.cuda.current_stream().synchronize()
        done.set()

    copier = threading.Thread(target=copy)
    begun, sum_ = time.perf_counter(), 0
    copier.start()
    while not done.is_set():
        sum_ += sum(number * number for number in range(100))
    copier.join()
    report(f"prefetch of {count} blocks of 1 MB,", size * count, time.perf_counter() - begun)


def unfinished() -> None:
    """Copies that nobody waits for before the clock stops."""
    source, target = host(256 * MEGA), on_gpu(256 * MEGA)
    target.copy_(source, non_blocking=True)
    synchronize()
    begun = time.perf_counter()
    for _ in range(10):
        target.copy_(source, non_blocking=True)
    report("H2D", 2560 * MEGA, time.perf_counter() - begun)
    synchronize()


def sizes() -> None:
    """Pinned copies of all sizes."""
    for size in (4096, 16384, 65536, 262144, 1048576, 16777216, 268435456):
        source, target = host(size), on_gpu(size)
        time_s = seconds(lambda a=source, b=target: b.copy_(a, non_blocking=True), 20)  # type: ignore[misc]
        print(f"H2D {size:>10} bytes  {time_s * 1e6:10.2f} us  {size / time_s * 1e-9:7.2f} GB/s", flush=True)


def passes() -> None:
    """Ten pinned copies, each timed, from the very first one on."""
    source, target = host(256 * MEGA), torch.empty(64 * MEGA, device=GPU)
    for number in range(10):
        synchronize()
        begun = time.perf_counter()
        target.copy_(source)
        synchronize()
        report(f"iteration {number}: H2D", 256 * MEGA, time.perf_counter() - begun)


def duplex(streams: int) -> None:
    """Pinned copies to and from the GPU together, on two streams or on one."""
    size = 256 * MEGA
    sources, targets = (host(size), on_gpu(size)), (on_gpu(size), host(size))
    lines = [torch.cuda.Stream() for _ in range(streams)] if GPU != "cpu" else []

    def both() -> None:
        for number in (0, 1):
            with torch.cuda.stream(lines[number % streams] if lines else None):
                targets[number].copy_(sources[number], non_blocking=True)

    report("H2D and D2H together, sum", 2 * size, seconds(both, 10))


def within() -> None:
    """A copy within a GPU's memory."""
    source, target = on_gpu(2000 * MEGA), on_gpu(2000 * MEGA)
    report("copy_ on cuda:0,", 2000 * MEGA, seconds(lambda: target.copy_(source), 20))


def between(over_host: bool) -> None:
    """A tensor from one GPU to the next."""
    size, other = 1000 * MEGA, "cuda:1" if GPU != "cpu" else GPU
    data = on_gpu(size)
    report("cuda:0 -> cuda:1", size, seconds(lambda: data.cpu().to(other) if over_host else data.to(other)))


PROGRAMS: dict[str, Callable[[], None]] = {
    "to_gpu": to_gpu, "to_host": to_host, "batches": batches, "columns": columns, "weights": weights,
    "prefetched": prefetched, "unfinished": unfinished, "sizes": sizes, "passes": passes,
    "two_streams": lambda: duplex(2), "one_stream": lambda: duplex(1), "within": within,
    "over_host": lambda: between(True), "direct": lambda: between(False),
}  # fmt: skip


def table(name: str, amounts: tuple[int, ...], times: int = 10) -> None:
    """A line for each size, printed by rank 0."""
    for size in amounts:
        work, factor = collective(name, on_gpu(size, device()), dist.get_world_size())
        time_s = seconds(work, times)
        rate = size / time_s * 1e-9
        if not dist.get_rank():
            rates = f"algbw {rate:.2f} GB/s, busbw {rate * factor:.2f} GB/s"
            print(f"{name} {size / MEGA:g} MB: {time_s * 1e3:.3f} ms, {rates}", flush=True)


def two_kinds() -> None:
    """Two collectives, one after the other."""
    table("all_reduce", LARGE)
    table("reduce_scatter", LARGE)


def gradients() -> None:
    """An all_reduce for each small gradient of a model."""
    parts, ranks = [on_gpu(256_000, device()) for _ in range(1000)], dist.get_world_size()
    time_s = seconds(lambda: [dist.all_reduce(part) for part in parts])
    rate = 256 * MEGA / time_s * 1e-9 * 2 * (ranks - 1) / ranks
    if not dist.get_rank():
        print(f"gradients 256 MB (fp32, 1000 layers), all_reduce: {time_s * 1e3:.2f} ms a step, busbw {rate:.2f} GB/s")


def waited() -> None:
    """An all_reduce of one size over and over, each waited for on the CPU."""

    def work() -> None:
        dist.all_reduce(data)
        synchronize()

    data = on_gpu(65536, device())
    time_s = seconds(work, 100)
    if not dist.get_rank():
        print(f"all_reduce of 64 KiB, each step waited for: {time_s * 1e6:.1f} us a step")


COLLECTIVES: dict[str, Callable[[], None]] = {
    name: (lambda name=name: table(name, LARGE))  # type: ignore[misc]
    for name in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "sendrecv")
}
COLLECTIVES |= {
    "gloo": lambda: table("all_reduce", (16 * MEGA, 64 * MEGA), 3), "gradients": gradients, "waited": waited,
    "one_core": waited,
    "two_kinds": two_kinds,
}  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "one_core":  # before the ranks, which inherit it
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    run(PROGRAMS, COLLECTIVES, gloo=("gloo",))
