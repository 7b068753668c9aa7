"""What limits batch copies of blocks from one H200 to the host, and what goes past it. Needs no Lanewise installed.

    python3 benchmarks/h200/host_batches.py measure FOLDER     # there: FOLDER/host_batches.json
    python3 benchmarks/h200/host_batches.py bulk FOLDER        # there, with nvcc: FOLDER/bulk.json
    python3 benchmarks/h200/host_batches.py compare FOLDER     # the tables

Gated rows: a kernel keeps the stream back until all copies are posted, events time what follows; of two counts the
difference, so that neither posts nor the start count. Whole rows: 1 GiB on the CPU's clock, posts included, as
`measure kv` does. Rounds of all rows take turns. TOTAL and ROUNDS in the environment make it smaller.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_size_t, c_uint64, c_void_p
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from driver_calls import Copy2D, Driver, Unavailable
from host_rows import BULK, GATED, HUGE, KIB, KINDS, TOTAL, WHOLE, Gated, Whole

ROUNDS = int(os.environ.get("ROUNDS", 15))
NATIVE = Path(__file__).parents[2] / "native" / "cuda"
Row = dict[str, Any]


class Setup:
    """Memories, streams and kernels that all rows share."""

    def __init__(self) -> None:
        driver = self.driver = Driver()
        self.notes: list[str] = []
        self.gpu, self.spare = driver.gpu_memory(TOTAL), driver.gpu_memory(TOTAL)
        self.source = driver.host_memory(TOTAL, HUGE)
        for at in range(0, TOTAL, 1 << 24):
            ctypes.memmove(self.source + at, os.urandom(1 << 24), min(1 << 24, TOTAL - at))
        self.memories: dict[str, int] = {}
        for kind in KINDS:
            if (at := self.attempt(kind, partial(driver.host_memory, TOTAL, kind))) is not None:
                self.memories[kind] = at
        self.streams = [driver.stream() for _ in range(3)]
        self.events = [driver.event() for _ in range(3)]
        self.words = driver.host_memory(2 << 20, HUGE)  # of the gate: open, too late
        image = (NATIVE / "kernels.ptx").read_bytes()
        self.spin = driver.function(image, "lanewise_spin")
        self.kernels = {"pieces": driver.function(image, "lanewise_copy_pieces")}
        self.other: tuple[c_void_p, int, c_void_p] | None = None
        self.attempt("second context", self.add_context)
        self.fill(self.gpu)

    def attempt(self, name: str, work: Callable[[], Any]) -> Any:
        """What it gives; None, with a note, where the driver or the machine lacks it."""
        try:
            return work()
        except (Unavailable, OSError, subprocess.CalledProcessError) as error:
            self.notes.append(f"{name}: {error}")
            print(self.notes[-1], flush=True)
            return None

    def fill(self, gpu: int) -> None:
        """The source's bytes into this GPU memory."""
        self.driver("cuMemcpyHtoDAsync_v2", c_uint64(gpu), c_void_p(self.source), c_size_t(TOTAL), self.streams[0])
        self.wait(self.streams[0])

    def wait(self, stream: c_void_p) -> None:
        """Until the stream is empty."""
        self.driver("cuStreamSynchronize", stream)

    def add_bulk(self) -> None:
        """The kernel of bulk.cu, compiled by nvcc."""
        target = Path("/tmp") / f"bulk-{os.getpid()}.ptx"
        nvcc = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"
        source = Path(__file__).with_name("bulk.cu")
        subprocess.run([str(nvcc), "-ptx", "-arch=sm_90", "-std=c++17", "-o", str(target), str(source)], check=True)
        self.kernels["bulk"] = self.driver.function(target.read_bytes(), "bulk_pieces")

    def add_context(self) -> None:
        """A second context with a stream and a copy of the source, as a copy engine may belong to a context."""
        context, popped = c_void_p(), c_void_p()
        self.driver("cuCtxCreate_v2", byref(context), ctypes.c_uint(0), self.driver.device)
        try:
            gpu, stream = self.driver.gpu_memory(TOTAL), self.driver.stream()
            self.driver("cuMemcpyHtoDAsync_v2", c_uint64(gpu), c_void_p(self.source), c_size_t(TOTAL), stream)
            self.wait(stream)
            self.other = context, gpu, stream
        finally:
            self.driver("cuCtxPopCurrent_v2", byref(popped))


