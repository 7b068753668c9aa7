"""Causes of slow rows between a GPU and a network card or drive: the way between them, and host memory in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.causes.ports import crosses_a_link
from lanewise.checking.symptom import RowSymptom, far_ends, line_of, program_of, row_devices, value_text
from lanewise.results.conditions import PairState
from lanewise.results.observation import Observation
from lanewise.results.posted import GPU_TO_CARD
from lanewise.routes.classify import NEAR_TO_FAR, PIX, PXB

PEER_STEP = "sudo lspci -vvv | grep -A1 ACSCtl; cat /sys/kernel/iommu_groups/*/type; boot with iommu=pt, ACS off"
_TOPO_STEP = "nvidia-smi topo -m: choose a pair of class PIX or PXB, and bind the process to that NUMA node"
# Writes into a GPU that are this many times faster than reads of it cross a root complex.
_READS_WAIT = 1.4


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
        near = [other for other in near if "gpu" in other.flow and far_ends(other) == far_ends(row)]
        # Of this GPU's own rows those over fewer cards: the added ones are far.
        near = [other for other in near if gpu not in row_devices(other) or line_of(other) != line_of(row)]
    evidence = f"{near[0].flow} reached {value_text(near[0])}" if near else ""
    if pair := _pair(symptom):
        if pair.cls in (PIX, PXB):
            return
        evidence = f"{gpu} and {row.how['device']} are {pair.cls} ({pair.source}){_nearer_cards(symptom, pair)}"
    elif row.path == "network" and (stated := symptom.posted.stated(GPU_TO_CARD)):
        if stated[0].value in (PIX, PXB):
            return
        evidence = f"they are {stated[0].value} ({stated[0].source})"
    yield Cause(("far device", gpu), what, _TOPO_STEP, evidence=evidence, devices=frozenset({gpu}))


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
        and line_of(other) == line_of(row) and program_of(other) == program_of(row)
    ]  # fmt: skip
    return next((other for other in back if (other.value or 0.0) > _READS_WAIT * (row.value or 0.0)), None)
