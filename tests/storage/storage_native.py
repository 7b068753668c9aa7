"""The native reader driven by hand, and an oracle for the data that it writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise._native import (
    StorageEngine,
    StorageJob,
    StorageOutcome,
    StorageRunner,
    StorageTask,
    StorageVolume,
    io_uring_missing,
)

ENGINES = [StorageEngine.SYNC] if io_uring_missing() else [StorageEngine.RING, StorageEngine.SYNC]


def expected(file: int, size: int, salt: int = 0) -> NDArray[np.uint64]:
    """SplitMix64's finaliser over offset and file: what each word of a filled file must be."""
    with np.errstate(over="ignore"):
        x = np.arange(0, size, 8, dtype=np.uint64) + np.uint64(file + salt + 1) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[int]]:
    """Descriptors through the page cache, for reading and writing."""
    files = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    try:
        yield files
    finally:
        for file in files:
            os.close(file)


def job(
    engine: StorageEngine, files: Sequence[int], volumes: Sequence[StorageVolume], io: int, at_once: int = 6
) -> StorageJob:
    """Two threads with three I/Os in flight each, or one after the other with `at_once` 1."""
    made = StorageJob()
    made.files, made.second_files = list(files), list(files)
    made.names = [f"file{i}" for i in range(len(files))]
    made.volumes, made.io, made.engine = list(volumes), io, engine
    made.threads, made.depth = (1, 1) if at_once == 1 else (max(2, len(volumes)), 3)
    return made


def run(runner: StorageRunner, task: StorageTask) -> StorageOutcome:
    """One round until its end."""
    runner.start(task)
    return runner.finish()
