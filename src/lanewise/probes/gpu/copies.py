"""Measurements of copies: flows released together, tuned to end together, the rate of each while all of them run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from lanewise._native import CUDA_MOST_COPIES, CudaFlow, PreparedCopies, ProbeFailure
from lanewise.options.measure_gpu import MeasureGpuOptions
from lanewise.perf.flow import Flow
from lanewise.probes.gpu.cases import GpuTest
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
_IN_TURNS = "flows of one engine took turns, so this is over the time that all of them took"
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


def copies(test: GpuTest, gpus: Gpus, options: MeasureGpuOptions) -> Iterator[Sample]:
    """Samples of every flow until the rule has enough; rows without a value and a reason where a copy fails.

    ProbeFailure where the copies cannot be prepared, as for want of memory: that ends the probe.
    """
    series = _CopySeries(test, gpus, options)
    reason = gpus.unreachable(test.flows)
    if not reason:
        with closing(gpus.cuda.prepare(series.native_flows)) as prepared:
            try:
                series.tune(prepared)
                yield from sample_until(options.rule, "goodput", lambda: series.measure(prepared))
            except ProbeFailure as error:
                reason = error.args[0]
    if reason:
        yield from series.failed(reason)


def sweep(test: GpuTest, gpus: Gpus, options: MeasureGpuOptions) -> Iterator[Sample]:
    """The test at every size of the options, then latency and bandwidth of the line that fits the times."""
    seconds: dict[tuple[str, str], dict[int, list[float]]] = {}
    last: dict[tuple[str, str], Sample] = {}
    for size in options.copy_sizes:
        for sample in copies(test, gpus, replace(options, bytes=size, sizes=(), sweep=False)):
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
    """The runs of one test's copies: tuned and verified once, then measured once for each sample."""

    def __init__(self, test: GpuTest, gpus: Gpus, options: MeasureGpuOptions) -> None:
        self._test, self._gpus, self._flows = test, gpus, test.flows
        plans = self._copy_plans = [copy_plan(flow, options) for flow in test.flows]
        duplex = duplex_flows(test.flows, plans)
        self.native_flows = [
            CudaFlow(
                src=gpus.ordinal_or_host(flow.src), dst=gpus.ordinal_or_host(flow.dst), bytes=plan.copy_bytes,
                copies=plan.fixed_copies or PILOT_COPIES, node=gpus.host_node(flow), sm=flow.sm, read=flow.read,
                p2p=flow.p2p, duplex=i in duplex,
            )
            for i, (flow, plan) in enumerate(zip(test.flows, plans, strict=True))
        ]  # fmt: skip
        # The NUMA node of each flow's host buffer, and a note on it: empty until the buffers are there.
        self._buffers = [("", "")] * len(test.flows)

    def tune(self, prepared: PreparedCopies) -> None:
        """Look up the pages of host buffers, compare the data, and find the copies of each flow; ProbeFailure."""
        self._buffers = [
            buffer_node(pages, native_flow.node) if touches_host(flow) else ("", "")
            for pages, flow, native_flow in zip(prepared.pages(), self._flows, self.native_flows, strict=True)
        ]
        prepared.verify()
        fixed_copies = [plan.fixed_copies for plan in self._copy_plans]
        self._schedule = tuned_schedule(prepared, self.native_flows, fixed_copies)
        self._telemetry = self._gpus.telemetry(self._flows)

    def measure(self, prepared: PreparedCopies) -> Iterator[Sample]:
        """Goodput of each flow in the common window; of several their sum; of flows with a size the makespan."""
        with self._telemetry.recording():
            window = self._schedule.run_once(prepared)
        outlasted = "" if window.every_flow_copied else _OUTLASTED
        doubts = [_IN_TURNS if in_turns else outlasted for in_turns in window.in_turns]
        copy_bytes = [native_flow.bytes for native_flow in self.native_flows]
        rates = [copies * size for copies, size in zip(window.copies_per_second, copy_bytes, strict=True)]
        sample, samples, unheld = self._test.sample, [], self._gpus.unheld(self._flows)
        for i, (flow, rate) in enumerate(zip(self._flows, rates, strict=True)):
            note = "; ".join(text for text in (self._buffers[i][1] or unheld, doubts[i]) if text)
            how, settings = self._how([i]), self._settings(i)
            samples.append(
                sample("goodput", rate, display_unit="GB/s", how=how, note=note, settings=settings, flow=flow)
            )
        how = self._how(range(len(self._flows)))
        settings = {"bytes": copy_bytes[0]} if len({*copy_bytes}) == 1 else {}
        if len(self._flows) > 1:
            doubt = _IN_TURNS if any(window.in_turns) else outlasted
            samples.append(sample("total", sum(rates), display_unit="GB/s", how=how, note=doubt, settings=settings))
        if any(flow.size is not None for flow in self._flows):  # else the probe chose how much is moved
            sizes = [copies * size for copies, size in zip(self._schedule.copies, copy_bytes, strict=True)]
            moved = ", ".join(f"{flow.name} {size} B" for flow, size in zip(self._flows, sizes, strict=True))
            how = {**how, "moved": moved}
            samples.append(sample("makespan", window.makespan, display_unit="s", how=how, settings=settings))
        return self._test.in_every_scenario(samples)

    def failed(self, reason: str) -> Iterator[Sample]:
        """A sample without value of each flow's goodput: of the same identity as the samples before it."""
        samples = [
            self._test.sample(
                "goodput", None, display_unit="GB/s", how=self._method([i]), note=reason, settings=self._settings(i),
                flow=flow,
            )
            for i, flow in enumerate(self._flows)
        ]  # fmt: skip
        return self._test.in_every_scenario(samples)

    def _settings(self, i: int) -> dict[str, int]:
        """The size of a copy, and the number of a flow between the same ends as another one."""
        names = [flow.name for flow in self._flows]
        number = {"flow": names[: i + 1].count(names[i])} if names.count(names[i]) > 1 else {}
        return {"bytes": self.native_flows[i].bytes, **number}

    def _how(self, indices: Sequence[int]) -> dict[str, str]:
        """How the flows of these indices were copied, and what was observed meanwhile."""
        return {**self._method(indices), **self._telemetry.how(), "data": "verified"}

    def _method(self, indices: Sequence[int]) -> dict[str, str]:
        """How the flows of these indices are copied: keys that are part of a row's identity."""
        how = {"engine": ", ".join(dict.fromkeys(engine(self._flows[i]) for i in indices))}
        if any(self.native_flows[i].duplex for i in indices):
            how["kernel"] = "one for both ways"
        nodes = dict.fromkeys(self._buffers[i][0] for i in indices if self._buffers[i][0])
        if nodes:
            how["NUMA node"] = ", ".join(nodes)
        return how
