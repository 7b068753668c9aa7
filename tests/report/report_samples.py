"""A run as the studies write it: published figures of two ready studies with made-up predictions."""

from __future__ import annotations

from in_display_units import observation

from lanewise.results.observation import Basis, Source
from lanewise.results.run import (
    Chart,
    Conclusion,
    Drawing,
    FittedValue,
    Hypothesis,
    LeftOut,
    Run,
    Series,
    StudyRun,
)

GEN4 = {
    "TX2550 M7": (25.67, 18.95, 13.21, 6.60),
    "CDI v1.0 path 1": (24.92, 19.57, 13.44, 6.66),
    "CDI v1.0 path 2": (24.60, 19.47, 13.39, 6.64),
    "CDI v1.0 path 3": (23.80, 19.46, 13.42, 6.62),
    "CDI v1.0 path 4": (20.50, 19.40, 13.41, 6.62),
}
BOX_H100 = (63594, 127839, 191458, 255729, 319661, 383594, 447526, 511458)
HOSTS = {
    "host to device": (12.36, 25.11),
    "device to host": (12.55, 24.61),
    "bidirectional, P2P disabled": (9.65, 25.62),
    "bidirectional, P2P enabled": (48.59, 48.66),
}
LATENCY = {"GPU-GPU latency, P2P disabled": (24.79, 25.68), "GPU-GPU latency, P2P enabled": (2.71, 2.75)}
PART = "NVIDIA L40S: resnet50_server.qps = 43,900 QPS (MLPerf v4.0 submission 4.0-0058), one GPU"
LINK = "PCIe Gen4 x16: 16 GT/s x 16 x 128/130 / 8 = 31.508 GB/s raw (PCIe base specification 4.0)"


def predicted(published: float, off_pct: float) -> float:
    """A stand-in for a prediction: so many percent off."""
    return published * (1 + off_pct / 100)


def composable(drawings: tuple[Drawing, ...] = ()) -> StudyRun:
    """Study 1 with residuals of every grade, an unknown row and extrapolated rows."""
    rows = []
    for row, (path, values) in enumerate(GEN4.items()):
        for column, value in enumerate(values):
            gpus = 4 - column
            off = (0.6, -1.2, 0.9, -7.4, 12.5)[row] if gpus == 4 else (0.4 * row - 0.8) / (column + 1)
            rows.append(
                observation(
                    scenario=path,
                    flow="ResNet50 Server",
                    metric="ingress",
                    value=predicted(value, off),
                    unit="GB/s",
                    source=Source.PREDICTED,
                    study="composable-server",
                    system="cdi-v1.0",
                    table="Gen4, L40S",
                    settings={"gpus": gpus, "path": row},
                    published=value,
                    basis=Basis.FITTED if gpus == 4 else Basis.CALIBRATED,
                    limit="link host0--fabric (window of the host bridge)" if gpus == 4 else "gpu0 (inference rate)",
                    rests_on=(PART, LINK) if gpus == 4 else (PART,),
                    low=predicted(value, off - 2),
                    high=predicted(value, off + 2),
                )
            )
    for index, value in enumerate(BOX_H100):
        far = index >= 4
        rows.append(
            observation(
                scenario=f"{index + 1} GPUs", flow="ResNet50 Server", metric="largest QPS",
                value=predicted(value, 0.3 * index - 1), unit="QPS", source=Source.PREDICTED, published=value,
                study="composable-server", system="tx2550-m7", table="No-switch box, H100 NVL",
                settings={"gpus": index + 1}, basis=Basis.CALIBRATED, limit="gpu0 (inference rate)",
                rests_on=(PART,), extrapolated=far, note="straight line from 1 to 4 GPUs" if far else "",
            )
        )  # fmt: skip
    rows.append(
        observation(
            scenario="8 GPUs", flow="ResNet50 Server", metric="share of 32 GB/s", value=None, unit="%",
            source=Source.PREDICTED, study="composable-server", system="cdi-v1.0", table="Share of the link",
            published=75.25, note="the paper prints 75.25 %, but 24.77 / 32 is 77.4 %: kept, not predicted",
        )
    )  # fmt: skip
    return StudyRun(
        name="composable-server",
        title="Path length and inference throughput",
        source='"PRIMERGY CDI: Performance Evaluation of CPU-GPU Interconnect in Servers", Fsas Technologies',
        finding="Path length costs nothing until the shared link saturates: up to 3 GPUs on Gen4 every path "
        "delivers what the box without switches does; with 4 GPUs the longest path loses a fifth.",
        rows=tuple(rows),
        conclusions=(
            Conclusion("Up to 3 GPUs on Gen4 path length does not matter", True, "largest gap 2.1 % (3 GPUs, path 4)"),
            Conclusion("At saturation path 4 is about 20 % below path 3", False, "23.06 against 22.04 GB/s: 4.6 %"),
            Conclusion("Training needs at most 4 GB/s", None, "no training rows in this run"),
        ),
        fitted=(
            FittedValue("pex-host-bridge.window", 24576, "B", 12, 32768, 512, "shared by the host link"),
            FittedValue("l40s.resnet50_share", 0.93, "1", 5),
        ),
        left_out=(LeftOut("path 4", 4, 8.2, -13.4), LeftOut("4 GPUs", 5, 3.9, 6.1)),
        hypotheses=(
            Hypothesis("window", "a fixed number of bytes in flight on the host link", 2.4, -7.4, 1, "kept"),
            Hypothesis("credits", "each switch has its own credits", 9.6, 21.0, 2, "paths 1 to 3 come out alike"),
            Hypothesis("ordering", "reads wait for writes", None, None, 0, "nothing to test it on"),
        ),
        charts=(_paths_chart(), _gpus_chart()),
        drawings=drawings,
        assumptions=("The L40S runs at its submitted rate.", "All boxes hang on one cable, x16."),
        method="Each cell is the largest Poisson rate for which 99 % of queries finish within 15 ms.\n\n"
        "The shared link is a pipe with a window; see docs/concepts.",
    )


