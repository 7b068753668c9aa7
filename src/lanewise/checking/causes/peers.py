"""Causes of slow peer copies: the IOMMU and ACS, GPUs that hang apart, NVLinks that are not in use."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import units
from lanewise.checking.cause import Cause
from lanewise.checking.causes.contention import faster_than_pcie
from lanewise.checking.causes.gpudirect import PEER_STEP
from lanewise.checking.expectation import too_short
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.near_pairs import fastest_far_pair
from lanewise.checking.references.nvlink_counts import OF_LINKS
from lanewise.checking.references.parts import is_card
from lanewise.checking.references.rings import PEER_COPIES
from lanewise.checking.references.together import (
    alone_of_each,
    as_many_pairs,
    copies,
    fastest_alone,
    of_gpus_alone,
    of_sets_alike,
    pairs_apart,
)
from lanewise.checking.symptom import RowSymptom, is_bridged, line_of, row_devices, value_text
from lanewise.checking.verdict import Verdict, lower_is_better
from lanewise.results.observation import Observation

# A peer copy that loses this much against one through host memory goes where no peer traffic should.
FAR_BELOW = 0.6
# Pairs that share one link bring together what one of them does, to a tenth.
_AS_ONE = 0.9


def peer_redirection(symptom: RowSymptom) -> Iterator[Cause]:
    """P2P on far below P2P off: peer traffic goes up to the root complex and is translated there."""
    row = symptom.row
    if row.how.get("p2p") != "on" or not row.path.startswith("peer"):
        return
    between = [result.row for result in symptom.table.between(row_devices(row))]
    for other in between:
        same = other.flow.count("->") == row.flow.count("->") and other.metric == row.metric
        if same and other.how.get("p2p") == "off" and _far_worse(row, other):
            evidence = f"P2P on {value_text(row)}, off {value_text(other)}"
            what = "peer traffic is translated by the IOMMU in the root complex"
            yield Cause(("iommu",), what, PEER_STEP, evidence=evidence)
            what = "ACS of a bridge sends peer traffic up to the root complex"
            yield Cause(("acs",), what, PEER_STEP, evidence=evidence)
            return
    staged = any(other.how.get("p2p") == "off" for other in between)
    if not staged and symptom.share < FAR_BELOW and not _by_nvlink(symptom) and not lower_is_better(row.unit):
        what = "the IOMMU or ACS sends peer traffic up to the root complex, or translates it there"
        yield Cause(("iommu",), what, f"{PEER_STEP}; measure with P2P off to compare")


def _by_nvlink(symptom: RowSymptom) -> bool:
    """Whether NVLinks may join the GPUs of a row: of cards only if somebody states a bridge."""
    card = symptom.ability is not None and is_card(symptom.ability) and not symptom.surely_over_nvlink
    return is_bridged(symptom.row, symptom.posted) if card else symptom.over_nvlink


def _far_worse(row: Observation, other: Observation) -> bool:
    if row.value is None or other.value is None:
        return False
    return FAR_BELOW * row.value > other.value if lower_is_better(row.unit) else row.value < FAR_BELOW * other.value


def peers_off(symptom: RowSymptom) -> Iterator[Cause]:
    """Data between GPUs goes through host memory, and the same with peer copies was faster."""
    row = symptom.row
    if row.how.get("p2p") != "off":
        return
    direct = [
        other.row for other in symptom.table.between(row_devices(row))
        if other.row.flow == row.flow and other.row.metric == row.metric and other.row.how.get("p2p") == "on"
        and other.row.settings == row.settings and _far_worse(row, other.row)
    ]  # fmt: skip
    if direct:
        what = "peer copies are off: data between the GPUs goes through host memory"
        step = "nvidia-smi topo -p2p r; NCCL_P2P_LEVEL=SYS, no NCCL_P2P_DISABLE; NCCL_DEBUG=INFO must show P2P, not SHM"
        evidence = f"with them the same path reached {value_text(direct[0])}"
        yield Cause(("peers",), what, step, evidence=evidence)


def peers_unused(symptom: RowSymptom) -> Iterator[Cause]:
    """A collective far below the peer copies of its own GPUs: the library sends data through host memory.

    NCCL copies between peers up to a distance that it chooses (NCCL_P2P_LEVEL, its documentation of variables).
    """
    expected = symptom.result.expected
    if symptom.row.metric == COLLECTIVE and expected.limit.startswith(PEER_COPIES) and expected.value:
        what = "the library does not copy between peers, though the driver can: data goes through host memory"
        step = "NCCL_DEBUG=INFO must show P2P between all ranks, not SHM; NCCL_P2P_LEVEL=SYS; unset NCCL_P2P_DISABLE"
        evidence = f"{expected.limit} have {units.show(expected.value, symptom.row.display_unit, 3)}"
        yield Cause(("peers",), what, step, evidence=evidence)


def slower_hub_gpu(symptom: RowSymptom) -> Iterator[Cause]:
    """Copies of several GPUs into or out of one are slower than those of each other GPU: the links of that one."""
    row = symptom.row
    if (reference := next(of_sets_alike(row, symptom.table.rows), None)) is None:
        return
    first, *others = [frozenset(pair.split("->")) for pair in copies(row)]
    gpu = next(iter(first.intersection(*others)))
    what = f"a link or an engine of {gpu} is down, narrower or serves two of these copies"
    step = f"measure each pair of {gpu} alone: lanewise measure gpu; nvidia-smi nvlink -s; rocm-smi --showtopo"
    evidence = f"{reference.limit} reached {units.show(reference.nominal, row.display_unit, 3)}"
    yield Cause(("link", gpu), what, step, evidence=evidence, devices=frozenset({gpu}))


def both_ways_up(symptom: RowSymptom) -> Iterator[Cause]:
    """A pair that is fine one way and has half of other pairs both ways: its traffic goes up an uplink and down."""
    row, gpus, part = symptom.row, row_devices(symptom.row), symptom.ability
    if not row.path.startswith("peer") or len(gpus) != 2 or part is None or row.how.get("p2p") == "off":
        return
    ring = row.metric == COLLECTIVE
    if not ring and (row.metric != "total" or symptom.over_nvlink):
        return
    near = [other for other in symptom.better(same_flow=False) if other.flow.count("->") == row.flow.count("->")]
    near = [other for other in near if (row.value or 0.0) < FAR_BELOW * (other.value or 0.0)]
    one_way = [
        other.row for other in symptom.table.between(gpus)
        if other.row.metric == "goodput" and other.verdict is Verdict.OK
    ]  # fmt: skip
    full = bool(one_way) or (not ring and (row.value or 0.0) >= _AS_ONE * _AS_ONE * part.peer_rate())
    if near and full:
        what = "ACS of the switch above both GPUs sends their traffic up to its root port, both ways over one uplink"
        evidence = f"one way is fine, both ways of {near[0].flow} reached {value_text(near[0])}"
        yield Cause(("acs",), what, PEER_STEP, evidence=evidence)


def peers_apart(symptom: RowSymptom) -> Iterator[Cause]:
    """Two GPUs whose copies are far below those of other pairs by the same method: they are farther apart."""
    row, gpus = symptom.row, row_devices(symptom.row)
    if row.path != "peer" or len(gpus) != 2 or symptom.surely_over_nvlink or lower_is_better(row.unit):
        return
    if faster_than_pcie(row):
        return
    near = [other for other in symptom.better(same_flow=False) if other.how.get("p2p") == row.how.get("p2p")]
    near = [other for other in near if (row.value or 0.0) < FAR_BELOW * (other.value or 0.0)]
    if symptom.over_nvlink and symptom.ability is not None:
        wires = (2 if row.metric == "total" else 1) * raw_rate(symptom.ability.gen, symptom.ability.lanes)
        near = [other for other in near if (other.value or 0.0) <= wires]  # not pairs with a bridge
    if near:
        pair = " and ".join(sorted(gpus))
        what = f"{pair} hang below different root complexes or sockets, which forward little between them"
        step = "nvidia-smi topo -m shows them as SYS or NODE; NCCL_P2P_LEVEL=PHB stages their data in host memory"
        evidence = f"{near[0].flow} reached {value_text(near[0])}"
        yield Cause(("far device", *sorted(gpus)), what, step, evidence=evidence, devices=gpus)


def shared_way(symptom: RowSymptom) -> Iterator[Cause]:
    """Several copies at once that carry together far less than one of them alone: no single link is slow."""
    row, rows = symptom.row, symptom.table.rows
    if (one := alone_of_each(row, rows)) is not None and _far_worse(row, one):
        what = "the GPUs share an uplink of a switch, a root port or the host's memory, which divides among them"
        step = "nvidia-smi topo -m; measure two, four and all at once: lanewise measure gpu"
        yield Cause(("shared",), what, step, evidence=f"{one.flow} alone reached {value_text(one)}")
    alone = fastest_alone(row, rows)
    if alone is not None and row.path.startswith("peer") and _far_worse(row, alone):
        what = (
            "what these copies share forwards less at once than one copy alone: the root complexes of the CPU, to "
            "several of which one switch or GPU writes, or the uplink of a switch"
        )
        step = "nvidia-smi topo -m; pair the GPUs below one switch, or let the destination read (p2pmark shows both)"
        evidence = f"{alone.flow} alone reached {value_text(alone)}"
        yield Cause(("shared",), what, step, evidence=evidence)


def uplink_of_pairs(symptom: RowSymptom) -> Iterator[Cause]:
    """Pairs of GPUs at once that bring no more than one pair, or far less than as many others: they share a link."""
    row, rows = symptom.row, symptom.table.rows
    if len(pairs := pairs_apart(row)) < 2:
        return
    others, alone = as_many_pairs(row, rows), fastest_alone(row, rows)
    best = others if others is not None and _far_worse(row, others) else alone
    if best is not None and (best.value or 0.0) > _AS_ONE * (row.value or 0.0):
        what = "these pairs share one link: the uplink of the switch of their sources or targets, or of a socket"
        step = "nvidia-smi topo -m; sudo lspci -tv: give each pair an uplink of its own, or keep it below one switch"
        evidence = f"'{best.scenario}' ({len(copies(best))} of {len(pairs)} pairs) reached {value_text(best)}"
        if len(copies(best)) == len(pairs):
            evidence = f"as many pairs reached {value_text(best)} in '{best.scenario}'"
        yield Cause(("shared",), what, step, evidence=evidence)


def uplink_of_near_pair(symptom: RowSymptom) -> Iterator[Cause]:
    """Two GPUs below one bridge or switch that exchange less than two further apart: both use its one uplink.

    Through host memory, or sent up by ACS, data of each crosses that link twice (PCIe specification, 6.12).
    """
    best = fastest_far_pair(symptom.row, symptom.table.rows)
    if best is not None and symptom.row.how.get("p2p") == "off":
        what = "both GPUs share the uplink of their bridge or switch, which data through host memory crosses twice"
        step = (
            "nvidia-smi topo -m; use GPUs below different bridges together, or let peers copy (NCCL_P2P_DISABLE, ACS)"
        )
        yield Cause(("shared",), what, step, evidence=f"'{best.scenario}' reached {value_text(best)}", explains=True)


def uplink_of_hosts(symptom: RowSymptom) -> Iterator[Cause]:
    """Many GPUs that get little more from host memory together than one of them alone."""
    row = symptom.row
    if (reference := next(of_gpus_alone(row, symptom.table.rows), None)) is not None:
        what = "these GPUs share an uplink of a switch, a root complex, or the memory of one NUMA node"
        step = "sudo lspci -tv; numactl -H; bind each GPU's memory to its own node, spread switches over root complexes"
        reached = units.show(reference.nominal, row.display_unit, 3)
        evidence = f"{reference.limit} reached {reached}"
        if (row.value or 0.0) < reference.slow_below:
            yield Cause(("shared",), what, step, evidence=evidence)


def one_host_of_several(symptom: RowSymptom) -> Iterator[Cause]:
    """A GPU reaches other hosts faster: its own card and GPUDirect are fine, the route to that host is not."""
    row, gpu = symptom.row, symptom.gpu
    if row.path != "network" or not gpu or "," in row.flow:
        return
    like = [
        other for other in symptom.better(same_flow=False)
        if gpu in row_devices(other) and len(row_devices(other) & row_devices(row)) == 1
        and other.settings == row.settings and line_of(other) == line_of(row) and other.flow.count("->") == 1
    ]  # fmt: skip
    if like:
        host = next(iter(row_devices(row) - {gpu}))
        evidence = f"{like[0].flow} reached {value_text(like[0])}"
        what = f"the route to {host} through the network is shared with other traffic, as where static routes collide"
        step = "measure pairs of other hosts: if each of both ends is fast with others, it is the route (ibtracert)"
        yield Cause(("congestion", host), what, step, evidence=evidence)
        what = f"the card, port or cable of {host} is lesser than those of the others"
        step = "ibstat; sudo lspci -vv | grep -E 'LnkCap:|LnkSta:' on both hosts"
        yield Cause(("link", host), what, step, evidence=evidence, devices=frozenset({host}))


def nvlinks_unused(symptom: RowSymptom) -> Iterator[Cause]:
    """A pair of an NVLink board copies at a rate of PCIe."""
    row, part = symptom.row, symptom.ability
    if symptom.result.expected.limit.endswith(OF_LINKS):
        what = "the NVLinks between these GPUs are not in use, or some are down"
        step = "nvidia-smi nvlink -s; nvidia-smi topo -p2p n; NCCL_P2P_LEVEL, CUDA_VISIBLE_DEVICES"
        yield Cause(("nvlink",), what, step, evidence="the matrix shows NVLinks, the rate is none of them")
    if part is None or part.nvlink_rate is None or row.how.get("p2p") == "off":
        return
    if symptom.result.verdict is Verdict.FAST or row.path == "network":
        return
    both = 2 if row.metric == "total" else 1
    if row.path.startswith("peer") or row.metric == COLLECTIVE:
        key, what = ("nvlink",), f"the NVLinks of {part.title} are not in use, or some are down"
        step = "nvidia-smi nvlink -s; nvidia-smi topo -m; systemctl status nvidia-fabricmanager"
        if part.has_xgmi:
            key, what = ("peers",), f"the xGMI links between {part.title} are not in use, or some are down"
            step = "rocm-smi --showtopo; amd-smi xgmi; NCCL_DEBUG=INFO must show P2P between all ranks, not SHM"
        pcie = both * part.peer_rate()
        below = 0.1 * pcie < (row.value or 0.0) <= 1.05 * pcie and not too_short(row)
        one_host = row.settings.get("hosts", 1) == 1  # between hosts a network is as slow
        linked = part.all_linked or is_bridged(row, symptom.posted)
        evidence = "the rate is one of PCIe" if below and linked and one_host else ""
        yield Cause(key, what, step, evidence=evidence)
