"""Causes that the rows themselves, their settings and what was posted with them show: no model is needed.

Each is general knowledge of PCIe, GPUs and networks. What speaks for a cause in this case is its evidence; a cause
without evidence is only possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.cards import CARD_CAUSES, differ_in_time, stated_link
from lanewise.checking.causes.changed_settings import OWN_SETTINGS
from lanewise.checking.causes.commonest import PINNED_TOOLS, REQUESTS, commonest
from lanewise.checking.causes.connections import run_causes
from lanewise.checking.causes.contention import (
    back_is_fine,
    busy_cores,
    halved_one_way,
    held_gpu,
    memory_in_use,
    shared_nvlinks,
)
from lanewise.checking.causes.drive_runs import drive_run_causes
from lanewise.checking.causes.fast import FAST_CAUSES
from lanewise.checking.causes.gpu_memory import slow_gpu_memory
from lanewise.checking.causes.host_memory import MEMORY_CAUSES, STORAGE_CAUSES, copies_of_few_modules
from lanewise.checking.causes.inter_host import few_channels_of_sends, idle_cards, without_gpudirect
from lanewise.checking.causes.kinds import KIND_CAUSES
from lanewise.checking.causes.links import lesser_link, lesser_link_of_peers, riser
from lanewise.checking.causes.named_conditions import named_conditions, own_conditions
from lanewise.checking.causes.networks import NETWORK_CAUSES, congestion, other_program
from lanewise.checking.causes.peers import (
    both_ways_up,
    nvlinks_unused,
    one_host_of_several,
    one_of_stars,
    peer_redirection,
    peers_apart,
    peers_off,
    peers_unused,
    shared_way,
    uplink_of_hosts,
    uplink_of_pairs,
)
from lanewise.checking.causes.ports import slower_port
from lanewise.checking.causes.posted import stated_causes
from lanewise.checking.causes.programs import program_faults
from lanewise.checking.causes.texts import text_causes
from lanewise.checking.causes.tool_limits import tool_limits
from lanewise.checking.causes.training_steps import waiting_for_data
from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import is_coherent
from lanewise.checking.named.hosts import one_memory
from lanewise.checking.references.cards import of_card
from lanewise.checking.references.collectives import around_dip, smaller_message
from lanewise.checking.references.drives import enough_in_flight
from lanewise.checking.references.gpu_memory import GPU_MEMORY
from lanewise.checking.references.host_nodes import STATED_NODE, without_nodes
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.parts import LEAST_RATE
from lanewise.checking.references.paths import of_one_size, smaller_and_faster
from lanewise.checking.references.side_by_side import side_by_side
from lanewise.checking.references.stated_limits import names_limit
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, first_gpu, line_of, name_of_any, row_devices, value_text
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

# Data sheets of drives rate 4 KiB reads with 32 and more in flight (Samsung 970 EVO Plus: QD 32, four threads).
_RATED_WITH = 32
_SMALL_REQUEST = 128 * 2**10
# Copies of pageable memory reach at least this share of the link.
_PAGEABLE_SHARE = 0.1
_CHOICE_STEP = "compare NCCL_ALGO=Ring and Tree, NCCL_PROTO=Simple and LL128; NCCL_DEBUG_SUBSYS=TUNING says the choice"
# A collective's second column is of the same program.
_IN_PLACE = " in place"
_LINK_COLUMNS = "index,name,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"
# A single cause that nothing speaks for is not certain: the commonest other one of such a path is told after it.
_LEAST_CAUSES = 2
# Words of a row's name that say where its memory lies.
_OF_A_NODE = re.compile(r"\b(numa|sockets?|numactl|membind)\b", re.IGNORECASE)
# Tools whose rows have the node of the numactl command above them.
_BOUND_BY_COMMAND = ("nvbandwidth", "bandwidthTest")


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


def pageable_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """The host buffer is pageable: the driver copies through a buffer of its own, at a quarter to half of the rate."""
    row = symptom.row
    kind = row.how.get("host memory", "")
    tool = row.how.get("tool", "lanewise")
    if row.path not in HOST_COPIES or kind == "pinned" or row.metric != "goodput" or tool.startswith(PINNED_TOOLS):
        return
    if not kind and is_coherent(symptom.posted.title(symptom.gpu)):
        return  # their GPUs read pageable memory as fast as pinned
    step = "copy from pinned memory (cudaHostAlloc, pin_memory) that is allocated once, in pieces of 16 MiB and more"
    what = "the host memory is pageable: the driver copies it through a buffer of its own"
    pinned = [other for other in symptom.better(same_flow=True) if other.how.get("host memory") == "pinned"]
    if pinned:
        evidence = f"with pinned memory the same path reached {value_text(pinned[0])}"
        yield Cause(("pageable",), what, step, evidence=evidence)
        return
    if kind == "pageable":
        evidence = "the row says pageable" if (row.value or 0.0) > 2 * LEAST_RATE else ""  # any host copies more
        yield Cause(("pageable",), what + ", in small or unaligned pieces", step, evidence=evidence)
        yield from busy_cores(symptom)
        return
    if _PAGEABLE_SHARE < symptom.share < 0.7:
        yield Cause(("pageable",), what, step)


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
        too_short(row) or _by_an_unknown_program(symptom) or symptom.share < _PAGEABLE_SHARE or symptom.slot_is_stated
        or any(
            names_limit(other.row) and other.row.flow == row.flow for other in symptom.table.between(row_devices(row))
        )
    ):  # fmt: skip
        yield Cause(("software",), what, step)


def _much_faster_back(symptom: RowSymptom) -> Observation | None:
    """The same GPU's copy in the other direction, if this one is far below both that and pageable memory."""
    row = symptom.row
    least = 4 if symptom.share < _PAGEABLE_SHARE else 1 / _PAGEABLE_SHARE
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


