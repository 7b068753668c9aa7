"""Scripts of engineers for provoked_fourth.py: each measures a transfer and prints it in a form of its own.

python3 provoked_scripts.py NAME     NAME one of ALONE, or of TOGETHER with a process for each GPU

What each does right or wrong stands in its function alone; nothing that it prints tells.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import provoked_forms as forms
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
)


def pinned_both_ways() -> None:
    """Copies to and from the GPU at once on two streams, logged."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    size = 256 * 2**20
    sources, targets = (host(size), on_gpu(size)), (on_gpu(size), host(size))
    lines = [torch.cuda.Stream() for _ in sources] if GPU != "cpu" else [None, None]

    def both() -> None:
        for number, line in enumerate(lines):
            with torch.cuda.stream(line):
                targets[number].copy_(sources[number], non_blocking=True)

    time_s = seconds(both, 10)
    rate = 2 * size / time_s / 2**30
    logging.getLogger("dma").info("H2D + D2H concurrent, 256 MiB each: %.2f ms, %.1f GiB/s", time_s * 1e3, rate)


def by_size() -> None:
    """Pinned copies of all sizes."""
    rows = []
    for size in (4096, 32768, 262144, 2097152, 16777216, 134217728):
        source, target = host(size), on_gpu(size)
        rows.append((size, seconds(lambda a=source, b=target: b.copy_(a, non_blocking=True), 20)))  # type: ignore[misc]
    print(forms.sizes_in_columns(rows))


def runs() -> None:
    """Pinned copies from the very first one on, which allocates the GPU's memory as well."""
    source = host(256 * MEGA)
    times = [once(lambda: source.to(GPU, non_blocking=True)) for _ in range(10)]
    print(forms.extremes("H2D 256MB", 256 * MEGA, times))


def within() -> None:
    """A copy within the GPU's memory, its bytes counted once."""
    source, target = on_gpu(2000 * MEGA), on_gpu(2000 * MEGA)
    print(forms.values(2000 * MEGA, seconds(lambda: target.copy_(source), 20)))


def weights() -> None:
    """A tensor of ordinary memory to the GPU."""
    data = host(512 * MEGA, pinned=False)
    print(forms.took("copying weights to cuda:0", 512 * MEGA, seconds(lambda: data.to(GPU))))


def images() -> None:
    """Batches as numpy makes them, in ordinary memory."""
    stock = [numpy.ones((64, 3, 224, 224), dtype=numpy.float32) for _ in range(8)]
    batches = [torch.from_numpy(stock[number % len(stock)]) for number in range(64)]
    time_s = seconds(lambda: [batch.to(GPU, non_blocking=True) for batch in batches], 1)
    print(forms.bar(len(batches), len(batches) * stock[0].nbytes, time_s))


def rows_of_ids() -> None:
    """Rows of a pinned table, each copied and waited for."""
    count, width = 4000, 16_000
    table, target = host(count * width * 4).view(count, width), on_gpu(count * width * 4).view(count, width)

    def work() -> None:
        for row in range(count):
            target[row].copy_(table[row], non_blocking=True)
            if GPU != "cpu":
                torch.cuda.current_stream().synchronize()

    print(forms.json_line("h2d", count * width * 4, count, seconds(work, 2)))


def shard() -> None:
    """A large tensor of ordinary memory to the GPU."""
    data = host(4000 * MEGA, pinned=False)
    print(forms.shard(4000 * MEGA, seconds(lambda: data.to(GPU), 1)))


def directions() -> None:
    """Pinned copies each way; the form's unit is wrong."""
    to, back = pinned_times(GPU)
    print(forms.rates_alone([("H2D (pinned)", 256 * MEGA, to), ("D2H (pinned)", 256 * MEGA, back)]))


def pinned_times(device: str) -> tuple[float, float]:
    """Times of pinned copies of 256 MB to a GPU and from it."""
    there, here = on_gpu(256 * MEGA, device), host(256 * MEGA)
    to = seconds(lambda: there.copy_(here, non_blocking=True), 10)
    return to, seconds(lambda: here.copy_(there, non_blocking=True), 10)


def features() -> None:
    """Pinned arrays of numpy, which are float64, counted as 4 bytes an element."""
    rows = []
    for name, count in (("users", 8 * MEGA), ("items", 32 * MEGA), ("pairs", 64 * MEGA)):
        data = torch.from_numpy(numpy.ones(count))
        data = data.pin_memory() if GPU != "cpu" else data
        target = torch.empty_like(data, device=GPU)
        rows.append((name, count, count * 4, seconds(lambda a=data, b=target: b.copy_(a), 5)))  # type: ignore[misc]
    print(forms.csv(rows))


def transfer() -> None:
    """A pinned copy to the GPU, its bytes counted at the host and at the GPU."""
    to, _ = pinned_times(GPU)
    print(forms.settings("host -> cuda:0", 256 * MEGA, 2 * 256 * MEGA, to))


def hop() -> None:
    """A tensor to the other GPU and back, directly."""
    data, other = on_gpu(2**30), on_gpu(2**30, OTHER)
    there = seconds(lambda: other.copy_(data, non_blocking=True), 10)
    back = seconds(lambda: data.copy_(other, non_blocking=True), 10)
    print(forms.binary_rates([("cuda:0 -> cuda:1", 2**30, there), ("cuda:1 -> cuda:0", 2**30, back)]))


def each_gpu() -> None:
    """Pinned copies of each GPU in turn."""
    print(forms.nested([(device, 256 * MEGA, *pinned_times(device)) for device in dict.fromkeys((GPU, OTHER))]))


