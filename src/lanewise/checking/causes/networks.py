"""Causes of slow rows over a network or from a drive: the program, the way between GPU and card, the card itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from lanewise.checking.cause import Cause, speed, speeds
from lanewise.checking.causes.cards import differ_in_time
from lanewise.checking.causes.ports import bound_to_a_port, crosses_a_link, lesser_port, one_port
from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import link_rate, raw_rate, shares_host_memory
from lanewise.checking.references.drives import (
    DriveAbility,
    downgraded_link,
    half_of_a_link,
    lesser_drive_link,
    of_downgraded_link,
)
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, line_of, quantity_in, row_devices, value_text
from lanewise.results.conditions import PairState
from lanewise.results.observation import Observation
from lanewise.results.posted import slot_link
from lanewise.routes.classify import NEAR_TO_FAR, PIX, PXB

PEER_STEP = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type; boot with iommu=pt, ACS off"
_TOPO_STEP = "nvidia-smi topo -m: choose a pair of class PIX or PXB, and bind the process to that NUMA node"
_PROGRAM_STEP = (
    "compare with ib_write_bw -q 4, or iperf with several threads and connections; "
    "NCCL_DEBUG=INFO and UCX_LOG_LEVEL=info say which cards are in use"
)
# Cards for lines up to this (B/s) are put into narrow slots; what TCP gets of their wires: 3.3 of 4, 6.0 of 7.9 Gb/s.
_SMALL_LINE, _OF_WIRES = 5.1e9, (0.74, 0.93)
# A line between switches; spanning tree lets nothing pass a port that it blocks (IEEE 802.1Q).
_ACROSS = re.compile(
    r"\b(?:across|between|over|two|other|another|different|cross|inter)[ -](?:(?:the|two|leaf|tor) )*"
    r"(?:switch(?:es)?|racks?)\b", re.IGNORECASE,
)  # fmt: skip
# Less than half of a stated slot is hardly its limit.
_OF_STATED = 0.5
# How much rates of both ways differ that one link limits.
_EVEN = 0.03
# How far apart rates of one network card from two kinds of memory may be that its link limits.
_ALIKE = 0.15
# Writes into a GPU that are this many times faster than reads of it cross a root complex.
_READS_WAIT = 1.4
# How near a share must be to that of half the lanes.
_NEAR_STEP = 0.12


def congestion(symptom: RowSymptom) -> Iterator[Cause]:
    """Several senders to one receiver get less together than one of them alone."""
    row = symptom.row
    ends = [flow.split("->") for flow in row.flow.replace(" ", "").split(",")]
    senders, receivers = {end[0] for end in ends}, {end[-1] for end in ends}
    if row.path != "network" or len(senders) < 2 or len(receivers) != 1:
        return
    alone = [
        other.row for other in symptom.results
        if other.row.path == "network" and other.row.flow.replace(" ", "").split("->")[-1:] == [*receivers]
        and "," not in other.row.flow and (other.row.value or 0.0) > 1.2 * (row.value or 0.0)
    ]  # fmt: skip
    if alone:
        what = f"{len(senders)} senders share a port of {receivers.pop()}: congestion control or lost packets slow them"
        step = "ethtool -S DEVICE | grep -E 'pause|discard|out_of_buffer|cnp'; turn on PFC or ECN at cards and switch"
        yield Cause(("congestion",), what, step, evidence=f"one sender alone reached {value_text(alone[0])}")


def other_program(symptom: RowSymptom) -> Iterator[Cause]:
    """Another program carries more over the same network: connections, sizes, cards and ports are the program's."""
    row = symptom.row
    if row.path != "network" or row.metric.startswith("latency"):
        return
    what = "the program: one thread, one connection or one queue pair carries less than the line"
    own_memory = not symptom.gpu or shares_host_memory(symptom.posted.title(symptom.gpu))
    faster = [other for other in symptom.better_rates() if _far_end(other) == _far_end(row)]
    faster = [other for other in faster if _program(other) != _program(row) and line_of(other) == line_of(row)
              and not _same_tool(other, row)]  # fmt: skip
    if faster and _program(row) and _program(faster[0]):
        what = f"{what}, or it uses other cards or ports than '{_program(faster[0])}'"
        evidence = f"'{_program(faster[0])}' reached {value_text(faster[0])} over the same network"
        yield Cause(("software",), what, _PROGRAM_STEP, evidence=evidence)
    elif own_memory and not row.how.get("tool", "").startswith("perftest"):
        yield Cause(("software",), what, _PROGRAM_STEP)


