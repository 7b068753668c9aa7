"""What a check says besides its findings: what was left out, and what a fine row does not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lanewise import units
from lanewise.catalog import Catalog
from lanewise.checking.abilities import part_of_title
from lanewise.checking.collective_rows import is_collective, rank_misfit
from lanewise.checking.expectation import too_short
from lanewise.checking.host_names import host_generation
from lanewise.checking.part_references import NO_NVLINK
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.collectives.constants import library_named
from lanewise.results.block_rows import OF_SOFTWARE, software_of_scenario
from lanewise.results.conditions import MachineConditions
from lanewise.results.observation import Observation
from lanewise.results.posted import SLOT, PostedFacts
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
    slots = [each.value for each in posted.stated("slot") if system is not None and SLOT.fullmatch(each.value.strip())]
    return (*unused, *(f"the slot '{slot}' is left out: the description has each link" for slot in slots))


def other_gpus(posted: PostedFacts, system: System | None, catalog: Catalog) -> dict[str, str]:
    """GPUs that the text names otherwise than the description, each with what to say of it: it is another machine."""
    differing: dict[str, str] = {}
    for name in sorted(posted.devices.keys() & system.devices.keys()) if system is not None else ():
        described, posted_part = system.part(name) if system else None, part_of_title(posted.devices[name], catalog)
        if described is not None and posted_part is not None and described.name != posted_part.name:
            text = f"{name} is '{posted.devices[name]}' in the text and {described.name} in the description"
            differing[name] = f"{OTHER_GPU}: {text}"
    return differing


def assumption_notes(results: Sequence[PathResult], system: System) -> tuple[str, ...]:
    """Which version of the library and which launch stand for those that a text of collectives does not say."""
    rows = [each.row for each in results if is_collective(each.row) and each.expected.value and each.fine_low]
    parts = [system.part(gpu) for gpu in system.of_kind(Kind.GPU)]
    amd = any(part is not None and part.title.startswith("AMD") for part in parts)
    texts = []
    if not amd and any(not row.how.get("library") for row in rows):
        texts.append(f"{library_named('NCCL').title} (--nccl VERSION)")
    if any(not row.how.get("launch") for row in rows):
        texts.append("a process for each GPU (--launch MODE)")
    return (f"assumed of collectives, as their text does not say it: {', '.join(texts)}",) if texts else ()


def misfit_notes(
    results: Sequence[PathResult], system: System, device: Callable[[str], str]
) -> tuple[str, ...]:  # fmt: skip
    """Collectives whose ranks are not the description's and that bounds judged all the same."""
    judged = [each.row for each in results if each.verdict is not Verdict.UNKNOWN]
    texts = dict.fromkeys(rank_misfit(system, row, device) for row in judged if is_collective(row))
    return tuple(f"{text}: its GPUs' names alone judge it" for text in texts if text)


def left_aside_note(rows: Sequence[Observation]) -> tuple[str, ...]:
    """Rows that nothing is expected of, by their kinds."""
    kinds = dict.fromkeys(f"{row.metric} of {'short ' * too_short(row)}{row.path or row.flow}" for row in rows)
    text = f"{len(rows)} row{'s' if len(rows) > 1 else ''} left aside, as the model has no {', '.join(kinds)}"
    return (f"{text}; an earlier run may have (--expect)",) if rows else ()
