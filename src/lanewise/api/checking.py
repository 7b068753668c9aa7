"""Whether paths deliver what they should: from files of any kind, or of this machine, measured now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import load_system, run_of
from lanewise.api.provenance import machine as this_machine
from lanewise.api.provenance import now, version
from lanewise.errors import CannotMeasure, FormatError, InputError, LanewiseError, Location, MissingDependency
from lanewise.files import read_file

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.checking.checkup import Checkup
    from lanewise.checking.suspects import Machine
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.facts import DumpFacts
    from lanewise.readers.form import ToolResults
    from lanewise.results.observation import Observation
    from lanewise.results.run import Run
    from lanewise.results.sample import Sample
    from lanewise.topology.model import System

Paths = Sequence[str | Path]
MODEL = "model"
# What a check of this machine measures of its GPUs: each copy by itself, and host copies both ways.
GPU_CASES = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
    "device_to_device_memcpy_write_ce",
)  # fmt: skip


@dataclass
class MachineEvidence:
    """What is known of a machine: measured rows, dumps, who is whose peer, notes; `own` if it is this machine."""

    rows: list[Observation] = field(default_factory=list)
    readings: list[DumpFacts] = field(default_factory=list)
    no_peers: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    own: bool = False


def check(
    files: Paths = (),
    system: System | str | Path | None = None,
    expect: str | Path | Paths = MODEL,
    tolerance: float | None = None,
    called: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
) -> Checkup:
    """Judge what `files` hold of a machine (results and dumps, known by content), or this machine measured now.

    `system` is what the machine should be; `expect` model, an earlier run, or three and more runs of one class;
    `tolerance` (0..1) instead of each basis' own; `called` says which device a word in the results means.
    InputError for a file that is neither results nor a dump.
    """
    notes: list[str] = []
    evidence = gather(files) if files else of_this_machine(list(quick_samples(notes)), notes)
    return judge(evidence, system, expect, tolerance, called, catalog)


def gather(files: Paths) -> MachineEvidence:
    """What files of results and dumps hold; InputError, with the kinds known, for one that is neither."""
    evidence = MachineEvidence()
    for path in files:
        _read(Path(path), evidence)
    return evidence


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


def of_this_machine(samples: Iterable[Sample], notes: Iterable[str] = ()) -> MachineEvidence:
    """This machine: what can be read of it, and the samples taken on it."""
    from lanewise.results.sample import summarise

    rows = list(summarise(samples))
    return MachineEvidence(rows=rows, notes=list(notes), own=True)


def judge(
    evidence: MachineEvidence,
    system: System | str | Path | None = None,
    expect: str | Path | Paths = MODEL,
    tolerance: float | None = None,
    called: Mapping[str, str] | None = None,
    catalog: Catalog | None = None,
) -> Checkup:
    """The check-up of what was found, as `check` makes it."""
    discovered = _discover(evidence, catalog)
    expected = load_system(system, None, catalog) if isinstance(system, (str, Path)) else system
    return _judge(evidence, discovered, expected, _expectation(expect), tolerance, called or {})


def as_checked_run(checkup: Checkup) -> Run:
    """The measured rows of a check-up as a run, to be compared with later ones."""
    import sys

    from lanewise.results.run import Run

    command = " ".join(["lanewise", *sys.argv[1:]])
    rows = (*(row.row for row in checkup.rows), *checkup.aside)
    return Run((), now(), version(), command, this_machine(), rows=rows)


def check_data(checkup: Checkup, name: str = "") -> dict[str, Any]:
    """A check-up as plain data for JSON (docs/reference/check-json.md); `name` is what you call the machine."""
    from lanewise.checking.record import data

    return {**data(checkup, name), "created": now(), "version": version()}


def check_metrics(checkup: Checkup, name: str = "") -> str:
    """A check-up as text for node_exporter's textfile collector, with the time of now."""
    import time

    from lanewise.checking import record

    return record.prometheus(checkup, round(time.time(), 3), name)


def _read(path: Path, evidence: MachineEvidence) -> None:
    """A file as results, as a dump, or, as pasted texts are, as both."""
    results, not_results = _results(path)
    if results is not None:
        evidence.rows += results.observations
        evidence.no_peers += [(a, b, str(path)) for a, b in results.no_peers]
        evidence.notes += results.notes
        if results.tool.startswith("lanewise"):
            return
    try:
        evidence.readings += _dump(path)
    except LanewiseError as error:
        if results is None:
            raise (not_results if not_results is not None else error) from None