def far_apart(symptom: RowSymptom) -> Iterator[Cause]:
    """GPU and network card, or GPU and drive, hang below different switches, root ports or sockets."""
    row, gpu = symptom.row, symptom.gpu
    if not crosses_a_link(symptom):
        return
    other_end = "network card" if row.path == "network" else "drive"
    what = f"{gpu} and the {other_end} hang below different switches, root complexes or sockets"
    # The same two ends are no nearer to each other in another mode; a flow of a network may use another card.
    near = [*symptom.better(same_flow=False), *(symptom.better(same_flow=True) if row.path == "network" else ())]
    near = [other for other in near if other.settings == row.settings]
    if row.path == "network":
        # Host memory that is faster does not tell a far GPU from one whose data is staged.
        near = [other for other in near if "gpu" in other.flow and _far_end(other) == _far_end(row)]
        # Of this GPU's own rows those over fewer cards: the added ones are far.
        near = [other for other in near if gpu not in row_devices(other) or line_of(other) != line_of(row)]
    evidence = f"{near[0].flow} reached {value_text(near[0])}" if near else ""
    if pair := _pair(symptom):
        if pair.cls in (PIX, PXB):
            return
        evidence = f"{gpu} and {row.how['device']} are {pair.cls} ({pair.source}){_nearer_cards(symptom, pair)}"
    yield Cause(("far", gpu), what, _TOPO_STEP, evidence=evidence, devices=frozenset({gpu}))


def _pair(symptom: RowSymptom) -> PairState | None:
    """What a matrix says of the row's GPU and the network card that the tool names; None if nothing.

    Without a legend NIC0 is taken for mlx5_0: the driver numbers both in one order.
    """
    card = symptom.row.how.get("device", "") if symptom.row.path == "network" else ""
    number = re.fullmatch(r"mlx\d_(\d{1,2})", card)
    names = {card, f"NIC{number[1]}" if number else card} - {""}
    return next((pair for pair in symptom.conditions.pairs_of(symptom.gpu) if pair.card in names), None)


def _nearer_cards(symptom: RowSymptom, pair: PairState) -> str:
    """The cards that are nearer to the GPU than the one of a pair, as the end of a sentence; empty if none."""
    nearer = NEAR_TO_FAR[: NEAR_TO_FAR.index(pair.cls)]
    others = [other for other in symptom.conditions.pairs_of(pair.gpu) if other.cls in nearer]
    best = min(others, key=lambda other: NEAR_TO_FAR.index(other.cls), default=None)
    return f"; {best.card} is {best.cls} to it" if best else ""


def staged_through_host(symptom: RowSymptom) -> Iterator[Cause]:
    """GPUDirect RDMA or Storage is not in use: data of the GPU goes through host memory."""
    row, gpu = symptom.row, symptom.gpu
    if not crosses_a_link(symptom) or row.how.get("tool") == "perftest":
        return  # perftest registers the GPU's memory with the card, and fails where it cannot
    name = "GPUDirect RDMA" if row.path == "network" else "GPUDirect Storage"
    if symptom.posted.stated(name):
        return  # `posted` says it, or that it is on
    step = (
        "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; NCCL_DEBUG=INFO must show GDRDMA"
        if row.path == "network"
        else "gdscheck -p; cat /proc/driver/nvidia-fs/stats"
    )
    what = f"{name} is not in use: the data of {gpu} goes through host memory"
    near = [other for other in symptom.better(same_flow=False) if "gpu" not in other.flow]
    near = near if _faster_writes(symptom) is None else []
    evidence = f"host memory reached {value_text(near[0])} ({near[0].flow})" if near else ""
    yield Cause(("staged", gpu), what, step, evidence=evidence, devices=frozenset({gpu}))


