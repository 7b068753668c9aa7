"""How engineers' own scripts print a measurement: a form for each program of provoked_scripts.py, without torch.

Sizes are bytes, times seconds. Each form gives the text as its author would see it, with whatever that author leaves
out; a wrong count or unit is its author's and stands in the program, unless a comment here says otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pprint import pformat

MEGA, GIGA, MEBI, GIBI = 1e6, 1e9, 2**20, 2**30


def gb_per_s(size: float, time_s: float) -> float:
    """A rate in GB/s."""
    return size / time_s / GIGA


def took(what: str, size: int, time_s: float) -> str:
    """A sentence with an arrow."""
    return f"{what} ({size / MEGA:g} MB) took {time_s * 1e3:.1f} ms -> {gb_per_s(size, time_s):.1f} GB/s"


def sizes_in_columns(rows: Sequence[tuple[int, float]]) -> str:
    """Columns with heads, in binary units."""
    lines = [f"{'size':>12}{'time':>14}{'throughput':>18}"]
    for size, time_s in rows:
        amount = f"{size / MEBI:g} MiB" if size >= MEBI else f"{size // 1024} KiB"
        lines.append(f"{amount:>12}{time_s * 1e6:>11.1f} us{size / time_s / MEBI:>12.1f} MiB/s")
    return "\n".join(lines)


def extremes(what: str, size: int, times: Sequence[float]) -> str:
    """Least, mean and largest rate of the runs."""
    rates = [gb_per_s(size, each) for each in times]
    mean = sum(rates) / len(rates)
    return f"{what} x{len(rates)}: min/avg/max = {min(rates):.2f}/{mean:.2f}/{max(rates):.2f} GB/s"


def values(size: int, time_s: float) -> str:
    """Names and values of an f-string."""
    size_gb, dt, rate = size / GIGA, round(time_s, 6), round(gb_per_s(size, time_s), 1)
    return f"{size_gb=} {dt=} {rate=}"


def bar(count: int, size: int, time_s: float) -> str:
    """The last line of a progress bar (tqdm with a postfix)."""
    minutes, seconds = divmod(round(time_s), 60)
    clock = f"{minutes:02}:{seconds:02}"
    done = f"100%|{'█' * 10}| {count}/{count} [{clock}<00:00, {count / time_s:.2f}batch/s"
    return f"to gpu: {done}, GB/s={gb_per_s(size, time_s):.2f}]"


def json_line(event: str, size: int, items: int, time_s: float) -> str:
    """A line of a structured log."""
    fields = {"event": event, "items": items, "bytes": size, "seconds": round(time_s, 6),
              "gb_per_s": round(gb_per_s(size, time_s), 3)}  # fmt: skip
    return json.dumps(fields)


def shard(size: int, time_s: float) -> str:
    """Figures in a sentence alone."""
    return f"a {size / GIGA:g} GB checkpoint shard takes {time_s:.2f} s to reach the GPU"


def rates_alone(rows: Sequence[tuple[str, int, float]]) -> str:
    """Rates without sizes and times; what is called Gb/s here is GB/s."""
    return "\n".join(f"{what:<14}{gb_per_s(size, time_s):8.2f} Gb/s" for what, size, time_s in rows)


def csv(rows: Sequence[tuple[str, int, int, float]]) -> str:
    """Comma separated, with a head: name, elements, bytes as counted, time."""
    lines = [f"{name},{count},{time_s * 1e3:.3f},{gb_per_s(size, time_s):.2f}" for name, count, size, time_s in rows]
    return "\n".join(["tensor,elements,time_ms,GB/s", *lines])


def settings(direction: str, size: int, moved: int, time_s: float) -> str:
    """Keys and values, as YAML."""
    return (
        f"transfer:\n  direction: {direction}\n  pinned: true\n  size_mb: {size / MEGA:g}\n"
        f"  bandwidth_gb_s: {gb_per_s(moved, time_s):.1f}"
    )


def with_ranks(name: str, size: int, times: Sequence[float], factor: float) -> str:
    """A line of each rank."""
    return "\n".join(
        f"[rank {rank}] {name} {size / MEGA:g} MB: {each * 1e3:.2f} ms, algbw {gb_per_s(size, each):.1f} GB/s, "
        f"busbw {gb_per_s(size * factor, each):.1f} GB/s"
        for rank, each in enumerate(times)
    )


def verbose_log(stamp: str, name: str, size: int, time_s: float, factor: float) -> str:
    """The verbose line of DeepSpeed's communication logger (its tutorial on communication logging), in Gbit/s."""
    rate = 8 * gb_per_s(size, time_s)
    return (
        f"[{stamp}] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: {name} | time (ms): {time_s * 1e3:.2f}"
        f" | msg size: {size / MEBI:.1f} MB | algbw (Gbps): {rate:.2f}  | busbw (Gbps): {rate * factor:.2f}"
    )


