"""`lanewise measure`: what this machine's data paths deliver."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import recorder, terminal
from lanewise.cli.command import Command, Json, QuickGroup, option_group
from lanewise.options.measure_collectives import MeasureCollectivesOptions
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.options.measure_host import MeasureHostOptions
from lanewise.options.measure_kv import MeasureKvOptions
from lanewise.options.measure_load import MeasureLoadOptions
from lanewise.options.measure_network import MeasureNetworkOptions
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.options.sampling import RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.load.session import LoadProgress
    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample

app = typer.Typer(
    cls=QuickGroup,
    help="Measure the data paths of this machine; Ctrl-C keeps the samples up to then.",
    no_args_is_help=True,
)


@app.command(cls=Command, short_help="Memory copies by NUMA node and thread count.")
@option_group
def host(options: MeasureHostOptions, record_options: RecordOptions, json: Json = None) -> None:
    """Copy, read and write this machine's memory between its NUMA nodes, and time single loads."""
    from lanewise.api.measure import host_probe

    probe = host_probe()
    recorder.record(probe.run(options), record_options, json, probe.machine_facts())


@app.command(cls=Command, short_help="Copies between hosts and GPUs, peers, latency; any flows at once.")
@option_group
def gpu(
    options: MeasureGpuOptions,
    record_options: RecordOptions,
    list_cases: Annotated[
        bool, typer.Option("--list", help="List the cases and what each shows; measure nothing.")
    ] = False,
    json: Json = None,
) -> None:
    """Measure copies between this machine's hosts and GPUs; without options host and GPU, all pairs, and latencies."""
    from lanewise.api.measure import gpu_probe

    if list_cases:
        from dataclasses import asdict

        from lanewise.probes.gpu.cases import select_cases
        from lanewise.report.text.listings import render_cases

        listed = select_cases(options.case_names or ("all",))
        return terminal.print_text(render_cases, [asdict(case) for case in listed])
    probe = gpu_probe()
    if skipped := probe.skipped_cases(options):
        terminal.note(f"skipped, for want of a second GPU: {', '.join(skipped)}")
    recorder.record(probe.run(options), record_options, json, probe.machine_facts())
    return None


@app.command(cls=Command, short_help="NCCL's collectives of this machine's GPUs, verified, as nccl-tests times them.")
@option_group
def collectives(options: MeasureCollectivesOptions, record_options: RecordOptions, json: Json = None) -> None:
    """Measure collectives of this machine's GPUs with NCCL in one process: each size out of place and in place.

    The data of each size is compared once. The run is of the rows that predict --collective predicts and check judges.
    """
    from lanewise.api.measure import collective_probe
    from lanewise.report.text.collective_table import render_collectives

    probe = collective_probe()
    recorder.record(probe.run(options), record_options, json, probe.machine_facts(), render_collectives)


@app.command(cls=Command, short_help="Files or volumes into host or GPU memory.")
@option_group
def storage(options: MeasureStorageOptions, record_options: RecordOptions, json: Json = None) -> None:
    """Read files or volumes into memory by several modes; nothing of yours is ever written to."""
    from lanewise.api.measure import storage_probe

    samples = storage_probe(_storage_progress()).run(options)
    recorder.record(_with_storage_warnings(samples), record_options, json)


@app.command(cls=Command, short_help="Blocks of a KV cache between GPU, host memory and files.")
@option_group
def kv(options: MeasureKvOptions, record_options: RecordOptions, json: Json = None) -> None:
    """Move blocks of memory from a GPU to the host, another GPU or a test file, back, and both ways at once.

    By each software that can: rate, time a block, and share of the rate of long copies.
    """
    from lanewise.api.measure import kv_probe
    from lanewise.report.text.blocks import render_measured_blocks

    probe = kv_probe(options)
    samples = probe.run(options, _storage_progress())
    recorder.record(
        _with_storage_warnings(samples), record_options, json, probe.machine_facts(), render_measured_blocks
    )


@app.command(cls=Command, short_help="Safetensors files to GPU or host memory, beside other loaders.")
@option_group
def load(options: MeasureLoadOptions, record_options: RecordOptions, json: Json = None) -> None:
    """Load the tensors of safetensors files to GPUs or host memory: seconds, rate, and what limits each mode.

    The same files are also loaded by the loaders that are installed: safetensors, fastsafetensors, Run:ai's streamer.
    """
    from lanewise.api.measure import load_probe

    recorder.record(load_probe(_load_progress()).run(options), record_options, json)


@app.command(cls=Command, short_help="Bandwidth and latency between two processes or hosts.")
@option_group
def network(
    options: MeasureNetworkOptions,
    record_options: RecordOptions,
    listen: Annotated[
        bool, typer.Option("--listen", help="Answer clients here, on loopback unless an address is named.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="With --listen: end after one client.")] = False,
    json: Json = None,
) -> None:
    """Measure bandwidth or latency between two processes or hosts over TCP or RDMA verbs.

    One side runs with --listen, the other names it and has its secret; without an address two processes measure
    loopback.
    """
    from lanewise.api.measure import listen_network, network_probe

    if listen:
        return listen_network(
            options.address or "", side=options, once=once, say=terminal.note, show_secret=terminal.out_now
        )
    recorder.record(network_probe().run(options), record_options, json)
    return None


def _with_storage_warnings(samples: Iterator[Sample]) -> Iterator[Sample]:
    """The same samples; each warning about them is printed once, as soon as it is known."""
    printed = set()
    with closing(samples):  # type: ignore[type-var]
        for sample in samples:
            for text in _storage_warnings(sample):
                if text not in printed:
                    terminal.note(text)
                printed.add(text)
            yield sample


def _storage_warnings(sample: Sample) -> Iterator[str]:
    engine, mode = sample.how["engine"], sample.how.get("mode", "")
    if "no io_uring" in engine:
        yield f"warning: read by {engine}\nhint:    figures are those of threads with one I/O each, often lower"
    if mode == "cuFile compat":
        yield (
            "warning: cuFile runs in COMPAT MODE: it reads into host memory and copies on; nothing goes straight to "
            "the GPU\nhint:    load nvidia-fs (modprobe nvidia-fs), on a file system that GPUDirect Storage supports"
        )
    if "holes" in sample.note:
        yield f"warning: {sample.note}\nhint:    measure a file that is all on the drive"


def _load_progress() -> Callable[[LoadProgress], None] | None:
    """Shows how much is loaded in one line that is written over; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(progress: LoadProgress) -> None:
        rate = f", {progress.rate / 1e9:.2f} GB/s" if progress.rate else ""
        terminal.status(f"{progress.stage}: {progress.moved / 1e9:.2f} of {progress.total / 1e9:.2f} GB{rate}")

    return show


def _storage_progress() -> Callable[[StorageProgress], None] | None:
    """Shows current rates in one line that is written over; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(progress: StorageProgress) -> None:
        rates = "  ".join(f"{name} {rate / 1e9:.2f}" for name, rate in progress.rates.items())
        parts = f"   {rates}" if len(progress.rates) > 1 else ""
        terminal.status(f"{progress.stage}: {sum(progress.rates.values()) / 1e9:.2f} GB/s{parts}")

    return show