def far_redirection(symptom: RowSymptom) -> Iterator[Cause]:
    """ACS or the IOMMU between a GPU and a network card or drive that a switch joins."""
    if crosses_a_link(symptom):
        what = f"ACS or the IOMMU sends traffic of {symptom.gpu} up to the root complex, past any switch"
        writes = _faster_writes(symptom)
        evidence = f"writes into {symptom.gpu} reached {value_text(writes)}, reads wait longer there" if writes else ""
        yield Cause(("acs",), what, PEER_STEP, evidence=evidence)


def _faster_writes(symptom: RowSymptom) -> Observation | None:
    """The row of writes into a GPU whose reads by the same network card are far slower: root complexes do that.

    Data that is staged in host memory, or that waits for the card's link, is about as fast both ways.
    """
    row, gpu = symptom.row, symptom.gpu
    if row.path != "network" or not gpu or row.flow.split("->")[0].strip() != gpu:
        return None
    back = [
        other for other in symptom.better(same_flow=False)
        if other.flow.split("->")[-1].strip() == gpu and row_devices(other) == row_devices(row)
        and line_of(other) == line_of(row) and _program(other) == _program(row)
    ]  # fmt: skip
    return next((other for other in back if (other.value or 0.0) > _READS_WAIT * (row.value or 0.0)), None)


def link_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """The network card's own PCIe link carries less than its lines: a slot of an older generation or of fewer lanes."""
    row = symptom.row
    if row.path != "network" or not row.value or row.metric != "goodput":
        return
    alike = _other_memory_alike(symptom)
    if "gpu" in row.flow and alike is None:
        return
    links = [(gen, lanes) for gen in (3, 4, 5, 6) for lanes in (16, 8, 4, 2, 1) if lanes > 4 or alike is not None]
    near = [link for link in links if 0.8 < row.value / link_rate(*link, False) < 1.05]
    if near and symptom.share < 0.8:
        what = f"the network card's link runs at {speeds(near)}, or both its ports share one: it carries no more"
        step = "sudo lspci -vv -d 15b3: | grep -E 'LnkCap:|LnkSta:'; a card for 400 Gb/s needs Gen5 x16"
        evidence = f"{alike.flow} is no faster ({value_text(alike)})" if alike is not None else ""
        ports = [] if alike is not None else symptom.posted.stated("port rate")
        if any(quantity_in(port.value, "B/s") == symptom.result.expected.value for port in ports):
            evidence = f"the port itself came up at {ports[0].value} ({ports[0].source})"
        yield Cause(("link", "network card"), what, step, evidence=evidence)


def narrow_link_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """A card for up to 40 Gb/s that carries as much both ways as one to four lanes do: a program is not as even."""
    row, line = symptom.row, symptom.result.expected.value or math.inf
    if row.path != "network" or row.metric != "goodput" or line > _SMALL_LINE or "gpu" in row.flow or not row.value:
        return
    back = [
        other.row for other in symptom.results
        if other.row.path == "network" and other.row.metric == row.metric and line_of(other.row) == line_of(row)
        and [end.strip() for end in other.row.flow.split("->")] == [end.strip() for end in row.flow.split("->")][::-1]
        and abs((other.row.value or 0.0) / row.value - 1) < _EVEN
    ]  # fmt: skip
    links = [(gen, lanes) for gen in (2, 3, 4) for lanes in (1, 2, 4) if raw_rate(gen, lanes) < line]
    near = [link for link in links if _OF_WIRES[0] < row.value / raw_rate(*link) < _OF_WIRES[1]]
    if back and near:
        what = f"the network card's link runs at {speeds(near)}: it carries no more"
        step = "sudo lspci -vv | grep -A40 Ethernet | grep -E 'LnkCap:|LnkSta:'; a slot with more lanes"
        evidence = f"as much the other way ({value_text(back[0])})"
        yield Cause(("link", "network card"), what, step, evidence=evidence)