def chassis(drawings: tuple[Drawing, ...] = ()) -> StudyRun:
    """Study 3: two hosts, two units in one table, measured beside predicted."""
    rows = []
    for unit, table in (("GB/s", HOSTS), ("us", LATENCY)):
        for metric, values in table.items():
            for index, (system, value) in enumerate(zip(("xeon-5120t", "epyc-7452"), values, strict=True)):
                rows.append(
                    observation(
                        scenario="p2pBandwidthLatencyTest",
                        flow="gpu0->gpu1" if "GPU" in metric else "host0->gpu0",
                        metric=metric,
                        value=predicted(value, 3.0 - 4 * index),
                        unit=unit,
                        source=Source.PREDICTED,
                        study="expansion-chassis",
                        system=system,
                        table="Two hosts",
                        published=value,
                        basis=Basis.PHYSICS,
                        limit="link host0--adapter" if unit == "GB/s" else "",
                        rests_on=(LINK,),
                    )
                )
    return StudyRun(
        "expansion-chassis",
        "A GPU expansion chassis on two hosts",
        "H3 Platform, 2020",
        "Host-device copies follow the host's PCIe generation, peer copies the chassis'.",
        tuple(rows),
        conclusions=(Conclusion("The chassis adds nothing to host-device bandwidth", True, "24.6 against 24.8 GB/s"),),
        charts=(_hosts_chart(),),
        drawings=drawings,
    )


def sample_run(*drawings: Drawing) -> Run:
    """Two studies, drawings shared between them."""
    machine = {"host": "laptop", "CPU": "8 cores", "system": "Linux 6.1"}
    half = (len(drawings) + 1) // 2
    studies = (composable(drawings[:half]), chassis(drawings[half:]))
    return Run(studies, "2026-11-20T14:00:00+00:00", "0.1.0", "lanewise study --all", machine)


def _paths_chart() -> Chart:
    series = []
    for column in range(4):
        gpus = f"{4 - column} GPU{'s' if column < 3 else ''}"
        points = tuple((path.removeprefix("CDI v1.0 "), values[column]) for path, values in GEN4.items())
        guess = tuple((x, predicted(y, 1.5 if index % 2 else -3.0)) for index, (x, y) in enumerate(points))
        series += [
            Series(gpus, "published", points, group=gpus),
            Series(gpus, "predicted", guess, group=gpus),
        ]
    return Chart("Throughput against path length, Gen4, L40S", "line", "path", "GB/s", tuple(series))


def _gpus_chart() -> Chart:
    points = tuple((float(i + 1), value * 150528 / 1e9) for i, value in enumerate(BOX_H100))
    flags = (False,) * 4 + (True,) * 4
    cdi = ((3.0, 28.43), (4.0, 38.28), (5.0, 47.22), (6.0, 53.75))
    return Chart(
        "Throughput against GPUs, Gen5, H100 NVL", "line", "GPUs", "GB/s",
        (
            Series("no switch", "published", points, flags, "no switch"),
            Series("no switch", "predicted", tuple((x, y * 0.99) for x, y in points), (), "no switch"),
            Series("CDI v1.1 path 3", "published", cdi, (), "CDI v1.1 path 3"),
            Series("CDI v1.1 path 3", "predicted", tuple((x, min(y, 53.0) * 1.01) for x, y in cdi), (),
                   "CDI v1.1 path 3"),
        ),
        note="Extrapolated points are straight-line values of the paper.",
    )  # fmt: skip


def _hosts_chart() -> Chart:
    series = []
    for index, host in enumerate(("Xeon Gold 5120T, Gen3", "EPYC 7452, Gen4")):
        points = tuple((name, values[index]) for name, values in HOSTS.items())
        guess = tuple((name, predicted(value, 3 - 4 * index)) for name, value in points)
        series += [
            Series(host, "published", points, group=host),
            Series(host, "predicted", guess, group=host),
        ]
    return Chart("Peak rates on two hosts", "bar", "test", "GB/s", tuple(series))
