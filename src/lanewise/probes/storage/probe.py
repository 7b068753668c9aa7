"""The storage probe: reads files and volumes into memory, or writes test files, by several modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

from lanewise._native import StorageData, StorageTask
from lanewise.errors import CannotMeasure
from lanewise.options.measure_storage import MeasureStorageOptions
from lanewise.probes.sampling import sample_until
from lanewise.probes.storage.files import StorageFiles, make_files, open_files
from lanewise.probes.storage.samples import StorageSamples, not_measured
from lanewise.probes.storage.session import StorageProgress, StorageSession, verified_count
from lanewise.results.observation import Source
from lanewise.results.sample import Sample

_FILL_IO = 1 << 20


class StorageProbe:
    """Measures files and block devices; `on_progress` gets the current rates about ten times a second."""

    source = Source.MEASURED

    def __init__(self, on_progress: Callable[[StorageProgress], None] | None = None) -> None:
        self._on_progress = on_progress or (lambda _: None)

    def run(self, plan: MeasureStorageOptions) -> Iterator[Sample]:
        """The samples of each run of each mode, as soon as it ends; closing it closes files and removes test files."""
        with self._files(plan) as files:
            for number, mode in enumerate(plan.modes or plan.possible_modes):
                try:
                    session = StorageSession(plan, mode, files.all, self._on_progress)
                except CannotMeasure as error:
                    if mode in plan.modes or mode != "cuFile":  # cuFile is measured where it is installed
                        raise
                    yield not_measured(plan, mode, files.all, str(error))
                    continue
                with closing(session):
                    data = _warm_up(session, (number + 1) << 20)
                    yield from _runs(session, StorageSamples(session, data))

    def _files(self, plan: MeasureStorageOptions) -> StorageFiles:
        if plan.make is None:
            return open_files(plan.paths, plan.io)
        files = make_files(plan.paths, -(-plan.make // _FILL_IO) * _FILL_IO)
        try:
            _fill(plan, files, self._on_progress)
        except BaseException:
            files.close()
            raise
        return files


def _runs(session: StorageSession, samples: StorageSamples) -> Iterator[Sample]:
    """Runs until the rate of all volumes together is certain enough."""
    plan, number = session.options, 0

    def measure() -> Iterator[Sample]:
        nonlocal number
        number += 1
        cached = session.cached() if session.mode == "cached" else None
        data = StorageData.STAMPED if plan.write else StorageData.ANY
        task = StorageTask(
            session.count, seconds=plan.seconds or 0.0, write=plan.write, random=plan.random, seed=number, data=data
        )
        before = samples.counters()
        outcome = session.run(f"{samples.scenario}, run {number}", task)
        yield from samples.of(outcome, before, samples.counters(), cached)

    return sample_until(plan.rule, "total" if len(session.volumes) > 1 else "goodput", measure)


def _warm_up(session: StorageSession, salt: int) -> str:
    """Run the path once without timing it, and compare its data: 'verified', or 'not verified'."""
    plan, count = session.options, session.count
    some = verified_count(count, plan.io)
    if plan.write:
        session.run("writing once", StorageTask(count, write=True, salt=salt, data=StorageData.STAMPED))
        check = StorageTask(count, most=some, random=True, salt=salt, data=StorageData.STAMPED)
        session.run("reading it back", check)
        return "verified"
    if all(file.temporary for file in session.files):
        data, result = StorageData.FILLED, "verified"
    elif session.has_second_path:
        data, result = StorageData.REREAD, "verified"
    else:
        data, result = StorageData.ANY, "not verified"
    session.run("checking the data", StorageTask(count, most=some, random=True, data=data))
    if session.mode == "cached":
        session.run("filling the page cache", StorageTask(count))
    return result


def _fill(plan: MeasureStorageOptions, files: StorageFiles, on_progress: Callable[[StorageProgress], None]) -> None:
    """Test files get data that says where it belongs; all at a time, past the page cache where that is possible."""
    size = files.all[0].bytes * len(files.all)
    fill = replace(
        plan, io=_FILL_IO, size=size, make=size, threads=len(files.all), depth=4, to="host0", modes=(), stripe=None,
        write=True,
    )  # fmt: skip
    try:
        for file in files.all:
            file.open_direct()
        mode = "direct"
    except CannotMeasure:
        mode = "cached"
    with closing(StorageSession(fill, mode, files.all, on_progress)) as session:
        session.run("making test files", StorageTask(session.count, write=True, data=StorageData.FILLED))
