"""Services under load as a simulation would report them: at the peak, too fast, and with hardly anything known."""

from __future__ import annotations

import math
import random
from functools import cache

from lanewise.results.observation import Source
from lanewise.results.service_result import Advice, ResourceUtilization, SearchRun, ServiceResult, Stage

STAGES = (
    Stage("queue", 0.9e-3, 2.5e-3),
    Stage("copy wait", 0.05e-3, 0.3e-3),
    Stage("link wait", 0.3e-3, 6.0e-3),
    Stage("copy", 0.4e-3, 0.5e-3),
    Stage("GPU wait", 0.6e-3, 3.4e-3),
    Stage("GPU", 1.3e-3, 1.4e-3),
    Stage("return", 0.02e-3, 0.04e-3),
)
PERCENTILES = (
    (0.5, 3.2e-3), (0.75, 4.4e-3), (0.9, 6.6e-3), (0.95, 8.7e-3), (0.97, 10.4e-3), (0.99, 14.1e-3),
    (0.995, 16.0e-3), (0.999, 19.8e-3), (0.9995, 21.0e-3), (0.9999, 23.6e-3), (1.0, 27.3e-3),
)  # fmt: skip
SEARCH = (
    (40_000, 2.2e-3), (80_000, 3.1e-3), (160_000, 512e-3), (120_000, 6.9e-3), (140_000, 24.8e-3), (130_000, 10.1e-3),
    (135_000, 13.6e-3), (137_500, 17.9e-3), (136_250, 15.2e-3), (135_600, 13.9e-3), (136_000, 14.1e-3),
)  # fmt: skip


def wave(mean: float, count: int, seed: int) -> tuple[float, ...]:
    """Use over time that climbs in the first tenth and then wanders around `mean`."""
    draw = random.Random(seed)
    return tuple(
        max(0.0, min(1.0, mean * min(1.0, 10 * (i + 1) / count) + 0.04 * math.sin(i / 9) + draw.gauss(0, 0.03)))
        for i in range(count)
    )


def busy(count: int = 400) -> tuple[ResourceUtilization, ...]:
    """Fourteen resources, the busiest neither first nor last."""
    found = [
        ("link host0--fabric, from the host", "link", 0.82), ("read window of hop4", "window", 0.97),
        ("link switch2--fabric, from the fabric", "link", 0.78), ("copy engine of gpu0", "engine", 0.41),
        *((f"gpu{i}", "GPU", 0.885 - 0.006 * i) for i in range(4)),
        *((f"link switch2--gpu{i}, from switch2", "link", 0.21) for i in range(4)),
        ("memory of host0", "other", 0.12), ("core0", "other", 0.05),
    ]  # fmt: skip
    return tuple(
        ResourceUtilization(name, mean, wave(mean, count, seed), kind) for seed, (name, kind, mean) in enumerate(found)
    )


@cache
def at_peak() -> ServiceResult:
    """Path 4 of the composable server with 4 GPUs, at the largest rate that keeps 15 ms."""
    return ServiceResult(
        name="ResNet50, path 4, 4 GPUs", workload="resnet50", scenario="Server", system="composable-server-gen4",
        source=Source.PREDICTED, qps=136_000.0, answered=135_871.4, queries=810_000, late=7_290, bound=15e-3,
        percentile=0.99, latency=14.1e-3, valid=True, reason="", limit="read window of hop4", basis="fitted",
        rests_on=(
            "pex-host-bridge.window = 24,576 B, fitted to 5 rows of this table",
            "NVIDIA L40S: resnet50_server.qps = 43,900 QPS (MLPerf v4.0 submission 4.0-0058), one GPU",
        ),
        percentiles=PERCENTILES, stages=STAGES, utilization=busy(), series_step=0.0149, batch=17.3,
        peak=(136_000.0, 136_250.0),
        search_runs=tuple(
            SearchRun(float(qps), 1 + i, latency <= 15e-3, latency, 270_336,
                      "" if latency <= 15e-3 else f"p99 {1e3 * latency:.1f} ms > 15 ms")
            for i, (qps, latency) in enumerate(SEARCH)
        ),
        steady=150_300.0,
        advice=(
            Advice("copy queries in larger pieces (needs 64 KiB batches)", 1.02),
            Advice("move gpu3 to the switch of path 1: its reads then pass two hops less", 1.118),
            Advice("a longer latency bound; the steady state is reached at 40 ms"),
        ),
        goodput=20.45e9, duration=5.96, seed=7, settings={"path": 4, "gpus": 4},
        assumptions=("Arrivals are a Poisson process.", "The GPU runs at its submitted rate whatever the batch's age."),
        note="The read window is shared by all four GPUs.",
    )  # fmt: skip


def too_fast() -> ServiceResult:
    """One rate that was asked, without a search, and not kept."""
    return ServiceResult(
        "ResNet50, box, 4 GPUs", "resnet50", "Server", "no-switch-box-l40s", Source.PREDICTED, 180_000.0, 171_200.0,
        540_000, 331_000, 15e-3, 0.99, 96.5e-3, False, "61 % of queries late, 1 % allowed",
        "gpu0 (inference rate)", "calibrated",
        percentiles=((0.5, 18.9e-3), (0.9, 61e-3), (0.99, 96.5e-3), (0.999, 99e-3)),
        stages=(Stage("queue", 21e-3, 88e-3), Stage("copy", 0.3e-3, 0.3e-3), Stage("GPU", 1.4e-3, 1.5e-3)),
        utilization=(ResourceUtilization("gpu0", 1.0, kind="GPU"), ResourceUtilization("link host0--gpu0", 0.62)),
    )  # fmt: skip


def bare() -> ServiceResult:
    """Nothing but what must be there."""
    return ServiceResult(
        "bert", "bert-99", "Offline", "laptop", Source.MEASURED, 12.5, 12.48, 0, 0, 0.0, 0.99, 81e-6, True, "", "", ""
    )
