"""Workloads: what a query brings and takes, its latency bound, and how fast a GPU serves it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from lanewise import units
from lanewise.errors import FormatError, Place, unknown_name


@dataclass(frozen=True, slots=True)
class Workload:
    """Bytes of one query in and out, and the latency bound (s) that `percentile` of the answers must meet."""

    name: str
    title: str
    bytes_in: float
    bytes_out: float
    bound: float
    percentile: float
    source: str


def workload(name: str) -> Workload:
    """The ready workload of that name; UnknownName otherwise."""
    known = workloads()
    if name not in known:
        raise unknown_name("workload", name, known)
    return known[name]


@cache
def workloads() -> dict[str, Workload]:
    """All ready workloads by name."""
    import yaml

    found: dict[str, Workload] = {}
    for path in sorted((resources.files("lanewise") / "data" / "workloads").iterdir(), key=lambda p: p.name):
        if path.name.endswith(".yaml"):
            for name, entry in yaml.safe_load(path.read_text()).items():
                found[name] = _read(name, entry, Place(path.name))
    return found


def _read(name: str, entry: dict[str, object], place: Place) -> Workload:
    try:
        return Workload(
            name=name,
            title=str(entry["title"]),
            bytes_in=units.parse(str(entry["bytes_in"]), "B"),
            bytes_out=units.parse(str(entry["bytes_out"]), "B"),
            bound=units.parse(str(entry["bound"]), "s"),
            percentile=float(str(entry["percentile"])),
            source=str(entry["source"]),
        )
    except KeyError as missing:
        raise FormatError(f"workload '{name}' has no {missing}", place=place) from None