def binary_rates(rows: Sequence[tuple[str, int, float]]) -> str:
    """Rates in GiB/s and nothing else."""
    return "\n".join(f"{what}: {size / time_s / GIBI:.1f} GiB/s" for what, size, time_s in rows)


def nested(rows: Sequence[tuple[str, int, float, float]]) -> str:
    """A nested dict as pprint shows it: device, size, time to it and from it."""
    table = {device: {"h2d_GBps": round(gb_per_s(size, to), 2), "d2h_GBps": round(gb_per_s(size, back), 2)}
             for device, size, to, back in rows}  # fmt: skip
    return pformat(table, width=60)


def each_time(name: str, size: int, times: Sequence[float]) -> str:
    """A dict with all times."""
    return str({"op": name, "megabytes": size / MEGA, "ms": [round(each * 1e3, 3) for each in times]})


def markdown(rows: Sequence[tuple[int, float]], factor: float) -> str:
    """A table of Markdown."""
    lines = []
    for size, time_s in rows:
        rate = gb_per_s(size, time_s)
        lines.append(f"| {size / MEGA:g} | {time_s * 1e3:.3f} | {rate:.1f} | {rate * factor:.1f} |")
    return "\n".join(["| MB | time (ms) | algbw (GB/s) | busbw (GB/s) |", "|---:|---:|---:|---:|", *lines])


def frame(name: str, rows: Sequence[tuple[int, float]], factor: float) -> str:
    """A data frame with its index, as pandas prints one."""
    lines = [f"{'':<3}{'op':>11}{'bytes':>9}{'time_us':>10}{'busbw_GBps':>12}"]
    for index, (size, time_s) in enumerate(rows):
        rate = gb_per_s(size * factor, time_s)
        lines.append(f"{index:<3}{name:>11}{size:>9}{time_s * 1e6:>10.2f}{rate:>12.3f}")
    return "\n".join(lines)


def metrics(name: str, size: int, times: Sequence[float]) -> str:
    """Metrics as Prometheus scrapes them."""
    metric = f"{name}_bytes_per_second"
    lines = [f'{metric}{{rank="{rank}",bytes="{size}"}} {size / each:.6e}' for rank, each in enumerate(times)]
    return "\n".join([f"# TYPE {metric} gauge", *lines])


@dataclass(frozen=True)
class Result:
    """What a script keeps of a run; its repr is printed."""

    op: str
    nbytes: int
    seconds: float
    busbw_gbs: float


def boxed(rows: Sequence[tuple[str, int, float]], factor: float) -> str:
    """A table with a frame of plus and minus."""
    rule = "+------------+----------+-----------+--------------+"
    lines = [rule, "| collective | size MB  |  time ms  |  busbw GB/s  |", rule]
    for name, size, time_s in rows:
        rate = gb_per_s(size * factor, time_s)
        lines.append(f"| {name:<10} | {size / MEGA:>8g} | {time_s * 1e3:>9.3f} | {rate:>12.2f} |")
    return "\n".join([*lines, rule])


def steps(size: int, times: Sequence[tuple[float, float]]) -> str:
    """Iterations of a trainer between bars: time of all, and of the gradients' exchange."""
    return "\n".join(
        f" iteration {number:4}/{len(times):4} | elapsed time per iteration (ms): {all_of * 1e3:.1f} | "
        f"grad sync (ms): {sync * 1e3:.1f} | grad size (MB): {size / MEGA:.1f} |"
        for number, (all_of, sync) in enumerate(times, 1)
    )


def one_after_another(size: int, times: Sequence[float]) -> str:
    """A rate of each rank."""
    return "\n".join(f"rank {rank}: {gb_per_s(size, each):.2f} GB/s" for rank, each in enumerate(times))


def best_of(size: int, times: Sequence[float]) -> str:
    """What timeit says, and the size alone."""
    return f"shards: {size / MEGA:g} MB in sum\n1 loop, best of {len(times)}: {min(times) * 1e3:.1f} msec per loop"


def decimal(what: str, size: int, time_s: float) -> str:
    """A rate in MB/s."""
    return f"{what}, {size / MEGA:g} MB in all: {size / time_s / MEGA:.0f} MB/s"
