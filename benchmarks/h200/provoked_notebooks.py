"""Scripts and notebooks for provoked_fifth.py: each measures a transfer and prints it in a form of its own.

python3 provoked_notebooks.py NAME     NAME one of ALONE, or of TOGETHER with a process for each GPU

What each does right or wrong stands in its function alone; what it prints is in provoked_prints.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import provoked_prints as prints
import torch
import torch.distributed as dist
from provoked_ranks import (
    GPU,
    LARGE,
    MEGA,
    OTHER,
    collective,
    device,
    host,
    of_all,
    on_gpu,
    once,
    run,
    say,
    seconds,
    synchronize,
)


def wait() -> None:
    """Wait for the current stream."""
    if GPU != "cpu":
        torch.cuda.current_stream().synchronize()


def pinned_pair() -> None:
    """Pinned copies each way."""
    there, here = on_gpu(2**28), host(2**28)
    to = seconds(lambda: there.copy_(here, non_blocking=True), 20)
    back = seconds(lambda: here.copy_(there, non_blocking=True), 20)
    print(prints.tuples([("h2d", 2**28, to), ("d2h", 2**28, back)]))


def pinned_grid() -> None:
    """Pinned copies of all sizes, each way."""
    rows = []
    for size in (2**14, 2**17, 2**20, 2**23, 2**26, 2**29):
        there, here = on_gpu(size), host(size)
        to = seconds(lambda a=here, b=there: b.copy_(a, non_blocking=True), 20)  # type: ignore[misc]
        back = seconds(lambda a=here, b=there: a.copy_(b, non_blocking=True), 20)  # type: ignore[misc]
        rows.append((size, to, back))
    print(prints.grid(rows))


def memory_kernels() -> None:
    """The four kernels of STREAM in the GPU's memory, their bytes counted right."""
    size = 2**30
    a, b, c = (on_gpu(size) for _ in range(3))
    works: tuple[tuple[str, int, Callable[[], object]], ...] = (
        ("Copy", 2, lambda: c.copy_(a)), ("Scale", 2, lambda: torch.mul(c, 3.0, out=b)),
        ("Add", 3, lambda: torch.add(a, b, out=c)), ("Triad", 3, lambda: torch.add(b, c, alpha=3.0, out=a)),
    )  # fmt: skip
    rows = []
    for name, arrays, work in works:
        work()
        rows.append((name, arrays * size, [once(work) for _ in range(10)]))
    print(prints.kernels(rows))


def downloads() -> None:
    """Pinned copies from the GPU."""
    there, here = on_gpu(2**30), host(2**30)
    here.copy_(there, non_blocking=True)
    print(prints.above("D2H pinned", 2**30, [once(lambda: here.copy_(there, non_blocking=True)) for _ in range(6)]))


def one_value() -> None:
    """A single float from the GPU, over and over."""
    loss = on_gpu(4)
    print(prints.block(4, seconds(lambda: loss.item(), 2000)))


def activations() -> None:
    """A tensor of the GPU to new, ordinary memory."""
    x, loops = on_gpu(8192 * 16384 * 4).view(8192, 16384), 2
    times = [seconds(lambda: x.cpu(), loops) for _ in range(7)]
    print(prints.notebook(f"torch.Size({list(x.shape)})", x.nbytes, "x.cpu()", times, loops))


def profiled() -> None:
    """Batches of ordinary memory to the GPU, below torch's profiler."""
    batch = host(256 * 3 * 224 * 224 * 4, pinned=False).view(256, 3, 224, 224)
    batch.to(GPU)
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if GPU != "cpu" else []
    with torch.profiler.profile(activities=kinds) as profile:
        for _ in range(20):
            batch.to(GPU, non_blocking=True)
        synchronize()
    print(f"20 batches {tuple(batch.shape)} float32, {batch.nbytes / MEGA:.1f} MB each")
    print(profile.key_averages().table(sort_by="cpu_time_total", row_limit=8))


