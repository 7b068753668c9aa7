"""Causes of slow copies between host memory and a GPU: the kind of memory, where it lies, the GPU's slot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.causes.commonest import PINNED_TOOLS
from lanewise.checking.causes.contention import (
    back_is_fine,
    busy_cores,
    memory_in_use,
)
from lanewise.checking.named.abilities import is_coherent
from lanewise.checking.named.hosts import one_memory
from lanewise.checking.references.host_nodes import STATED_NODE, without_nodes
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.references.parts import LEAST_RATE
from lanewise.checking.symptom import RowSymptom, first_gpu, name_of_any, value_text
from lanewise.checking.verdict import Verdict
from lanewise.results.observation import Observation

# Copies of pageable memory reach at least this share of the link.
PAGEABLE_SHARE = 0.1
_LINK_COLUMNS = "index,name,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"
# Words of a row's name that say where its memory lies.
_OF_A_NODE = re.compile(r"\b(numa|sockets?|numactl|membind)\b", re.IGNORECASE)
# Tools whose rows have the node of the numactl command above them.
_BOUND_BY_COMMAND = ("nvbandwidth", "bandwidthTest")


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
    if PAGEABLE_SHARE < symptom.share < 0.7:
        yield Cause(("pageable",), what, step)


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


def far_memory(symptom: RowSymptom) -> Iterator[Cause]:
    """The host buffer on a NUMA node away from the GPU."""
    row = symptom.row
    if (near := _from_another_node(symptom)) is not None:
        what = f"the host memory lies on a NUMA node away from {symptom.gpu or 'the GPU'}"
        step = "bind the program and its memory to the GPU's NUMA node: numactl --cpunodebind=N --membind=N"
        yield Cause(("far NUMA node",), what, step, evidence=f"{near.flow} reached {value_text(near)}")
        return
    if (other := _with_memory_of_another_node(symptom)) is not None:
        node = f"NUMA node {row.how['NUMA node']}" if row.how.get("NUMA node") else "a NUMA node"
        what = f"the host memory lies on {node} away from {symptom.gpu or 'the GPU'}"
        step = f"bind the program and its memory: numactl -N {other.how['NUMA node']} -m {other.how['NUMA node']}"
        evidence = f"with memory of node {other.how['NUMA node']} it reached {value_text(other)}"
        yield Cause(("far NUMA node",), what, step, evidence=evidence)
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
        yield Cause(("far NUMA node",), what, step, evidence=evidence)


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


def slower_gpu_than_another(symptom: RowSymptom) -> Iterator[Cause]:
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
