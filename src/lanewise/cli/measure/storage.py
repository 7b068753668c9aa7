"""`lanewise measure storage`: files or volumes into memory."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from lanewise.cli import terminal
from lanewise.cli.measure import recorder
from lanewise.cli.option_group import option_group
from lanewise.cli.shared import Json
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.options.record import RecordOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample


@option_group
def storage(
    options: MeasureStorageOptions,
    record_options: RecordOptions,
    json: Json = None,
) -> None:
    """Read files or volumes into memory by several modes; nothing of yours is ever written to."""
    from lanewise.api.storage import storage_probe

    measured = storage_probe(_progress()).run(options)
    recorder.record(_with_warnings(measured), record_options, json)


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
