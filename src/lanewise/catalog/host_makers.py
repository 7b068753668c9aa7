"""Who made the CPUs of machines that figures of GPUs were measured on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from lanewise import package_data
from lanewise.catalog.model import Figure
from lanewise.yaml_loader import load

MAKERS = ("AMD", "Intel")


@cache
def cpu_makers() -> Mapping[str, str]:
    """Machine -> AMD or Intel, of those whose CPUs their sources name."""
    makers: Mapping[str, list[str]] = load(*package_data.text("hosts", "cpu_makers", "list of makers")).root.value
    return {machine: maker for maker, machines in makers.items() for machine in machines}


def values_by_maker(figure: Figure) -> list[tuple[str, float]]:
    """What a figure's machines showed, each with the maker of its CPUs: AMD or Intel; machines of others left out."""
    alone = [(name, figure.value) for name in figure.machines] if len(figure.machines) == 1 else []
    pairs = [*figure.measured, *figure.measured_shared] or alone
    makers = cpu_makers()
    return [(makers[name], value) for name, value in pairs if name in makers and isinstance(value, float)]
