"""What a check says besides its findings: what was left out, and what a fine row does not show."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from lanewise import units
from lanewise.catalog import Catalog
from lanewise.checking.collective_rows import is_collective, rank_misfit
from lanewise.checking.named.hosts import host_generation
from lanewise.checking.references.parts import NO_NVLINK
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.collectives.constants import library_named
from lanewise.collectives.model import Launch
from lanewise.results.block_rows import OF_SOFTWARE, software_of_scenario
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import STATEMENTS, PostedFacts, Statement, slot_link
from lanewise.topology.model import Kind, System

OTHER_GPU = "the results are of another machine than the description"


def idle_link_notes(conditions: MachineConditions, results: Sequence[PathResult]) -> tuple[str, ...]:
    """Links that an idle capture shows below what both ends can, where nothing was measured over them."""
    if results:
        return ()
    return tuple(
        f"{link.device}'s link is at Gen{link.gen_now} now, both ends can Gen{link.gen}: idle links do that. To know, "
        "load the link (nvbandwidth, lanewise measure gpu) and read it again"
        for link in conditions.links if link.slow and not link.under_load
    )  # fmt: skip


def downgraded_notes(posted: PostedFacts, results: Sequence[PathResult]) -> tuple[str, ...]:
    """Links of devices that nobody named, at a lower generation than they can, where nothing was measured over them."""
    stated = posted.stated("link speed now")
    if results or not stated:
        return ()
    return (
        f"a link is at {stated[0].value} ({stated[0].source}): idle GPUs lower it, network cards and drives do not. "
        "To know, name the device (the first line of lspci), load the link and read it again",
    )


def pageable_notes(results: Sequence[PathResult]) -> tuple[str, ...]:
    """Copies of pageable memory that are fine for that: pinned memory would be faster."""
    rows = [each for each in results if each.row.how.get("host memory") == "pageable" and each.verdict is Verdict.OK]
    if not rows or rows[0].expected.value is None:
        return ()
    count = f"{len(rows)} copies of pageable memory are" if len(rows) > 1 else "a copy of pageable memory is"
    pinned = units.show(rows[0].expected.value, rows[0].row.display_unit, 3)
    return (f"{count} as fast as those are; pinned memory reaches about {pinned} ({rows[0].row.flow})",)


def without_nvlink_notes(results: Sequence[PathResult]) -> tuple[str, ...]:
    """Pairs that are fine for PCIe though their GPUs could be joined by NVLinks."""
    rows = [each.row.flow for each in results if (each.expected.limit or "").startswith(NO_NVLINK)]
    if not rows:
        return ()
    text = f"{rows[0]}{' and others' if len(rows) > 1 else ''} reach what PCIe carries"
    return (f"{text}; if a bridge joins these GPUs, its NVLinks are not in use (nvidia-smi nvlink -s)",)


def small_block_notes(results: Sequence[PathResult]) -> tuple[str, ...]:
    """Blocks that are as fast as their software and far below their path: larger ones would be faster."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for each in results:
        software = software_of_scenario(each.row.scenario)
        if software and each.verdict is Verdict.OK and (each.expected.limit or "").startswith(OF_SOFTWARE):
            sizes.setdefault((software, each.row.flow), []).append(each.row.settings.get("bytes", 0))
    flows: dict[tuple[str, int], list[str]] = {}
    for (software, flow), own in sizes.items():
        flows.setdefault((software, max(own)), []).append(flow)
    return tuple(
        f"{', '.join(names)}: blocks up to {units.size(largest)} by {software} wait for the software that posts them, "
        "not for the path; larger blocks or other software carry more (lanewise predict --blocks ... --software NAME)"
        for (software, largest), names in flows.items()
    )


def short_block_notes(rows: Sequence[Observation]) -> tuple[str, ...]:
    """Short blocks of a benchmark, which show the time of an operation and not what the path carries."""
    short = [row for row in rows if row.how.get("tool") == "nixlbench" and row.metric == "goodput" and row.value]
    if not short:
        return ()
    row = max(short, key=lambda each: each.settings.get("bytes", 0))
    size, batch = row.settings.get("bytes", 0), row.settings.get("batch", 1)
    seconds = size * batch / (row.value or 1.0)
    text = f"blocks up to {units.size(size)} of nixlbench, {units.readable(seconds, 's', 3)} a batch of {batch}"
    advice = "larger blocks and batches (--start_block_size 1048576 --start_batch_size 64) show the path"
    return (f"{text}: small blocks show what an operation costs, not what the path carries; {advice}",)


