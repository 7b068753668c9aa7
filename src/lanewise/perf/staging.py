"""Copies between GPUs through host memory: how their stages overlap, alone and beside the opposite copy.

A copy is pipelined in chunks, with a gap between them. Its stages overlap, 1/x = max(1/B1, 1/B2) + gap, or on some GPUs
(staging.stages) a chunk's second stage ends before the next one's first begins, 1/x = 1/B1 + 1/B2 + gap; B1 and B2 are
the rates of the stages alone. Both stages cross a port that the two GPUs share, in opposite directions.

Beside the opposite copy each reaches the share s of x while both run. Programs issue all of one direction (n bytes)
before the other, and the call blocks while more than Q bytes wait in the driver's queue. So for (n - Q) / x only the
first runs, then both until the first has ended, then the second. Counted until the last has ended each gets

    share = 1 / (2 - q (2 - 1/s)), q = min(1, Q / n)

p2pBandwidthLatencyTest issues five copies of 160 MB since CUDA 11 ("cudaMemcpy*Async may infinitely block waiting for
room to push the operation", says its source). Its 1.40 times one way and s = 0.86 give Q = 0.68 n; with that the two
machines that were measured with five copies of 4 GiB get 1.01 (measured 0.99 and 1.00). Before CUDA 11 it issued 200 MB
of a direction, which fits into the queue: both run all the time, 1.72 times one way (four V100 of a host: 1.69). So of
GPUs that are older, all up to Gen3, the interval holds both.

AMD's runtimes copy to host memory and then on, with no gap that is known, and have no such queue: ROCr
(Runtime::CopyMemory of its runtime.cpp) runs opposite copies at once, HIP (VirtualGPU::submitCopyMemoryP2P of ROCclr's
rocvirtual.cpp) one after the other, as one lock guards one buffer of all GPUs (Device::p2p_stage_ops_).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from lanewise.perf.known_parts import is_of_amd, number_of, part_of
from lanewise.perf.measured_capacity import BESIDE, MEASURED, CapacityClass
from lanewise.perf.resources import Resource, cite, summed, weakest
from lanewise.perf.uncertainty import RANGES, Bound, Range, figure_range, independent
from lanewise.routes.model import LinkDirection
from lanewise.topology.model import LinkKind, System

Amounts: TypeAlias = Sequence[tuple[Resource, float]]

# The gap (s/B) of parts without a figure (staging.rate): the median of those that have one, from the smallest (RTX 5090
# on Turin) to the largest of GPUs since Volta (A100 on EPYC hosts); P100 with drivers of 2017 had 12 to 22 ps. A part's
# own figure may be of a faster host.
_GAPS: Mapping[Bound, float] = {"low": 20e-12, "nominal": 8e-12, "high": 4e-12}
# Of AMD's GPUs: ROCr copies all of a buffer at once to host memory and then on, HIP waits for each chunk.
_GAPS_OF_AMD: Mapping[Bound, float] = {"low": _GAPS["low"], "nominal": 0.0, "high": 0.0}
_QUEUE = 546e6  # B of one direction that wait in the driver's queue while the other is issued
_SAMPLE_SIZE = 800e6  # B of one direction that p2pBandwidthLatencyTest issues before the other
_NEWEST_BEFORE_CUDA_11 = 3  # the PCIe generation of Volta and Turing; Ampere, of Gen4, needs CUDA 11


class Opposite(StrEnum):
    """Whether the opposite copy of a staged one runs too, and who was told to begin first."""

    NONE = "none"
    AFTER = "after"  # all of one direction is issued before the other, as programs usually do; of unknown size
    SAMPLE = "sample"  # as today's p2pBandwidthLatencyTest does
    IN_TURNS = "in turns"  # copy by copy one of each direction


class Stages(StrEnum):
    """How the stages of one copy run (staging.stages of its source)."""

    OVERLAP = "overlap"
    IN_TURNS = "in turns"


# The share s of a lone copy's rate while both run: 0.86 of three H200 machines, and of P100 and GTX 1070 whose sample
# issued copies of both directions in turns. Where stages take turns 0.96 gives the 1.48 of three RTX 3090 machines.
_BESIDE: dict[Stages, dict[Bound, float]] = {
    Stages.OVERLAP: {"low": 0.70, "nominal": 0.86, "high": 1.0},
    Stages.IN_TURNS: {"low": 0.80, "nominal": 0.96, "high": 1.0},
}
# Of AMD's: as stages in turns where ROCr runs both at once, down to one after the other in HIP.
_BESIDE_OF_AMD: dict[Bound, float] = {"low": 0.50, "nominal": 0.96, "high": 1.0}
_STEPS_OF_AMD = "; AMD's runtimes copy in two steps, one after the other (ROCclr rocvirtual.cpp, ROCr runtime.cpp)"
# What became of it with the sample, as factors of the share: 1.22 to 1.44 times one way for 1.40 on fifteen machines.
_SAMPLE_RANGE: dict[Bound, float] = {"low": 0.86, "nominal": 1.0, "high": 1.07}


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy through host memory: the rate (B/s) of a lone one, nominal and at the ends of its range.

    `size` is what a program issues of it before the opposite copy, in B; None if that is not known. `kind` are
    words for what makes copies alike; `measured` is the factor of the rate that this machine showed.
    """

    name: str
    basis: str
    rests_on: str
    rates: Mapping[Bound, float]
    stages: Stages = Stages.OVERLAP
    opposite: Opposite = Opposite.NONE
    size: float | None = None
    kind: tuple[str, ...] = ()
    measured: float | None = None
    of_amd: bool = False
    older_sample: bool = False  # whether the GPU is older than the sample that issues 800 MB (CUDA 11)

    @property
    def capacity_class(self) -> CapacityClass:
        """What other copies of a machine are limited alike: those of such GPUs, with the opposite copy or without."""
        return ("staging", *self.kind, *([] if self.opposite is Opposite.NONE else [BESIDE]))

    def as_measured(self, system: System) -> Staging:
        """The same with the factor that was measured on this machine, if one was."""
        found = system.measured.get(self.capacity_class)
        if found is None or not found.rests_on:
            return self
        rests_on = self.rests_on + MEASURED + found.rests_on
        return replace(self, measured=found.factor, basis="calibrated", rests_on=rests_on)

    def rate(self, bound: Bound = "nominal") -> float:
        """The rate (B/s) that it can reach beside its opposite copy, if that runs."""
        if self.measured is not None:
            low, high = RANGES["calibrated"]
            return self._rate("nominal") * self.measured * {"low": low, "nominal": 1.0, "high": high}[bound]
        return self._rate(bound)

    def _rate(self, bound: Bound) -> float:
        shares = self._shares()
        rate = self.rates["nominal"] * shares["nominal"]
        rates = _within(rate, independent(_factors(self.rates), _factors(shares)))
        return min(rates[bound], self.rates["high"])

    def _shares(self) -> Mapping[Bound, float]:
        """What it reaches of a lone copy's rate."""
        beside = _BESIDE[self.stages]
        if self.opposite is Opposite.NONE:
            return dict.fromkeys(_BOUNDS, 1.0)
        if self.of_amd:
            return _BESIDE_OF_AMD
        if self.opposite is Opposite.IN_TURNS:
            return beside
        nominal = beside["nominal"]
        if self.size is not None or self.opposite is Opposite.SAMPLE:
            share = _share(nominal, self.size or _SAMPLE_SIZE)
            shares = {bound: share * factor for bound, factor in _SAMPLE_RANGE.items()}
            return {**shares, "high": nominal} if self.older_sample and self.size is None else shares
        return {"low": _share(nominal, math.inf), "nominal": _share(nominal, _SAMPLE_SIZE), "high": nominal}


