"""Measures storage into host or GPU memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise.probes.storage.session import Live
    from lanewise.results.estimate import Rule
    from lanewise.results.sample import Sample


def measure_storage(
    paths: str | Path | Sequence[str | Path],
    rule: Rule | None = None,
    live: Callable[[Live], None] | None = None,
    **settings: Any,
) -> Iterator[Sample]:
    """Read files, block devices or test files into memory; samples of GB/s, us and 1/s as they are taken.

    `settings` are those of probes.storage.options.Reading, numbers or as people write them: io="8 MiB", threads=24,
    modes="direct,cached", to="host0:1", make="1 GB". CannotMeasure or InputError says what cannot be read and why.
    """
    from lanewise.probes.machine import needs_linux

    needs_linux("storage")
    from lanewise.probes.storage.options import parse_reading
    from lanewise.probes.storage.probe import STORAGE_RULE, StorageProbe

    named = [paths] if isinstance(paths, str) or not hasattr(paths, "__iter__") else list(paths)
    reading = parse_reading(tuple(str(path) for path in named), **settings)
    return StorageProbe(rule or STORAGE_RULE, live).samples(reading)