def unused_statement_notes(posted: PostedFacts, system: System | None, catalog: Catalog) -> tuple[str, ...]:
    """What was stated and has no effect."""
    unused = [
        f"the CPU '{each.value}' is not known, nor the PCIe generation of its lanes" for each in posted.stated("cpu")
        if system is None and host_generation(each.value, catalog) is None
    ]  # fmt: skip
    if names := ", ".join(dict.fromkeys(_in_vain(each) for each in posted.unused)):
        unused.append(f"not used: {names}")
    slots = [each.value for each in posted.stated("slot") if system is not None and slot_link(each.value) is not None]
    return (*unused, *(f"the slot '{slot}' is left out: the description has each link" for slot in slots))


def _in_vain(statement: Statement) -> str:
    """A word that nothing uses; of one whose value says nothing also what it could be."""
    if statement.key not in STATEMENTS:
        return statement.key
    return f"{statement.key} '{statement.value}' (write for example {STATEMENTS[statement.key][1]})"


def other_gpus(
    posted: PostedFacts, system: System | None, catalog: Catalog, device_of_word: Mapping[str, str]
) -> dict[str, str]:
    """GPUs that the text names otherwise than the description, each with what to say of it: it is another machine.

    A word of the text means the device of `device_of_word`, else the device of that name; on a system of several hosts,
    where no device has it, a GPU of one of them.
    """
    differing: dict[str, str] = {}
    for word in sorted(posted.devices) if system is not None else ():
        parts = _described_parts(system, device_of_word.get(word, word)) if system else {}
        part = catalog.gpu(posted.devices[word])
        if parts and part is not None and part.name not in parts.values():
            device, described = next(iter(parts.items()))
            is_named = f"{device} is " * (device != word)
            text = f"{word} is '{posted.devices[word]}' in the text and {is_named}{described} in the description"
            differing[word] = f"{OTHER_GPU}: {text}"
    return differing


def _described_parts(system: System, name: str) -> dict[str, str]:
    """The part of a device, or of all GPUs where a GPU's number is no device of several hosts; empty if not known."""
    several = len(system.hosts) > 1 and name.removeprefix("gpu").isdecimal()
    names = [name] if name in system.devices else system.of_kind(Kind.GPU) if several else []
    parts = {name: system.part(name) for name in names}
    return {name: part.name for name, part in parts.items() if part is not None} if all(parts.values()) else {}


def library_notes(results: Sequence[PathResult], system: System) -> tuple[str, ...]:
    """The version of the library and the launch that collectives are compared with, and what their text does not say.

    `predict --collective` of the same version and launch has the same expected values.
    """
    rows = [each.row for each in results if is_collective(each.row) and each.expected.value and each.fine_low]
    parts = [system.part(gpu) for gpu in system.of_kind(Kind.GPU)]
    amd = any(part is not None and part.title.startswith("AMD") for part in parts)
    texts = dict.fromkeys(f"{_library(row, amd)}, {_launch(row)}" for row in rows)
    return (f"collectives are predicted as run by {'; by '.join(texts)}",) if texts else ()


def _library(row: Observation, amd: bool) -> str:
    name, _, version = row.how.get("library", "").partition(" ")
    if amd:
        return library_named("RCCL").title
    stated = version if name == "NCCL" else ""
    return library_named("NCCL", stated).title + (f" (--nccl {stated})" if stated else " (assumed, --nccl VERSION)")


def _launch(row: Observation) -> str:
    launch = row.how.get("launch", "")
    if launch not in list(Launch):
        return f"--launch {Launch.NCCL_TESTS} (a process for each GPU; assumed)"
    return f"--launch {shlex.quote(launch)}"


def misfit_notes(
    results: Sequence[PathResult], system: System, device: Callable[[str], str]
) -> tuple[str, ...]:  # fmt: skip
    """Collectives whose ranks are not the description's and that bounds judged all the same."""
    judged = [each.row for each in results if each.verdict is not Verdict.UNKNOWN]
    texts = dict.fromkeys(rank_misfit(system, row, device) for row in judged if is_collective(row))
    return tuple(f"{text}: its GPUs' names alone judge it" for text in texts if text)
