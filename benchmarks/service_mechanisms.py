"""Mechanisms tried on one half of the published services, scored on the other, and what no model can reach.

    python benchmarks/service_mechanisms.py

Halves: benchmarks/service_halves.py. Tried, each with the stalls of hosts as they are unless stated: GPUs of one system
that differ in speed; stalls by batches a second of a GPU, with the limit that is best where it is learned; the median
of p99s on GPUs of uncertain speed, given that the bound is kept. Bounds: systems of different submitters that are equal
in all that is published, at equal rates; what a per cent of speed does to a p99; what it would be worth to know which
hosts stall. Writes benchmarks/runs/2026-11-27-service-mechanisms.json and .md.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

from service_halves import OWN, learned_submitters, submitter

from lanewise.catalog import Catalog, Figure, builtin
from lanewise.evidence.services import PublishedService, published_services, served_p99, served_percentile
from lanewise.serving.host_stalls import STALLING, with_stalls
from lanewise.serving.workload import workload
from lanewise.topology.model import System
from lanewise.topology.read import read_system

RUN = Path(__file__).with_name("runs") / "2026-11-27-service-mechanisms"
SPEEDS = (0.95, 0.96, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04, 1.05)
# Coefficients of variation between the GPUs of a system: clusters of one GPU vary by 8 % (V100; Sinha et al., "Not All
# GPUs Are Created Equal", SC22), about 1.5 to 3 % as a standard deviation.
VARIATIONS = (0.015, 0.03)
UNCERTAIN = (0.01, 0.02, 0.03)  # standard deviation of a system's speed
NEAR = 0.25
EQUAL = 0.03  # rates and shares of Offline of equal systems differ by no more than this
ONE_PREDICTION = (1 + NEAR) / (1 - NEAR)  # p99s further apart than this cannot both be within NEAR of one prediction


class DifferentGpus(PublishedService):
    """A published service whose GPUs differ in speed, at the same sum."""

    variation = 0.0

    def described(self, catalog: Catalog, mode: str, speed: float = 1.0, fixed: float | None = None) -> System:
        """As that of PublishedService, with a part for each GPU; their speeds are quantiles of a normal law."""
        system = PublishedService.described(self, catalog, mode, speed, fixed)
        part = system.part("gpu0")
        assert part is not None
        key = f"service.{self.workload}.{mode}"
        rate = part.number(key)
        assert rate is not None
        parts, devices = {}, []
        for gpu in range(self.gpus):
            factor = 1 + self.variation * NormalDist().inv_cdf((gpu + 0.5) / self.gpus)
            own = part.with_figure(key, Figure(factor * rate, "1/s", "a GPU of another speed", basis="calibrated"))
            parts[f"{part.name}-{gpu}"] = replace(own, name=f"{part.name}-{gpu}", aliases=())
            devices.append(f"  gpu{gpu}: {{gpu: {part.name}-{gpu}}}\n")
        text = (
            f"lanewise: 1\nsystem: {self.system}\ndevices:\n  cpu0: {{cpu: {self.cpu or 'null'}}}\n{''.join(devices)}"
            f'links:\n  - {{from: cpu0, to: "gpu[0-{self.gpus - 1}]", pcie: {self.slot}}}\n'
        )
        return read_system(text, self.system, catalog=catalog.merge(Catalog(parts)))


@dataclass(frozen=True)
class Row:
    """A service with its half and its p99s in s: at SPEEDS, without stalls, with them, and of GPUs that differ."""

    service: PublishedService
    half: str
    speeds: tuple[float, ...]
    calm: float
    stalled: float
    differing: tuple[float, ...]

    @property
    def predicted(self) -> float:
        return self.speeds[SPEEDS.index(1.0)]

    @property
    def batches(self) -> float:
        """Full batches a second of a GPU."""
        return self.service.server.qps / self.service.batch / self.service.gpus

    def error(self, p99: float) -> float:
        return abs(p99 / self.service.server.p99 - 1.0)


def row_of(service: PublishedService, learned: Sequence[str], catalog: Catalog) -> Row:
    percentile = served_percentile(service, catalog)
    differing = []
    for variation in VARIATIONS:
        other = DifferentGpus(**{name: getattr(service, name) for name in PublishedService.__slots__})
        DifferentGpus.variation = variation
        differing.append(served_p99(other, catalog))
    name = submitter(service)
    half = "learned" if name in learned else "scored, NVIDIA" if name == OWN else "scored, others"
    speeds = tuple(served_p99(service, catalog, speed) for speed in SPEEDS)
    return Row(service, half, speeds, percentile(0.99), with_stalls(percentile, 0.99), tuple(differing))


def given_the_bound(row: Row, deviation: float) -> float:
    """The median p99 of GPUs of uncertain speed, of those that keep the bound; the bound if none does."""
    bound = workload(row.service.workload).bound
    law = NormalDist(1.0, deviation)
    kept = sorted((p99, law.pdf(speed)) for speed, p99 in zip(SPEEDS, row.speeds, strict=True) if p99 <= bound)
    total, passed = sum(weight for _, weight in kept), 0.0
    for p99, weight in kept:
        passed += weight
        if passed >= total / 2:
            return p99
    return bound


def batch_limit(rows: Sequence[Row]) -> float:
    """From how many batches a second of a GPU on stalls count, so that most p99s of these rows are near."""
    rates = sorted({row.batches for row in rows})

    def errors(limit: float) -> list[float]:
        return [row.error(row.stalled if row.batches >= limit else row.calm) for row in rows]

    def worth(limit: float) -> tuple[int, float]:
        found = errors(limit)
        return sum(error <= NEAR for error in found), -sum(min(1.0, math.log1p(error)) for error in found)

    return max(((a + b) / 2 for a, b in itertools.pairwise(rates)), key=worth)


def alike(first: PublishedService, second: PublishedService) -> bool:
    """Whether all that is published of two systems is equal but the host, and their rates nearly so."""
    fields = ("gpu", "gpus", "workload", "batch", "timeout")
    if submitter(first) == submitter(second) or any(getattr(first, f) != getattr(second, f) for f in fields):
        return False
    one, other = first.harness, second.harness
    assert one is not None
    assert other is not None
    if (one.on_device, first.powers) != (other.on_device, second.powers):
        return False
    if replace(one.policy, offline_batch=None) != replace(other.policy, offline_batch=None):
        return False
    rates = first.server.qps / second.server.qps
    return abs(rates - 1) <= EQUAL and abs(rates * second.offline / first.offline - 1) <= EQUAL


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] * len(head)), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def score(rows: Sequence[Row], p99: Callable[[Row], float]) -> str:
    errors = [row.error(p99(row)) for row in rows]
    return f"{sum(error <= NEAR for error in errors)} of {len(errors)}, {statistics.median(errors):.0%}"


def _differing(place: int, row: Row) -> float:
    return row.differing[place]


def tried(halves: dict[str, list[Row]], limit: float) -> str:
    laws: dict[str, Callable[[Row], float]] = {"as it is": lambda row: row.predicted}
    for place, variation in enumerate(VARIATIONS):
        laws[f"GPUs differ by {variation:.1%}"] = partial(_differing, place)
    laws[f"stalls from {limit:.0f} batches/s of a GPU on"] = lambda row: (
        row.stalled if row.batches >= limit else row.calm
    )
    for deviation in UNCERTAIN:
        laws[f"speed uncertain by {deviation:.0%}, bound kept"] = partial(given_the_bound, deviation=deviation)
    return table(("mechanism", *halves), [[name, *(score(rows, law) for rows in halves.values())]
                                          for name, law in laws.items()])  # fmt: skip


def bounds(rows: Sequence[Row], twins: Sequence[tuple[float, Row, Row]]) -> list[str]:
    fast = [row for row in rows if row.service.server.qps >= STALLING]
    either = sum(min(row.error(row.calm), row.error(row.stalled)) <= NEAR for row in fast)
    now = sum(row.error(row.predicted) <= NEAR for row in fast)
    lines = [
        f"From {STALLING:,.0f} queries/s on {now} of {len(fast)} are within {NEAR:.0%}, and "
        f"{either} by the better of stalls and none: so much would be gained by knowing which hosts stall.",
    ]
    for width in (0.01, 0.02):
        low, high = SPEEDS.index(1 - width), SPEEDS.index(1 + width)
        touchy = [row for row in rows if row.speeds[low] / row.speeds[high] > ONE_PREDICTION]
        missed = sum(row.error(row.predicted) > NEAR for row in touchy)
        lines.append(
            f"Of GPUs {width:.0%} slower the p99 is more than {ONE_PREDICTION:.2f} times that of GPUs {width:.0%} "
            f"faster in {len(touchy)} of {len(rows)}, of which {missed} miss."
        )
    apart, ratio = [pair for pair in twins if pair[0] > ONE_PREDICTION], statistics.median(pair[0] for pair in twins)
    lines.append(
        f"Of {len(twins)} pairs of systems that are equal but for submitter and host, at rates and shares of Offline "
        f"within {EQUAL:.0%} of each other, p99s differ by {ratio - 1:.0%} (median); "
        f"in {len(apart)} by more than {ONE_PREDICTION:.2f} times, so that one of the two misses whatever is predicted."
    )
    return lines


def pair_of(ratio: float, first: Row, second: Row) -> list[object]:
    one, other = first.service, second.service
    return [f"{one.round} {one.system}", f"{other.round} {other.system}", one.workload,
            f"{one.server.qps:.0f}, {other.server.qps:.0f}",
            f"{one.server.qps / one.offline:.2f}, {other.server.qps / other.offline:.2f}",
            f"{1e3 * one.server.p99:.1f}, {1e3 * other.server.p99:.1f}", f"{ratio:.2f}"]  # fmt: skip


def document_of(rows: Sequence[Row], limit: float) -> dict[str, Any]:
    services = [
        {"round": row.service.round, "system": row.service.system, "workload": row.service.workload, "half": row.half,
         "published": row.service.server.p99, "p99_at_speeds": row.speeds, "calm": row.calm, "stalled": row.stalled,
         "differing_gpus": row.differing, "batches_of_a_gpu": row.batches}
        for row in rows
    ]  # fmt: skip
    return {"command": "python benchmarks/service_mechanisms.py", "speeds": SPEEDS, "variations": VARIATIONS,
            "batch_limit": limit, "services": services}  # fmt: skip


def main() -> None:
    services, catalog = [each for each in published_services() if each.timeout], builtin()
    learned = learned_submitters(services)
    rows = [row_of(service, learned, catalog) for service in services]
    halves = {
        name: [row for row in rows if row.half == name] for name in ("learned", "scored, others", "scored, NVIDIA")
    }
    limit = batch_limit(halves["learned"])
    pairs = ((one, other) for one, other in itertools.combinations(rows, 2) if alike(one.service, other.service))
    p99s = [((one.service.server.p99, other.service.server.p99), one, other) for one, other in pairs]
    twins = sorted(((max(both) / min(both), one, other) for both, one, other in p99s), key=lambda pair: pair[0])
    RUN.with_suffix(".json").write_text(json.dumps(document_of(rows, limit), indent=1) + "\n")
    RUN.with_suffix(".md").write_text("\n\n".join([
        "# Mechanisms tried on published services, and what none can reach, 2026-11-27",
        "Command: `python benchmarks/service_mechanisms.py`. Services with a time-out; learned from: "
        f"{', '.join(learned)} (the rule is `benchmarks/service_halves.py`). p99 within 25 %, median error:",
        tried(halves, limit),
        "Variations and limits are those of the learning half or of their sources; nothing is chosen by a scored row.",
        *bounds(rows, twins),
        table(("system", "equal system", "workload", "queries/s", "rate over Offline", "p99, ms", "ratio"),
              [pair_of(*pair) for pair in twins]),
    ]) + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