def small_requests(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive's rate is requests in flight times their size over the time of one: the link is not the limit."""
    row = symptom.row
    size = row.settings.get("bytes")
    large = size is not None and size >= _SMALL_REQUEST and not _one_at_a_time(symptom)
    if row.path != "storage" or large or symptom.share > 0.5:
        return
    if row.how.get("tool") == "hdparm":
        return  # reads 2 MiB at once, in order
    if row.metric == "iops" and row.settings.get("depth", 1) * row.settings.get("threads", 1) >= _RATED_WITH:
        return  # a count a second is rated with so many small ones
    if any(other.settings == row.settings for other in symptom.better(same_flow=True)) and size is not None:
        return  # the same requests were faster
    step = "read in pieces of 1 MiB, with 32 and more in flight: lanewise measure storage FILE --size 1MiB"
    if size is None or row.value is None:
        yield replace(REQUESTS, step=step)
        return
    flight = row.settings.get("depth", 1) * row.settings.get("threads", 1)
    each = units.readable(flight * size / row.value, "s", 3)
    what = f"requests of {size:,} B: {row.value / size:,.0f} of them a second, {each} each with {flight} in flight"
    yield Cause(("requests",), what, step, evidence="size and number of requests of the row")


def _one_at_a_time(symptom: RowSymptom) -> bool:
    """Whether one request follows another, so far below what the drive needs in flight that its time sets the rate."""
    row, drive = symptom.row, symptom.drive
    alone = {"depth", "threads"} & row.settings.keys() and row.settings.get("depth", 1) * row.settings.get(
        "threads", 1
    ) == 1
    return bool(alone) and drive is not None and drive.named and not enough_in_flight(row, drive.read)


def unaligned_size(symptom: RowSymptom) -> Iterator[Cause]:
    """The same requests are much faster in a size that differs by a few bytes: it is aligned and this one is not."""
    size = symptom.row.settings.get("bytes", 0)
    like = [
        other for other in symptom.better(same_flow=True)
        if of_one_size(other.settings.get("bytes", 0), size) and other.settings["bytes"] != size
        and _alignment(other.settings["bytes"]) > _alignment(size)
    ]  # fmt: skip
    if like:
        best = max(like, key=lambda other: other.value or 0.0)
        what = f"requests of {size:,} B, which end within a cache line or page: parts of them are read before a write"
        step = "use sizes and addresses that are multiples of 4 KiB, of 64 B at least"
        evidence = f"requests of {best.settings['bytes']:,} B reached {value_text(best)}"
        yield Cause(("requests",), what, step, evidence=evidence)


def _alignment(size: int) -> int:
    """The largest power of two, up to a page, that divides a size."""
    return min(size & -size, 4096)


def host_side(symptom: RowSymptom) -> Iterator[Cause]:
    """Both ways at once are slow though each way alone is fine: the GPU's link is not the reason."""
    row = symptom.row
    if row.metric != "total" or "host" not in row.flow or not symptom.gpu:
        return
    ways = [text.strip() for text in row.flow.split(",")]
    alone = [
        other.row for other in symptom.results
        if other.row.flow in ways and other.row.metric == "goodput" and other.verdict is not Verdict.SLOW
    ]  # fmt: skip
    if len(alone) >= 2 and (row.value or 0.0) < 0.75 * sum(other.value or 0.0 for other in alone[:2]):
        evidence = f"each way alone {value_text(alone[0])} and {value_text(alone[1])}"
        what = f"what both directions share on the host's side of {symptom.gpu}: memory, the socket link, the IOMMU"
        step = "bind the program and its memory to the GPU's NUMA node; iommu=pt; look for other traffic"
        yield Cause(("host",), what, step, evidence=evidence)


def common_device(symptom: RowSymptom) -> Iterator[Cause]:
    """One GPU that all slow rows have and no fine row, of three rows or two pairs; over a network one host, of two."""
    row, results = symptom.row, symptom.table
    network = row.path == "network"
    slow, fine, common = results.once(("common", row.metric), lambda: _in_every_slow_row(results, row.metric))
    # Of three GPUs, one that is behind a lesser link is in both slow pairs, and not in the third.
    least = 2 if network or row.path == "peer" else 3
    if slow < least or fine < (2 if network else 1):
        return
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


def far_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """The host buffer on a NUMA node away from the GPU."""
    row = symptom.row
    if (near := _from_another_node(symptom)) is not None:
        what = f"the host memory lies on a NUMA node away from {symptom.gpu or 'the GPU'}"
        step = "bind the program and its memory to the GPU's NUMA node: numactl --cpunodebind=N --membind=N"
        yield Cause(("memory",), what, step, evidence=f"{near.flow} reached {value_text(near)}")
        return
    if (other := _with_memory_of_another_node(symptom)) is not None:
        node = f"NUMA node {row.how['NUMA node']}" if row.how.get("NUMA node") else "a NUMA node"
        what = f"the host memory lies on {node} away from {symptom.gpu or 'the GPU'}"
        step = f"bind the program and its memory: numactl -N {other.how['NUMA node']} -m {other.how['NUMA node']}"
        evidence = f"with memory of node {other.how['NUMA node']} it reached {value_text(other)}"
        yield Cause(("memory",), what, step, evidence=evidence)
        return
    # No socket link carries as little as one lane of an old link.
    if row.path not in HOST_COPIES or (row.value or 0.0) < 2 * LEAST_RATE:
        return
    if one_memory(symptom.posted, symptom.gpu, symptom.table.gpus):
        return
    # A node that a command chose may be the wrong one; our own probe takes the GPU's.
    open_node = not row.how.get("NUMA node") or row.how.get("tool", "").startswith(_BOUND_BY_COMMAND)
    if open_node and 0.15 < symptom.share < 0.9:
        what = f"the host buffer lies on a NUMA node away from {symptom.gpu or 'the GPU'}"
        step = "run it under numactl --cpunodebind=N --membind=N for each node N, and compare"
        # Who names the rows of one path after NUMA nodes or sockets has changed just that between them.
        names = [other.scenario for other in (row, *symptom.better(same_flow=True))]
        evidence = "the rows' names" if len(set(names)) > 1 and any(map(_OF_A_NODE.search, names)) else ""
        yield Cause(("memory",), what, step, evidence=evidence)


def _with_memory_of_another_node(symptom: RowSymptom) -> Observation | None:
    """The same copy with memory of another NUMA node, as the commands say, if that is faster."""
    row = symptom.row
    own = ("", row.how.get("NUMA node", ""))
    faster = [other for other in symptom.better(same_flow=True) if other.scenario == row.scenario]
    faster = [other for other in faster if other.how.get("NUMA node", "") not in own]
    return faster[0] if faster and row.path in HOST_COPIES and row.how.get("tool", "lanewise") != "lanewise" else None


def _from_another_node(symptom: RowSymptom) -> Observation | None:
    """The copy of the same GPU in the same direction with memory of another stated NUMA node, if that is faster."""
    row = symptom.row
    if row.path not in HOST_COPIES or not STATED_NODE.search(row.flow):
        return None
    return next(
        (other for other in symptom.better(same_flow=False)
         if other.flow != row.flow and without_nodes(other.flow) == without_nodes(row.flow)
         and other.how.get("engine") == row.how.get("engine") and other.settings == row.settings), None,
    )  # fmt: skip


def one_gpu_of_like(symptom: RowSymptom) -> Iterator[Cause]:
    """Another GPU of that name is faster by the same program: the slot and the node differ, not the kind of memory."""
    row, gpu = symptom.row, symptom.gpu
    if row.path not in HOST_COPIES or "," in row.how.get("flows", row.flow) or not gpu:
        return
    like = [
        other for other in symptom.better(same_flow=False)
        if other.settings == row.settings and other.how.get("host memory") == row.how.get("host memory")
        and other.how.get("tool") == row.how.get("tool")
        and (other.scenario == other.flow or name_of_any(other) == name_of_any(row))
        and first_gpu(other) != gpu and symptom.posted.title(first_gpu(other)) == symptom.posted.title(gpu)
    ]  # fmt: skip
    if like:
        evidence = f"{like[0].flow} reached {value_text(like[0])} by the same program"
        if back_is_fine(symptom):
            yield from (replace(cause, evidence=evidence) for cause in memory_in_use(symptom))
        else:
            yield _lesser_than_the_other(gpu, evidence)
        yield from (replace(cause, evidence=evidence) for cause in far_memory(symptom))


def _lesser_than_the_other(gpu: str, evidence: str) -> Cause:
    what = f"{gpu}'s link has fewer lanes or a lower generation than that of the other"
    step = f"while copies run: nvidia-smi --query-gpu={_LINK_COLUMNS} --format=csv (lanewise check reads it)"
    return Cause(("link", gpu), what, step, evidence=evidence, devices=frozenset({gpu}))


def confidential_computing(symptom: RowSymptom) -> Iterator[Cause]:
    """Copies to Hopper and later GPUs are encrypted through a bounce buffer in confidential computing."""
    row, part = symptom.row, symptom.ability
    if back_is_fine(symptom):
        return  # both directions are encrypted
    if part is not None and part.gen >= 5 and row.path in HOST_COPIES and 3e9 < (row.value or 0.0) < 14e9:
        what = "confidential computing encrypts copies through a bounce buffer: about 10 GB/s"
        yield Cause(("confidential",), what, "nvidia-smi conf-compute -f")


def larger_messages(symptom: RowSymptom) -> Iterator[Cause]:
    """A rate that falls as messages grow: the network drops what its buffers do not hold, or NCCL's choice."""
    row = symptom.row
    rows = symptom.table.rows
    best = smaller_message(row, rows) if row.metric == COLLECTIVE else smaller_and_faster(row, rows)
    if best is None:
        yield from _choice_in_a_dip(row, rows)
        return
    evidence = f"{value_text(best)} with {units.size(best.settings['bytes'])}"
    if row.path == "network" or row.settings.get("hosts", 1) > 1:
        what = "congestion control or lost packets slow the network down once messages exceed its buffers"
        step = "ethtool -S DEVICE | grep -E 'pause|discard|out_of_buffer|cnp'; turn on PFC or ECN at cards and switch"
        yield Cause(("congestion",), what, step, evidence=evidence)
    if row.metric == COLLECTIVE:
        what = "NCCL takes an algorithm or protocol that does not suit these links from that size on"
        yield Cause(("algorithm",), what, _CHOICE_STEP, evidence=evidence)


def _choice_in_a_dip(row: Observation, rows: Sequence[Observation]) -> Iterator[Cause]:
    """NCCL's choice at a size that is slower than both smaller and larger ones: the network carries those."""
    best = around_dip(row, rows) if row.metric == COLLECTIVE else None
    if best is not None:
        what = "NCCL or its network plugin takes an algorithm or protocol that does not suit these links at that size"
        evidence = f"smaller and larger messages reached {value_text(best)} and more"
        yield Cause(("algorithm",), what, _CHOICE_STEP, evidence=evidence)


RowCauseFinder = Callable[[RowSymptom], Iterator[Cause]]
# Also tried where a model predicts the row: what it cannot know.
WITH_A_MODEL_TOO: tuple[RowCauseFinder, ...] = (
    peer_redirection, pageable_memory, program_faults, unaligned_size, counted_otherwise, congestion, other_program,
    small_requests, common_device, confidential_computing, held_gpu,
)  # fmt: skip
ROW_CAUSES: tuple[RowCauseFinder, ...] = (
    copies_of_few_modules, idle_cards, few_channels_of_sends, without_gpudirect, peers_off, peers_unused, one_of_stars,
    shared_way,
    uplink_of_pairs, uplink_of_hosts, *WITH_A_MODEL_TOO, host_side, both_ways_up, peers_apart, one_host_of_several,
    *NETWORK_CAUSES, lesser_link, lesser_link_of_peers, riser,
    one_gpu_of_like, nvlinks_unused, halved_one_way, shared_nvlinks, far_memory,
    memory_in_use, larger_messages, stated_link, *STORAGE_CAUSES, slow_gpu_memory,
)  # fmt: skip