def rows_by_line() -> None:
    """Rows of a pinned table, each copied and waited for, each line timed."""
    count, width = 4096, 32768
    table, cache = host(count * width).view(count, -1), on_gpu(count * width).view(count, -1)
    seconds(lambda: cache.copy_(table), 1)
    copies = waits = 0.0
    begun = time.perf_counter()
    for row in range(count):
        started = time.perf_counter()
        cache[row].copy_(table[row], non_blocking=True)
        queued = time.perf_counter()
        wait()
        copies, waits = copies + queued - started, waits + time.perf_counter() - queued
    body = ("    for row in range(len(table)):", "        cache[row].copy_(table[row], non_blocking=True)",
            "        torch.cuda.current_stream().synchronize()")  # fmt: skip
    rest = time.perf_counter() - begun - copies - waits
    print(prints.lines("upload", body, (count + 1, count, count), (rest, copies, waits)))


def converted() -> None:
    """Pinned float32 to the GPU as it is, and as float16: the CPU converts it first, into ordinary memory."""
    data = host(512 * MEGA)
    plain = seconds(lambda: data.to(GPU, non_blocking=True), 10)
    half = seconds(lambda: data.to(GPU, torch.float16, non_blocking=True), 3)
    texts = ("before", "512 MB on the wire", plain), ("after", "256 MB on the wire", half)
    print(prints.before_after(texts))


def pinned_each_time() -> None:
    """Batches of ordinary memory, copied to pinned memory and from there to the GPU, all of it timed."""
    batches = [host(128 * MEGA, pinned=False) for _ in range(6)]

    def work(batch: Any) -> None:
        (batch.pin_memory() if GPU != "cpu" else batch).to(GPU, non_blocking=True)

    seconds(lambda: work(batches[0]), 1)
    times = [once(lambda each=batch: work(each)) for batch in batches]  # type: ignore[misc]
    print(prints.rich("host to device", [(128 * MEGA, each) for each in times]))


def column() -> None:
    """One column of a table in the GPU's memory: 4 bytes of each 256."""
    values = on_gpu(2**33 if GPU != "cpu" else 2**26).view(-1, 64)[:, 0]
    print(prints.words("column sum on cuda:0", values.numel() * 4, seconds(lambda: values.sum(), 20)))


def counted_as_float() -> None:
    """A pinned copy of float16, counted as 4 bytes an element."""
    here = torch.ones(2**26, dtype=torch.float16)
    here = here.pin_memory() if GPU != "cpu" else here
    there = torch.empty_like(here, device=GPU)
    time_s = seconds(lambda: there.copy_(here, non_blocking=True), 20)
    print(prints.thousands("upload", here.numel(), here.numel() * 4, time_s))


def all_pairs() -> None:
    """Copies between all GPUs, and within each."""
    devices = (GPU, OTHER)
    times = []
    for source in devices:
        data = on_gpu(2**29, source)
        targets = [on_gpu(2**29, device) for device in devices]
        times.append([seconds(lambda a=data, b=target: b.copy_(a, non_blocking=True), 10)  # type: ignore[misc]
                      for target in targets])  # fmt: skip
    print(prints.matrix("copy_ bandwidth in GB/s, 512 MiB (row: from, column: to)", 2**29, times))


def peer_sizes() -> None:
    """Copies from one GPU to the other, of all sizes."""
    rows = []
    for size in (2**13, 2**16, 2**19, 2**22, 2**25, 2**28):
        source, target = on_gpu(size), on_gpu(size, OTHER)
        rows.append((size, seconds(lambda a=source, b=target: b.copy_(a, non_blocking=True), 50)))  # type: ignore[misc]
    print(prints.arrows(rows))


def by_buffer() -> None:
    """A tensor to the other GPU over a pinned buffer of the host."""
    source, target, buffer = on_gpu(1000 * MEGA), on_gpu(1000 * MEGA, OTHER), host(1000 * MEGA)

    def work() -> None:
        buffer.copy_(source, non_blocking=True)
        wait()
        target.copy_(buffer, non_blocking=True)

    print(prints.sent("handed over", 1000 * MEGA, seconds(work, 5)))


