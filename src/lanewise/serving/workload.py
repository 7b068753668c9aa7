"""Workloads: what a query brings and takes, its latency bound, how queries are batched; and the files that say so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isfinite

from lanewise import marks, units
from lanewise.catalog.nodes import Spot, placed
from lanewise.errors import Contradiction, FormatError, LanewiseError, Location, unknown_name

_NEEDED = ("bytes_in", "bytes_out", "bound", "percentile", "source")
_FIELDS = ("title", *_NEEDED, "batch", "timeout", "samples", "software")
_VALUE_FIELDS = ("value", "source")
# The name becomes part of figure keys: service.NAME.server.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_WHOLE = re.compile(r"[1-9]\d*")
_EXAMPLES = {"B": "150528 B", "s": "15 ms"}
MAX_BATCH = 999_999


@dataclass(frozen=True, slots=True)
class Workload:
    """Bytes of one query in and out, the latency bound (s) that `percentile` of the answers must meet, and batching.

    A batch holds up to `batch` queries; the oldest waits at most `timeout` s for it to fill (0: takes what is there).
    A MultiStream query has `samples` samples. `software` is the time (s) the host adds to a query that comes over the
    network, for GPUs that state none of their own. `sources` says where single values come from.
    """

    name: str
    title: str
    bytes_in: float
    bytes_out: float
    bound: float
    percentile: float
    source: str
    batch: int = 1
    timeout: float = 0.0
    samples: int = 1
    software: float | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def source_of(self, value: str) -> str:
        """Where that value comes from: its own source, otherwise the workload's."""
        return dict(self.sources).get(value, self.source)


def workload(name: str | Workload, known: Mapping[str, Workload] | None = None) -> Workload:
    """The workload of that name among `known` (the ready ones if None); UnknownName otherwise."""
    if isinstance(name, Workload):
        return name
    found = workloads() if known is None else known
    if name not in found:
        raise unknown_name("workload", name, found)
    return found[name]


@cache
def workloads() -> dict[str, Workload]:
    """All ready workloads by name."""
    found: dict[str, Workload] = {}
    for path in sorted((resources.files("lanewise") / "data" / "workloads").iterdir(), key=lambda p: p.name):
        if path.name.endswith(".yaml"):
            found |= read_workloads(path.read_text(encoding="utf-8"), path.name)
    return found


def read_workloads(text: str, file: str) -> dict[str, Workload]:
    """The workloads of one file by name; InputError with file, line, cause and hint for anything it cannot use."""
    root = marks.compose(text, file)
    top = Spot(root, file).fields("the file") if root is not None else {}
    if not top:
        raise FormatError("the file holds no workloads", location=Location(file, 1), hint="start one with `my-model:`")
    return {name: _read(name, spot) for name, spot in top.items()}


def one_workload(found: Mapping[str, Workload], file: str, name: str | None = None) -> Workload:
    """The workload of that name in a file that was read, or its only one; InputError if there are several."""
    if name is not None:
        if name not in found:
            raise unknown_name("workload", name, found, Location(file))
        return found[name]
    if len(found) != 1:
        hint = f"name one of them: {', '.join(found)}"
        raise FormatError(f"the file holds {len(found)} workloads", location=Location(file), hint=hint)
    return next(iter(found.values()))


def _read(name: str, spot: Spot) -> Workload:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits and - _ . +, such as my-model"
        raise FormatError(f"'{name}' cannot be a workload's name", location=spot.location, hint=hint)
    fields = spot.fields(f"workload '{name}'", _FIELDS)
    missing = [key for key in _NEEDED if key not in fields]
    if missing:
        cause = f"workload '{name}' has no {' and no '.join(missing)}"
        raise FormatError(cause, location=spot.location, hint=f"add `{missing[0]}:`")
    sourced = {key: _sourced(key, field) for key, field in fields.items()}
    values = {key: value for key, (value, _) in sourced.items()}
    made = Workload(
        name=name,
        title=fields["title"].text("title") if "title" in fields else name,
        bytes_in=_quantity(values["bytes_in"], "bytes_in", "B"),
        bytes_out=_quantity(values["bytes_out"], "bytes_out", "B"),
        bound=_quantity(values["bound"], "bound", "s"),
        percentile=_percentile(values["percentile"]),
        source=fields["source"].text("source"),
        batch=_whole(values["batch"], "batch") if "batch" in values else 1,
        timeout=_quantity(values["timeout"], "timeout", "s", zero=True) if "timeout" in values else 0.0,
        samples=_whole(values["samples"], "samples") if "samples" in values else 1,
        software=_quantity(values["software"], "software", "s", zero=True) if "software" in values else None,
        sources=tuple((key, source) for key, (_, source) in sourced.items() if source),
    )
    _check_timeout(made, values)
    return made


def _check_timeout(made: Workload, values: Mapping[str, Spot]) -> None:
    if made.timeout >= made.bound:
        wait, bound = units.readable(made.timeout, "s"), units.readable(made.bound, "s")
        raise Contradiction(
            f"timeout {wait} is not below the bound {bound}: every lone query would be late",
            location=values["timeout"].location,
            hint="lower `timeout:`; 0 s takes the queries that are there",
        )


def _sourced(key: str, spot: Spot) -> tuple[Spot, str]:
    """The value and its own source, where it has one: {value: 64, source: ...}."""
    if key in ("title", "source") or not spot.is_map:
        return spot, ""
    fields = spot.fields(f"'{key}'", _VALUE_FIELDS)
    if "value" not in fields:
        raise FormatError(
            f"'{key}' has no value", location=spot.location, hint=f"write {key}: {{value: ..., source: ...}}"
        )
    return fields["value"], fields["source"].text("source") if "source" in fields else ""


def _quantity(spot: Spot, key: str, unit: str, zero: bool = False) -> float:
    words = spot.text(key)
    try:
        value = units.parse(words, unit)
    except LanewiseError as error:
        error.cause = f"'{key}': {error.cause}"
        raise placed(error, spot.location) from None
    least = "not negative" if zero else "above 0"
    if not isfinite(value) or value < 0 or (value == 0 and not zero):
        cause = f"'{key}' must be finite and {least}, not {words}"
        raise FormatError(cause, location=spot.location, hint=f"for example {key}: {_EXAMPLES[unit]}")
    if value and _is_number(words):
        hint = f"write the unit, such as {key}: {_EXAMPLES[unit]}"
        raise FormatError(f"'{key}' = {words} has no unit", location=spot.location, hint=hint)
    return value


def _percentile(spot: Spot) -> float:
    words = spot.text("percentile")
    try:
        value = units.parse(words, "1")
    except LanewiseError as error:
        error.cause = f"'percentile': {error.cause}"
        raise placed(error, spot.location) from None
    if not 0 < value < 1:
        cause = f"'percentile' must lie between 0 and 1, not be {words}"
        raise FormatError(cause, location=spot.location, hint="write 0.99 for 99 of 100 answers in time")
    return value


def _whole(spot: Spot, key: str) -> int:
    words = spot.text(key)
    if not _WHOLE.fullmatch(words) or len(words) > len(str(MAX_BATCH)):
        cause = f"'{key}' must be a whole number from 1 to {MAX_BATCH}, not {words}"
        raise FormatError(cause, location=spot.location, hint=f"for example {key}: 64")
    return int(words)


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True
