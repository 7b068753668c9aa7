"""The constants of NCCL's and RCCL's time models, by version, from data/collectives/nccl.yaml. SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lanewise import package_data
from lanewise.collectives.model import Algorithm, CollectiveSettings, Protocol
from lanewise.errors import FormatError
from lanewise.yaml_loader import load

_CUMEM_SINCE = [2, 24]
NODES = 3  # columns of a row by nodes: one, two, more
_MICROSECOND, _GB = 1e-6, 1e9


@dataclass(frozen=True, slots=True)
class Library:
    """One version of a library's time model: `figures` in us and GB/s as the file states them.

    `other` is the version wanted where its own constants are not known, so that those of `versions` stand for them.
    """

    name: str
    versions: str
    source: str
    figures: Mapping[str, Any]
    other: str = ""

    @property
    def title(self) -> str:
        """What a prediction names, 'NCCL 2.28 to 2.30', 'NCCL 2.18 by the constants of 2.20 to 2.27'."""
        return f"{self.name} {f'{self.other} by the constants of ' if self.other else ''}{self.versions}"

    def base_latency(self, algorithm: Algorithm, protocol: Protocol) -> float:
        """Seconds that every call takes."""
        return _by_protocol(self.figures["base_latency"], algorithm, protocol)

    def hop_latency(self, medium: str, algorithm: Algorithm, protocol: Protocol) -> float:
        """Seconds of a step over "nvlink", "pcie" or "network"."""
        return _by_protocol(self.figures["hop_latency"][medium], algorithm, protocol)

    def post_overhead(self, vendor: str) -> float:
        """Seconds that a step of a ring over several nodes takes at least, by the CPU's vendor."""
        return float(self.figures["post_overhead"][vendor]) * _MICROSECOND

    def rate(self, key: str, generation: str, column: int | None = None) -> float | None:
        """A rate in B/s by GPU generation, and by nodes where the row has columns; None where there is none."""
        value = self.figures.get(key, {}).get(generation)
        if value is None:
            return None
        return float(value if column is None else value[column]) * _GB

    def share(self, key: str) -> float | None:
        """A plain number, None where this version has none."""
        value = self.figures.get(key)
        return None if value is None else float(value)

    def nvls_efficiency(self, generation: str) -> float:
        """The share of a channel's rate that the switches' reductions are planned with."""
        return float(self.figures["nvls_efficiency"].get(generation, 0.0))

    def plateau(self, capability: int) -> float:
        """The factor on the latency of a Simple ring over several nodes."""
        return float(self.figures["plateau"]["ampere" if capability >= 80 else "older"])

    def has(self, algorithm: Algorithm, protocol: Protocol) -> bool:
        """Whether this library offers the pair."""
        algorithms = self.figures.get("algorithms", self.figures["base_latency"])
        return algorithm in algorithms and protocol in self.figures.get("protocols", list(Protocol))

    def tree_correction(self, protocol: Protocol, size: float) -> float:
        """The share of a tree's rate that this version plans with at a size (B)."""
        row = self.figures.get("tree_correction")
        step = int(size).bit_length() - 7  # log2 of size / 64
        if row is None or step < 0:
            return 1.0
        factors = row[_PROTOCOLS.index(protocol)]
        return float(factors[step]) if step < len(factors) else 1.0


_PROTOCOLS = tuple(Protocol)


def library_named(name: str, version: str = "") -> Library:
    """The constants of a version ("2.27.7") or the nearest known to it, or of the newest known one.

    FormatError for text that is no version.
    """
    known = _of_library(name)
    wanted = _numbers(version) if version else known[0]["from"]
    entry = next((entry for entry in known if wanted >= entry["from"]), known[-1])
    first, last = map(_numbers, entry["versions"].split(" to ")) if " to " in entry["versions"] else (wanted, wanted)
    other = "" if first <= wanted <= last else version
    return Library(entry["library"], entry["versions"], entry["source"], entry, other)


def has_small_pages(settings: CollectiveSettings) -> bool:
    """Whether shared memory is of 4 KiB pages for certain: files of /dev/shm.

    From 2.24 on it is memory of cuMem functions where CUDA's driver has them and no container forbids them (NCCL's
    documentation of NCCL_CUMEM_HOST_ENABLE).
    """
    if settings.small_pages is not None:
        return settings.small_pages
    return bool(settings.version) and _numbers(settings.version) < _CUMEM_SINCE


def check_version(version: str) -> None:
    """FormatError for text that is no version of NCCL, or one of another generation than those that are known."""
    known = _of_library("NCCL")
    if version and _numbers(version)[0] != known[0]["from"][0]:
        versions = " and ".join(entry["versions"] for entry in known)
        raise FormatError(f"NCCL {version} is not known", hint=f"known are {versions}")


def _of_library(name: str) -> list[Mapping[str, Any]]:
    """What is known of a library, the newest versions first."""
    return [library for library in _data()["libraries"] if library["library"] == name]


def compute_capability(nvlink_part: str | None, part: str) -> int:
    """The compute capability of a GPU x 10, 0 if it is not known."""
    table: Mapping[str, int] = _data()["compute_capability"]
    if nvlink_part is not None and nvlink_part in table:
        return table[nvlink_part]
    words = [word for word in table if part.startswith(word)]
    return table[max(words, key=len)] if words else 0


def generation_of(capability: int) -> str:
    """The column of NCCL's tables that a compute capability falls into."""
    return next(name for least, name in ((100, "blackwell"), (90, "hopper"), (80, "ampere"), (0, "volta"))
                if capability >= least)  # fmt: skip


def channel_speeds(capability: int, between_nodes: bool) -> list[float]:
    """The rates (B/s) of a channel that NCCL's search tries, fast to slow."""
    row = next(row for row in _data()["speeds"] if capability >= row["sm"])
    return [float(speed) * _GB for speed in row["between" if between_nodes else "within"]]


def plugin_latency(network: str) -> float:
    """What the plug-in of a kind of network ("efa") tells NCCL of a step's latency, in s; 0 for verbs."""
    return float(_data()["plugin_latency"].get(network, 0.0)) * _MICROSECOND


@cache
def _data() -> Mapping[str, Any]:
    root = load(*package_data.text("collectives", "nccl", "constants file")).root
    values: Mapping[str, Any] = root.value
    return values


def _by_protocol(table: Mapping[str, Any], algorithm: Algorithm, protocol: Protocol) -> float:
    return float(table[algorithm][_PROTOCOLS.index(protocol)]) * _MICROSECOND


def _numbers(version: str) -> list[int]:
    try:
        return [int(number) for number in version.split("+")[0].split("-")[0].split(".")[:2]]
    except ValueError:
        raise FormatError(f"'{version}' is not a version of NCCL", hint="write 2.27.7") from None
