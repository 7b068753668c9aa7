"""How a predicted service in the Network division compares with the Closed division, and what that leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise.perf.flow import Flow
from lanewise.results.network_share import NetworkShare, share_interval
from lanewise.results.service_result import ServiceResult
from lanewise.serving.load import ServiceLoad, gpus_of
from lanewise.serving.peak import SearchOptions, simulate, simulate_peak
from lanewise.serving.steady import ServiceRate, steady_rate
from lanewise.serving.times import gpu_part, stated_software
from lanewise.topology.model import System

# The least of 14 published pairs of scores: DGX A100 (ResNet-50 99.6 to 100 %, BERT 90 to 96 %), HPE DL385 with eight
# AIC100 (BERT 99 to 100 %), Qualcomm G292 with 18 (91 to 100 %); github.com/mlcommons/inference_results_v3.0, network/
# and closed/, in benchmarks/runs/2026-11-23-network-over-closed.md. Each system brought a dispatch library of its own.
LEAST_KEPT = 0.90
KEPT = f"published systems kept {100 * LEAST_KEPT:.0f} to 100 % of Closed, their libraries differ"
UNKNOWN = "software cost of a query: not known, taken as 0"
UPPER_BOUND = "the share is an upper bound"


def steady_share(system: System, load: ServiceLoad, rate: ServiceRate) -> NetworkShare:
    """The share of a service in steady state."""
    closed = steady_rate(system, _in_closed(load)).qps
    return _share(system, load, rate.qps, closed)


def simulated_share(
    system: System, load: ServiceLoad, other_loads: Sequence[ServiceLoad], background: Sequence[Flow],
    result: ServiceResult, search: SearchOptions | None, seconds: float | None,
) -> NetworkShare:  # fmt: skip
    """The share of a simulated peak (with the options of its `search`) or of an Offline run of `seconds`.

    One rate, or one query at a time, has no share: only its ingress is stated. So has a peak where no rate is valid.
    """
    if search is not None and load.scenario == "server":
        closed = simulate_peak(system, _in_closed(load), other_loads, background, search)[0][0]
        if result.valid and closed.valid and result.peak and closed.peak:
            share = _share(system, load, result.qps, closed.qps)
            low, high = share_interval(result.peak, closed.peak) or (0.0, 0.0)
            least = low if share.software is not None else low * LEAST_KEPT
            return replace(share, interval=(least, high) if high else None)
    elif load.scenario == "offline":
        closed = simulate(system, [_in_closed(load), *other_loads], background, seconds, result.seed)[0][0]
        return _share(system, load, result.qps, closed.qps)
    return _share(system, load, result.qps, None)


def _in_closed(load: ServiceLoad) -> ServiceLoad:
    """The same load from the memory of the GPUs' own host, where one queue feeds them all."""
    return replace(load, frontend=None, dispatch="least")


def _share(system: System, load: ServiceLoad, qps: float, closed: float | None) -> NetworkShare:
    work = load.workload
    costs = [stated_software(part, work) for part in {gpu_part(system, gpu) for gpu in gpus_of(system, load)}]
    known = [cost for cost in costs if cost is not None]
    software = max(known) if len(known) == len(costs) else None
    share = qps / closed if closed else None
    note, hint, interval = "", "", None
    if software is None:
        note = f"{UNKNOWN}; {UPPER_BOUND}: {KEPT}" if share is not None else UNKNOWN
        interval = (LEAST_KEPT * share, share) if share is not None else None
        hint = (
            f"measure it (lanewise loadtest peak --division both) and state it as software.{work.name} of the GPU in a "
            "part file (--parts FILE), or as 'software:' in a workload file"
        )
    return NetworkShare(qps * work.bytes_in, software, closed, share, interval, note=note, hint=hint)
