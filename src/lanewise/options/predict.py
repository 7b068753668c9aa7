"""Options of `lanewise predict`: flows, all pairs, or an inference service. Times in s, rates in queries/s."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lanewise.options.option import Options, option

SCENARIOS = ("server", "offline", "single-stream", "multi-stream")
DIVISIONS = ("closed", "network")
SCHEDULES = (
    "together", "pytorch", "null-stream", "one-by-one", "p2pmark", "p2pBandwidthLatencyTest",
    "p2pBandwidthLatencyTest-cuda9", "nvbandwidth", "TransferBench",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PredictOptions(Options):
    """What is predicted: flows that run together, all pairs, or a service."""

    heading: ClassVar[str] = "Flows, pairs, sweeps"
    flows: str | None = option(
        None, "Flows that run together: 'gpu0->gpu4, host0->gpu1'; with sizes also when each ends: "
        "'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'.", metavar="FLOWS",
    )  # fmt: skip
    matrix: str | None = option(None, "All pairs of devices, each pair by itself.", metavar="goodput|latency")
    both_ways: bool = option(False, "With --matrix goodput: both directions at once, and their sum.")
    devices: str | None = option(None, "With --matrix: only these devices.", metavar="gpu[0-3]", complete="gpus")
    service: str | None = option(
        None, "An inference service: resnet50, bert-99, my.yaml. In steady state; simulated with --qps or --peak.",
        metavar="WORKLOAD", complete="workloads",
    )  # fmt: skip
    sweep: tuple[str, ...] = option(
        (), "Predict once for each value of a system parameter: 'path=1..4' or 'gpus=1,2,4'; repeatable, for every "
        "combination.", metavar="NAME=VALUES", repeat=True,
    )  # fmt: skip
    schedule: str = option(
        "together", "With --flows: the tool whose order of copies, and whose way to count them, is predicted.",
        metavar="|".join(SCHEDULES), choices=SCHEDULES,
    )  # fmt: skip
    no_p2p: bool = option(False, "Copy between two GPUs through host memory.", "--no-p2p")
    output: Path | None = option(
        None, "Write a run of the predicted rows, for compare; not of a service.",
        "-o --output", metavar="RUN.json",
    )  # fmt: skip
    measured: tuple[Path, ...] = option(
        (), "Rates measured on this very machine, by lanewise measure or another tool: they tell capacities that other "
        "paths share; repeatable.", metavar="RUN.json", repeat=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServiceOptions(Options):
    """How a service runs and is simulated."""

    heading: ClassVar[str] = "A service"
    qps: float | None = option(None, "Simulate the service at this rate in queries/s.", metavar="RATE", unit="1/s")
    peak: bool = option(False, "Find the largest rate that keeps the service's latency bound.")
    mode: str = option("server", "MLPerf scenario.", metavar="|".join(SCENARIOS), choices=SCENARIOS)
    division: str = option("", "Where queries come from: this host, or a frontend over the network.",
                           metavar="closed|network", choices=DIVISIONS,
                           default_text="closed; with --frontend network")  # fmt: skip
    frontend: str | None = option(None, "Host that sends the queries over the network.", metavar="HOST")
    host: str | None = option(None, "Host whose GPUs serve.", metavar="HOST")
    gpus: str | None = option(None, "GPUs that serve.", metavar="gpu[0-3]", complete="gpus")
    batch: int | None = option(None, "Largest batch, in queries.", metavar="N", default_text="the workload's")
    timeout: float | None = option(None, "Longest time a query waits for its batch to fill.", metavar="TIME", unit="s",
                                   default_text="the workload's")  # fmt: skip
    streams: int | None = option(None, "Batches that a GPU runs at once, at its Offline rate together.", metavar="N",
                                 default_text="1")  # fmt: skip
    in_flight: int | None = option(None, "Batches of a GPU that are copied, wait or run.", metavar="N",
                                   default_text="4")  # fmt: skip
    full_batches: bool = option(False, "A partial batch takes as long as a full one, as CUDA graphs of one size do.")
    own_batcher: bool = option(False, "The time-out counts from when a GPU was free; each GPU has its own batcher.")
    copies: str = option(
        "gathered",
        "Copy a batch in one call, in a call for each query, or queries as they come.",
        metavar="gathered|each|per-query",
    )
    dispatch: str | None = option(None, "How queries are assigned to GPUs that share no queue.", default_text="least",
                           metavar="least|round-robin|random")  # fmt: skip
    beside: tuple[str, ...] = option((), "Another service on the same system; repeatable.",
                                     metavar="'WORKLOAD QPS on gpu[4-7]'", repeat=True)  # fmt: skip
    background: str | None = option(None, "Other traffic: 'ssd0->gpu0, gpu1->host0 4 GiB every 10 s'.",
                                    metavar="FLOWS")  # fmt: skip
    seconds: float | None = option(None, "Simulated seconds at --qps; of offline, seconds of samples.",
                                   metavar="SECONDS", default_text="enough for stable percentiles")  # fmt: skip
    seed: int = option(1, "Seed of the random arrivals.", metavar="N")
    precision: float = option(0.0025, "Relative precision of --peak.", metavar="SHARE", unit="1")
    trace: Path | None = option(None, "Write the first queries as a trace for ui.perfetto.dev.", metavar="FILE")
    report: Path | None = option(None, "Write the simulation as one HTML page.", metavar="FILE")
