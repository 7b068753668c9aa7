"""What GPUs read of host memory, by who made its CPU."""

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.catalog.host_makers import MAKERS, cpu_makers, values_by_maker
from lanewise.evidence.reading import ready_machine
from lanewise.perf.host_reads import read_factor
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system

AMD, INTEL = "EPYC 9575F", "Xeon Platinum 8568Y+"


def machine(gpu: str, cpu: str | None) -> System:
    """One GPU at a port of a CPU, named or not."""
    return read_system(
        f"lanewise: 1\nsystem: s\ndevices:\n  cpu0: {{cpu: {cpu or 'null'}}}\n  gpu0: {{gpu: {gpu}}}\n"
        "links:\n  - {from: cpu0, to: gpu0, pcie: auto}\n",
        "s.yaml",
    )


def rate(gpu: str, cpu: str | None, flow: str = "host0->gpu0") -> float:
    return lanewise.predict(machine(gpu, cpu), flow).total


@pytest.mark.parametrize("gpu", ["b300", "h200-sxm", "b200", "rtx-6000d"])
def test_hosts_of_amd_are_read_faster_and_written_alike(gpu: str) -> None:
    # b300 and h200-sxm were measured at both, b200 at AMD's alone, rtx-6000d at a host that nobody named.
    amd, intel = rate(gpu, AMD), rate(gpu, INTEL)
    assert intel / amd == pytest.approx(1.0 if gpu == "rtx-6000d" else 0.965, abs=0.005)
    assert rate(gpu, AMD, "gpu0->host0") == rate(gpu, INTEL, "gpu0->host0")


def test_each_maker_gets_what_its_machines_showed() -> None:
    figure = builtin().get("b300").figure("engine.h2d.gen5")
    own = {maker: [value for name, value in values_by_maker(figure) if name == maker] for maker in MAKERS}
    assert min(own["AMD"]) > max(own["Intel"])
    for maker, cpu in (("AMD", AMD), ("Intel", INTEL)):
        assert min(own[maker]) * 0.995 <= rate("b300", cpu) <= max(own[maker]) * 1.005


def test_a_typical_figure_is_that_of_such_hosts() -> None:
    assert builtin().get("rtx-4080").figure("engine.h2d.gen4").value is None
    assert rate("rtx-4080", INTEL) < rate("rtx-4080", None) < rate("rtx-4080", AMD)


def test_nothing_is_told_of_a_host_that_is_not_named_or_of_another_maker() -> None:
    system = machine("b300", AMD)
    gpu = builtin().get("b300")
    assert read_factor(system, gpu, 5, None) == 1
    assert read_factor(system, gpu, 5, builtin().get("grace")) == 1
    assert read_factor(system, builtin().get("h800-sxm"), 5, builtin().get("turin")) == 1  # its host is not named


def test_makers_are_those_of_the_machines_own_descriptions() -> None:
    keys = [f"engine.h2d.gen{gen}" for gen in (3, 4, 5)]
    figures = [part.figure(key) for part in builtin().parts.values() if part.kind == "gpu" for key in keys]
    for name in {machine for figure in figures for machine in figure.machines}:
        system = ready_machine(name).system(builtin())
        parts = [system.part(cpu) for cpu in system.of_kind(Kind.CPU)]
        makers = {part.title.partition(" ")[0] for part in parts if part is not None}
        assert {cpu_makers().get(name)} - {None} == makers & set(MAKERS), name
