"""`lanewise measure storage`: files or volumes into memory."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options, terminal
from lanewise.cli.measure import recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files or block devices; with --make, folders for test files.")
]


def storage(
    paths: Paths,
    modes: Annotated[
        str | None, typer.Option(metavar="MODES", help="direct, cached, bounce, cuFile; all that can be if not given.")
    ] = None,
    to: Annotated[str, typer.Option(metavar="MEMORY", help="host0, host0:1 (NUMA node 1) or gpu0.")] = "host0",
    io: Annotated[str, typer.Option(metavar="SIZE", help="Bytes of one I/O.")] = "1 MiB",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Bytes of one run, all files together.")] = "1 GB",
    threads: Annotated[int, typer.Option(help="Threads that read.")] = 4,
    depth: Annotated[int, typer.Option(help="I/Os in flight for each thread.")] = 4,
    random: Annotated[bool, typer.Option("--random", help="In random order instead of one after the other.")] = False,
    seconds: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a run lasts, instead of --size.")
    ] = None,
    stripe: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Read all files as one volume with stripes of that size.")
    ] = None,
    make: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Make a test file of that size in each PATH, removed afterwards.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write instead of read; only into files of --make.")] = False,
    engine: Annotated[str, typer.Option(help="auto, io_uring or psync (threads that call pread).")] = "auto",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each mode at most; fewer if they agree within 2 %.")] = 10,
    output: recorder.RunFile = None,
    samples: recorder.SampleFile = None,
    as_json: options.Json = False,
) -> None:
    """Read files or volumes into memory by several modes side by side; nothing of yours is ever written to."""
    from lanewise import api
    from lanewise.results.estimate import Rule

    measured = api.measure_storage(
        paths, _progress(), modes=modes, to=to, io=io, size=size, threads=threads, depth=depth, random=random,
        seconds=seconds, stripe=stripe, make=make, write=write, engine=engine, rule=Rule(min(5, runs), runs, 0.02),
    )  # fmt: skip
    recorder.record(_with_warnings(measured), output, samples, as_json)


def _with_warnings(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The same samples; each warning about them is printed once, as soon as it is known."""
    printed = set()
    with closing(samples):  # type: ignore[type-var]
        for sample in samples:
            for text in _warnings(sample):
                if text not in printed:
                    terminal.note(text)
                printed.add(text)
            yield sample


def _warnings(sample: Sample) -> Iterator[str]:
    engine, mode = sample.how["engine"], sample.how["mode"]
    if "no io_uring" in engine:
        yield f"warning: read by {engine}\nhint:    figures are those of threads with one I/O each, often lower"
    if mode == "cuFile compat":
        yield (
            "warning: cuFile runs in COMPAT MODE: it reads into host memory and copies on; nothing goes straight to "
            "the GPU\nhint:    load nvidia-fs (modprobe nvidia-fs), on a file system that GPUDirect Storage supports"
        )
    if "holes" in sample.note:
        yield f"warning: {sample.note}\nhint:    measure a file that is all on the drive"


def _progress() -> Callable[[StorageProgress], None] | None:
    """Shows current rates in one line that is written over; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(progress: StorageProgress) -> None:
        rates = "  ".join(f"{name} {rate / 1e9:.2f}" for name, rate in progress.rates.items())
        parts = f"   {rates}" if len(progress.rates) > 1 else ""
        terminal.status(f"{progress.stage}: {sum(progress.rates.values()) / 1e9:.2f} GB/s{parts}")

    return show
