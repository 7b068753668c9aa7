"""Whether paths deliver what they should: from files of any kind, or of this machine, measured now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.arguments import one_or_more
from lanewise.api.check_inputs import machine_of, read_files
from lanewise.api.loading import load_system, run_of
from lanewise.api.provenance import new_run, now, version
from lanewise.errors import CannotMeasure, InputError, Location, MissingDependency
from lanewise.files import read_file
from lanewise.options.check import MODEL, CheckOptions

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.checking.checkup import Checkup
    from lanewise.readers.tool_results import ImportedResults
    from lanewise.results.observation import Observation
    from lanewise.results.run import Run
    from lanewise.results.sample import Sample
    from lanewise.topology.model import System

Paths = str | Path | Sequence[str | Path]
# What a check of this machine measures of its GPUs: each copy by itself, and host copies both ways.
GPU_CASES = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
    "device_to_device_memcpy_write_ce",
)  # fmt: skip


def check(
    files: Paths = (),
    system: System | str | Path | None = None,
    expect: Paths = MODEL,
    tolerance: float | None = None,
    devices: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
    samples: Iterable[Sample] | None = None,
    notes: Sequence[str] = (),
    nccl: str = "",
    launch: str | None = None,
) -> Checkup:
    """A verdict for each measured path, the likely cause of each slow one, and the command to type next.

    `files`, one or several, are results of tools and dumps of the machine, recognised by content; without any, this
    machine is discovered and measured, or `samples` of it are judged, with `notes` on what was not measured. `system`
    is what the machine should be. `expect` is "model", an earlier run, or three and more runs of one class of machine.
    With `tolerance` (share, 0 to 1) a row is fine that far from its expected value. `devices` maps device names in the
    results to those of the system. `nccl` ("2.27.7") and `launch` ("nccl-tests -g") are of collectives whose text does
    not say them.

    Raises InputError for a file that cannot be read, a run without measured rows, a tolerance out of range, or `nccl`
    or `launch` without such a collective, FormatError for a file that is neither results nor a dump, and UnknownName
    for a system or device that does not exist.

    >>> result = lanewise.check(["copies.txt"], "falcon-4010-epyc").results[0]
    >>> str(result.verdict), round(result.ratio, 2)
    ('slow', 0.47)
    """
    from lanewise.checking import checkup
    from lanewise.results.sample import summarise

    CheckOptions(tolerance=tolerance, launch=launch)  # refuses one out of range
    named = one_or_more(files)
    inputs = read_files(map(Path, named), notes)
    target = load_system(system, None, catalog) if isinstance(system, (str, Path)) else system
    if not named:
        inputs.rows += summarise(quick_samples(inputs.notes) if samples is None else samples)
    machine, device_of_word = machine_of(inputs, target, catalog, here=not named)
    _check_devices(devices or {}, target or machine.system)
    return checkup.check(
        _with_library(inputs.rows, nccl, launch),
        machine=machine,
        target=target,
        earlier=_earlier_rows(expect),
        tolerance=tolerance,
        device_of_word={**device_of_word, **(devices or {})},
        notes=inputs.notes,
        posted=inputs.posted,
        catalog=catalog,
    )


def read_results(files: Paths) -> ImportedResults:
    """The measured values in results of nvbandwidth, fio, perftest, nccl-tests and other tools, as observations in SI.

    Several `files` become one result, which also holds who can access whose memory and notes on the values.

    Raises InputError for a file that cannot be read and FormatError with its line for one that holds no results of a
    known tool or is cut short.

    >>> row = lanewise.read_results("copies.txt").observations[0]
    >>> row.flow, row.value / 1e9  # GB/s
    ('host0->gpu0', 12.36)
    """
    from lanewise.readers.kinds import read_results as read
    from lanewise.readers.tool_results import merge

    return merge([read(read_file(path), str(path)) for path in one_or_more(files)])


def quick_samples(notes: list[str]) -> Iterator[Sample]:
    """This machine's copies, measured quickly: memory of the host, and GPUs where a driver is; else `notes` say why."""
    from lanewise.api.measure import measure_gpu, measure_host
    from lanewise.options.sampling import SamplingRule

    quick = SamplingRule(least=3, most=5, width=0.02)
    measurements: tuple[tuple[str, Callable[[], Iterator[Sample]]], ...] = (
        ("memory of the host", lambda: measure_host(("copy",), rule=quick)),
        ("copies of GPUs", lambda: measure_gpu(cases=GPU_CASES, rule=quick)),
    )
    for what, measure in measurements:
        try:
            yield from measure()
        except (CannotMeasure, MissingDependency) as error:
            notes.append(f"{what} not measured: {error}")


