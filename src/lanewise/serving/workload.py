"""Workloads: what a query brings and takes, its latency bound, how queries are batched; and the files that say so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from lanewise import package_data, units
from lanewise.errors import Contradiction, FormatError, Location, unknown_name
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

_NEEDED = ("bytes_in", "bytes_out", "bound", "percentile", "source")
_FIELDS = ("title", *_NEEDED, "batch", "timeout", "samples", "software", "variation", "length_variation", "host_cost")
_VALUE_FIELDS = ("value", "source")
# The name becomes part of figure keys: service.NAME.server.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_UNITS = {"bytes_in": "B", "bytes_out": "B", "bound": "s", "timeout": "s", "software": "s", "host_cost": "s"}
_EXAMPLES = {"B": "150528 B", "s": "15 ms"}
MAX_BATCH = 999_999


@dataclass(frozen=True, slots=True)
class Workload:
    """One query's `bytes_in` and `bytes_out`, the latency `bound` (s) that a `percentile` of answers must meet.

    A batch holds up to `batch` queries; the oldest waits at most `timeout` s for it to fill (0: takes what is there).
    A MultiStream query has `samples` samples. `software` is the time (s) the host adds to a query that comes over the
    network, for GPUs that state none of their own. The time of a batch of equal samples varies by `variation`,
    what one sample adds to a full batch by `length_variation` (coefficients of variation, 0 to 1). The host that sends
    a query spends `host_cost` s of CPU time on it. `sources` says
    where single values come from.
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
    variation: float = 0.0
    length_variation: float = 0.0
    host_cost: float | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def source_of(self, value: str) -> str:
        """Where that value comes from: its own source, otherwise the workload's."""
        return dict(self.sources).get(value, self.source)


def workload(name: str | Workload, known: Mapping[str, Workload] | None = None) -> Workload:
    """The workload of that name among `known` (the ready ones if None); UnknownName otherwise."""
    if isinstance(name, Workload):
        return name
    entries = workloads() if known is None else known
    if name not in entries:
        raise unknown_name("workload", name, entries)
    return entries[name]


@cache
def workloads() -> dict[str, Workload]:
    """All ready workloads by name."""
    ready: dict[str, Workload] = {}
    for name in package_data.names("workloads"):
        ready |= read_workloads(*package_data.text("workloads", name, "workload file"))
    return ready


def read_workloads(text: str, file: str) -> dict[str, Workload]:
    """The workloads of one file by name; InputError with file, line, cause and hint for anything it cannot use."""
    document = load(text, file)
    if not document.data:
        raise FormatError("the file holds no workloads", location=Location(file, 1), hint="start one with `my-model:`")
    return {name: _read(name, node) for name, node in document.root.members("my-model: {bytes_in: ...}").items()}


def one_workload(entries: Mapping[str, Workload], file: str, name: str | None = None) -> Workload:
    """The workload of that name in a file that was read, or its only one; InputError if there are several."""
    if name is not None:
        if name not in entries:
            raise unknown_name("workload", name, entries, Location(file))
        return entries[name]
    if len(entries) != 1:
        hint = f"name one of them: {', '.join(entries)}"
        raise FormatError(f"the file holds {len(entries)} workloads", location=Location(file), hint=hint)
    return next(iter(entries.values()))


def _read(name: str, node: YamlNode) -> Workload:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits and - _ . +, such as my-model"
        raise FormatError(f"'{name}' cannot be a workload's name", location=node.location, hint=hint)
    node.check_fields(_FIELDS, f"workload '{name}'", needed=_NEEDED)
    values, sources = {}, {}
    for key in node.value:
        values[key], sources[key] = _sourced(node[key])

    def quantity(key: str, default: float | None = None) -> float:
        example = _EXAMPLES[unit := _UNITS[key]]
        if default is None:
            return values[key].quantity(unit, above=0, example=example, bare=False)
        return values[key].quantity(unit, negative=False, example=example, bare=False) if key in values else default

    workload = Workload(
        name=name,
        title=node["title"].as_written() if node["title"].present else name,
        bytes_in=quantity("bytes_in"),
        bytes_out=quantity("bytes_out"),
        bound=quantity("bound"),
        percentile=_percentile(values["percentile"]),
        source=node["source"].as_written(),
        batch=values["batch"].integer(1, MAX_BATCH, 64) if "batch" in values else 1,
        timeout=quantity("timeout", 0.0),
        samples=values["samples"].integer(1, MAX_BATCH, 64) if "samples" in values else 1,
        software=quantity("software", 0.0) if "software" in values else None,
        host_cost=quantity("host_cost", 0.0) if "host_cost" in values else None,
        variation=_share(values["variation"]) if "variation" in values else 0.0,
        length_variation=_share(values["length_variation"]) if "length_variation" in values else 0.0,
        sources=tuple((key, source) for key, source in sources.items() if source),
    )
    if workload.timeout >= workload.bound:
        wait, bound = units.readable(workload.timeout, "s"), units.readable(workload.bound, "s")
        cause = f"timeout {wait} is not below the bound {bound}: every lone query would be late"
        hint = "lower `timeout:`; 0 s takes the queries that are there"
        raise Contradiction(cause, location=values["timeout"].location, hint=hint)
    return workload


def _sourced(node: YamlNode) -> tuple[YamlNode, str]:
    """The value and its own source, where it has one: {value: 64, source: ...}."""
    if node.key in ("title", "source") or not node.is_map:
        return node, ""
    hint = f"write {node.key}: {{value: ..., source: ...}}"
    node.check_fields(_VALUE_FIELDS, node.name, needed=("value",), hint=hint)
    return node["value"], node["source"].as_written() if node["source"].present else ""


def _share(node: YamlNode) -> float:
    value = node.quantity("1", example="0.05")
    if not 0 <= value <= 1:
        raise node.error(f"'{node.key}' must lie between 0 and 1, not be {node.as_written()}", "write 0.05 for 5 %")
    return value


def _percentile(node: YamlNode) -> float:
    value = node.quantity("1", example="0.99")
    if not 0 < value < 1:
        cause = f"'percentile' must lie between 0 and 1, not be {node.as_written()}"
        raise node.error(cause, "write 0.99 for 99 of 100 answers in time")
    return value