def moved_pages() -> None:
    """Pages from one GPU to the other, each waited for."""
    count, size = 4096, 2**16
    source, target = on_gpu(count * size).view(count, -1), on_gpu(count * size, OTHER).view(count, -1)

    def work() -> None:
        for page in range(count):
            target[page].copy_(source[page], non_blocking=True)
            wait()

    print(prints.pages(count, count * size, seconds(work, 3)))


ALONE: dict[str, Callable[[], None]] = {
    "pinned_pair": pinned_pair, "pinned_grid": pinned_grid, "memory_kernels": memory_kernels,
    "downloads": downloads, "one_value": one_value, "activations": activations, "profiled": profiled,
    "rows_by_line": rows_by_line, "converted": converted, "pinned_each_time": pinned_each_time, "column": column,
    "counted_as_float": counted_as_float, "all_pairs": all_pairs, "peer_sizes": peer_sizes, "by_buffer": by_buffer,
    "moved_pages": moved_pages,
}  # fmt: skip


def traced_reduce() -> None:
    """all_reduce of three sizes."""
    for size in (2**24, 2**26, 2**28):
        work, factor = collective("all_reduce", on_gpu(size, device()), dist.get_world_size())
        time_s = seconds(work, 20)
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        say(prints.tracing(stamp, "all_reduce", size, 20, time_s, factor))


def broadcast() -> None:
    """Weights of rank 0 to the others."""
    data = on_gpu(2000 * MEGA, device())
    say(prints.upright("broadcast", 2000 * MEGA, seconds(lambda: dist.broadcast(data, 0), 5)))


def layers() -> None:
    """The all_reduces of a token: two for each of 80 layers."""
    data = on_gpu(16384, device())
    time_s = seconds(lambda: [dist.all_reduce(data) for _ in range(160)], 20)
    say(prints.go_log(time.strftime("%Y/%m/%d %H:%M:%S"), 160, 16384, time_s))


def gradients() -> None:
    """Gradients in float32, counted as 2 bytes a parameter."""
    data = on_gpu(2000 * MEGA, device())
    time_s = seconds(lambda: dist.all_reduce(data), 5)
    say(prints.grads(data.numel(), data.numel() * 2, time_s))


def objects() -> None:
    """Weights of rank 0 to the others as an object: pickled, through the CPUs."""
    data = {f"layer{number}": on_gpu(32 * MEGA, device()) for number in range(8)}
    time_s = seconds(lambda: dist.broadcast_object_list([data if not dist.get_rank() else None], src=0), 2)
    say(prints.finished("weights to rank 1", 256 * MEGA, time_s))


def scatter_by_gpu() -> None:
    """reduce_scatter, printed of each GPU."""
    work, factor = collective("reduce_scatter", on_gpu(2**28, device()), dist.get_world_size())
    say(prints.by_gpu("reduce_scatter", 2**28, of_all(seconds(work, 10)), factor))


def gather_described() -> None:
    """all_gather, each time measured alone."""
    size = LARGE[-1]
    work, factor = collective("all_gather", on_gpu(size, device()), dist.get_world_size())
    work()
    rates = [prints.gb_per_s(size * factor, once(work)) for _ in range(40)]
    say(prints.described(f"all_gather, {size / MEGA:g} MB, 2 ranks", rates))


def reduce_bits() -> None:
    """all_reduce of 64 MiB."""
    work, _ = collective("all_reduce", on_gpu(2**26, device()), dist.get_world_size())
    say(prints.bits("allreduce", 2**26, seconds(work, 5)))


TOGETHER: dict[str, Callable[[], None]] = {
    "traced_reduce": traced_reduce, "broadcast": broadcast, "layers": layers, "gradients": gradients,
    "objects": objects, "scatter_by_gpu": scatter_by_gpu, "gather_described": gather_described,
    "reduce_bits": reduce_bits,
}  # fmt: skip


if __name__ == "__main__":
    run(ALONE, TOGETHER)
