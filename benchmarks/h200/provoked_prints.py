"""How people print a measurement in notebooks, logs and tables: a form for each program of provoked_notebooks.py.

Sizes are bytes, times seconds. A wrong count stands in the program; no form has one. Those of provoked_forms.py are
not used again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy

MEGA, GIGA, MEBI = 1e6, 1e9, 2**20


def gb_per_s(size: float, time_s: float) -> float:
    """A rate in GB/s."""
    return size / time_s / GIGA


def short(time_s: float) -> str:
    """A time with the unit that IPython takes."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if time_s * factor >= 1:
            return f"{time_s * factor:.3g} {unit}"
    return f"{time_s * 1e9:.3g} ns"


def tuples(rows: Sequence[tuple[str, int, float]]) -> str:
    """Tuples as print shows them."""
    return "\n".join(str((what, size, round(t, 6), round(gb_per_s(size, t), 2))) for what, size, t in rows)


def grid(rows: Sequence[tuple[int, float, float]]) -> str:
    """A table in the style fancy_grid of tabulate: size, time to the GPU, time from it."""
    widths = (12, 14, 14)

    def rule(left: str, middle: str, right: str, line: str) -> str:
        return left + middle.join(line * width for width in widths) + right

    def row(*cells: str) -> str:
        return "│" + "│".join(f"{cell:>{width - 1}} " for cell, width in zip(cells, widths, strict=True)) + "│"

    body = [row(f"{size / MEBI:g}", f"{gb_per_s(size, to):.3f}", f"{gb_per_s(size, back):.3f}")
            for size, to, back in rows]  # fmt: skip
    between = "\n" + rule("├", "┼", "┤", "─") + "\n"
    head = [rule("╒", "╤", "╕", "═"), row("size [MiB]", "H2D [GB/s]", "D2H [GB/s]"), rule("╞", "╪", "╡", "═")]
    return "\n".join([*head, between.join(body), rule("╘", "╧", "╛", "═")])


def kernels(rows: Sequence[tuple[str, int, Sequence[float]]]) -> str:
    """The table of STREAM."""
    lines = [f"{'Function':<12}{'Best Rate MB/s':>16}{'Avg time':>12}{'Min time':>12}{'Max time':>12}"]
    for name, size, times in rows:
        best, worst, mean = min(times), max(times), statistics.mean(times)
        lines.append(f"{name + ':':<12}{size / best / MEGA:>16.1f}{mean:>12.6f}{best:>12.6f}{worst:>12.6f}")
    return "\n".join(lines)


def above(what: str, size: int, times: Sequence[float]) -> str:
    """The size, and below it a line for each iteration."""
    lines = [f"  iter {number}: {each * 1e3:8.3f} ms" for number, each in enumerate(times)]
    return "\n".join([f"{what}, buffer = {size / MEBI:g} MiB", *lines])


def block(size: int, time_s: float) -> str:
    """A line for each quantity."""
    return f"Size: {size} bytes\nTime: {time_s * 1e6:.2f} us\nBandwidth: {gb_per_s(size, time_s):.6f} GB/s"


def notebook(shape: str, size: int, statement: str, times: Sequence[float], loops: int) -> str:
    """Cells of IPython with %timeit; `times` are those of a loop, one each run."""
    mean, deviation = statistics.mean(times), statistics.pstdev(times)
    plural = "s" if loops > 1 else ""
    runs = f"{len(times)} runs, {loops} loop{plural} each"
    return (
        f"In [4]: x.shape, x.nbytes\nOut[4]: ({shape}, {size})\n\nIn [5]: %timeit {statement}\n"
        f"{short(mean)} ± {short(deviation)} per loop (mean ± std. dev. of {runs})"
    )


def lines(function: str, body: Sequence[str], hits: Sequence[int], times: Sequence[float]) -> str:
    """The table of line_profiler of a function's lines, in microseconds."""
    total = sum(times)
    head = ["Timer unit: 1e-06 s", "", f"Total time: {total:.6g} s", "File: upload.py"]
    head.append(f"Function: {function} at line 21")
    table = f"{'Line #':>6}{'Hits':>10}{'Time':>13}{'Per Hit':>9}{'% Time':>9}  Line Contents"
    found = [f"{21:>6}{'':>41}  def {function}(cache, table):"]
    for number, (text, count, time_s) in enumerate(zip(body, hits, times, strict=True), 22):
        share = 100 * time_s / total
        found.append(f"{number:>6}{count:>10}{time_s * 1e6:>13.1f}{time_s * 1e6 / count:>9.1f}{share:>9.1f}  {text}")
    return "\n".join([*head, "", table, "=" * 62, *found])


def before_after(rows: Sequence[tuple[str, str, float]]) -> str:
    """Two lines: when, what, time."""
    return "\n".join(f"{when:<7} ({what}): {time_s * 1e3:7.2f} ms per call" for when, what, time_s in rows)


