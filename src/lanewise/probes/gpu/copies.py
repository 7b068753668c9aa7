"""Measurements of copies: flows released together, tuned to end together, the rate of each while all of them run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from lanewise._native import CUDA_MOST_COPIES, CudaFlow, CudaRun, ProbeFailure
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.perf.flow import Flow
from lanewise.probes.gpu.cases import Measurement
from lanewise.probes.gpu.flows import buffer_node, engine, is_host, touches_host
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.gpu.schedule import PILOT_COPIES, tuned_schedule
from lanewise.probes.sampling import sample_until
from lanewise.results.estimate import fit_line
from lanewise.results.sample import Sample

MIB = 2**20
# Large enough that the gap between two copies (some 2 us) is below 0.2 % of one, and beyond any cache of a CPU or GPU.
HOST_COPY, DEVICE_COPY = 256 * MIB, 512 * MIB
# How a flow with a size is divided, as its rate while others run shows only in whole copies.
PIECES, PIECE = 16, 4 * MIB
STAGED_COPY = 128 * MIB  # the driver splits these into many commands, and only so many wait behind the hold
_IN_TURNS = "the flows took turns, so each rate is over the time that all of them took"
_OUTLASTED = "a copy outlasted the window, so this holds for times when others had ended"


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Bytes of one copy of a flow, and how many its size is divided into; None: it goes on as long as the others."""

    copy_bytes: int
    fixed_copies: int | None