def _share(beside: float, size: float) -> float:
    """What each of two opposite copies gets of a lone one's rate, counted until the second has ended."""
    return 1 / (2 - min(1.0, _QUEUE / size) * (2 - 1 / beside))


def stages_of(system: System, src: str) -> Stages:
    """How the stages of copies from `src` run."""
    part = part_of(system, src)
    text = part.text("staging.stages") if part is not None and part.kind == "gpu" else None
    if text is None and _is_amd_gpu(system, src):
        return Stages.IN_TURNS
    return Stages(text) if text is not None else Stages.OVERLAP


def _is_amd_gpu(system: System, src: str) -> bool:
    part = system.part(src)
    return part is not None and part.kind == "gpu" and is_of_amd(part)


def _is_taken_from_its_series(system: System, src: str) -> bool:
    """Whether the stages are those of other cards of its series, which the next one need not be like."""
    part = part_of(system, src)
    return part is not None and part.kind == "gpu" and part.figure("staging.stages").basis == "typical"


def slowest_of(amounts: Amounts) -> Resource:
    """The resource that a stage alone would fill first."""
    return max(summed(amounts).items(), key=lambda item: item[1] / item[0].capacity)[0]


def staging(
    system: System, name: str, src: str, stages: Sequence[Amounts], port: Amounts, cited: Sequence[tuple[str, str]]
) -> Staging:
    """The copy of flow `name` whose stages alone take `stages`; `cited` is the basis and the source of each.

    Stages that overlap pass `port`, the link that both of them cross, together.
    """
    gaps, basis, rests_on = gap_of(system, src)
    order = stages_of(system, src)
    # Stages that overlap share the port and the way to a far socket; memory is full even in the gaps.
    shared = [[*port, *(pair for each in stages for pair in each if pair[0].kind in _FAR)]]
    together, limits = (sum, list(stages)) if order is Stages.IN_TURNS else (max, [*stages, *filter(None, shared)])
    rates = _rates({bound: together(stage_time(each, bound) for each in limits) for bound in _BOUNDS}, gaps)
    if basis == NOT_MEASURED:  # the stages may take turns, as those of an RTX 3090 do
        in_turns = _rates({bound: sum(stage_time(each, bound) for each in stages) for bound in _BOUNDS}, gaps)
        rates["low"] = min(rates["low"], in_turns["low"])
    if _is_taken_from_its_series(system, src):
        overlap = _rates({bound: max(stage_time(each, bound) for each in limits) for bound in _BOUNDS}, gaps)
        rates["high"] = max(rates["high"], overlap["high"])
    of_amd = _is_amd_gpu(system, src)
    rests_on += _STEPS_OF_AMD if of_amd else ""
    bases, rests = [*(each for each, _ in cited), basis], [*(text for _, text in cited), rests_on]
    kind = (rests_on, *_places(stages, port))
    text = f"staging of {name} through host memory"
    return Staging(text, weakest(bases), "; ".join(rests), rates, order, kind=kind, of_amd=of_amd,
                   older_sample=(number_of(system, src, "pcie.gen") or math.inf) <= _NEWEST_BEFORE_CUDA_11)  # fmt: skip


