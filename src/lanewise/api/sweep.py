"""Sweeps of load tests, and what a training took: data for charts and run files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loadtest import loadtest_peak
from lanewise.errors import CannotMeasure

if TYPE_CHECKING:
    from lanewise.api.loadtest import Say
    from lanewise.loadtest.sweep import SweepPoint, SweepResult, SweepRow
    from lanewise.loadtest.training import Training
    from lanewise.results.run import Run

_DONE = "point.json"  # in the folder of a point that is finished


def loadtest_sweep(
    points: Sequence[SweepPoint],
    *,
    bound: float = 0.015,
    results: str | Path | None = None,
    say: Say = lambda _: None,
    **settings: Any,
) -> Iterator[SweepResult]:
    """Search the peak at each point of loadtest.sweep.points, in a folder of its own below `results`.

    A point that cannot be measured is told with its reason and the next one follows; a sweep that was cut off goes on
    with the same `results`. Other settings are those of loadtest_peak. InputError, FormatError, Contradiction,
    MissingDependency.
    """
    named = f"loadtest-sweep-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    folder = Path(results) if results is not None else Path(named)
    for number, point in enumerate(points, 1):
        called = f"point {number} of {len(points)}, {point.name}: "
        yield _earlier(folder, point, bound, settings) or _point(folder, point, bound, _prefixed(say, called), settings)


def _point(folder: Path, point: SweepPoint, bound: float, say: Say, settings: dict[str, Any]) -> SweepResult:
    from lanewise import files
    from lanewise.loadtest import sweep

    try:
        answer = loadtest_peak(point.ask, bound=bound, results=folder / point.folder, say=say, **settings)
    except CannotMeasure as error:
        return sweep.failed(point, bound, str(error))
    found = sweep.seen(point, answer.found, answer.account, answer.about)
    files.write_file(folder / point.folder / _DONE, sweep.kept(found, _asked(point, bound, settings)))
    return found


def _earlier(folder: Path, point: SweepPoint, bound: float, settings: dict[str, Any]) -> SweepResult | None:
    """What an earlier sweep that asked the same has finished."""
    from lanewise import files
    from lanewise.loadtest import sweep

    path = folder / point.folder / _DONE
    return sweep.again(files.read_file(path), point, _asked(point, bound, settings)) if path.exists() else None


def _asked(point: SweepPoint, bound: float, settings: dict[str, Any]) -> str:
    plain = {name: value for name, value in settings.items() if not callable(value)}
    return f"{point.ask} {dict(point.settings)} bound {bound} {dict(sorted(plain.items()))}"


def _prefixed(say: Say, before: str) -> Say:
    return lambda text: say(before + text)


def as_sweep_run(found: Sequence[SweepResult], rows: Sequence[SweepRow]) -> Run:
    """A sweep as a run: each point's measured rows, and those of `rows` that are extrapolated."""
    from lanewise.api.here import machine, now, version
    from lanewise.loadtest.sweep import observations
    from lanewise.results.run import Run

    command = " ".join(["lanewise", *sys.argv[1:]])
    return Run((), now(), version(), command, machine(), rows=observations(found, rows))


def loadtest_training(log: str | Path, sample_bytes: float, samples: int | None = None) -> Training:
    """The data rate of a training from its MLPerf log: `samples` an epoch (None: as the log says) of `sample_bytes` B.

    FormatError with the line that is wrong, InputError where the log does not say enough.
    """
    from lanewise.files import read_file
    from lanewise.loadtest.training import read

    return read(read_file(log), str(log), sample_bytes, samples)


__all__ = ["as_sweep_run", "loadtest_sweep", "loadtest_training"]
