"""Options that the verbs of `lanewise loadtest` share: what is tested, how it is searched, where the answer goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import options, terminal
from lanewise.errors import FormatError

if TYPE_CHECKING:
    from lanewise.loadtest.session import BenchAsk

Trace = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="The last run for Perfetto.")]
RunFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="RUN.json", help="Write the run, for report, compare.")
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is tested, as typed."""

    engine: Annotated[
        str, typer.Option(metavar="NAME", help="onnxruntime, torch or synthetic. [default: the first there is]")
    ] = ""
    model: Annotated[
        str, typer.Option(metavar="NAME|FILE.onnx", help="small-cnn, resnet50, bert, bert-large, or an ONNX file.")
    ] = "small-cnn"
    precision: Annotated[str, typer.Option(metavar="fp32|fp16|bf16", help="Numbers of the model.")] = "fp32"
    devices: Annotated[str, typer.Option(metavar="NAMES", help="cpu, or gpu0,gpu1: a queue for each.")] = "cpu"
    batch: Annotated[int, typer.Option(min=1, max=65535, help="The largest batch.")] = 8
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long a batch waits to fill.")] = "1 ms"
    streams: Annotated[int, typer.Option(min=1, max=64, help="Batches of a device in flight.")] = 2
    copy: Annotated[str, typer.Option(metavar="WAY", help="To GPUs: auto, batch, kernel, staged, calls.")] = "auto"
    library: Annotated[int, typer.Option(min=1, help="Samples in memory at once.")] = 1024
    sample_bytes: Annotated[str, typer.Option(metavar="SIZE", help="Of the synthetic engine's samples.")] = "150528 B"
    service: Annotated[
        str, typer.Option(metavar="A+B", help="Synthetic: time a batch + a query, such as '1 ms + 20 us'.")
    ] = "1 ms"
    threads: Annotated[int, typer.Option(min=0, help="Of onnxruntime on a CPU; 0: all but one core.")] = 0
    mode: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            help="torch: eager, compiled, graphs, compiled-graphs. [default: eager on a CPU, graphs on a GPU]",
        ),
    ] = ""
    images: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Labelled images in place of synthetic samples.")
    ] = None

    def bench(self) -> BenchAsk:
        """As what is tested; FormatError or InputError for what cannot be."""
        from lanewise import units
        from lanewise.loadtest.engines import EngineOptions
        from lanewise.loadtest.session import BenchAsk
        from lanewise.loadtest.system import SystemSpec

        devices = tuple(options.words(self.devices))
        if not devices:
            raise FormatError("--devices names no device", hint="write --devices cpu or --devices gpu0,gpu1")
        engine = self.engine or first_engine(devices)
        per_batch, per_query = service_times(self.service)
        system = SystemSpec(
            devices=devices, batch=self.batch, timeout=units.parse(self.timeout, "s"), streams=self.streams,
            copy=self.copy, library=self.library, sample_bytes=round(units.parse(self.sample_bytes, "B")),
            service_batch=per_batch, service_query=per_query,
        )  # fmt: skip
        runtime = EngineOptions(threads=threads(self.threads), mode=self.mode)
        return BenchAsk(engine, self.model, self.precision, runtime, system, self.images)


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every run of LoadGen."""

    bound: Annotated[str, typer.Option(metavar="TIME", help="Latency that the percentile must keep.")] = "15 ms"
    percentile: Annotated[float, typer.Option(min=0.5, max=0.9999, help="As a share.")] = 0.99
    seed: Annotated[int, typer.Option(min=1, help="Of arrivals and samples in the first run.")] = 1
    coalesce: Annotated[
        bool, typer.Option("--coalesce", help="LoadGen hands over the queries due together in one call.")
    ] = False


@dataclass(frozen=True, slots=True)
class Search(Rules):
    """How the peak is searched for."""

    within: Annotated[float, typer.Option(min=0.001, max=0.5, help="Precision wanted, as a share.")] = 0.02
    seconds: Annotated[float, typer.Option(min=1.0, help="Load of a search in all; more tells more.")] = 140.0
    most_runs: Annotated[int, typer.Option(min=1, help="Server runs of a search at most.")] = 12

    def settings(self) -> dict[str, Any]:
        """As loadtest.peak.PeakAsk takes them; FormatError for a bound that is no time."""
        from lanewise import units

        return {
            "bound": units.parse(self.bound, "s"), "percentile": self.percentile, "precision": self.within,
            "seconds": self.seconds, "most_runs": self.most_runs, "seed": self.seed, "coalesce": self.coalesce,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the answer goes."""

    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="LoadGen's logs and what is needed to go on. [default: new]")
    ] = None
    as_json: options.Json = False
    output: RunFile = None


def first_engine(devices: tuple[str, ...]) -> str:
    """The engine that is installed: on GPUs torch before onnxruntime, on a CPU the other way; else synthetic."""
    from importlib.util import find_spec

    order = ("torch", "onnxruntime") if devices[0] != "cpu" else ("onnxruntime", "torch")
    for name in order:
        if find_spec(name) is not None:
            return name
    packages = {"torch": "torch", "onnxruntime": "onnxruntime onnx"}[order[0]]
    # Its rate is easily taken for that of a model.
    terminal.note(
        "note: neither onnxruntime nor torch is installed: the synthetic engine measures path and queueing with the "
        f"service time that --service states; no model runs\nhint: pip install {packages}"
    )
    return "synthetic"


def service_times(text: str) -> tuple[float, float]:
    """Seconds a batch and a query from '1 ms + 20 us'; a time alone is of a query."""
    from lanewise import units

    parts = [units.parse(part.strip(), "s") for part in text.split("+")]
    if len(parts) > 2:
        raise FormatError(f"--service '{text}' has more than two times", hint="write '1 ms + 20 us', or '20 us'")
    return (parts[0], parts[1]) if len(parts) == 2 else (0.0, parts[0])


def threads(asked: int) -> int:
    """As asked, else all cores but the one that the generator needs."""
    import os

    return asked or max(1, (os.cpu_count() or 2) - 1)
