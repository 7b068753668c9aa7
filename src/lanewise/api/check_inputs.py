"""What a check begins with: results, dumps and statements of files of any kind, and the machine that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, InputError, LanewiseError, Location, MissingDependency
from lanewise.files import read_file

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.checking.causes.machine import MachineState
    from lanewise.discovery.build import Discovery
    from lanewise.discovery.facts import DumpFacts
    from lanewise.readers.tool_results import ImportedResults
    from lanewise.results.conditions import PairState, PeerState
    from lanewise.results.observation import Observation
    from lanewise.results.posted import PostedFacts
    from lanewise.topology.model import System


@dataclass
class CheckInputs:
    """What a check begins with: measured rows, dumps, pairs that are no peers, what texts state, and notes."""

    posted: PostedFacts
    notes: list[str]
    rows: list[Observation] = field(default_factory=list)
    dumps: list[DumpFacts] = field(default_factory=list)
    no_peers: list[PeerState] = field(default_factory=list)
    has_results: bool = False


def read_files(paths: Iterable[Path], notes: Sequence[str]) -> CheckInputs:
    """What files hold, results and dumps alike; their notes behind `notes`."""
    from lanewise.results.conditions import PeerState
    from lanewise.results.posted import join

    read = [(path, *_read(path)) for path in paths]
    results = [(path, each) for path, each, _ in read if each is not None]
    return CheckInputs(
        posted=join([each.posted for _, each in results]),
        notes=[*notes, *(note for _, each in results for note in each.notes)],
        rows=[row for _, each in results for row in each.observations],
        dumps=[dump for _, _, dumps in read for dump in dumps],
        no_peers=[PeerState(a, b, "peers", "NS", str(path)) for path, each in results for a, b in each.no_peers],
        has_results=bool(results),
    )


def _read(path: Path) -> tuple[ImportedResults | None, Sequence[DumpFacts]]:
    """A file as results, as a dump, or, as pasted texts are, as both; FormatError for one that is neither."""
    from lanewise.api.discovery import read_dumps
    from lanewise.readers.kinds import KNOWN, read_results
    from lanewise.readers.tool_results import merge

    results: ImportedResults | None = None
    # Of the results of a known tool that cannot be read.
    unreadable: LanewiseError | None = None
    if not path.is_dir():
        try:
            results = merge([read_results(read_file(path), str(path))])
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


def _of_dumps(inputs: CheckInputs, catalog: Catalog | None) -> Discovery | None:
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
    from lanewise.topology.model import Kind

    gpus = discovered.system.of_kind(Kind.GPU) if discovered is not None else ()
    titles = {posted.title(gpu) for gpu in gpus}
    part = (catalog or builtin()).gpu(titles.pop()) if len(titles) == 1 else None
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


def machine_of(
    inputs: CheckInputs, target: System | None, catalog: Catalog | None, *, here: bool = False
) -> tuple[MachineState, dict[str, str]]:
    """The machine that dumps describe, or this one (`here`), and the device that each of its dumps' words means.

    Figures of GPUs by their numbers alone are those of the `target`.
    """
    if figures := _figures_by_number(inputs.dumps, target):
        return replace(_machine_state(None, inputs), system=target, figures=figures), {}
    discovered = _discover_this_machine(catalog, inputs.notes) if here else _of_dumps(inputs, catalog)
    discovered = _with_named_gpus(discovered, inputs.posted, catalog)
    names = discovered.dump_names if discovered is not None else {}
    return _machine_state(discovered, inputs), {word: name for name, words in names.items() for word in words}


def _machine_state(discovered: Discovery | None, inputs: CheckInputs) -> MachineState:
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