def places(order: str, size: int, seed: int) -> list[int]:
    """Offsets of all the pieces in that order."""
    count = TOTAL // size
    numbers = list(range(count))
    if order == "scattered":
        random.Random(seed).shuffle(numbers)
    if order == "window":
        numbers = [number % max(1, (8 << 20) // size) for number in numbers]
    return [number * size for number in numbers]


def in_windows(of: Sequence[int], at: Sequence[int], window: int) -> tuple[list[int], list[int]]:
    """The same pieces, so many after each other sorted by where they go."""
    pieces = list(zip(at, of, strict=True))
    for first in range(0, len(pieces) if window else 0, window or 1):
        pieces[first : first + window] = sorted(pieces[first : first + window])
    return [piece[1] for piece in pieces], [piece[0] for piece in pieces]


def words(values: Sequence[int]) -> Any:
    """A C array of 64-bit words."""
    return (c_uint64 * len(values))(*values)


class GatedRun:
    """One gated row, ready to run."""

    def __init__(self, setup: Setup, row: Gated) -> None:
        self.setup, self.row, self.seconds = setup, row, {count: list[float]() for count in row.counts}
        host = setup.source if row.direction == "h2d" else setup.memories[row.memory]
        start, end = (host, setup.spare) if row.direction == "h2d" else (setup.gpu, host)
        self.start, self.end = start, end
        most = row.counts[1]
        self.of = places(row.order[0], row.size, 1)[:most]
        self.at = places(row.order[1], row.size, 2)[:most]
        self.sources, self.targets = words([start + at for at in self.of]), words([end + at for at in self.at])
        self.sizes = words([row.size] * most)

    def post(self, count: int) -> None:
        """Posts so many copies."""
        streams, row = self.setup.streams, self.row
        if row.software == "2d":
            return self.post_2d(count)
        if row.software in ("call", "dtod"):
            return self.post_calls(0, count, streams[0])
        own = count
        if row.software == "batch beside dtod":
            own = count // 2
            self.post_calls(own, count, streams[1], "dtod")
        for turn, first in enumerate(range(0, own, row.calls)):
            stream = streams[turn % 2] if row.software == "two streams" else streams[0]
            self.setup.driver.batch(self.targets, self.sources, self.sizes, first, min(row.calls, own - first), stream,
                                    row.flags, row.access)  # fmt: skip
        return None

    def post_calls(self, first: int, end: int, stream: c_void_p, software: str = "") -> None:
        """A call a piece."""
        of_device = (software or self.row.software) == "dtod"
        name = "cuMemcpyHtoDAsync_v2" if self.row.direction == "h2d" else "cuMemcpyDtoHAsync_v2"
        for i in range(first, end):
            at, of = c_uint64(self.targets[i]), c_uint64(self.sources[i])
            self.setup.driver("cuMemcpyDtoDAsync_v2" if of_device else name, at, of, c_size_t(self.row.size), stream)

    def post_2d(self, count: int) -> None:
        """One copy whose lines are the pieces, every second place on the GPU and on the host."""
        size, half = self.row.size, min(count, TOTAL // self.row.size // 2)
        copy = Copy2D(source_type=2, source_device=self.start, source_pitch=2 * size, destination_type=1,
                      destination_host=self.end, destination_pitch=2 * size, width=size, height=half)  # fmt: skip
        self.setup.driver("cuMemcpy2DAsync_v2", byref(copy), self.setup.streams[0])

    def run(self, count: int) -> float:
        """Seconds on the GPU of so many copies; inf where they were posted too late."""
        setup, driver = self.setup, self.setup.driver
        first, second = setup.streams[:2]
        start, end, joined = setup.events
        two = self.row.software in ("two streams", "batch beside dtod")
        ctypes.memset(setup.words, 0, 64)
        for stream in (first, second) if two else (first,):
            driver.launch(setup.spin, 1, 1, stream, (setup.words, setup.words + 32, 400_000_000))
        try:
            driver("cuEventRecord", start, first)
            self.post(count)
            if two:
                driver("cuEventRecord", joined, second)
                driver("cuStreamWaitEvent", first, joined, ctypes.c_uint(0))
            driver("cuEventRecord", end, first)
        finally:  # also where the driver refuses a call
            ctypes.memset(setup.words, 1, 4)
            setup.wait(first)
            setup.wait(second)
        milliseconds = c_float()
        driver("cuEventElapsedTime", byref(milliseconds), start, end)
        late = ctypes.c_uint.from_address(setup.words + 32).value != 0
        return float("inf") if late else milliseconds.value / 1e3

    def verify(self) -> bool:
        """Whether all pieces arrive; rows to the GPU, lines and shared places are not compared."""
        row, count = self.row, self.row.counts[1]
        if row.direction == "h2d" or row.software == "2d" or "window" in row.order:
            self.run(count)
            return True
        for at in self.at[:count]:
            ctypes.memset(self.end + at, 0, row.size)
        self.run(count)
        same = self.setup.driver.libc.memcmp
        return all(same(self.end + at, self.setup.source + of, row.size) == 0
                   for at, of in zip(self.at[:count], self.of[:count], strict=True))  # fmt: skip

    def round(self) -> None:
        """One of each count."""
        for count in self.row.counts:
            self.seconds[count].append(self.run(count))


class WholeRun:
    """One whole row, ready to run."""

    def __init__(self, setup: Setup, row: Whole) -> None:
        self.setup, self.row, self.seconds = setup, row, list[float]()
        self.host = setup.memories[row.memory]
        self.count = TOTAL // row.size
        self.of, self.at = in_windows(places("scattered", row.size, 1), places("scattered", row.size, 2), row.window)
        self.copied = self.count - round(self.count * row.share)  # by batches; a kernel has the rest
        self.targets = words([self.host + at for at in self.at])
        self.sources = words([setup.gpu + of for of in self.of])
        self.sizes = words([row.size] * self.count)
        if row.contexts == 2:
            if setup.other is None:
                raise Unavailable("no second context")
            self.other_sources = words([setup.other[1] + of for of in self.of])
        if self.copied < self.count:
            if row.kernel not in setup.kernels:
                raise Unavailable(f"no kernel {row.kernel}")
            self.function = setup.kernels[row.kernel]
            self.lists = setup.driver.gpu_memory(8 * self.count)
            numbers = [at // row.size for order in (self.at, self.of) for at in order[self.copied :]]
            array = (ctypes.c_uint32 * len(numbers))(*numbers)
            setup.driver("cuMemcpyHtoDAsync_v2", c_uint64(self.lists), byref(array), c_size_t(4 * len(numbers)),
                         setup.streams[0])  # fmt: skip
            setup.wait(setup.streams[0])

    def post_kernel(self) -> None:
        """The kernel's share, on the last stream."""
        row, count = self.row, self.count - self.copied
        size, threads = (row.size, 32) if row.kernel == "bulk" else (row.size // 16, 256)
        values = (self.host, self.setup.gpu, self.lists, self.lists + 4 * count, count, size)
        self.setup.driver.launch(self.function, row.blocks, threads, self.setup.streams[2], values)

    def run(self) -> float:
        """Seconds from the first post until the last piece has arrived."""
        setup, row, driver = self.setup, self.row, self.setup.driver
        streams = setup.streams[: row.streams]
        other = setup.other if row.contexts == 2 else None
        begun = time.perf_counter()
        if self.copied < self.count:
            self.post_kernel()
        for turn, first in enumerate(range(0, self.copied, row.calls)):
            count = min(row.calls, self.copied - first)
            if other is not None and turn % 2:
                popped = c_void_p()
                driver("cuCtxPushCurrent_v2", other[0])
                driver.batch(self.targets, self.other_sources, self.sizes, first, count, other[2], 0, 1)
                driver("cuCtxPopCurrent_v2", byref(popped))
            else:
                stream = streams[turn % row.streams]
                driver.batch(self.targets, self.sources, self.sizes, first, count, stream, 0, 1)
        for stream in (*streams, setup.streams[2]):
            setup.wait(stream)
        if other is not None:
            popped = c_void_p()
            driver("cuCtxPushCurrent_v2", other[0])
            setup.wait(other[2])
            driver("cuCtxPopCurrent_v2", byref(popped))
        return time.perf_counter() - begun

    def verify(self) -> bool:
        """Whether all pieces arrive."""
        ctypes.memset(self.host, 0, TOTAL)
        self.run()
        if self.row.memory == "write-combined":
            return True  # the CPU reads it too slowly
        same = self.setup.driver.libc.memcmp
        return all(same(self.host + at, self.setup.source + of, self.row.size) == 0
                   for at, of in zip(self.at, self.of, strict=True))  # fmt: skip

    def round(self) -> None:
        """One more."""
        self.seconds.append(self.run())


def prepare(setup: Setup, row: Gated | Whole) -> GatedRun | WholeRun:
    """The row's run, once all its pieces have arrived."""
    if row.memory not in setup.memories:
        raise Unavailable(f"no memory of the kind {row.memory}")
    run = GatedRun(setup, row) if isinstance(row, Gated) else WholeRun(setup, row)
    if not run.verify():
        raise Unavailable("a piece arrived wrong")
    return run


def measure(out: Path) -> None:
    """All rows but those of the bulk kernel."""
    measure_rows(out / "host_batches.json", Setup(), (*GATED, *WHOLE))


def measure_bulk(out: Path) -> None:
    """Rows of the bulk kernel: in a process of their own, as a kernel that fails takes the context with it."""
    setup = Setup()
    setup.attempt("bulk kernel", setup.add_bulk)
    measure_rows(out / "bulk.json", setup, BULK)


def measure_rows(target: Path, setup: Setup, rows: tuple[Gated | Whole, ...]) -> None:
    """All of them: each verified once, then in turns."""
    began = time.monotonic()
    names = [f"{type(row).__name__.lower()} {row.name}" for row in rows]
    possible = [setup.attempt(name, partial(prepare, setup, row)) for name, row in zip(names, rows, strict=True)]
    runs: list[GatedRun | WholeRun] = [run for run in possible if run is not None]
    print(f"verified after {time.monotonic() - began:.0f} s", flush=True)
    for number in range(ROUNDS + 1):
        for run in runs if number % 2 else reversed(runs):
            run.round()
        save(target, runs, setup.notes)
    print(f"done after {time.monotonic() - began:.0f} s", flush=True)


def save(target: Path, runs: Sequence[GatedRun | WholeRun], notes: Sequence[str]) -> None:
    """All raw seconds but those of the first round, which warms up."""
    rows: list[Row] = []
    for run in runs:
        row: Row = {"kind": type(run.row).__name__, **asdict(run.row)}
        if isinstance(run, GatedRun):
            row["seconds"] = {str(count): values[1:] for count, values in run.seconds.items()}
        else:
            row["seconds"] = run.seconds[1:]
        rows.append(row)
    text = json.dumps({"total": TOTAL, "notes": list(notes), "rows": rows}, indent=1)
    target.write_text(text + "\n", encoding="utf-8")


def compare(out: Path) -> None:
    """The tables of all files."""
    for path in sorted(out.glob("*.json")):
        print(f"\n{path.name}\n")
        tables(json.loads(path.read_text(encoding="utf-8")))


def tables(data: Row) -> None:
    """The tables of both kinds."""
    peaks: dict[str, float] = {}
    print("| gated | KiB | us a piece | gap us | of the peak |\n|---|---:|---:|---:|---:|")
    for row in (row for row in data["rows"] if row["kind"] == "Gated"):
        few, many = ((int(count), median(values)) for count, values in row["seconds"].items())
        each = (many[1] - few[1]) / (many[0] - few[0])
        if "long copies" in row["name"]:
            peaks[row["direction"]] = row["size"] / each
        ideal = row["size"] / peaks[row["direction"]]
        text = f"{each * 1e6:.3f} | {(each - ideal) * 1e6:.3f} | {ideal / each:.3f}"
        print(f"| {row['name']} | {row['size'] // KIB} | {text} |")
    peak = 0.0
    print("\n| whole | KiB | GB/s | lowest | highest | of the peak |\n|---|---:|---:|---:|---:|---:|")
    for row in (row for row in data["rows"] if row["kind"] == "Whole"):
        rates = sorted(data["total"] / seconds for seconds in row["seconds"])
        peak = peak or median(rates)
        low, middle, high = (f"{rate / 1e9:.2f}" for rate in (rates[0], median(rates), rates[-1]))
        print(f"| {row['name']} | {row['size'] // KIB} | {middle} | {low} | {high} | {median(rates) / peak:.3f} |")
    for note in data["notes"]:
        print(f"\nnot measured: {note}")


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    {"measure": measure, "bulk": measure_bulk, "compare": compare}[sys.argv[1]](folder)
