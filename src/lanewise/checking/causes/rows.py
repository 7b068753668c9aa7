"""Causes that the rows themselves, their settings and what was posted with them show: no model is needed.

Each is general knowledge of PCIe, GPUs and networks. What speaks for a cause in this case is its evidence; a cause
without evidence is only possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lanewise.checking.cause import Cause
from lanewise.checking.causes.cards import CARD_CAUSES, differ_in_time, stated_link
from lanewise.checking.causes.changed_settings import OWN_SETTINGS
from lanewise.checking.causes.commonest import commonest
from lanewise.checking.causes.connections import run_causes
from lanewise.checking.causes.contention import (
    gpu_busy_for_others,
    halved_one_way,
    memory_in_use,
    shared_nvlinks,
)
from lanewise.checking.causes.drive_runs import drive_run_causes
from lanewise.checking.causes.fast import FAST_CAUSES
from lanewise.checking.causes.gpu_memory import slow_gpu_memory
from lanewise.checking.causes.host_copies import (
    PAGEABLE_SHARE,
    confidential_computing,
    far_memory,
    host_side,
    pageable_memory,
    slower_gpu_than_another,
)
from lanewise.checking.causes.host_memory import MEMORY_CAUSES, STORAGE_CAUSES, copies_of_few_modules
from lanewise.checking.causes.inter_host import (
    experts_on_one_card,
    few_channels_of_sends,
    idle_cards,
    outside_nvlink_domain,
    without_gpudirect,
)
from lanewise.checking.causes.kinds import KIND_CAUSES
from lanewise.checking.causes.links import lesser_link, lesser_link_of_peers, riser
from lanewise.checking.causes.named_conditions import named_conditions, own_conditions
from lanewise.checking.causes.networks import NETWORK_CAUSES, congestion, other_program
from lanewise.checking.causes.peers import (
    both_ways_up,
    nvlinks_unused,
    one_host_of_several,
    peer_redirection,
    peers_apart,
    peers_off,
    peers_unused,
    shared_way,
    slower_hub_gpu,
    uplink_of_hosts,
    uplink_of_near_pair,
    uplink_of_pairs,
)
from lanewise.checking.causes.ports import slower_port
from lanewise.checking.causes.posted import stated_causes
from lanewise.checking.causes.programs import program_faults
from lanewise.checking.causes.request_sizes import larger_messages, small_requests, unaligned_size
from lanewise.checking.causes.texts import text_causes
from lanewise.checking.causes.tool_limits import tool_limits
from lanewise.checking.causes.training_steps import waiting_for_data
from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import is_coherent
from lanewise.checking.references.cards import of_card
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.side_by_side import side_by_side
from lanewise.checking.references.stated_limits import names_limit
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, line_of, row_devices, value_text
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

# A collective's second column is of the same program.
_IN_PLACE = " in place"
# A single cause that nothing speaks for is not certain: the commonest other one of such a path is told after it.
_LEAST_CAUSES = 2


def row_causes(symptom: RowSymptom) -> tuple[Cause, ...]:
    """What may be behind a slow row that no model predicts, each cause once, the likeliest first."""
    by_key: dict[tuple[str, ...], Cause] = {}
    of_any = MEMORY_CAUSES if side_by_side(symptom.row) else CARD_CAUSES if of_card(symptom.row) else ROW_CAUSES
    named = (stated_causes, slower_port, *OWN_SETTINGS, named_conditions, text_causes, *KIND_CAUSES)
    of_slow = (waiting_for_data, run_causes, drive_run_causes, *named, *of_any, own_conditions, tool_limits)
    finders = FAST_CAUSES if symptom.result.verdict is Verdict.FAST else of_slow
    for find in finders:
        for cause in find(symptom):
            known = by_key.setdefault(cause.key, cause)
            if cause.rank < known.rank:
                by_key[cause.key] = cause
    if symptom.result.verdict is not Verdict.FAST and not any(cause.rank <= 1 for cause in by_key.values()):
        told = {key[0] for key in by_key}
        others = [cause for cause in commonest(symptom) if cause.key[0] not in told]
        by_key |= {cause.key: cause for cause in others[: max(0, _LEAST_CAUSES - len(by_key))]}
    return tuple(sorted(by_key.values(), key=lambda cause: cause.rank))


def _runs_alike(other: Observation, row: Observation) -> bool:
    """Of copies of host memory: whether no fewer flows ran with the other row, by the same kind of copies."""
    if not set(row.path.split(", ")) <= set(HOST_COPIES):
        return True
    other_flows, flows = (each.how.get("flows", "").count("->") for each in (other, row))
    return other_flows >= flows and other.how.get("engine") == row.how.get("engine")


def counted_otherwise(symptom: RowSymptom) -> Iterator[Cause]:
    """The same path was faster in another program: what this one counts, allocates or waits for."""
    row = symptom.row
    if of_plain_text(row) and row.path not in HOST_COPIES:
        return  # of paths that no text names every figure is of the same one
    faster = [other for other in symptom.better(same_flow=True) if other.how.get("p2p") == row.how.get("p2p")]
    faster = [other for other in faster if line_of(other) == line_of(row) and _runs_alike(other, row)]
    if row.path == "storage":  # of one program at two times the program is no cause
        faster = [other for other in faster if not differ_in_time(row.scenario, other.scenario)]
    step = "count the bytes that were copied, without allocation and waiting: lanewise measure gpu, or nvbandwidth"
    what = "the program itself: bytes counted otherwise, allocation, waiting or small copies between the large ones"
    if row.metric == COLLECTIVE:
        what = "the library: its version, its choice of algorithm or transport, or a setting that differs between them"
        step = "compare NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING of both: version, channels, via P2P or SHM"
    if faster and faster[0].scenario.removesuffix(_IN_PLACE) != row.scenario.removesuffix(_IN_PLACE):
        evidence = f"'{faster[0].scenario}' reached {value_text(faster[0])} on the same path"
        yield Cause(("software",), what, step, evidence=evidence)
    elif row.path.startswith("peer") and row.how.get("tool") == "typed in" and not row.how.get("engine"):
        # Sends and receives of a framework wait for each other and copy more than once.
        yield Cause(("software",), f"{what}, or two ways that ran one after another", step)
    elif row.path in HOST_COPIES and (back := _much_faster_back(symptom)) is not None:
        # No link and no socket takes that much of one direction alone; a driver that copies once more does.
        evidence = f"the other direction reached {value_text(back)} on the same link"
        yield Cause(("software",), what, step, evidence=evidence)
    elif row.path in HOST_COPIES and (
        too_short(row) or _by_an_unknown_program(symptom) or symptom.share < PAGEABLE_SHARE or symptom.slot_is_stated
        or any(
            names_limit(other.row) and other.row.flow == row.flow for other in symptom.table.between(row_devices(row))
        )
    ):  # fmt: skip
        yield Cause(("software",), what, step)


def _much_faster_back(symptom: RowSymptom) -> Observation | None:
    """The same GPU's copy in the other direction, if this one is far below both that and pageable memory."""
    row = symptom.row
    least = 4 if symptom.share < PAGEABLE_SHARE else 1 / PAGEABLE_SHARE
    ways = sorted(row.flow.split("->"))
    back = [
        other.row for other in symptom.table.between(row_devices(row))
        if other.row.flow != row.flow and sorted(other.row.flow.split("->")) == ways and other.row.metric == row.metric
        and (other.row.value or 0.0) > least * (row.value or 0.0)
    ]  # fmt: skip
    return max(back, key=lambda other: other.value or 0.0) if back else None