def copy_plan(flow: Flow, options: MeasureGpuOptions) -> CopyPlan:
    """How a flow is divided into copies: as the options say, or by its size and its ends."""
    size = options.bytes or (HOST_COPY if touches_host(flow) else DEVICE_COPY if flow.p2p else STAGED_COPY)
    if flow.size is None:
        return CopyPlan(size, None)
    pieces = 1 if options.bytes else min(PIECES, flow.size // PIECE)
    copies = min(CUDA_MOST_COPIES, max(1, math.ceil(flow.size / size), int(pieces)))
    return CopyPlan(max(1, round(flow.size / copies)), copies)


def duplex_flows(flows: Sequence[Flow], copy_plans: Sequence[CopyPlan]) -> set[int]:
    """The indices of flows that one kernel copies in both directions, as two kernels would hinder each other.

    Each is from a host to a GPU, with one of as many copies of as many bytes back.
    """
    paired: set[int] = set()
    for i, inbound in enumerate(flows):
        if not (inbound.sm and is_host(inbound.src)):
            continue
        for k, back in enumerate(flows):
            same = (copy_plans[i], inbound.dst) == (copy_plans[k], back.src)
            if same and back.sm and is_host(back.dst) and k not in paired:
                paired |= {i, k}
                break
    return paired


def copies(measurement: Measurement, gpus: Gpus, options: MeasureGpuOptions) -> Iterator[Sample]:
    """Samples of every flow until the rule has enough; rows without a value and a reason where it fails."""
    copy_plans = [copy_plan(flow, options) for flow in measurement.flows]
    reason = gpus.unreachable(measurement.flows)
    if not reason:
        duplex = duplex_flows(measurement.flows, copy_plans)
        native_flows = [
            CudaFlow(
                src=gpus.ordinal_or_host(flow.src), dst=gpus.ordinal_or_host(flow.dst), bytes=plan.copy_bytes,
                copies=plan.fixed_copies or PILOT_COPIES, node=gpus.host_node(flow), sm=flow.sm, read=flow.read,
                p2p=flow.p2p, duplex=i in duplex,
            )
            for i, (flow, plan) in enumerate(zip(measurement.flows, copy_plans, strict=True))
        ]  # fmt: skip
        with closing(gpus.cuda.prepare(native_flows)) as run:
            try:
                series = _CopySeries(measurement, gpus, copy_plans, native_flows, run)
                yield from sample_until(options.rule, "goodput", series.measure)
            except ProbeFailure as error:
                reason = error.args[0]
    if reason:
        empty = [
            measurement.sample(
                "goodput", None, display_unit="GB/s", how={"engine": engine(flow)}, note=reason,
                settings={"bytes": plan.copy_bytes}, flow=flow,
            )
            for flow, plan in zip(measurement.flows, copy_plans, strict=True)
        ]  # fmt: skip
        yield from measurement.in_every_scenario(empty)


def sweep(measurement: Measurement, gpus: Gpus, options: MeasureGpuOptions) -> Iterator[Sample]:
    """The measurement at every size of the options, then latency and bandwidth of the line that fits the times."""
    seconds: dict[tuple[str, str], dict[int, list[float]]] = {}
    last: dict[tuple[str, str], Sample] = {}
    for size in options.copy_sizes:
        for sample in copies(measurement, gpus, replace(options, bytes=size, sizes=(), sweep=False)):
            yield sample
            if sample.metric == "goodput" and sample.value:
                key = (sample.scenario, sample.flow)
                seconds.setdefault(key, {}).setdefault(size, []).append(size / sample.value)
                last[key] = sample
    for key, by_size in seconds.items():
        yield from _fit(last[key], by_size)


def _fit(sample: Sample, seconds: Mapping[int, Sequence[float]]) -> Iterator[Sample]:
    fit = fit_line(list(seconds), [statistics.median(times) for times in seconds.values()])
    if fit is None:
        return
    note = f"fitted to {len(seconds)} sizes, the worst {100 * fit.worst:.0f} % off the line"
    fitted = (("fit_latency", fit.latency, "us"), ("fit_bandwidth", fit.bandwidth, "GB/s"))
    for metric, value, display_unit in fitted:
        yield replace(sample, metric=metric, value=value, display_unit=display_unit, settings={}, note=note)


class _CopySeries:
    """A measurement tuned and verified; `measure` runs it once."""

    def __init__(
        self, measurement: Measurement, gpus: Gpus, copy_plans: Sequence[CopyPlan], native_flows: Sequence[CudaFlow],
        run: CudaRun,
    ) -> None:  # fmt: skip
        self._measurement, self._flows = measurement, measurement.flows
        self._native_flows, self._run = native_flows, run
        buffers = [
            buffer_node(pages, native_flow.node) if touches_host(flow) else ("", "")
            for pages, flow, native_flow in zip(run.pages(), self._flows, native_flows, strict=True)
        ]
        self._nodes = [node for node, _ in buffers]
        run.verify()
        self._schedule = tuned_schedule(run, native_flows, [plan.fixed_copies for plan in copy_plans])
        self._notes = [note or gpus.unheld(self._flows) for _, note in buffers]
        self._telemetry = gpus.telemetry(self._flows)

    def measure(self) -> Iterator[Sample]:
        """Goodput of each flow in the common window; of several their sum; of flows with a size the makespan."""
        with self._telemetry.recording():
            window = self._schedule.run(self._run)
        doubt = _IN_TURNS if window.in_turns else "" if window.every_flow_copied else _OUTLASTED
        copy_bytes = [native_flow.bytes for native_flow in self._native_flows]
        rates = [copies * size for copies, size in zip(window.copies_per_second, copy_bytes, strict=True)]
        sample, samples = self._measurement.sample, []
        for i, (flow, rate) in enumerate(zip(self._flows, rates, strict=True)):
            note = "; ".join(text for text in (self._notes[i], doubt) if text)
            how, settings = self._how([i]), self._settings(i)
            samples.append(
                sample("goodput", rate, display_unit="GB/s", how=how, note=note, settings=settings, flow=flow)
            )
        how = self._how(range(len(self._flows)))
        settings = {"bytes": copy_bytes[0]} if len({*copy_bytes}) == 1 else {}
        if len(self._flows) > 1:
            samples.append(sample("total", sum(rates), display_unit="GB/s", how=how, note=doubt, settings=settings))
        if any(flow.size is not None for flow in self._flows):  # else the probe chose how much is moved
            sizes = [copies * size for copies, size in zip(self._schedule.copies, copy_bytes, strict=True)]
            moved = ", ".join(f"{flow.name} {size} B" for flow, size in zip(self._flows, sizes, strict=True))
            how = {**how, "moved": moved}
            samples.append(sample("makespan", window.makespan, display_unit="s", how=how, settings=settings))
        return self._measurement.in_every_scenario(samples)

    def _settings(self, i: int) -> dict[str, int]:
        """The size of a copy, and the number of a flow between the same ends as another one."""
        names = [flow.name for flow in self._flows]
        number = {"flow": names[: i + 1].count(names[i])} if names.count(names[i]) > 1 else {}
        return {"bytes": self._native_flows[i].bytes, **number}

    def _how(self, indices: Sequence[int]) -> dict[str, str]:
        """How the flows of these indices were copied."""
        how = {"engine": ", ".join(dict.fromkeys(engine(self._flows[i]) for i in indices))}
        if any(self._native_flows[i].duplex for i in indices):
            how["kernel"] = "one for both ways"
        nodes = dict.fromkeys(self._nodes[i] for i in indices if self._nodes[i])
        if nodes:
            how["NUMA node"] = ", ".join(nodes)
        return {**how, **self._telemetry.how(), "data": "verified"}