def stated_slot_of_card(symptom: RowSymptom) -> Iterator[Cause]:
    """The slot that the text states carries less than the card's line, and the rate is what such a slot gives."""
    row, line = symptom.row, symptom.result.expected.value or 0.0
    if row.path != "network" or row.metric != "goodput" or not row.value:
        return
    for statement in symptom.posted.stated("slot"):
        if (link := slot_link(statement.value)) is not None and link.whole:
            gen, lanes = link.whole
            # A slot that is stated to carry less than the line limits whatever it is that takes more away.
            if raw_rate(gen, lanes) < line and _OF_STATED < row.value / raw_rate(gen, lanes) < 1:
                what = f"the network card's slot is {speed(gen, lanes)}, which carries less than its line"
                step = "a slot of more lanes or of a later generation: sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'"
                yield Cause(("link", "network card"), what, step, evidence=f"{statement.source} states the slot")


def shared_card(symptom: RowSymptom) -> Iterator[Cause]:
    """Flows from or to one host that get less each at once than one of them alone: they share its card's link."""
    row = symptom.row
    flows = [flow.split("->") for flow in row.how.get("flows", "").replace(" ", "").split(",")]
    one_host = len({flow[0] for flow in flows}) == 1 or len({flow[-1] for flow in flows}) == 1
    if row.path != "network" or row.metric != "goodput" or len(flows) < 2 or not one_host or "gpu" in row.flow:
        return
    alone = [other for other in symptom.better_rates() if other.how.get("flows", other.flow).count("->") == 1]
    if alone:
        what = f"the network card's link, or another that all {len(flows)} flows share, carries no more"
        step = "sudo lspci -vv | grep -A40 Ethernet | grep -E 'LnkCap:|LnkSta:'; add up the rates of all flows"
        yield Cause(("shared", "network card"), what, step, evidence=f"one alone reached {value_text(alone[0])}")


def between_switches(symptom: RowSymptom) -> Iterator[Cause]:
    """A pair of hosts on two switches has less than pairs on one: the line between the switches, or another way."""
    row = symptom.row
    if row.path != "network" or not _ACROSS.search(row.scenario):
        return
    near = [other for other in symptom.better_rates() if not _ACROSS.search(other.scenario)
            and line_of(other) == line_of(row) and other.settings == row.settings]  # fmt: skip
    if near:
        what = "the line between the switches is slow, shared or blocked (spanning tree, so that data goes elsewhere)"
        step = "ip route get ADDRESS; tracepath ADDRESS; at the switches: state of spanning tree and rate of that port"
        evidence = f"'{near[0].scenario}' reached {value_text(near[0])}"
        yield Cause(("uplink",), what, step, evidence=evidence)


def _other_memory_alike(symptom: RowSymptom) -> Observation | None:
    """A row over the same network from or to the other kind of memory, GPU or host, that is as fast or slow."""
    row = symptom.row
    others = [other.row for other in symptom.results if other.row.path == "network" and other.row.metric == row.metric]
    return next(
        (other for other in others
         if ("gpu" in other.flow) != ("gpu" in row.flow) and _far_end(other) == _far_end(row)
         and line_of(other) == line_of(row) and abs((other.value or 0.0) / (row.value or 1.0) - 1) < _ALIKE), None,
    )  # fmt: skip


def one_of_like(symptom: RowSymptom) -> Iterator[Cause]:
    """The same program is faster from another host to the same one: what differs is the host's own."""
    row, ends = symptom.row, row_devices(symptom.row)
    if row.path != "network" or "gpu" in row.flow or "," in row.flow:
        return
    like = [
        other for other in symptom.better(same_flow=False)
        if _program(other) == _program(row) and line_of(other) == line_of(row) and other.settings == row.settings
        and len(row_devices(other) & ends) == 1 and "gpu" not in other.flow and "," not in other.flow
    ]  # fmt: skip
    if like:
        host = next(iter(ends - row_devices(like[0])))
        evidence = f"{like[0].flow} reached {value_text(like[0])} with the same program"
        what = f"the program or its memory on {host} is on the socket away from its network card"
        step = "cat /sys/class/net/DEVICE/device/numa_node; run it under numactl --cpunodebind=N --membind=N"
        yield Cause(("memory",), what, step, evidence=evidence)
        what = f"the network card of {host} has a lesser slot, port or cable than that of the other"
        step = "sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; ibstat; ethtool DEVICE on both hosts"
        yield Cause(("link", host), what, step, evidence=evidence, devices=frozenset({host}))


