"""Causes of slow rows over a network: the program, its sockets, the lines between switches, too many senders."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.causes.card_links import (
    SMALL_LINE,
    link_of_card,
    narrow_link_of_card,
    shared_card,
    stated_slot_of_card,
)
from lanewise.checking.causes.drives import slow_drive
from lanewise.checking.causes.gpudirect import far_apart, far_redirection, staged_through_host
from lanewise.checking.causes.ports import OF_PERFTEST, bound_to_a_port, lesser_port, one_port
from lanewise.checking.named.abilities import shares_host_memory
from lanewise.checking.symptom import RowSymptom, far_ends, line_of, program_of, row_devices, value_text
from lanewise.results.observation import Observation

_PROGRAM_STEP = (
    "compare with ib_write_bw -q 4, or iperf with several threads and connections; "
    "NCCL_DEBUG=INFO and UCX_LOG_LEVEL=info say which cards are in use"
)
# A line between switches; spanning tree lets nothing pass a port that it blocks (IEEE 802.1Q).
_ACROSS = re.compile(
    r"\b(?:across|between|over|two|other|another|different|cross|inter)[ -](?:(?:the|two|leaf|tor) )*"
    r"(?:switch(?:es)?|racks?)\b", re.IGNORECASE,
)  # fmt: skip


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
    faster = [other for other in symptom.better_rates() if far_ends(other) == far_ends(row)]
    faster = [other for other in faster if program_of(other) != program_of(row) and line_of(other) == line_of(row)
              and not _same_tool(other, row) and not _other_memory(other, row)]  # fmt: skip
    if faster and program_of(row) and program_of(faster[0]):
        what = f"{what}, or it uses other cards or ports than '{program_of(faster[0])}'"
        evidence = f"'{program_of(faster[0])}' reached {value_text(faster[0])} over the same network"
        yield Cause(("software",), what, _PROGRAM_STEP, evidence=evidence)
    elif own_memory and not row.how.get("tool", "").startswith("perftest") and not OF_PERFTEST.search(row.scenario):
        yield Cause(("software",), what, _PROGRAM_STEP)


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


def slower_host_than_another(symptom: RowSymptom) -> Iterator[Cause]:
    """The same program is faster from another host to the same one: what differs is the host's own."""
    row, ends = symptom.row, row_devices(symptom.row)
    if row.path != "network" or "gpu" in row.flow or "," in row.flow:
        return
    like = [
        other for other in symptom.better(same_flow=False)
        if program_of(other) == program_of(row) and line_of(other) == line_of(row) and other.settings == row.settings
        and len(row_devices(other) & ends) == 1 and "gpu" not in other.flow and "," not in other.flow
    ]  # fmt: skip
    if like:
        host = next(iter(ends - row_devices(like[0])))
        evidence = f"{like[0].flow} reached {value_text(like[0])} with the same program"
        what = f"the program or its memory on {host} is on the socket away from its network card"
        step = "cat /sys/class/net/DEVICE/device/numa_node; run it under numactl --cpunodebind=N --membind=N"
        yield Cause(("far NUMA node",), what, step, evidence=evidence)
        what = f"the network card of {host} has a lesser slot, port or cable than that of the other"
        step = "sudo lspci -vv | grep -E 'LnkCap:|LnkSta:'; ibstat; ethtool DEVICE on both hosts"
        yield Cause(("link", host), what, step, evidence=evidence, devices=frozenset({host}))


def relaxed_ordering(symptom: RowSymptom) -> Iterator[Cause]:
    """Without relaxed ordering the writes of a network card wait for each other at the root complex."""
    row = symptom.row
    line = symptom.result.expected.value or math.inf
    if row.path == "network" and "gpu" not in row.flow and 0.15 < symptom.share < 0.8 and line > SMALL_LINE:
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
        yield Cause(("far NUMA node",), what, step, evidence=evidence)
    elif 0.3 < symptom.share < 0.9 and (not node or row.how.get("tool") == "perftest"):
        yield Cause(("far NUMA node",), what, step)


def _same_tool(row: Observation, other: Observation) -> bool:
    """Whether one tool other than a typed table measured both the same way in opposite directions."""
    tools = {each.how.get("tool", "typed in") for each in (row, other)}
    return len(tools) == 1 and row.flow != other.flow and row.settings == other.settings and "typed in" not in tools


def _other_memory(row: Observation, other: Observation) -> bool:
    """Whether one program, by the first word of both names, measured memory of a GPU and of a host."""
    programs = {each.scenario.partition(" ")[0].rstrip(",:") for each in (row, other)}
    return len(programs) == 1 and ("gpu" in row.flow) is not ("gpu" in other.flow)


NETWORK_CAUSES = (
    congestion, between_switches, bound_to_a_port, slower_host_than_another, other_program, staged_through_host,
    far_apart, far_redirection, lesser_port, link_of_card, narrow_link_of_card, stated_slot_of_card, shared_card,
    one_port, relaxed_ordering, far_socket, slow_drive,
)  # fmt: skip
# Also where a model predicts the row: it takes GPUDirect and relaxed ordering as they should be.
NETWORK_WITH_A_MODEL = (staged_through_host, relaxed_ordering, far_apart, one_port, far_socket)
