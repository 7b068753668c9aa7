"""Capacities of this machine by class, where measurements tell them: what one device shows holds for those like it.

A class is what the model takes for the same thing at every place of a machine: the copy engines of equal GPUs, the
memory of its sockets, the gap of staged copies, all by the source that they rest on; beside opposite traffic each is a
class of its own. `System.measured` has the factors, of which `perf.host_calibration` finds the most likely ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from lanewise.perf.resources import Resource
from lanewise.perf.uncertainty import RANGES
from lanewise.topology.model import System

CapacityClass: TypeAlias = tuple[str, ...]
BESIDE = "beside the other direction"
MEASURED = "; measured on this machine: "


def class_of_resource(resource: Resource) -> CapacityClass:
    """The class of a capacity: links by their speed, everything else by kind and source."""
    source = resource.rests_on.partition(MEASURED)[0]
    what = resource.name[resource.name.find("(") :] if resource.kind == "link" else source
    return (resource.kind, what, *([BESIDE] if resource.beside else []))


def as_measured(system: System, resource: Resource) -> Resource:
    """The same with its measured capacity and the range of a measured figure, or with what it carried at least."""
    factor = system.measured.get(class_of_resource(resource)) if system.measured else None
    if factor is None:
        return resource
    if not factor.rests_on:
        return replace(resource, low=max(resource.low, min(factor.least, resource.capacity)))
    rests_on = f"{resource.rests_on.partition(MEASURED)[0]}{MEASURED}{factor.rests_on}"
    capacity = resource.capacity * factor.factor
    measured = replace(resource, capacity=capacity, basis="calibrated", rests_on=rests_on, doubt="")
    return measured.within(RANGES["calibrated"])