def relaxed_ordering(symptom: RowSymptom) -> Iterator[Cause]:
    """Without relaxed ordering the writes of a network card wait for each other at the root complex."""
    row = symptom.row
    line = symptom.result.expected.value or math.inf
    if row.path == "network" and "gpu" not in row.flow and 0.15 < symptom.share < 0.8 and line > _SMALL_LINE:
        what = "PCIe relaxed ordering is off for the network card, or its link is too narrow"
        step = "mlxconfig -d DEVICE query PCI_WR_ORDERING; sudo lspci -vv | grep -E 'RlxdOrd|LnkSta'"
        yield Cause(("relaxed ordering",), what, step)


def far_socket(symptom: RowSymptom) -> Iterator[Cause]:
    """The program or its memory is on the socket away from the network card."""
    row = symptom.row
    if row.path != "network" or "gpu" in row.flow:
        return
    what = "the program or its memory is on the socket away from the network card"
    step = "cat /sys/class/net/DEVICE/device/numa_node; run it under numactl --cpunodebind=N --membind=N"
    node = row.how.get("NUMA node", "")
    near = [
        other for other in symptom.better(same_flow=True)
        if other.how.get("NUMA node", "") not in ("", node) and other.scenario == row.scenario
        and other.settings == row.settings and other.how.get("device") == row.how.get("device")
    ]  # fmt: skip
    if near:
        evidence = f"on node {near[0].how['NUMA node']} it reached {value_text(near[0])}"
        yield Cause(("memory",), what, step, evidence=evidence)
    elif 0.3 < symptom.share < 0.9 and (not node or row.how.get("tool") == "perftest"):
        yield Cause(("memory",), what, step)


def slow_drive(symptom: RowSymptom) -> Iterator[Cause]:
    """A drive read into or written from host memory: its link where half or a quarter is left, else the program."""
    row = symptom.row
    drives = sorted(end for end in row_devices(row) if not re.match(r"gpu|host|cpu", end))
    if row.path != "storage" or symptom.gpu or row.metric != "goodput" or len(drives) != 1:
        return
    drive, share = drives[0], symptom.share
    what = "the program or the kernel: few requests in flight, one thread, the page cache or an I/O scheduler"
    step = "fio --direct=1 --iodepth=32 --numjobs=4; cat /sys/block/DEVICE/queue/scheduler"
    program = Cause(("software",), what, step)
    what_link = f"the link of {drive} has fewer lanes or a lower generation than the drive"
    step = "sudo lspci -vv | grep -A40 'Non-Volatile' | grep -E 'LnkCap:|LnkSta:'"
    link = Cause(("link", drive), what_link, step, devices=frozenset({drive}))
    if (stated := downgraded_link(symptom.posted)) and list(of_downgraded_link(row, symptom.posted)):
        gen, lanes, most, source = stated
        what = f"the link of {drive} runs at {speed(gen, lanes)}, and can {speed(most, lanes)}"
        yield Cause(("link", drive), what, step, devices=frozenset({drive}), evidence=source)
    if symptom.drive is not None:
        links, predicted = lesser_drive_link(row, symptom.drive)
        if links:
            what = f"the link of {drive} runs at {speeds(links)} ({symptom.drive.title} can {_best(symptom.drive)})"
            yield Cause(("link", drive), what, step, devices=frozenset({drive}), predicted=predicted, explains=True)
    better = [other for other in symptom.better_rates() if drive in row_devices(other)]
    if better and (generation := half_of_a_link(row, max(better, key=lambda other: other.value or 0.0))):
        evidence = f"both rates are those of such a link: {generation}"
        yield Cause(("link", drive), what_link, step, devices=frozenset({drive}), evidence=evidence)
    steps = any(abs(share / part - 1) < _NEAR_STEP for part in (0.5, 0.25, 0.125))
    if (own := _drive_unlike_others(symptom, drive)) is not None and not too_short(row):
        # Of other drives with the same requests the program is no cause.
        link = replace(link, evidence=own.evidence)
        yield from (link, own, program) if steps else (own, link, program)
        return
    yield from _over_time(symptom, drive)
    yield from (program,) if better or too_short(row) else (link, program) if steps else (program, link)


