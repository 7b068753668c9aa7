"""Settings of a host that a description may state: the socket of staging buffers, the links between sockets."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.errors import InputError
from lanewise.perf.flow import Flow
from lanewise.perf.flow_demand import flow_demand
from lanewise.routes.find import route
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

MACHINE = """
lanewise: 1
system: staged
devices:
  "cpu[0-1]": {cpu: milan}
  "gpu[0-3]": {gpu: a100-sxm-80gb}
  "sw[0-1]": {switch: null}
links:
  - {from: cpu0, to: cpu1, socket: 3%s}
  - {from: "cpu[0-1]", to: "sw[0-1]", pairs: true, pcie: gen4 x16}
  - {from: "sw[0-1]", to: "gpu[0-3]", pairs: true, pcie: gen4 x16}
policies: {staging: %s}
"""


def test_copies_staged_in_the_memory_of_the_far_socket_share_what_its_root_port_gets_of_it() -> None:
    # 25 GB/s both ways together, so half of it for each stage, less the gap between chunks. Measured below one switch
    # of the second socket: 10.7 GB/s (a100-distserve), 17.1 on the first.
    rates = {}
    for cpu in ("cpu0", "cpu1"):
        system = read_system(MACHINE % ("", cpu), "s.yaml")
        assert [stage.dst for stage in route(system, "gpu2", "gpu3", p2p=False).stages] == [cpu, "gpu3"]
        rates[cpu] = [lanewise.predict(system, pair, p2p=False).total for pair in ("gpu0->gpu1", "gpu2->gpu3")]
        assert read_system(write_system(system), "s.yaml").policies.staging == {"host0": cpu}
    assert rates["cpu0"] == pytest.approx(rates["cpu1"][::-1])
    assert rates["cpu0"][1] == pytest.approx(1 / (2 / 25e9 + 8e-12), rel=0.01)
    assert rates["cpu0"][0] > 1.4 * rates["cpu0"][1]


def test_one_cpu_of_a_host_has_the_staging_buffers() -> None:
    with pytest.raises(InputError, match="'cpu0' and 'cpu1' of one host cannot both have the staging buffers"):
        read_system(MACHINE % ("", '"cpu[0-1]"'), "s.yaml")


def test_links_between_sockets_that_are_set_narrower_carry_less_with_a_narrower_range() -> None:
    # Three xGMI links: 3 x 16 lanes x 18 GT/s / 8 = 108 GB/s, of which 0.70 is data; set to x8 half of that.
    totals = []
    for rate in (", rate: 108 GB/s", ", rate: 54 GB/s", ""):
        system = read_system(MACHINE % (rate, "cpu0"), "s.yaml")
        (link,) = (each for each in flow_demand(system, Flow("cpu0", "gpu2")).per_byte if "xgmi x3" in each.name)
        totals.append((link.capacity, link.high - link.low))
    assert totals[0][0] == pytest.approx(0.70 * 108e9)
    assert totals[1][0] == pytest.approx(0.70 * 54e9)
    assert totals[0] == pytest.approx(totals[2])
