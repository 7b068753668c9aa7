"""What is written reads back as the same system."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from topology.made_systems import SYSTEMS
from topology.system_facts import facts

from lanewise.api.loading import load_system
from lanewise.errors import LanewiseError
from lanewise.topology.model import Kind, Link, LinkKind, System
from lanewise.topology.read import read_system
from lanewise.topology.speeds import read_positive, write_quantity
from lanewise.topology.write import write_system


@given(SYSTEMS)
def test_random_systems_read_back_as_themselves(system: System) -> None:
    assert facts(read_system(write_system(system), "w.yaml")) == facts(system)


@given(SYSTEMS, st.data())
def test_any_host_and_numa_node_survive(system: System, data: st.DataObject) -> None:
    # As a discovered or composed system may have them, whatever the cables suggest.
    hosts = st.sampled_from([None, *system.hosts])
    devices = {
        name: device
        if device.kind is not Kind.SWITCH
        else replace(device, host=data.draw(hosts), numa=data.draw(st.none() | st.integers(0, 3)))
        for name, device in system.devices.items()
    }
    changed = replace(system, devices=devices)
    assert facts(read_system(write_system(changed), "w.yaml")) == facts(changed)


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=60),
    st.lists(st.sampled_from(["off", "null", "1:30", "+0", "{x}", "a: b", "- c", "'q'", "#d", "1e3"]), max_size=4),
)
def test_any_words_survive(title: str, assumptions: list[str]) -> None:
    system = replace(load_system("h200-pair"), title=title, source=title, assumptions=tuple(assumptions))
    assert facts(read_system(write_system(system), "w.yaml")) == facts(system)


@given(st.floats(1e-12, 1e18), st.sampled_from(["B", "B/s", "m"]))
def test_quantities_are_exact(value: float, unit: str) -> None:
    assert read_positive(write_quantity(value, unit), unit) == value


def test_a_system_is_written_as_a_person_would() -> None:
    assert write_system(load_system("pax-storage-fabric")) == snapshot("""\
lanewise: 1
system: pax-storage-fabric
title: NVMe volumes to GPU memory over a PAX fabric
source: '''Accelerating NVMe to GPU Transfer Rates Using PCIe Fabrics and Logical Volumes'', Flash Memory Summit'
parameters:
  cross_domain: {default: 1, values: [0, 1], help: 1 lets peers of the two domains meet in the fabric}
settings: {cross_domain: 1}
devices:
  cpu[0-1]: {cpu: skylake-sp}
  pax[0-1]: {switch: pax-gen4}
  gpu[0-1]: {gpu: t4}
  roc0: {raid: smartroc-3200}
  ssd[0-8]: {ssd: nvme-gen3-x4-3.5}
links:
- {from: cpu0, to: cpu1, socket: 2}
- {from: cpu0, to: pax0, pcie: gen3 x16}
- {from: cpu1, to: pax1, pcie: gen3 x16}
- {from: pax0, to: pax1, fabric: gen4 x16}
- {from: pax0, to: 'gpu[0-1]', pcie: gen3 x16}
- {from: pax1, to: roc0, pcie: gen4 x16}
- {from: pax1, to: 'ssd[0-8]', pcie: gen3 x4}
domains:
  d0: {root: cpu0, devices: 'gpu[0-1]'}
  d1: {root: cpu1, devices: [roc0, 'ssd[0-8]']}
volumes:
  vol0: {raid: 0, drives: 'ssd[1-4]', controller: roc0}
  vol1: {raid: 0, drives: 'ssd[5-8]', controller: roc0}
policies:
  cross_domain_p2p: true
assumptions:
- host links and fabric link are x16; the talk gives no widths
- RAID 0; the talk gives no level
- the drives hang at the second switch, and their data does not pass through the controller
- two UPI links between the sockets
""")


def test_a_written_system_says_that_its_parameters_are_fixed() -> None:
    text = write_system(load_system("composable-server-gen4", {"path": 4}))
    assert read_system(text, "w.yaml", {"path": 4}).settings["path"] == 4
    with pytest.raises(LanewiseError, match="written out with path = 4"):
        read_system(text, "w.yaml", {"path": 1})


def test_unknown_speeds_stay_unknown() -> None:
    system = load_system("h200-pair")
    bare = replace(system, links=(Link("cpu0", "gpu0", LinkKind.PCIE, port="rp7", bridge="x"), *system.links[1:]))
    assert facts(read_system(write_system(bare), "w.yaml")) == facts(bare)


def test_a_name_that_the_format_cannot_hold_is_refused() -> None:
    system = load_system("h200-pair")
    odd = replace(system, devices={**system.devices, "a b": replace(system.device("nvs"), name="a b")})
    with pytest.raises(LanewiseError, match="cannot be a name"):
        write_system(odd)
