"""How long the weights of a model take to GPUs, predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.arguments import one_or_more
from lanewise.api.loading import as_system
from lanewise.topology.model import System

if TYPE_CHECKING:
    from lanewise.options.model_load import ModelLoadOptions
    from lanewise.results.observation import Observation
    from lanewise.weights.prediction import ModelLoadPrediction, WeightSource

_RATE_EXAMPLE = "a rate of the storage, such as '25 GB/s' or '100 Gb/s'"


def predict_load(
    system: System | str | Path,
    size: str | float,
    source: str,
    targets: str | Sequence[str],
    loaders: str | Sequence[str] = (),
    *,
    warm: bool = False,
    replicated: bool = False,
    spread: bool = False,
    readers: int | None = None,
    read_latency: float | None = None,
    read_ahead: float | None = None,
) -> ModelLoadPrediction:
    """Time (s) and rate (B/s) of loading a model of `size` (B, or text such as '140 GB') to GPUs, and what limits it.

    `source` is the drive, volume or remote host that holds the weights, or the rate of storage ('1000 MiB/s'), whose
    reads take `read_latency` (s); the kernel reads `read_ahead` (B) ahead. Each of `targets` gets its part of the
    model, or all of it if `replicated`; with `spread` each then reads a part and passes it on. `loaders` are names such
    as "safetensors", all that are possible if empty; `warm` says that the page cache holds the files; `readers` (count)
    threads of a process read.

    Raises FormatError for text that is no size, UnknownName for a name that does not exist, InputError for what cannot
    be loaded so, does not fit in the memory of the GPUs or has no effect on the load, and Unreachable where nothing
    joins the ends.

    >>> load = lanewise.predict_load("puget-wrx90", "15 GB", "vol0", "gpu0", ["safetensors"]).loads[0]
    >>> str(load.limit), round(load.time, 1)
    ('read latency', 9.3)
    """
    from lanewise import units
    from lanewise.perf.flow import names_of
    from lanewise.weights.loaders import weight_loader_names
    from lanewise.weights.prediction import possible_loaders
    from lanewise.weights.prediction import predict_load as predict

    known = as_system(system)
    ends = names_of(targets) if isinstance(targets, str) else list(targets)
    origin = replace(_source(known, source), latency=read_latency, read_ahead=read_ahead)
    gpus, loaders = any(end not in known.hosts for end in ends), one_or_more(loaders)
    names = loaders or possible_loaders(weight_loader_names(), origin, known, warm, gpus)
    prediction = predict(
        known, units.parse(size, "B"), origin, ends, names, warm=warm, replicated=replicated, spread=spread,
        readers=readers,
    )  # fmt: skip
    _check_fits(prediction, ends, replicated)
    reads = {"readers": readers, "read-latency": read_latency, "read-ahead": read_ahead}
    _refuse_without_effect(ends, loaders, warm, replicated, reads)
    return prediction


def _check_fits(prediction: ModelLoadPrediction, ends: Sequence[str], replicated: bool) -> None:
    """InputError where a GPU has less memory than its part of the model, or the whole of it, takes."""
    from lanewise.perf.gpu_memory import check_fits

    parts, hint = (1, "name GPUs with more memory") if replicated else (len(ends), "name more GPUs: --to 'gpu[0-7]'")
    what = "the model" if parts == 1 else "a part of the model"
    check_fits(prediction.plan.system, ends, prediction.plan.size / parts, what, hint)


def load_rows(prediction: ModelLoadPrediction) -> tuple[Observation, ...]:
    """The rate (B/s) and the time (s) of each loader as predicted rows, of the identity of those of `measure_load`.

    >>> rows = lanewise.load_rows(lanewise.predict_load("h200-pair", "15 GB", "2 GB/s", "gpu0", ["safetensors"]))
    >>> [(row.scenario, row.metric) for row in rows]
    [('load safetensors cold', 'total'), ('load safetensors cold', 'makespan')]
    """
    from lanewise.results.load_rows import predicted_load_rows

    return predicted_load_rows(prediction)


def _refuse_without_effect(
    ends: Sequence[str], loaders: Sequence[str], warm: bool, replicated: bool, reads: Mapping[str, float | None]
) -> None:
    """InputError for options that change nothing of this load: of reads where there are none, of one target."""
    from lanewise.errors import InputError
    from lanewise.weights.loaders import weight_loader

    if replicated and len(ends) == 1:
        raise InputError(f"--replicated has no effect: {ends[0]} gets all of it", hint="leave it out")
    given = [name for name, value in reads.items() if value is not None]
    if given and warm:
        cause = f"--{given[0]} has no effect with --warm: the page cache is read, not the storage"
        raise InputError(cause, hint="leave one of them out")
    chosen = [weight_loader(name) for name in loaders]
    without = {
        "read-latency": [loader for loader in chosen if loader.reader is not None],
        "read-ahead": [loader for loader in chosen if loader.reader is not None or not loader.read_ahead],
    }
    for name in given:
        if chosen and without.get(name) == chosen:
            names = " and ".join(loader.name for loader in chosen)
            raise InputError(f"--{name} has no effect with {names}", hint="leave it out")


def predict_load_of(system: System, options: ModelLoadOptions) -> ModelLoadPrediction:
    """The same of the command line's options; InputError where they do not say from where to where."""
    from lanewise.errors import InputError

    if options.load is None or options.from_ is None or options.to is None:
        missing = "--from" if options.from_ is None else "--to"
        raise InputError(f"--load without {missing}", hint="write --load 140GB --from volume0 --to 'gpu[0-7]'")
    return predict_load(
        system, options.load, options.from_, options.to, options.loader, warm=options.warm,
        replicated=options.replicated, spread=options.spread, readers=options.readers,
        read_latency=options.read_latency, read_ahead=options.read_ahead,
    )  # fmt: skip


def _source(system: System, text: str) -> WeightSource:
    """A drive, volume or host of the system, or storage of the rate that the text states."""
    from lanewise import units
    from lanewise.errors import FormatError, unknown_name
    from lanewise.topology.model import Kind
    from lanewise.weights.prediction import WeightSource

    name = system.os_names.get(text, text)
    drives = system.of_kind(Kind.SSD, Kind.RAID)
    if name in {*system.volumes, *system.hosts, *drives}:
        return WeightSource(name)
    if not text[:1].isdigit():
        known = [*system.volumes, *drives, *system.hosts]
        raise unknown_name(f"drive, volume, host or rate of storage for {system.name}", text, known)
    try:
        rate = units.parse_with_unit(text, "B/s", _RATE_EXAMPLE)
    except FormatError as error:
        raise FormatError(f"--from: {error.cause}", hint=f"write {_RATE_EXAMPLE}") from None
    if rate <= 0:
        raise FormatError(f"--from: '{text}' moves nothing", hint=f"write {_RATE_EXAMPLE}")
    return WeightSource(rate=rate)