def as_checked_run(checkup: Checkup) -> Run:
    """The measured rows of a check as a run, for `expect` of later checks.

    >>> run = lanewise.as_checked_run(lanewise.check(["copies.txt"], "falcon-4010-epyc"))
    >>> run.rows[0].value / 1e9  # GB/s
    12.36
    """
    return new_run(rows=(*(result.row for result in checkup.results), *checkup.left_aside))


def check_data(checkup: Checkup, name: str = "") -> dict[str, Any]:
    """A check as plain data for JSON, figures in SI units, with the time and version (docs/reference/check-json.md);
    `name` is what you call the machine.

    >>> lanewise.check_data(lanewise.check(["copies.txt"], "falcon-4010-epyc"))["counts"]["slow"]
    1
    """
    from lanewise.report.check_json import check_json

    return {**check_json(checkup, name), "created": now(), "version": version()}


def check_metrics(checkup: Checkup, name: str = "") -> str:
    """A check as text for node_exporter's textfile collector, figures in SI units, with the time; `name` labels the
    machine.

    >>> metrics = lanewise.check_metrics(lanewise.check(["copies.txt"], "falcon-4010-epyc"), "rack7")
    >>> 'lanewise_path_goodput_bytes_per_second{machine="rack7",flow="host0->gpu0"' in metrics
    True
    """
    from lanewise.report.check_json import prometheus

    return prometheus(checkup, round(time.time(), 3), name)


def _with_library(rows: list[Observation], nccl: str, launch: str | None) -> list[Observation]:
    """The rows with the library's version and launch where their text has none; InputError where all have them."""
    from lanewise.checking.collective_rows import is_collective
    from lanewise.collectives.constants import check_version

    check_version(nccl)
    for flag, key, value in (("--nccl", "library", nccl and f"NCCL {nccl}"), ("--launch", "launch", launch)):
        open_rows = [row for row in rows if is_collective(row) and not row.how.get(key)]
        if value and not open_rows:
            stated = dict.fromkeys(row.how[key] for row in rows if is_collective(row))
            cause = f"the results say {' and '.join(stated)}" if stated else "there are no collectives in the results"
            raise InputError(f"{flag} has no effect: {cause}", hint="leave it out")
        if value:
            rows = [replace(row, how={**row.how, key: value}) if row in open_rows else row for row in rows]
    return rows


def _check_devices(devices: Mapping[str, str], system: System | None) -> None:
    """UnknownName for a device that the system, if it is known, lacks."""
    from lanewise.routes.endpoints import endpoint

    if system is None:
        return
    for device in devices.values():
        if device not in system.volumes:
            endpoint(system, device)


def _earlier_rows(expect: Paths) -> list[tuple[str, Sequence[Observation]]]:
    """The rows of the runs to compare with, by file; none for the model. InputError for a run without any."""
    several = one_or_more(expect)
    if [str(path) for path in several] == [MODEL]:
        return []
    from lanewise.results.compare import rows_of
    from lanewise.results.observation import Source

    rows_of_runs: list[tuple[str, Sequence[Observation]]] = []
    for path in several:
        run = run_of(Path(path))
        rows = rows_of(run, Source.MEASURED)
        if not rows:
            hint = "give a run written by lanewise measure -o or lanewise check -o"
            raise InputError("holds no measured rows to expect", location=Location(str(path)), hint=hint)
        rows_of_runs.append((str(path), rows))
    return rows_of_runs