def _results(path: Path) -> tuple[ToolResults | None, LanewiseError | None]:
    """What a reader makes of a file, or the error if it knows the tool and cannot read its output."""
    from lanewise.readers.kinds import KNOWN, read_results

    if path.is_dir():
        return None, None
    try:
        text = read_file(path)
    except InputError as error:
        return None, None if error.cause.startswith("not a text") else error
    try:
        return read_results(text, str(path)), None
    except FormatError as error:
        return None, None if error.hint == KNOWN else error


def _dump(path: Path) -> Sequence[DumpFacts]:
    from lanewise.api.discovery import read_dumps
    from lanewise.readers.kinds import KNOWN

    try:
        return read_dumps(path)
    except FormatError as error:
        cause = "neither results of a tool nor a dump of a machine that Lanewise knows"
        hint = f"results: {KNOWN.removeprefix('known are ')}; dumps: lanewise discover --help"
        raise FormatError(
            cause if "dump" in error.cause else error.cause, location=Location(str(path)), hint=hint
        ) from None


def _discover(evidence: MachineEvidence, catalog: Catalog | None) -> Discovery | None:
    """The machine that the dumps describe, or this one; None without dumps, or where this one shows no devices."""
    from lanewise.api.discovery import discover as read_machine
    from lanewise.catalog import builtin
    from lanewise.discovery.build import discover

    if evidence.own:
        try:
            return read_machine((), catalog)
        except (InputError, MissingDependency) as error:
            evidence.notes.append(f"this machine is not known: {error}")
    if not evidence.readings:
        return None
    return discover(evidence.readings, catalog if catalog is not None else builtin(), "machine")


def _judge(
    evidence: MachineEvidence,
    discovered: Discovery | None,
    expected: System | None,
    earlier: Sequence[tuple[str, Sequence[Observation]]],
    tolerance: float | None,
    called: Mapping[str, str],
) -> Checkup:
    from lanewise.checking.checkup import check as judge_rows
    from lanewise.checking.checkup import expected_system, with_notes
    from lanewise.checking.earlier import from_rows
    from lanewise.checking.model import ExpectationModel, nothing_described
    from lanewise.checking.suspects import apart_by_design

    machine = _machine(evidence, discovered)
    system = expected_system(machine, expected)
    words = {word: name for name, words in (discovered.dump_names if discovered else {}).items() for word in words}
    apart = apart_by_design(machine) if expected is None else frozenset()
    model = ExpectationModel(system, {**words, **called}, apart) if system is not None else None
    rows, aside = evidence.rows, []
    if earlier:
        expect = from_rows(earlier).expect
    elif model is not None:
        expect = model.expect
        rows = [row for row in evidence.rows if model.judges(row)]
        aside = [row for row in evidence.rows if not model.judges(row)]
    else:
        expect = nothing_described
    return with_notes(judge_rows(rows, machine, expect, model, expected, tolerance), evidence.notes, aside)


def _machine(evidence: MachineEvidence, discovered: Discovery | None) -> Machine:
    from dataclasses import replace

    from lanewise.checking.suspects import Machine, Packets
    from lanewise.results.conditions import Conditions, PeerState

    conditions = discovered.conditions if discovered is not None else Conditions()
    lost = [PeerState(a, b, "peers", "NS", file) for a, b, file in evidence.no_peers]
    conditions = replace(conditions, p2p=(*conditions.p2p, *lost))
    if discovered is None:
        return Machine(None, conditions)
    packets = []
    for name, facts in discovered.facts.items():
        values = {fact.key: fact.value for fact in facts}
        sizes = [values.get(key) for key in ("payload", "payload_max", "read_request", "nvlinks_off")]
        packets.append(Packets(name, *(size if isinstance(size, int) else None for size in sizes)))
    return Machine(discovered.system, conditions, tuple(packets))


def _expectation(expect: str | Path | Paths) -> list[tuple[str, Sequence[Observation]]]:
    """The rows of the runs to compare with, by file; none for the model. InputError for a run without any."""
    from lanewise.results.compare import rows_of
    from lanewise.results.observation import Source

    several = [expect] if isinstance(expect, (str, Path)) else list(expect)
    if [str(path) for path in several] == [MODEL]:
        return []
    rows_of_runs: list[tuple[str, Sequence[Observation]]] = []
    for path in several:
        run = run_of(Path(path))
        rows = rows_of(run, Source.MEASURED)
        if not rows:
            hint = "give a run written by lanewise measure -o or lanewise check -o"
            raise InputError("holds no measured rows to expect", location=Location(str(path)), hint=hint)
        rows_of_runs.append((str(path), rows))
    return rows_of_runs
