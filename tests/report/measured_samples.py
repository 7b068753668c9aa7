"""Measured rows made up for tests: no machine delivered these numbers, though they look as one might.

An imaginary server with four GPUs in two NUMA nodes, one of whose links has trained low, and one drive.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace

from in_display_units import sample

from lanewise import units
from lanewise.results.observation import Observation
from lanewise.results.run import Run
from lanewise.results.sample import Sample, summarise

GPUS = 4
SLOW = "gpu3"  # trained to x8
SIZES = [4096 * 4**i for i in range(10)]  # 4 KiB to 1 GiB
CONDITIONS = {
    "driver": "999.00 (made up)", "CUDA": "99.0", "kernel": "0.0-test", "cpu": "Made-up CPU 9000", "NUMA nodes": "2",
    "IOMMU": "identity", "link under load": "gpu0 Gen5 x16, gpu1 Gen5 x16, gpu2 Gen5 x16, gpu3 Gen5 x8",
}  # fmt: skip
CE = {"engine": "copy engine", "data": "verified"}


def samples() -> Iterator[Sample]:
    """Every sample of the imaginary measurement, in the order in which it was taken."""
    dice = random.Random(4)
    yield from _host_copies(dice)
    yield from _peers(dice)
    yield from _together(dice)
    yield from _sweep(dice)
    yield from _latency(dice)
    yield from _storage(dice)
    yield sample("nvlink_read", "gpu0->gpu1", "goodput", None, "GB/s", path="peer SYS", note="gpu0 has no NVLink")


def rows() -> tuple[Observation, ...]:
    """The same as rows, host copies with what a model might predict beside them."""
    told = {"host to device": 55.5e9, "device to host": 55.4e9}
    return tuple(
        replace(row, comparisons={"predicted": told[row.path]})
        if row.scenario.endswith("memcpy_ce") and row.path in told
        else row
        for row in summarise(samples())
    )


def measured_run() -> Run:
    """All of it as a run."""
    return Run((), "2026-11-20T14:00:00+00:00", "0.1.0", "lanewise measure gpu (made up)", CONDITIONS, rows=rows())


def several(dice: random.Random, one: Sample, middle: float, spread: float = 0.002, count: int = 7) -> Iterator[Sample]:
    """`count` samples that scatter by `spread` around `middle`, three digits of them."""
    for _ in range(count):
        yield replace(one, value=units.to_si(round(middle * (1 + dice.gauss(0, spread)), 4), one.display_unit))


def flow(scenario: str, ends: str, path: str, how: Mapping[str, str], **settings: int) -> Sample:
    return sample(scenario, ends, "goodput", None, "GB/s", settings, {"flows": ends, **how}, path)


def _host_copies(dice: random.Random) -> Iterator[Sample]:
    for scenario, path, rate in (
        ("host_to_device_memcpy_ce", "host to device", 55.4), ("device_to_host_memcpy_ce", "device to host", 55.2),
    ):  # fmt: skip
        for gpu in range(GPUS):
            for node in range(2):
                ends = [f"host0:{node}", f"gpu{gpu}"]
                name = "->".join(ends if path == "host to device" else ends[::-1])
                link = "Gen5 x8" if f"gpu{gpu}" == SLOW else "Gen5 x16"
                how = {**CE, "NUMA node": str(node), "link under load": link}
                near = 1.0 if node == gpu // 2 else 0.93
                one = flow(scenario, name, path, how, bytes=2**29)
                yield from several(dice, one, rate * near * (0.5 if link.endswith("x8") else 1.0), 0.001)


def _peers(dice: random.Random) -> Iterator[Sample]:
    for p2p, rate in (("on", 392.0), ("off", 38.0)):
        scenario = "device_to_device_memcpy_write_ce" + ("" if p2p == "on" else ", P2P off")
        for a in range(GPUS):
            for b in range(GPUS):
                if a != b:
                    path = "peer NV18" if p2p == "on" else "peer, staged"
                    one = flow(scenario, f"gpu{a}->gpu{b}", path, {**CE, "p2p": p2p}, bytes=2**29)
                    noisy = p2p == "off"
                    yield from several(dice, one, rate * dice.uniform(0.97, 1), 0.03 if noisy else 0.002, 15)


def _together(dice: random.Random) -> Iterator[Sample]:
    flows = ("gpu0->gpu1", "gpu2->gpu3", "host0:1->gpu0")
    scenario = ", ".join(flows)
    how = {**CE, "flows": scenario}
    for name, rate in zip(flows, (371.0, 388.0, 49.0), strict=True):
        path = "peer NV18" if "host" not in name else "host to device"
        yield from several(dice, flow(scenario, name, path, how), rate)
    whole = sample(scenario, scenario, "total", None, "GB/s", {}, how)
    yield from several(dice, whole, 808.0)
    yield from several(dice, replace(whole, metric="makespan", display_unit="s"), 0.0213)


def _sweep(dice: random.Random) -> Iterator[Sample]:
    for ends, path, latency, rate in (
        ("host0->gpu0", "host to device", 4.2e-6, 55.6e9), ("gpu0->host0", "device to host", 3.4e-6, 55.3e9),
        ("gpu0->gpu1", "peer NV18", 5.1e-6, 393e9),
    ):  # fmt: skip
        for size in SIZES:
            reached = size / (latency + size / rate) / 1e9
            spread = 0.03 if size < 2**18 else 0.003
            yield from several(dice, flow("sizes", ends, path, CE, bytes=size), reached, spread)
        fit = sample("sizes", ends, "fit_latency", None, "us", {}, {"flows": ends}, path)
        yield replace(fit, value=latency)
        yield replace(fit, metric="fit_bandwidth", display_unit="GB/s", value=rate)


def _latency(dice: random.Random) -> Iterator[Sample]:
    for gpu in range(GPUS):
        ends = f"host0->gpu{gpu}"
        how = {"engine": "SM", "flows": ends}
        chase = sample("host_device_latency_sm", ends, "chase_latency", None, "ns", {}, how, "host to device")
        yield from several(dice, chase, 1150.0 + 6 * gpu, 0.002)
    for a in range(GPUS):
        for b in range(GPUS):
            if a != b:
                one = sample("p2p_latency", f"gpu{a}->gpu{b}", "latency", None, "us", {"bytes": 16}, CE, "peer NV18")
                yield from several(dice, one, 2.2 + 0.1 * dice.random(), 0.02)


def _storage(dice: random.Random) -> Iterator[Sample]:
    for mode, rate in (("direct", 6.81), ("cached", 21.4), ("bounce", 5.9)):
        for threads in (1, 4):
            how = {"mode": mode, "flows": "nvme0n1->gpu0"}
            settings = {"bytes": 2**20, "threads": threads, "depth": 16}
            one = sample(f"nvme0n1->gpu0, {mode}", "nvme0n1->gpu0", "goodput", None, "GB/s", settings, how, "storage")
            yield from several(dice, one, rate * (0.7 if threads == 1 else 1), 0.08 if mode == "cached" else 0.01)
            for metric, time in (("latency_p50", 2.1e3), ("latency_p99", 3.4e3), ("latency_p99.9", 5.2e3)):
                yield from several(dice, replace(one, metric=metric, display_unit="us"), time / rate, 0.03)