def two_programs() -> None:
    """nvbandwidth between the GPUs, then a tensor that takes the way over the CPU."""
    print("with nvbandwidth:", flush=True)
    tool = Path(__file__).resolve().parent / "nvbandwidth"
    arguments = ["-b", "512", "-i", "3", "-t", "device_to_device_memcpy_write_ce"]
    subprocess.run([str(tool), *arguments], check=True)
    data = on_gpu(1000 * MEGA)
    time_s = seconds(lambda: data.cpu().to(OTHER), 2)
    print(f"\nand with ours, the same two GPUs:\n1 GB handed over in {time_s * 1e3:.1f} ms")


def shards() -> None:
    """Halves of the columns of a pinned table, one for each GPU: slices that are not contiguous."""
    table = host(512 * MEGA).view(-1, 2000)
    parts = ((table[:, :1000], GPU), (table[:, 1000:], OTHER))
    times = [once(lambda: [part.to(device) for part, device in parts]) for _ in range(4)][1:]
    print(forms.best_of(512 * MEGA, times))


def exchange() -> None:
    """Tensors to each other's GPU at once, as the author thinks: both copies wait for both default streams."""
    size = 512 * MEGA
    here, there = on_gpu(size), on_gpu(size, OTHER)
    to, back = on_gpu(size, OTHER), on_gpu(size)

    def both() -> None:
        to.copy_(here, non_blocking=True)
        back.copy_(there, non_blocking=True)

    print(forms.decimal("swap cuda:0 <-> cuda:1", 2 * size, seconds(both, 10)))


ALONE: dict[str, Callable[[], None]] = {
    "pinned_both_ways": pinned_both_ways, "by_size": by_size, "runs": runs, "within": within, "weights": weights,
    "images": images, "rows_of_ids": rows_of_ids, "shard": shard, "directions": directions, "features": features,
    "transfer": transfer, "hop": hop, "each_gpu": each_gpu, "two_programs": two_programs, "shards": shards,
    "exchange": exchange,
}  # fmt: skip


def measured(name: str, size: int, times: int = 10) -> tuple[float, float]:
    """Mean time of a collective, and its bus bandwidth over its algorithm bandwidth."""
    work, factor = collective(name, on_gpu(size, device()), dist.get_world_size())
    return seconds(work, times), factor


def gather_of_ranks() -> None:
    """An all_gather, printed of each rank."""
    time_s, factor = measured("all_gather", 256 * MEGA)
    say(forms.with_ranks("all_gather", 256 * MEGA, of_all(time_s), factor))


def logged_reduce() -> None:
    """reduce_scatter as a trainer's logger prints it."""
    for size in (2**24, 2**26, 2**28):
        time_s, factor = measured("reduce_scatter", size)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S,") + f"{time.time_ns() // 1_000_000 % 1000:03}"
        say(forms.verbose_log(stamp, "reduce_scatter_tensor", size, time_s, factor))


def each_reduce() -> None:
    """all_reduce from the very first one on."""
    work, _ = collective("all_reduce", on_gpu(256 * MEGA, device()), dist.get_world_size())
    say(forms.each_time("all_reduce", 256 * MEGA, [once(work) for _ in range(8)]))


def experts() -> None:
    """all_to_all of three sizes."""
    found = [(size, *measured("all_to_all", size)) for size in LARGE]
    say(forms.markdown([(size, time_s) for size, time_s, _ in found], found[0][2]))


def small_reduces() -> None:
    """all_reduce of small sizes."""
    found = [(size, *measured("all_reduce", size, 100)) for size in (1024, 8192, 65536, 524288)]
    say(forms.frame("all_reduce", [(size, time_s) for size, time_s, _ in found], found[0][2]))


def reduce_by_metrics() -> None:
    """all_reduce of tensors on GPUs; main() takes gloo for it."""
    time_s, _ = measured("all_reduce", 2**26, 3)
    say(forms.metrics("allreduce", 2**26, of_all(time_s)))


def kept_results() -> None:
    """all_reduce of three sizes, results printed as they are kept."""
    for size in LARGE:
        time_s, factor = measured("all_reduce", size)
        say(repr(forms.Result("all_reduce", size, round(time_s, 6), round(forms.gb_per_s(size * factor, time_s), 2))))


def boxed_gather() -> None:
    """all_gather of three sizes in a frame."""
    found = [(size, *measured("all_gather", size)) for size in LARGE]
    say(forms.boxed([("all_gather", size, time_s) for size, time_s, _ in found], found[0][2]))


def trainer() -> None:
    """Steps with an all_reduce for each small gradient."""
    parts, count = [on_gpu(64_000, device()) for _ in range(4000)], 4
    square = torch.ones(2048, 2048, device=device())

    def sync() -> None:
        for part in parts:
            dist.all_reduce(part)

    found = []
    for _ in range(count):
        computed = once(lambda: square @ square)
        time_s = once(sync)
        found.append((computed + time_s, time_s))
    say(forms.steps(4000 * 64_000, found[1:]))


def loaders() -> None:
    """Pinned copies of all ranks at once, all of them to the first GPU."""
    source, target = host(256 * MEGA), on_gpu(256 * MEGA)
    of_all(0)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < 1:  # long enough that the ranks' times nearly agree
        target.copy_(source)
        count += 1
    say(forms.one_after_another(count * 256 * MEGA, of_all(time.perf_counter() - begun)))


TOGETHER: dict[str, Callable[[], None]] = {
    "gather_of_ranks": gather_of_ranks, "logged_reduce": logged_reduce, "each_reduce": each_reduce,
    "experts": experts, "small_reduces": small_reduces, "reduce_by_metrics": reduce_by_metrics,
    "kept_results": kept_results, "boxed_gather": boxed_gather, "trainer": trainer, "loaders": loaders,
}  # fmt: skip


if __name__ == "__main__":
    run(ALONE, TOGETHER, gloo=("reduce_by_metrics",))
