"""Options that the verbs of `lanewise loadtest` share: what is tested, and the bound it has to keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanewise.cli import options
from lanewise.errors import FormatError

if TYPE_CHECKING:
    from lanewise.loadtest.bench import BenchAsk

EngineName = Annotated[
    str,
    typer.Option("--engine", metavar="NAME", help="onnxruntime, torch or synthetic. [default: the first there is]"),
]
ModelName = Annotated[
    str,
    typer.Option("--model", metavar="NAME|FILE.onnx", help="small-cnn, resnet50, bert, bert-large, or an ONNX file."),
]
Precision = Annotated[str, typer.Option("--precision", metavar="fp32|fp16|bf16", help="Numbers of the model.")]
Devices = Annotated[str, typer.Option("--devices", metavar="NAMES", help="cpu, or gpu0,gpu1: a queue for each.")]
Batch = Annotated[int, typer.Option("--batch", min=1, max=65535, help="The largest batch.")]
Timeout = Annotated[str, typer.Option("--timeout", metavar="TIME", help="How long a batch waits to fill.")]
Streams = Annotated[int, typer.Option("--streams", min=1, max=64, help="Batches of a device in flight.")]
Copy = Annotated[str, typer.Option("--copy", metavar="WAY", help="To GPUs: auto, batch, kernel, staged, calls.")]
Library = Annotated[int, typer.Option("--library", min=1, help="Samples in memory at once.")]
SampleBytes = Annotated[str, typer.Option("--sample-bytes", metavar="SIZE", help="Of the synthetic engine's samples.")]
Service = Annotated[
    str, typer.Option("--service", metavar="A+B", help="Synthetic: time a batch + a query, such as '1 ms + 20 us'.")
]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Of onnxruntime on a CPU; 0: all but one core.")]
Mode = Annotated[str, typer.Option("--mode", metavar="MODE", help="torch: eager, compiled, graphs, compiled-graphs.")]
Images = Annotated[
    Path | None, typer.Option("--images", metavar="FOLDER", help="Labelled images in place of synthetic samples.")
]
Bound = Annotated[str, typer.Option("--bound", metavar="TIME", help="Latency that the percentile must keep.")]
Percentile = Annotated[float, typer.Option("--percentile", min=0.5, max=0.9999, help="As a share.")]
Results = Annotated[
    Path | None,
    typer.Option("--results", metavar="FOLDER", help="LoadGen's logs and what is needed to go on. [default: new]"),
]
Coalesce = Annotated[bool, typer.Option("--coalesce", help="LoadGen hands over the queries due together in one call.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say, as typed."""

    engine: str
    model: str
    precision: str
    devices: str
    batch: int
    timeout: str
    streams: int
    copy: str
    library: int
    sample_bytes: str
    service: str
    threads: int
    mode: str
    images: Path | None = None

    def bench(self) -> BenchAsk:
        """As what is tested; FormatError or InputError for what cannot be."""
        from lanewise import units
        from lanewise.loadtest.bench import BenchAsk
        from lanewise.loadtest.engines import Options
        from lanewise.loadtest.system import SystemAsk

        devices = tuple(options.words(self.devices))
        if not devices:
            raise FormatError("--devices names no device", hint="write --devices cpu or --devices gpu0,gpu1")
        engine = self.engine or first_engine(devices)
        per_batch, per_query = service_times(self.service)
        system = SystemAsk(
            devices=devices, batch=self.batch, timeout=units.parse(self.timeout, "s"), streams=self.streams,
            copy=self.copy, library=self.library, sample_bytes=round(units.parse(self.sample_bytes, "B")),
            service_batch=per_batch, service_query=per_query,
        )  # fmt: skip
        return BenchAsk(engine, self.model, self.precision, Options(threads=threads(self.threads), mode=self.mode),
                        system, self.images)  # fmt: skip


def first_engine(devices: tuple[str, ...]) -> str:
    """The engine that is installed: on GPUs torch before onnxruntime, on a CPU the other way; else synthetic."""
    from importlib.util import find_spec

    order = ("torch", "onnxruntime") if devices[0] != "cpu" else ("onnxruntime", "torch")
    return next((name for name in order if find_spec(name) is not None), "synthetic")


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