def _places(stages: Sequence[Amounts], port: Amounts) -> tuple[str, ...]:
    """What copies have alike: one port or host bridge for both stages, the socket of the buffer unless they cross two.

    A socket far from the driver's buffer is slower than the other one (a100-distserve, h100-sxm-spr).
    """
    resources = [resource for amounts in stages for resource, _ in amounts]
    links = [each.place for each in resources if isinstance(each.place, LinkDirection)]
    bridges = [each.place[:2] for each in resources if each.kind == "host_bridge"]
    memory = next((each.place[0] for each in resources if each.kind == "memory"), "")
    return (
        "one port" if port else "one host bridge" if len(bridges) > len(set(bridges)) else "",
        "two sockets" if any(link.kind is LinkKind.SOCKET for link in links) else memory,
    )


def gap_of(system: System, src: str) -> tuple[Mapping[Bound, float], str, str]:
    """The gap of copies from `src` in s/B, its basis and its source."""
    part = part_of(system, src)
    figure = part.figure("staging.rate") if part is not None and part.kind == "gpu" else None
    if part is None or figure is None or not isinstance(figure.value, float):
        if _is_amd_gpu(system, src):
            return _GAPS_OF_AMD, NOT_MEASURED, "no gap between the steps of a copy"
        text = f"{_GAPS['nominal'] * 1e12:.0f} ps a byte between chunks, the median of GPUs that were measured"
        return _GAPS, NOT_MEASURED, text
    low, high = figure_range(figure)
    gaps: dict[Bound, float] = {
        "nominal": 1 / figure.value,
        "low": max(_GAPS["low"], 1 / (figure.value * low)),
        "high": min(_GAPS["high"], 1 / (figure.value * high)),
    }  # fmt: skip
    return gaps, figure.basis, cite(part, "staging.rate", figure)


def _rates(times: Mapping[Bound, float], gaps: Mapping[Bound, float]) -> dict[Bound, float]:
    """Rates of copies whose stages take `times` and whose gaps are `gaps`, in s/B: two independent errors."""
    rate = 1 / (times["nominal"] + gaps["nominal"])
    by_stages = {bound: 1 / (time + gaps["nominal"]) for bound, time in times.items()}
    by_gap = {bound: 1 / (times["nominal"] + gap) for bound, gap in gaps.items()}
    return _within(rate, independent(_factors(by_stages), _factors(by_gap)))


def _factors(values: Mapping[Bound, float]) -> Range:
    """The ends as factors of the nominal value."""
    return values["low"] / values["nominal"], values["high"] / values["nominal"]


def _within(value: float, factors: Range) -> dict[Bound, float]:
    """A value with its ends as factors of it."""
    return {"low": value * factors[0], "nominal": value, "high": value * factors[1]}


_FAR = ("far_memory", "far_buffers")
NOT_MEASURED = "typical"  # the basis of a gap that nobody measured on that GPU
_BOUNDS: tuple[Bound, ...] = ("low", "nominal", "high")


def stage_time(amounts: Amounts, bound: Bound) -> float:
    """Seconds that a byte of one stage takes alone."""
    return max(amount / resource.at(bound) for resource, amount in summed(amounts).items())