def _by_an_unknown_program(symptom: RowSymptom) -> bool:
    """Whether nobody says how a copy was timed, or from what memory, and it misses too little for that memory."""
    row = symptom.row
    coherent = is_coherent(symptom.posted.title(symptom.gpu))
    return row.how.get("tool") == "typed in" and not row.how.get("host memory") and (symptom.share > 0.7 or coherent)


def common_device(symptom: RowSymptom) -> Iterator[Cause]:
    """One GPU that all slow rows have and no fine row, of three rows or two pairs; over a network one host, of two."""
    row, results = symptom.row, symptom.table
    network = row.path == "network"
    slow, fine, common = results.once(("common", row.metric), lambda: _in_every_slow_row(results, row.metric))
    # Of three GPUs, one that is behind a lesser link is in both slow pairs, and not in the third.
    least = 2 if network or row.path == "peer" else 3
    if slow < least or fine < (2 if network else 1):
        return
    common = frozenset() if results.gpus == 1 else common  # the only GPU is in all rows of GPUs
    for device in sorted(device for device in common if network or not device.startswith("host"))[:1]:
        what = f"{device} is in every one of the {slow} slow rows and in no other"
        step = f"look at {device} alone: its link under load, its slot; swap it with another"
        yield Cause(("common", device), what, step, evidence="the other rows", devices=frozenset({device}))


def _in_every_slow_row(results: Sequence[PathResult], metric: str) -> tuple[int, int, frozenset[str]]:
    """How many rows of a metric are slow, how many are not, and the devices that all slow ones and no others have."""
    # A GPU whose own memory is fine may hang from a lesser link.
    like = [each for each in results if each.row.metric == metric and each.row.path != GPU_MEMORY]
    slow = [row_devices(other.row) for other in like if other.verdict is Verdict.SLOW]
    fine = [row_devices(other.row) for other in like if other.verdict in (Verdict.OK, Verdict.UNKNOWN)]
    common = frozenset.intersection(*slow) - frozenset().union(*fine) if slow else frozenset()
    return len(slow), len(fine), common


RowCauseFinder = Callable[[RowSymptom], Iterator[Cause]]
# Also tried where a model predicts the row: what it cannot know.
WITH_A_MODEL_TOO: tuple[RowCauseFinder, ...] = (
    peer_redirection, pageable_memory, program_faults, unaligned_size, counted_otherwise, congestion, other_program,
    small_requests, common_device, confidential_computing, gpu_busy_for_others,
)  # fmt: skip
ROW_CAUSES: tuple[RowCauseFinder, ...] = (
    copies_of_few_modules, idle_cards, experts_on_one_card, few_channels_of_sends, outside_nvlink_domain,
    without_gpudirect, peers_off,
    peers_unused, slower_hub_gpu, shared_way, uplink_of_pairs, uplink_of_near_pair, uplink_of_hosts,
    *WITH_A_MODEL_TOO, host_side, both_ways_up, peers_apart, one_host_of_several,
    *NETWORK_CAUSES, lesser_link, lesser_link_of_peers, riser,
    slower_gpu_than_another, nvlinks_unused, halved_one_way, shared_nvlinks, far_memory,
    memory_in_use, larger_messages, stated_link, *STORAGE_CAUSES, slow_gpu_memory,
)  # fmt: skip
