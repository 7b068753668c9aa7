"""Sweeps: the peak at each of several numbers of GPUs, batches, copy streams or paths, in one table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.loadtest.peak import PeakResult
from lanewise.loadtest.result import notes, peak_samples, prediction_of
from lanewise.options.loadtest import SweepOptions
from lanewise.results.codec import decode
from lanewise.results.observation import Observation, Source
from lanewise.results.run_1 import row_2
from lanewise.results.sample import Sample, summarise

GPUS, BATCH, STREAMS, PATH = "GPUs", "batch", "streams", "path"
LINE = "straight line from {n} through zero: as if nothing that is shared fills up"


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One point of a sweep: `x` is its swept value (of paths its place, from 1), `settings` go into its rows."""

    name: str
    x: int
    options: SweepOptions
    folder: str
    settings: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a point gave: its samples, the reason where no rate was found, and what a reader of the rate has to know.

    `predicted` is the rate in queries/s that was expected before the search.
    """

    point: SweepPoint
    samples: tuple[Sample, ...]
    reason: str = ""
    notes: tuple[str, ...] = ()
    predicted: float | None = None

    @property
    def limit(self) -> str:
        """What keeps the rate from being higher, '' where there is none."""
        return "" if self.reason else self.samples[0].how.get("limit", "")

    def value(self, metric: str) -> float | None:
        """A metric in SI, None where it was not measured."""
        return next(
            (sample.value for sample in self.samples if sample.metric == metric and sample.value is not None), None
        )


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One line of a sweep's table, SI; None is unknown. `share` is of the link, `speedup` against the baseline.

    `predicted` is the rate that was expected before.
    """

    point: str
    x: int
    source: Source
    qps: float | None
    goodput: float | None
    share: float | None = None
    p99: float | None = None
    speedup: float | None = None
    note: str = ""
    predicted: float | None = None
    limit: str = ""

    @property
    def residual_pct(self) -> float | None:
        """100 * (predicted - measured) / measured, None where either is missing."""
        return 100.0 * (self.predicted / self.qps - 1.0) if self.predicted and self.qps else None


def axis_of(options: SweepOptions) -> tuple[str, tuple[str, ...]]:
    """The swept axis and its values as text; InputError unless exactly one axis is given."""
    axes = {GPUS: options.gpus, BATCH: options.batches, STREAMS: options.stream_counts, PATH: options.paths}
    named = [(axis, values) for axis, values in axes.items() if values]
    if len(named) == 1:
        return named[0]
    cause = "a sweep over nothing" if not named else f"a sweep over {' and '.join(axis for axis, _ in named)}"
    raise InputError(cause, hint="give one of --gpus 1,2,4, --batches, --stream-counts, --paths 'gpu0; gpu2,gpu3'")


def points_of(options: SweepOptions) -> tuple[SweepPoint, ...]:
    """The points of a sweep; InputError or UnknownName for options that contradict each other."""
    axis, values = axis_of(options)
    result = points(axis, values, options, options.settings)
    check_baseline(options.baseline, result)
    check_extrapolated(axis, options.extrapolate, result)
    if options.link is not None and not options.link > 0:
        raise InputError("--link is a rate of 0", hint="write --link '32 GB/s'")
    return result


def points(
    axis: str, values: Sequence[str], options: SweepOptions, labels: Mapping[str, int] | None = None
) -> tuple[SweepPoint, ...]:
    """The points of a sweep over `axis`; values are numbers, of paths sets of devices: 'gpu2, gpu3'.

    `labels` are settings of all rows. InputError for a value that is not a number, comes twice, or is too large.
    """
    result = tuple(_point(axis, number, value, options, labels or {}) for number, value in enumerate(values, 1))
    names = [point.name for point in result]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the sweep over {axis} has {twice} twice", hint="name each point once")
    return result


def _point(axis: str, number: int, value: str, options: SweepOptions, labels: Mapping[str, int]) -> SweepPoint:
    if axis == PATH:
        devices = tuple(name.strip() for name in value.split(",") if name.strip())
        if not devices:
            raise InputError(f"path {number} of the sweep names no device", hint="write --paths 'gpu0; gpu2,gpu3'")
        name, x, options = ",".join(devices), number, replace(options, devices=devices)
    else:
        x = _count(axis, value)
        name = str(x)
        if axis == GPUS:
            if x > len(options.devices):
                cause = f"a point of {x} GPUs, but --devices names {len(options.devices)}"
                raise InputError(cause, hint="name more devices, such as --devices gpu0,gpu1,gpu2,gpu3")
            options = replace(options, devices=options.devices[:x])
        else:
            options = replace(options, batch=x) if axis == BATCH else replace(options, streams=x)
    gpus = sum(device.startswith("gpu") for device in options.devices)
    path = {"path": number} if axis == PATH else {}
    settings = {"gpus": gpus, "batch": options.batch, "streams": options.streams, **path, **labels}
    folder = f"{axis.lower()}-{name.replace(',', '+')}"
    return SweepPoint(name, x, options, folder, settings)


