"""Whether paths deliver what they should: from files of any kind, or of this machine, measured now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.arguments import one_or_more
from lanewise.api.loading import load_system, run_of
from lanewise.api.provenance import new_run, now, version
from lanewise.errors import CannotMeasure, FormatError, InputError, LanewiseError, Location, MissingDependency
from lanewise.files import read_file
from lanewise.options.check import MODEL, CheckOptions

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.checking.causes.machine import MachineState
    from lanewise.checking.checkup import Checkup
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.facts import DumpFacts
    from lanewise.readers.tool_results import ImportedResults
    from lanewise.results.conditions import PairState, PeerState
    from lanewise.results.observation import Observation
    from lanewise.results.posted import PostedFacts
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

    CheckOptions(tolerance=tolerance, launch=launch)  # refuses one out of range
    named = one_or_more(files)
    inputs = _read_files(map(Path, named), notes)
    target = load_system(system, None, catalog) if isinstance(system, (str, Path)) else system
    by_number = _figures_by_number(inputs.dumps, target)
    if not named:
        inputs.add_this_machine(samples)
        discovered = _discover_this_machine(catalog, inputs.notes)
    else:
        discovered = None if by_number else _of_dumps(inputs, catalog)
    discovered = _with_named_gpus(discovered, inputs.posted, catalog)
    machine = _machine_state(discovered, inputs)
    if by_number:
        machine = replace(machine, system=target, figures=by_number)
    _check_devices(devices or {}, target or machine.system)
    names = discovered.dump_names if discovered is not None else {}
    device_of_word = {word: name for name, dump_names in names.items() for word in dump_names}
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


@dataclass
class _CheckInputs:
    """What a check begins with: measured rows, dumps, pairs that are no peers, what texts state, and notes."""

    posted: PostedFacts
    notes: list[str]
    rows: list[Observation] = field(default_factory=list)
    dumps: list[DumpFacts] = field(default_factory=list)
    no_peers: list[PeerState] = field(default_factory=list)
    has_results: bool = False

    def add_this_machine(self, samples: Iterable[Sample] | None) -> None:
        """Adds this machine's rows: of the samples, else measured now."""
        from lanewise.results.sample import summarise

        self.rows += summarise(quick_samples(self.notes) if samples is None else samples)


