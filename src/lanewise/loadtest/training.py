"""The data rate of a training, from the times of its epochs in an MLPerf training log (`:::MLLOG` lines)."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanewise.errors import FormatError, InputError, Location
from lanewise.results.sample import Sample

MARK = ":::MLLOG"
_HINT = "give the log of one run, as mlperf_logging writes it"


@dataclass(frozen=True, slots=True)
class Span:
    """Epochs `first` to `first` + `epochs` - 1, timed together (a block) or one alone: `seconds`."""

    first: int
    epochs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Training:
    """A training's spans; an epoch reads `samples` of `sample_bytes` B. `run` is run_start to run_stop in s, None where
    the log does not say; `notes` what was left out."""

    spans: tuple[Span, ...]
    samples: int
    sample_bytes: float
    run: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def epoch_bytes(self) -> float:
        """What one epoch reads, B."""
        return self.samples * self.sample_bytes

    def rate(self, span: Span) -> float:
        """B/s while those epochs ran."""
        return span.epochs * self.epoch_bytes / span.seconds

    @property
    def median(self) -> float:
        """The median of the spans' rates, B/s."""
        return statistics.median(self.rate(span) for span in self.spans)

    @property
    def whole(self) -> float | None:
        """B/s over the whole run with evaluation and everything between, None where it is not known."""
        return sum(span.epochs for span in self.spans) * self.epoch_bytes / self.run if self.run else None

    def data(self) -> dict[str, Any]:
        """For other programs, SI units."""
        return {
            "samples": self.samples, "sample_bytes": self.sample_bytes, "epoch_bytes": self.epoch_bytes,
            "spans": [{**asdict(span), "rate": self.rate(span)} for span in self.spans],
            "median": self.median, "run_seconds": self.run, "run_rate": self.whole, "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Event:
    key: str
    time: float  # s
    value: Any
    metadata: Mapping[str, Any]
    location: Location

    def number(self, name: str) -> int | None:
        number = self.metadata.get(name)
        if number is None:
            return None
        if isinstance(number, bool) or not isinstance(number, int):
            raise FormatError(f"{name} '{number}' of {self.key} is no whole number", location=self.location, hint=_HINT)
        return number


def read(text: str, file: str, sample_bytes: float, samples: int | None = None) -> Training:
    """The training of a log; `samples` are those of an epoch, None: its `train_samples`.

    Epochs are taken where the log times them, else blocks. FormatError with the line of what is none of such a log,
    or contradicts itself; InputError where it times no epoch, or `samples` is not known.
    """
    if sample_bytes <= 0 or (samples is not None and samples < 1):
        raise InputError("a training without data", hint="give --samples and --sample-bytes above 0")
    events = list(_events(text, file))
    if not events:
        raise FormatError(f"holds no {MARK} line", location=Location(file), hint=_HINT)
    notes: list[str] = []
    spans = _spans(events, "epoch", notes) or _spans(events, "block", notes)
    if not spans:
        cause = "times no epoch: neither epoch_start and epoch_stop nor block_start and block_stop are in it"
        raise InputError(cause, location=Location(file), hint="; ".join(notes) or _HINT)
    count = samples if samples is not None else _train_samples(events, file)
    return Training(tuple(spans), count, sample_bytes, _run(events), tuple(notes))


def as_samples(training: Training, file: str) -> Iterator[Sample]:
    """The rates and times of the epochs as measured values of a run file."""
    how = {"log": file, "samples": str(training.samples), "sample bytes": f"{training.sample_bytes:g}"}
    settings = {"bytes": round(training.sample_bytes)}
    for span in training.spans:
        yield Sample("training", "dataset", "goodput", training.rate(span), "GB/s", settings, how, "training")
    for span in training.spans:
        yield Sample("training", "dataset", "epoch", span.seconds / span.epochs, "s", settings, how, "training")
    if training.run is not None:
        yield Sample("training", "dataset", "run", training.run, "s", settings, how, "training")


def _events(text: str, file: str) -> Iterator[_Event]:
    """What the log says; lines of other programs, and text before `:::MLLOG`, are skipped."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        _, mark, rest = line.partition(MARK)
        if not mark:
            continue
        location = Location(file, number)
        try:
            entry = json.loads(rest)
            key, time = str(entry["key"]), float(entry["time_ms"]) / 1e3
            if not math.isfinite(time):
                raise ValueError("no time")
            metadata = entry.get("metadata") or {}
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            if number == len(lines) and not text.endswith("\n"):
                return  # a run that was killed while it wrote
            cause = "not a JSON object with key and time_ms after the mark"
            raise FormatError(cause, location=location, hint=_HINT) from None
        if not isinstance(metadata, dict):
            raise FormatError("metadata that is no JSON object", location=location, hint=_HINT)
        yield _Event(key, time, entry.get("value"), metadata, location)


def _spans(events: Sequence[_Event], kind: str, notes: list[str]) -> list[Span]:
    """Epochs or blocks in the order in which they ended; one that has not ended is noted and left out."""
    begun: dict[int, _Event] = {}
    spans: list[Span] = []
    for event in events:
        if event.key == f"{kind}_start":
            first = _first(event, len(spans) + len(begun) + 1)
            if first in begun:
                cause = f"{kind} {first} starts again; it started in line {begun[first].location.line}"
                raise FormatError(cause, location=event.location, hint="give the log of one run and one process")
            begun[first] = event
        elif event.key == f"{kind}_stop":
            first = _first(event, next(reversed(begun)) if begun else 0)
            if first not in begun:
                raise FormatError(f"{kind} {first} stops, but has not started", location=event.location, hint=_HINT)
            spans.append(_span(first, begun.pop(first), event))
    notes += [
        f"{kind} {first} (line {event.location.line}) has not ended and is left out" for first, event in begun.items()
    ]
    return spans


def _first(event: _Event, otherwise: int) -> int:
    for name in ("epoch_num", "first_epoch_num"):
        number = event.number(name)
        if number is not None:
            return number
    return otherwise


def _span(first: int, start: _Event, stop: _Event) -> Span:
    seconds = stop.time - start.time
    if not seconds > 0:
        cause = f"{stop.key} is {seconds:g} s after its start in line {start.location.line}"
        raise FormatError(cause, location=stop.location, hint="times have to rise")
    epochs = 1
    if start.key == "block_start":
        epochs = _block(first, start) or _block(first, stop) or 0
        if epochs < 1:
            cause = f"block {first} does not say how many epochs it has"
            raise FormatError(cause, location=start.location, hint="its metadata needs epoch_count, or last_epoch_num")
    return Span(first, epochs, seconds)


def _block(first: int, event: _Event) -> int | None:
    last = event.number("last_epoch_num")
    return event.number("epoch_count") or (None if last is None else last - first + 1)


def _run(events: Sequence[_Event]) -> float | None:
    """Seconds from run_start to run_stop, None unless both are there once and in order."""
    start, stop = ([event for event in events if event.key == key] for key in ("run_start", "run_stop"))
    if len(start) != 1 or len(stop) != 1:
        return None
    seconds = stop[0].time - start[0].time
    if not seconds > 0:
        cause = f"run_stop is {seconds:g} s after run_start in line {start[0].location.line}"
        raise FormatError(cause, location=stop[0].location, hint="times have to rise")
    return seconds


def _train_samples(events: Sequence[_Event], file: str) -> int:
    matches = [event for event in events if event.key == "train_samples"]
    if not matches:
        cause = "does not say how many samples an epoch has (train_samples)"
        raise InputError(cause, location=Location(file), hint="give --samples, such as --samples 1281167")
    value = matches[-1].value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FormatError(f"train_samples '{value}' is no number of samples", location=matches[-1].location,
                          hint="give --samples, such as --samples 1281167")  # fmt: skip
    return value
