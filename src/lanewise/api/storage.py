"""Measures storage into host or GPU memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise.probes.storage.probe import StorageProbe
    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample


def measure_storage(
    paths: str | Path | Sequence[str | Path],
    on_progress: Callable[[StorageProgress], None] | None = None,
    **options: Any,
) -> Iterator[Sample]:
    """Read files, block devices or test files into memory; samples of rates, I/O times and I/Os/s as they are taken.

    `options` are the fields of MeasureStorageOptions, as numbers or texts: io="8 MiB", threads=24,
    modes="direct,cached", to="host0:1", make="1 GB". `on_progress` gets the current rates about ten times a second.
    CannotMeasure or InputError says what cannot be read and why.
    """
    from lanewise.options.measure_storage import storage_options

    names = [paths] if isinstance(paths, str) or not hasattr(paths, "__iter__") else list(paths)
    return storage_probe(on_progress).run(storage_options(tuple(str(path) for path in names), **options))


def storage_probe(on_progress: Callable[[StorageProgress], None] | None = None) -> StorageProbe:
    """The probe of files and block devices; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("storage")
    from lanewise.probes.storage.probe import StorageProbe

    return StorageProbe(on_progress)
