"""Capacities of root complexes, sockets and memory on small machines, each mechanism against its closed form."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.topology.model import System
from lanewise.topology.read import read_system


def machine(devices: str, links: str) -> System:
    """A machine of these devices and links, each line as a description has it."""
    indented = ["".join(f"  {mark}{line.strip()}\n" for line in lines.strip().splitlines())
                for mark, lines in (("", devices), ("- ", links))]  # fmt: skip
    return read_system(f"lanewise: 1\nsystem: m\ndevices:\n{indented[0]}links:\n{indented[1]}", "m.yaml")


def total(system: System, flows: str, p2p: bool = True) -> float:
    return lanewise.predict(system, flows, p2p).total / 1e9


@pytest.mark.parametrize("cpu", ["rome", "milan", "genoa", "turin", "threadripper-pro-7000"])
def test_peer_writes_through_an_amd_root_complex_run_at_the_rate_of_the_gpu(cpu: str) -> None:
    system = machine(
        f"cpu0: {{cpu: {cpu}}}\n'gpu[0-1]': {{gpu: rtx-6000-ada}}", "{from: cpu0, to: 'gpu[0-1]', pcie: gen4 x16}"
    )
    prediction = lanewise.predict(system, "gpu0->gpu1")
    assert prediction.total == builtin().get("rtx-6000-ada").number("engine.p2p_write.gen4")
    assert prediction.rates[0].limit == "copy engine (peer write) of gpu0"


def test_no_capacity_is_a_planning_figure() -> None:
    capacities = [(name, key) for name in builtin().names("cpu") for key, figure in builtin().get(name).figures.items()
                  if key.startswith("peer.rate") and "planning" in figure.source]  # fmt: skip
    assert capacities == []