def rich(title: str, rows: Sequence[tuple[int, float]]) -> str:
    """A table of rich: number, size, time and rate."""
    body = [f"│ {number:>5} │ {size / MEGA:>9.1f} │ {t * 1e3:>9.2f} │ {gb_per_s(size, t):>7.2f} │"
            for number, (size, t) in enumerate(rows)]  # fmt: skip
    return "\n".join([
        f"{title:^41}".rstrip(),
        "┏━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━┓",
        "┃ batch ┃ size (MB) ┃ time (ms) ┃    GB/s ┃",
        "┡━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━┩",
        *body,
        "└───────┴───────────┴───────────┴─────────┘",
    ])  # fmt: skip


def words(what: str, size: int, time_s: float) -> str:
    """A sentence with the unit in words."""
    return f"{what}: {size / MEGA:.1f} megabytes in {time_s * 1e3:.3f} ms, {gb_per_s(size, time_s):.1f} GB per second"


def thousands(what: str, elements: int, size: int, time_s: float) -> str:
    """Whole numbers with commas, GBytes/s."""
    rate = gb_per_s(size, time_s)
    return f"{what}: {elements:,} elements, {size:,} bytes, {time_s * 1e6:,.0f} us => {rate:.2f} GBytes/s"


def matrix(caption: str, size: int, times: Sequence[Sequence[float]]) -> str:
    """An array of numpy below its caption."""
    rates = numpy.array([[gb_per_s(size, each) for each in row] for row in times])
    return f"{caption}\n{numpy.array2string(rates, precision=1, suppress_small=True, floatmode='fixed')}"


def arrows(rows: Sequence[tuple[int, float]]) -> str:
    """A line for each size with arrows."""
    return "\n".join(
        f"{f'{size / MEBI:g} MiB' if size >= MEBI else f'{size // 1024} KiB':>8} → {time_s * 1e6:9.1f} µs"
        f" → {gb_per_s(size, time_s):6.1f} GB/s"
        for size, time_s in rows
    )


def tracing(stamp: str, name: str, size: int, loops: int, time_s: float, factor: float) -> str:
    """A line of Rust's tracing."""
    return (
        f"{stamp}  INFO comm_bench::run: finished op={name} ranks=2 bytes={size} iters={loops} "
        f"mean={time_s * 1e3:.3f}ms busbw={gb_per_s(size * factor, time_s):.1f}GB/s"
    )


def upright(what: str, size: int, time_s: float) -> str:
    """Quantities between upright strokes."""
    rate = gb_per_s(size, time_s)
    return f"Op: {what} | Payload: {size / GIGA:.2f} GB | Time: {time_s * 1e3:.2f} ms | Rate: {rate:.1f} GB/s"


def go_log(stamp: str, count: int, size: int, time_s: float) -> str:
    """A line of Go's log package."""
    return f"{stamp} tp: {count} x all_reduce({size} B) took {time_s * 1e3:.3f}ms, {time_s / count * 1e6:.1f}us each"


def sent(what: str, size: int, time_s: float) -> str:
    """The plainest line."""
    return f"{what} {size / GIGA:.2f} GB in {time_s:.4f} s = {gb_per_s(size, time_s):.2f} GB/s"


def pages(count: int, size: int, time_s: float) -> str:
    """The last line of a progress display."""
    return (
        f"[{'=' * 24}>] {count}/{count} pages ({size / MEBI:.0f} MiB), {time_s / count * 1e6:.1f} us/page, "
        f"{size / time_s / MEBI:.0f} MiB/s"
    )


def grads(count: int, size: int, time_s: float) -> str:
    """Parameters and bytes with commas."""
    rate = gb_per_s(size, time_s)
    return f"grad allreduce  params={count:,}  bytes={size:,}  time={time_s * 1e3:,.2f} ms  bw={rate:,.1f} GB/s"


def finished(what: str, size: int, time_s: float) -> str:
    """A sentence of a logger."""
    rate = size / time_s / MEGA
    return f"INFO:sync:{what} ({size / MEGA:.1f} MB) finished in {time_s:.2f} seconds [{rate:.1f} MB/sec]"


def by_gpu(name: str, size: int, times: Sequence[float], factor: float) -> str:
    """A line of each GPU."""
    return "\n".join(
        f"[gpu{rank}] {name}({size / MEGA:.1f} MB)  avg {each * 1e3:.3f} ms  "
        f"bus {gb_per_s(size * factor, each):.2f} GB/sec"
        for rank, each in enumerate(times)
    )


def described(caption: str, rates: Sequence[float]) -> str:
    """What describe() of a series of pandas prints."""
    data = numpy.array(rates)
    found = {"count": float(len(data)), "mean": data.mean(), "std": data.std(ddof=1), "min": data.min()}
    found |= {f"{share}%": numpy.percentile(data, share) for share in (25, 50, 75)} | {"max": data.max()}
    rows = [f"{name:<8}{value:>12.6f}" for name, value in found.items()]
    return "\n".join([caption, *rows, "Name: busbw_GBps, dtype: float64"])


def bits(what: str, size: int, time_s: float) -> str:
    """A rate in Gbit/s beside the time of an iteration."""
    return f"{what} {size // MEBI}M: {time_s * 1e3:.1f} ms/iter, {8 * gb_per_s(size, time_s):.1f} Gbit/s"