def _read_files(paths: Iterable[Path], notes: Sequence[str]) -> _CheckInputs:
    """What files hold, results and dumps alike; their notes behind `notes`."""
    from lanewise.results.conditions import PeerState
    from lanewise.results.posted import join

    read = [(path, *_read(path)) for path in paths]
    results = [(path, each) for path, each, _ in read if each is not None]
    return _CheckInputs(
        posted=join([each.posted for _, each in results]),
        notes=[*notes, *(note for _, each in results for note in each.notes)],
        rows=[row for _, each in results for row in each.observations],
        dumps=[dump for _, _, dumps in read for dump in dumps],
        no_peers=[PeerState(a, b, "peers", "NS", str(path)) for path, each in results for a, b in each.no_peers],
        has_results=bool(results),
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


def _read(path: Path) -> tuple[ImportedResults | None, Sequence[DumpFacts]]:
    """A file as results, as a dump, or, as pasted texts are, as both; FormatError for one that is neither."""
    from lanewise.api.discovery import read_dumps
    from lanewise.readers.kinds import KNOWN

    results: ImportedResults | None = None
    # Of the results of a known tool that cannot be read.
    unreadable: LanewiseError | None = None
    if not path.is_dir():
        try:
            results = read_results(path)
        except LanewiseError as error:
            unreadable = None if error.hint == KNOWN or error.cause.startswith("not a text") else error
    if results is not None and results.own:
        return results, ()
    if results is None and unreadable is None and not path.is_dir():
        results = _plain_text(path) or _statements(path)
    try:
        return results, read_dumps(path)
    except LanewiseError as error:
        if results is not None:
            return results, ()
        if unreadable is not None:
            raise unreadable from None
        if not isinstance(error, FormatError):
            raise
        neither = "neither results of a tool nor a dump of a machine that Lanewise knows"
        hint = f"results: {KNOWN.removeprefix('known are ')}; dumps: lanewise discover --help"
        cause = neither if "dump" in error.cause else error.cause
        raise FormatError(cause, location=Location(str(path)), hint=hint) from None


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


def _of_dumps(inputs: _CheckInputs, catalog: Catalog | None) -> Discovery | None:
    """The machine that the dumps describe; None where they only name devices or say which pairs are no peers."""
    from lanewise.discovery.nvidia_smi import NAMES, NVLINKS, PEERS

    kinds = {dump.kind for dump in inputs.dumps}
    if not kinds or (inputs.has_results and kinds <= {NAMES, NVLINKS}):
        return None
    if kinds <= {NAMES, NVLINKS, PEERS}:
        inputs.no_peers += _peers_alone(inputs.dumps, inputs.notes)
        return None
    return _discovered(inputs.dumps, catalog, inputs.notes, needed=not inputs.rows)


def _discovered(
    dumps: Sequence[DumpFacts], catalog: Catalog | None, notes: list[str], *, needed: bool
) -> Discovery | None:
    """The machine of the dumps; without its devices there is only a note, unless nothing else is there to check."""
    from lanewise.api.discovery import from_dumps

    try:
        return from_dumps(dumps, catalog, "machine")
    except InputError as error:
        if needed:
            raise
        notes.append(f"the dumps describe no machine: {error.cause}")
        return None


def _peers_alone(dumps: Sequence[DumpFacts], notes: list[str]) -> list[PeerState]:
    """The pairs that `topo -p2p` calls no peers, by the GPUs' numbers, where no other dump says what the GPUs are."""
    from lanewise.results.conditions import STATUS

    states = [replace(each, a=each.a.lower(), b=each.b.lower()) for dump in dumps for each in dump.peers]
    lost = [state for state in states if state.possible is False]
    for status in dict.fromkeys(state.status for state in lost):
        pairs = list(dict.fromkeys("-".join(sorted((s.a, s.b))) for s in lost if s.status == status))
        shown = f"{', '.join(pairs[:3])}{f' and {len(pairs) - 3} more' if len(pairs) > 3 else ''}"
        reason = STATUS.get(status, status)
        notes.append(f"no peers, by the driver: {shown} ({reason}); --system or topo -m tells whether they should be")
    return lost


def _with_named_gpus(discovered: Discovery | None, posted: PostedFacts, catalog: Catalog | None) -> Discovery | None:
    """The machine with the part that the results name, where its dumps name none of its GPUs and all have one name."""
    from lanewise.catalog import builtin
    from lanewise.checking.named.abilities import part_of_title
    from lanewise.topology.model import Kind

    gpus = discovered.system.of_kind(Kind.GPU) if discovered is not None else ()
    titles = {posted.title(gpu) for gpu in gpus}
    part = part_of_title(titles.pop(), catalog or builtin()) if len(titles) == 1 else None
    if discovered is None or part is None or any(discovered.system.device(gpu).part for gpu in gpus):
        return discovered
    devices = discovered.system.devices
    named = {name: replace(device, part=part.name) for name, device in devices.items() if name in gpus}
    return replace(discovered, system=replace(discovered.system, devices={**devices, **named}))


def _plain_text(path: Path) -> ImportedResults | None:
    """The figures that a text of no known tool has; None where it has none, or is no text."""
    from lanewise.readers.kinds import read_plain

    try:
        results = read_plain(read_file(path), str(path))
    except LanewiseError:
        return None
    return results if results.observations else None


def _statements(path: Path) -> ImportedResults | None:
    """What a text without results states of the machine or names of it; None where it does neither, or is no text."""
    from lanewise.readers.kinds import read_posted

    try:
        results = read_posted(read_file(path), str(path))
    except LanewiseError:
        return None
    return results if results.posted.statements or results.posted.devices else None


def _discover_this_machine(catalog: Catalog | None, notes: list[str]) -> Discovery | None:
    """This machine; None, with a note, where it shows no devices."""
    from lanewise.api.discovery import discover

    try:
        return discover((), catalog)
    except (InputError, MissingDependency) as error:
        notes.append(f"this machine is not known: {error}")
        return None


def _check_devices(devices: Mapping[str, str], system: System | None) -> None:
    """UnknownName for a device that the system, if it is known, lacks."""
    from lanewise.routes.endpoints import endpoint

    if system is None:
        return
    for device in devices.values():
        if device not in system.volumes:
            endpoint(system, device)


def _figures_by_number(dumps: Sequence[DumpFacts], target: System | None) -> dict[str, Mapping[str, Any]]:
    """What `nvidia-smi nvlink -s` alone says of the GPUs of a description, by their numbers; nothing of other dumps."""
    from lanewise.discovery.nvidia_smi import NVLINKS

    if target is None or not dumps or any(dump.kind != NVLINKS for dump in dumps):
        return {}
    figures: dict[str, dict[str, Any]] = {}
    for fact in (fact for dump in dumps for fact in dump.facts):
        if (name := fact.about.lower()) in target.devices:
            figures.setdefault(name, {})[fact.key] = fact.value
    return dict(figures)


def _machine_state(discovered: Discovery | None, inputs: _CheckInputs) -> MachineState:
    """What is known of the machine, with the peers that results of a tool call none and the matrices of the dumps."""
    from lanewise.checking.causes.machine import MachineState
    from lanewise.results.conditions import MachineConditions

    lost, pairs = tuple(inputs.no_peers), tuple(_gpus_and_cards(inputs.dumps))
    if discovered is None:
        return MachineState(conditions=MachineConditions(p2p=lost, pairs=pairs))
    conditions = replace(discovered.conditions, p2p=(*discovered.conditions.p2p, *lost), pairs=pairs)
    figures = {name: {fact.key: fact.value for fact in facts} for name, facts in discovered.facts.items()}
    return MachineState(discovered.system, conditions, figures)


def _gpus_and_cards(dumps: Sequence[DumpFacts]) -> Iterator[PairState]:
    """The class of each GPU and network card in the matrices of `topo -m`, cards by the names of their legend."""
    from lanewise.results.conditions import PairState
    from lanewise.routes.classify import NEAR_TO_FAR

    for dump in dumps:
        names = {fact.about: str(fact.value) for fact in dump.facts if fact.key == "alias"}
        for pair in dump.pairs:
            gpu, card = sorted((pair.a, pair.b), key=lambda name: not name.startswith("GPU"))
            if gpu.startswith("GPU") and not card.startswith("GPU") and pair.word in NEAR_TO_FAR:
                yield PairState(gpu.lower(), names.get(card, card), pair.word, str(pair.source))


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
