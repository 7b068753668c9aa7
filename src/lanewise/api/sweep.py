"""Sweeps of load tests, and the data rate of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loadtest import loadtest_peak
from lanewise.errors import CannotMeasure

if TYPE_CHECKING:
    from lanewise.api.loadtest import Say
    from lanewise.loadtest.peak import SearchProgress
    from lanewise.loadtest.sweep import SweepPoint, SweepResult
    from lanewise.loadtest.training import Training
    from lanewise.options.loadtest import SweepOptions, TrainingOptions
    from lanewise.results.run import Run

_POINT_FILE = "point.json"  # in the folder of a finished point
_NOT_MEASURED = ("results", "output", "trace", "chart", "baseline", "link", "extrapolate")


def loadtest_sweep(
    options: SweepOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
) -> Iterator[SweepResult]:
    """The peak at each point of a sweep, as it is measured; each point has a folder of its own below `results`.

    A point that cannot be measured carries its reason. A sweep that was cut off resumes with the same options. Raises
    InputError, FormatError, Contradiction and MissingDependency, before the first point where it can.
    """
    from lanewise import files
    from lanewise.loadtest.sweep import points_of

    points = points_of(options)
    for path in (options.output, options.chart):
        if path is not None:
            files.check_writable(path)
    folder = options.results or Path(f"loadtest-sweep-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    return _measure(points, options, folder, say, {"warn": warn, "on_progress": on_progress})


def _measure(
    points: Sequence[SweepPoint], options: SweepOptions, folder: Path, say: Say, callbacks: dict[str, Any]
) -> Iterator[SweepResult]:
    from lanewise import files
    from lanewise.loadtest import sweep

    for number, point in enumerate(points, 1):
        path = folder / point.folder / _POINT_FILE
        key = _key(point)
        finished = sweep.from_json(files.read_file(path), point, key) if path.exists() else None
        if finished is not None:
            yield finished
            continue
        plain = replace(point.options, results=path.parent, output=None, trace=None)
        before = f"point {number} of {len(points)}, {point.name}: "
        try:
            result = loadtest_peak(plain, say=_prefixed(say, before), **callbacks)
        except CannotMeasure as error:
            yield sweep.failed(point, options.bound, str(error))
            continue
        measured = sweep.point_result(point, result)
        files.write_file(path, sweep.to_json(measured, key))
        yield measured


def _key(point: SweepPoint) -> str:
    """Everything that decides about a measurement, so that only the same point is taken from an earlier sweep."""
    values = {member.name: getattr(point.options, member.name) for member in fields(point.options)}
    return repr([(name, value) for name, value in values.items() if name not in _NOT_MEASURED] + [point.name])


def _prefixed(say: Say, before: str) -> Say:
    return lambda text: say(before + text)


def sweep_data(options: SweepOptions, results: Sequence[SweepResult]) -> dict[str, Any]:
    """A sweep for other programs and for a chart, in SI units."""
    from lanewise.loadtest.sweep import as_data, axis_of, doubts, table

    rows = table(results, options.baseline, options.link, options.extrapolate)
    return as_data(axis_of(options)[0], rows, options.baseline, options.link, doubts(results))


def as_sweep_run(options: SweepOptions, results: Sequence[SweepResult]) -> Run:
    """A sweep as a run: the measured rows of each point, and the extrapolated ones."""
    from lanewise.api.provenance import new_run
    from lanewise.loadtest.sweep import observations, table

    rows = table(results, options.baseline, options.link, options.extrapolate)
    return new_run(rows=observations(results, rows))


def loadtest_training(options: TrainingOptions) -> Training:
    """The data rate of a training from its MLPerf log.

    FormatError with the line that is wrong, InputError where the log does not say enough.
    """
    from lanewise.files import check_writable, read_file
    from lanewise.loadtest.training import as_samples, read

    if options.output is not None:
        check_writable(options.output)
    training = read(read_file(options.log), str(options.log), options.sample_bytes, options.samples)
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run

        save_run(as_measured_run(as_samples(training, options.log.name)), options.output)
    return training
