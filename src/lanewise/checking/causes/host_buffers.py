"""Causes of slow copies of host memory: channels left empty, and buffers on another NUMA node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.checking import changes
from lanewise.checking.cause import Cause
from lanewise.checking.causes.host_memory import MEMORY_STEP
from lanewise.topology.model import Kind

if TYPE_CHECKING:
    from lanewise.checking.causes.modelled_symptom import Symptom

# How much of its channels a socket has filled where not all are: servers of 8 and 12 take 6, 4 or 2 of 8 and 8, 6 or 4
# of 12 (memory population rules in Dell's and Supermicro's manuals), desktops 1 of 2.
_FILLED = {"a quarter": 3 / 4, "a third": 2 / 3, "half": 1 / 2, "three quarters": 1 / 4}


def empty_channels(symptom: Symptom) -> Iterator[Cause]:
    """Memory channels of the socket that are empty: the share that comes nearest to the row."""
    copy, system, value = symptom.host_copy(), symptom.model.system, symptom.row.value
    if copy is None or value is None:
        return
    host, device, node = copy
    for cpu in sorted(cpu for cpu in system.of_kind(Kind.CPU) if node in (None, *(system.numa_nodes(cpu) or (0,)))):
        part = system.part(cpu)
        rate = part.number("memory.rate") if part is not None else None
        if part is None or rate is None or system.devices[cpu].host != host:
            continue
        tried = {empty: changes.memory_rate(part, filled * rate) for empty, filled in _FILLED.items()}
        rates = {empty: symptom.model.value(symptom.row, change) for empty, change in tried.items()}
        empty = min(tried, key=lambda empty: abs((rates[empty] or 0.0) - value))
        what = f"{empty} of the memory channels of {cpu} are empty (described with {units.show(rate, 'GB/s')})"
        key = ("memory channels", cpu)
        yield Cause(key, what, MEMORY_STEP, change=tried[empty], devices=frozenset({device}))


def far_buffers(symptom: Symptom) -> Iterator[Cause]:
    """The host buffer on another NUMA node."""
    copy, system = symptom.host_copy(), symptom.model.system
    if copy is None or re.search(r"\d", symptom.row.how.get("NUMA node", "")):  # it is known where
        return
    _, device, near = copy
    for node in sorted({node for cpu in system.of_kind(Kind.CPU) for node in system.numa_nodes(cpu) or (0,)}):
        what = f"the host buffer lay on NUMA node {node}, away from the device"
        step = f"run it under numactl --membind={near}, or lanewise measure gpu --flows 'host:{near}->{device}'"
        change = changes.host_memory_on(node, device)
        yield Cause(("far NUMA node", str(node)), what, step, change=change, devices=frozenset({device}))
