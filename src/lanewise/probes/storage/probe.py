"""The storage probe: files and volumes into memory, or test files out of it, by every mode side by side."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise._native import StorageData, StorageTask
from lanewise.errors import CannotMeasure
from lanewise.probes.storage.files import make_all, open_all
from lanewise.probes.storage.options import Target
from lanewise.probes.storage.samples import Rows, not_measured
from lanewise.probes.storage.session import Bench, Live, checked
from lanewise.results.estimate import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lanewise.probes.storage.files import Sources
    from lanewise.probes.storage.options import Reading
    from lanewise.results.sample import Sample

_FILLED_AT_ONCE = 1 << 20
STORAGE_RULE = Rule(least=5, most=10, width=0.02)  # drives vary more than copies do


class StorageProbe:
    """Measures Readings; `live` is told about ten times a second what goes on."""

    def __init__(self, rule: Rule = STORAGE_RULE, live: Callable[[Live], None] | None = None) -> None:
        self._rule = rule
        self._live = live or (lambda _: None)

    def samples(self, scenario: Reading) -> Iterator[Sample]:
        """Every run of every mode, as soon as it is done; closing it closes files and removes test files."""
        with self._sources(scenario) as sources:
            for number, mode in enumerate(scenario.modes):
                try:
                    bench = Bench(scenario, mode, sources.all, self._live)
                except CannotMeasure as missing:
                    if mode not in scenario.optional:
                        raise
                    yield not_measured(scenario, mode, sources.all, str(missing))
                    continue
                with closing(bench):
                    data = _warm_up(bench, (number + 1) << 20)
                    yield from self._runs(bench, Rows(bench, data))

    def _sources(self, asked: Reading) -> Sources:
        if asked.make is None:
            return open_all(asked.paths, asked.io)
        sources = make_all(asked.paths, -(-asked.make // _FILLED_AT_ONCE) * _FILLED_AT_ONCE)
        try:
            _fill(asked, sources, self._live)
        except BaseException:
            sources.close()
            raise
        return sources

    def _runs(self, bench: Bench, rows: Rows) -> Iterator[Sample]:
        asked, totals = bench.asked, list[float]()
        data = StorageData.STAMPED if asked.write else StorageData.ANY
        while not self._rule.enough(totals):
            number = len(totals) + 1
            cached = bench.cached() if bench.mode == "cached" else None
            task = StorageTask(
                bench.count, seconds=asked.seconds, write=asked.write, random=asked.random, seed=number, data=data
            )
            before = rows.counters()
            outcome = bench.run(f"{rows.scenario}, run {number}", task)
            yield from rows.of(outcome, before, rows.counters(), cached)
            totals.append(sum(rows.rates(outcome)))


def _warm_up(bench: Bench, salt: int) -> str:
    """Run the path once without timing it, and compare its data; 'verified', or why it is not."""
    asked, count = bench.asked, bench.count
    some = checked(count, asked.io)
    if asked.write:
        bench.run("writing once", StorageTask(count, write=True, salt=salt, data=StorageData.STAMPED))
        look = StorageTask(count, most=some, random=True, salt=salt, data=StorageData.STAMPED)
        bench.run("reading it back", look)
        return "verified"
    if all(source.made for source in bench.sources):
        how, said = StorageData.FILLED, "verified"
    elif bench.second:
        how, said = StorageData.REREAD, "verified"
    else:
        how, said = StorageData.ANY, "not verified"
    bench.run("checking the data", StorageTask(count, most=some, random=True, data=how))
    if bench.mode == "cached":
        bench.run("filling the page cache", StorageTask(count))
    return said


def _fill(asked: Reading, sources: Sources, live: Callable[[Live], None]) -> None:
    """Test files get data that says where it belongs; all at a time, past the page cache where that can be."""
    size = sources.all[0].bytes * len(sources.all)
    plain = replace(
        asked, io=_FILLED_AT_ONCE, size=size, threads=len(sources.all), depth=4, to=Target(), stripe=None, write=True
    )
    try:
        for source in sources.all:
            source.open_direct()
        mode = "direct"
    except CannotMeasure:
        mode = "cached"
    with closing(Bench(plain, mode, sources.all, live)) as bench:
        bench.run("making test files", StorageTask(bench.count, write=True, data=StorageData.FILLED))


__all__ = ["STORAGE_RULE", "Live", "StorageProbe"]
