"""Options of `lanewise loadtest`: what is tested, the load, the search. Times in s, sizes in bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lanewise import units
from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.options.option import Options, argument, option, settings, whole_numbers, words

CPU = "cpu"
SYNTHETIC = "synthetic"
ENGINES = ("onnxruntime", "torch", "tensorrt", SYNTHETIC)
COPIES = ("auto", "batch", "kernel", "staged", "calls")
BALANCES = ("least-outstanding", "round-robin")
DIVISIONS = (CLOSED, NETWORK, BOTH) = ("closed", "network", "both")
TRANSPORTS = (AUTO, SHM, VERBS, TCP) = ("auto", "shm", "verbs", "tcp")


def service_time(text: str) -> tuple[float, float]:
    """Seconds a batch and a query from '1 ms + 20 us'; a single time is that of a query."""
    parts = [units.parse(part.strip(), "s") for part in text.split("+")]
    if len(parts) > 2:
        raise FormatError(f"'{text}' has more than two times", hint="write '1 ms + 20 us', or '20 us'")
    return (parts[0], parts[1]) if len(parts) == 2 else (0.0, parts[0])


@dataclass(frozen=True, slots=True)
class BatchingOptions(Options):
    """The system under test: a queue for each device, batches, copies. The native system reads these by name.

    Without a flag: `balance` chooses the device of a query, of which `most_waiting` wait for a device (then issuing
    waits), and `node` is the library's NUMA node (-1: a GPU's own, for a CPU any).
    """

    devices: tuple[str, ...] = option(
        ("cpu",), "Devices, each with a queue of its own: cpu, or gpu0,gpu1.", metavar="NAMES", parse=words,
        complete="gpus",
    )  # fmt: skip
    batch: int = option(8, "Largest batch, in queries.", metavar="N", minimum=1, maximum=65535)
    timeout: float = option(0.001, "Longest time a query waits for its batch to fill.", metavar="TIME", unit="s",
                            minimum=0)  # fmt: skip
    streams: int = option(2, "Batches in flight on each device.", metavar="N", minimum=1, maximum=64)
    copy: str = option("auto", "How samples are copied to a GPU.", metavar="|".join(COPIES), choices=COPIES)
    library: int = option(1024, "Samples held in memory at once.", metavar="N", minimum=1)
    sample_bytes: int = option(150528, "Size of a sample of the synthetic engine.", metavar="SIZE", unit="B", minimum=1,
                               default_text="150528 B")  # fmt: skip
    service: tuple[float, float] = option(
        (0.0, 0.001), "Service time of the synthetic engine: '1 ms + 20 us' is 1 ms a batch and 20 us a query.",
        metavar="TIME", parse=service_time, default_text="1 ms a query",
    )  # fmt: skip
    balance: str = BALANCES[0]
    most_waiting: int = 1 << 18
    node: int = -1

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if not self.devices:
            raise InputError("--devices names no device", hint="write --devices cpu or --devices gpu0,gpu1")
        for device in self.devices:
            if device != CPU and not re.fullmatch(r"gpu\d+", device):
                raise unknown_name("device", device, [CPU, "gpu0", "gpu1", "..."])
        if self.balance not in BALANCES:
            raise unknown_name("balance", self.balance, BALANCES)
        if not 1 <= self.most_waiting <= 1 << 28:
            raise InputError(f"most_waiting {self.most_waiting}", hint=f"take 1 to {1 << 28:,}")
        if not all(time >= 0 for time in self.service):  # NaN neither
            raise InputError(f"--service is {self.service}", hint="take times of 0 or more")


@dataclass(frozen=True, slots=True)
class ModelOptions(BatchingOptions):
    """The system under test with its engine and model: of a load test on this machine, or of an Accelerator node."""

    engine: str = option(
        "", "Inference engine; synthetic runs no model and occupies the device for --service.",
        metavar="onnxruntime|torch|tensorrt|synthetic", choices=ENGINES, default_text="the first that is installed",
    )  # fmt: skip
    model: str = option(
        "small-cnn", "Model: small-cnn, resnet50, bert, bert-large, or an ONNX file.", metavar="NAME|FILE.onnx"
    )
    precision: str = option("fp32", "Number format of the model.", metavar="fp32|fp16|bf16")
    threads: int = option(0, "CPU threads of onnxruntime.", metavar="N", minimum=0, default_text="all cores but one")
    mode: str = option(
        "", "How the engine runs the model. torch: eager, compiled, graphs, compiled-graphs; tensorrt: eager, graphs; "
        "onnxruntime's provider: cpu, cuda, tensorrt.", metavar="MODE",
        default_text="on a GPU the fastest that works; on a CPU eager, or cpu",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadTestOptions(ModelOptions):
    """What is tested: the system, its engine and model, the samples."""

    images: Path | None = option(None, "Folder of labelled images to send instead of synthetic samples.",
                                 metavar="FOLDER")  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadOptions(LoadTestOptions):
    """What LoadGen checks and how it issues queries."""

    bound: float = option(0.015, "Latency bound at --percentile.", metavar="TIME", unit="s")
    percentile: float = option(0.99, "Share of the queries that must meet the bound.", metavar="SHARE", unit="1",
                               minimum=0.5, maximum=0.9999)  # fmt: skip
    seed: int = option(1, "Seed of arrival times and of the choice of samples.", metavar="N", minimum=1)
    coalesce: bool = option(False, "Let LoadGen pass all queries that are due in one call.")
    results: Path | None = option(
        None, "Folder for LoadGen's logs and the state to resume from.", metavar="FOLDER", default_text="a new folder"
    )
    output: Path | None = option(None, "Write the run, for report and compare.", "-o --output", metavar="RUN.json")
    nodes: tuple[str, ...] = option(
        (), "Send the queries to these Accelerator nodes (lanewise serve) instead of this machine's devices.",
        metavar="HOST:PORT,...", parse=words,
    )  # fmt: skip
    transport: str = option(
        AUTO, "What carries queries to the nodes; auto is the first that works of shm, verbs, tcp.",
        metavar="|".join(TRANSPORTS), choices=TRANSPORTS,
    )  # fmt: skip
    connections: int = option(4, "Connections to each node.", metavar="N", minimum=1, maximum=64)
    depth: int = option(
        0, "Largest number of queries in flight on a connection.", metavar="N", minimum=0, maximum=65536,
        default_text="1024, or what a quarter of the node's free memory holds",
    )  # fmt: skip
    device: str | None = option(None, "verbs only: this side's RDMA device.", metavar="NAME", default_text="all")
    gid_index: int | None = option(None, "verbs only: this side's GID.", metavar="N", minimum=0, maximum=255)
    secret_file: Path | None = option(None, "File with the secret that you share with the nodes.", metavar="FILE",
                                      default_text="LANEWISE_SECRET")  # fmt: skip
    tls_ca: Path | None = option(
        None, "Speak TLS with nodes whose certificates are in this file, or signed by one in it (PEM).",
        metavar="FILE", default_text="no TLS",
    )  # fmt: skip
    prometheus: Path | None = option(
        None, "Write the counters of the nodes' connections for node_exporter's textfile collector, once a second.",
        metavar="FILE",
    )  # fmt: skip
    child_node: bool = False  # the node is a child of this process, whose port is another one each time


@dataclass(frozen=True, slots=True)
class PeakOptions(LoadOptions):
    """How the largest VALID rate is searched for."""

    within: float = option(0.02, "Relative precision of the peak.", metavar="SHARE", unit="1", minimum=0.001,
                           maximum=0.5)  # fmt: skip
    seconds: float = option(140.0, "Total seconds of load of a search; more give a narrower interval.",
                            metavar="SECONDS", minimum=1.0)  # fmt: skip
    most_runs: int = option(12, "Largest number of Server runs of a search.", metavar="N", minimum=1)
    trace: Path | None = option(None, "Write the last run as a trace for ui.perfetto.dev.", metavar="FILE")
    division: str = option(
        "", "MLPerf division: this machine's devices, the nodes, or one after the other and their ratio. Without "
        "--nodes, both starts a node on this machine.", metavar="|".join(DIVISIONS), choices=DIVISIONS,
        default_text="closed; with --nodes network",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunOptions(LoadOptions):
    """One run of LoadGen at a given load."""

    scenario: str = option(
        "", "MLPerf scenario.", metavar="server|offline|singlestream|multistream",
        default_text="server; with --accuracy or --audit offline",
    )  # fmt: skip
    qps: float = option(
        0.0, "Target rate of server in queries/s; of offline the expected samples/s, 0 to time a batch first.",
        metavar="RATE", unit="1/s", minimum=0,
    )  # fmt: skip
    seconds: float = option(10.0, "Minimum run time in seconds.", metavar="SECONDS")
    queries: int = option(1000, "Minimum number of queries; --accuracy and payload send each sample once.",
                          metavar="N")  # fmt: skip
    accuracy: bool = option(False, "Report Top-1 of the labelled --images.")
    audit: str = option(
        "", "Run an audit: same-sample detects cached answers, payload that samples arrive unchanged.",
        metavar="same-sample|payload",
    )  # fmt: skip
    mlperf_conf: Path | None = option(None, "LoadGen settings that override --seconds, --bound and the like.",
                                      metavar="FILE")  # fmt: skip
    user_conf: Path | None = option(None, "LoadGen settings that override mlperf.conf; --qps and --seed override both.",
                                    metavar="FILE")  # fmt: skip
    trace: Path | None = option(None, "Write the run as a trace for ui.perfetto.dev.", metavar="FILE")


@dataclass(frozen=True, slots=True)
class SweepOptions(PeakOptions):
    """The points of a sweep and what is computed over them."""

    gpus: tuple[str, ...] = option((), "Sweep the number of GPUs: the first N of --devices.", metavar="1,2,4",
                                   parse=words)  # fmt: skip
    batches: tuple[str, ...] = option((), "Sweep the largest batch.", metavar="1,4,16", parse=words)
    stream_counts: tuple[str, ...] = option((), "Sweep the batches in flight.", metavar="1,2,4", parse=words)
    paths: tuple[str, ...] = option(
        (), "Sweep sets of devices.", metavar="'gpu0; gpu2,gpu3'",
        parse=lambda text: tuple(part.strip() for part in text.split(";")),
    )  # fmt: skip
    baseline: str = option("", "Point that speed-ups refer to.", metavar="POINT", default_text="the first")
    link: float | None = option(None, "Rate of the link that all devices share: '32 GB/s'.", metavar="RATE",
                                unit="B/s")  # fmt: skip
    extrapolate: tuple[int, ...] = option((), "Extrapolate linearly to these numbers of GPUs.", metavar="8,16",
                                          parse=whole_numbers)  # fmt: skip
    chart: Path | None = option(None, "Draw QPS and GB/s at each point.", metavar="FILE.svg")
    # Not on the command line: a sweep is of this machine.
    division: str = ""
    nodes: tuple[str, ...] = ()
    transport: str = AUTO
    connections: int = 4
    depth: int = 0
    device: str | None = None
    gid_index: int | None = None
    secret_file: Path | None = None
    tls_ca: Path | None = None
    prometheus: Path | None = None
    child_node: bool = False
    settings: dict[str, int] = option(
        dict, "Label all rows with a setting, so that a study finds them: path=3; repeatable.", "--set",
        metavar="NAME=NUMBER", repeat=True, parse=settings,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelftestOptions(Options):
    """How the load generator's own ceiling is searched for."""

    modes: tuple[str, ...] = option(
        ("plain", "coalesced"), "How LoadGen issues queries: plain, coalesced.", metavar="MODES", parse=words
    )
    bound: float = option(0.015, "Latency bound for 99 % of the queries.", metavar="TIME", unit="s")
    seconds: float = option(2.0, "Seconds of one run.", metavar="SECONDS", minimum=0.1, maximum=600.0)
    start: float = option(50_000.0, "First rate in queries/s.", metavar="RATE", unit="1/s", minimum=1.0)
    precision: float = option(0.05, "Relative gap at which the search ends.", metavar="SHARE", unit="1", minimum=0.001,
                              maximum=1.0)  # fmt: skip
    tries: int = option(2, "Runs of a rate before it counts as too high.", metavar="N", minimum=1, maximum=100)
    at_once: bool = option(False, "Answer inside the call instead of from another thread.")
    logs: Path | None = option(None, "Keep LoadGen's logs in this folder.", metavar="FOLDER",
                               default_text="removed")  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrainingOptions(Options):
    """The log of a training and the size of its data."""

    log: Path = argument("LOG", "A training log with the :::MLLOG lines of one run.")
    sample_bytes: float = option(..., "Average size of a sample.", metavar="SIZE", unit="B")
    samples: int | None = option(
        None, "Samples in an epoch.", metavar="N", minimum=1, default_text="train_samples of the log"
    )
    output: Path | None = option(None, "Write the run, for report and compare.", "-o --output", metavar="RUN.json")