def _over_time(symptom: RowSymptom, drive: str) -> Iterator[Cause]:
    """The drive itself, if the same requests of the same program were faster at another time."""
    row = symptom.row
    if of_plain_text(row):
        return  # its words say what differs
    like = [
        other for other in symptom.better(same_flow=True)
        if other.settings == row.settings and other.scenario != row.scenario
        and (row.settings or differ_in_time(row.scenario, other.scenario))
        and all(other.how.get(key) == row.how.get(key) for key in ("tool", "engine", "mode", "pattern"))
    ]  # fmt: skip
    if like:
        evidence = f"'{like[0].scenario}' reached {value_text(like[0])} with the same requests"
        what = f"{drive} itself, later on: its write cache (SLC) is full, it is hot, or its blocks are not discarded"
        step = "nvme smart-log /dev/DEVICE (temperature, percentage used); fstrim; measure again after a pause"
        yield Cause(("drive", drive), what, step, evidence=evidence, devices=frozenset({drive}))


def _drive_unlike_others(symptom: RowSymptom, drive: str) -> Cause | None:
    """The drive itself, if another drive is faster with the same requests."""
    row = symptom.row
    reads = row.flow.startswith(drive)
    like = [
        other for other in symptom.better(same_flow=False)
        if other.settings == row.settings and _program(other) == _program(row) and "gpu" not in other.flow
        and drive not in row_devices(other) and other.flow.startswith("host") is not reads
    ]  # fmt: skip
    if not like:
        return None
    evidence = f"{like[0].flow} reached {value_text(like[0])} with the same requests"
    what = f"{drive} itself: worn, hot, another model, or full of blocks that nobody discarded"
    step = "nvme list; nvme smart-log /dev/DEVICE; fstrim, or blkdiscard if it is empty; compare LnkSta of both"
    return Cause(("drive", drive), what, step, evidence=evidence, devices=frozenset({drive}))


def _best(drive: DriveAbility) -> str:
    return speed(drive.gen, drive.lanes)


def _program(row: Observation) -> str:
    """What a row was measured with, empty where figures typed in do not say."""
    return row.scenario if row.how.get("tool") != "typed in" or row.scenario != row.flow else ""


def _same_tool(row: Observation, other: Observation) -> bool:
    """Whether one tool other than a typed table measured both the same way in opposite directions."""
    tools = {each.how.get("tool", "typed in") for each in (row, other)}
    return len(tools) == 1 and row.flow != other.flow and row.settings == other.settings and "typed in" not in tools


def _far_end(row: Observation) -> frozenset[str]:
    """The other host or hosts of a row over a network; the drive of others."""
    return _far_ends(row_devices(row))


@lru_cache(maxsize=2**14)
def _far_ends(devices: frozenset[str]) -> frozenset[str]:
    return frozenset(end for end in devices if not re.match(r"gpu\d*$|host0?(?::\d+)?$", end))


NETWORK_CAUSES = (
    congestion, between_switches, bound_to_a_port, one_of_like, other_program, staged_through_host, far_apart,
    far_redirection, lesser_port, link_of_card, narrow_link_of_card, stated_slot_of_card, shared_card, one_port,
    relaxed_ordering, far_socket, slow_drive,
)  # fmt: skip
# Also where a model predicts the row: it takes GPUDirect and relaxed ordering as they should be.
NETWORK_WITH_A_MODEL = (staged_through_host, relaxed_ordering, far_apart, one_port, far_socket)