def _count(axis: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise InputError(f"'{text}' is no number for a sweep over {axis}", hint="write whole numbers from 1: 1,2,4")
    return number


def point_result(point: SweepPoint, peak: PeakResult) -> SweepResult:
    """The result of a search at a point, as samples that bear the point's settings."""
    samples = tuple(replace(sample, settings={**sample.settings, **point.settings}) for sample in peak_samples(peak))
    valid = peak.best is not None
    reason = "" if valid else f"no rate was VALID: {peak.reason}"
    return SweepResult(point, samples, reason, (*(peak.notes if valid else ()), *notes(peak.setup)), peak.prediction)


def failed(point: SweepPoint, bound: float, reason: str) -> SweepResult:
    """A point that could not be measured, with the latency bound in s of the sweep."""
    flow = ", ".join(f"host0->{device}" for device in point.options.devices)
    sample = Sample(f"Server {bound * 1e3:g} ms", flow, "qps", None, "1/s", point.settings, {}, "service", reason)
    return SweepResult(point, (sample,), reason)


def to_json(result: SweepResult, options: str) -> str:
    """A finished point as JSON, so that a resumed sweep does not open it again; `options` are those of the point."""
    rows = [sample.as_record() for sample in result.samples]
    values = {"reason": result.reason, "notes": result.notes, "predicted": result.predicted}
    return json.dumps({"asked": options, **values, "samples": rows})


def from_json(text: str, point: SweepPoint, options: str) -> SweepResult | None:
    """The finished point of that JSON; None for another one, or for what is none: then it is searched."""
    try:
        data = json.loads(text)
        if data["asked"] != options:
            return None
        samples = tuple(decode(Sample, row_2(row), "samples", "") for row in data["samples"])
        return SweepResult(point, samples, str(data["reason"]), tuple(map(str, data["notes"])), data.get("predicted"))
    except (ValueError, KeyError, TypeError, FormatError):
        return None


def check_baseline(baseline: str, points: Sequence[SweepPoint]) -> None:
    """UnknownName for a baseline that is no point; '' is the first."""
    if baseline and baseline not in [point.name for point in points]:
        raise unknown_name("point of this sweep", baseline, [point.name for point in points])


def check_extrapolated(axis: str, counts: Sequence[int], points: Sequence[SweepPoint]) -> None:
    """InputError for an extrapolation over anything but GPUs, or to counts that are measured themselves."""
    if not counts:
        return
    if axis != GPUS:
        raise InputError(f"a sweep over {axis} is not extrapolated", hint="only a sweep over --gpus is")
    most = max(point.x for point in points)
    if min(counts) <= most:
        raise InputError(f"an extrapolation to {min(counts)} GPUs within the sweep, which goes to {most}",
                         hint=f"name counts above {most}")  # fmt: skip


def table(
    results: Sequence[SweepResult], baseline: str = "", link: float | None = None, extrapolate: Sequence[int] = ()
) -> list[SweepRow]:
    """The rows of a sweep as far as it came, then the extrapolated ones.

    `link` is the rate in B/s of the link that the devices of a point share, `baseline` the point that speed-ups are
    against ('': the first). Extrapolated rows lie on the line from the largest measured count through zero.
    """
    rows = [
        SweepRow(result.point.name, result.point.x, Source.MEASURED, result.value("qps"), result.value("goodput"),
            p99=result.value("p99"), note=result.reason, predicted=result.predicted, limit=result.limit)
        for result in results
    ]  # fmt: skip
    rows += _extrapolated(rows, sorted(set(extrapolate)))
    base = next((row.qps for row in rows if row.point == (baseline or rows[0].point)), None)
    return [
        replace(
            row,
            share=row.goodput / link if row.goodput is not None and link else None,
            speedup=row.qps / base if row.qps is not None and base else None,
        )
        for row in rows
    ]


def _extrapolated(rows: Sequence[SweepRow], counts: Iterable[int]) -> list[SweepRow]:
    measured = [row for row in rows if row.qps is not None and row.goodput is not None]
    if not measured:
        return []
    last = max(measured, key=lambda row: row.x)
    assert last.qps is not None
    assert last.goodput is not None
    return [
        SweepRow(
            str(n), n, Source.EXTRAPOLATED, last.qps * n / last.x, last.goodput * n / last.x, note=LINE.format(n=last.x)
        )
        for n in counts
    ]


def observations(results: Sequence[SweepResult], rows: Sequence[SweepRow]) -> tuple[Observation, ...]:
    """All points for a run file: the measured ones with all their samples, their predictions, and the extrapolated
    ones, marked."""
    measured = (
        *summarise(sample for result in results for sample in result.samples),
        *(prediction_of(result.samples[0], result.predicted) for result in results if result.predicted is not None),
    )
    lines = [row for row in rows if row.source is Source.EXTRAPOLATED]
    if not lines:
        return measured
    reference = next(result for result in reversed(results) if result.value("qps") is not None)
    first = reference.samples[0]
    extrapolated = [
        Observation(
            f"{first.scenario}, extrapolated", "", metric, value, unit, Source.EXTRAPOLATED,
            settings={**first.settings, "gpus": row.x}, extrapolated=True, path=first.path, note=row.note,
        )
        for row in lines
        for metric, value, unit in (("qps", row.qps, "1/s"), ("goodput", row.goodput or 0.0, "GB/s"))
    ]  # fmt: skip
    return (*measured, *extrapolated)


def doubts(results: Sequence[SweepResult]) -> list[str]:
    """The points' notes, each once, with the points that it is of unless it is of all."""
    points_of: dict[str, list[str]] = {}
    for result in results:
        for note in result.notes:
            points_of.setdefault(note, []).append(result.point.name)
    noted = [result for result in results if result.notes]
    return [note if len(names) == len(noted) else f"{', '.join(names)}: {note}" for note, names in points_of.items()]


def as_data(
    axis: str, rows: Sequence[SweepRow], baseline: str = "", link: float | None = None, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The sweep for other programs and for a report; SI units, None for what is not known."""
    return {
        "sweep": axis, "baseline": baseline or (rows[0].point if rows else ""), "link": link,
        "rows": [{**asdict(row), "residual_pct": row.residual_pct} for row in rows],
        "notes": list(notes),
    }  # fmt: skip
