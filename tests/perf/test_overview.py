"""What `lanewise predict SYSTEM` says of every kind of path."""

from collections import Counter

import pytest

import lanewise
from lanewise.errors import Unreachable
from lanewise.perf.overview import PathOverview
from lanewise.report.json import paths
from lanewise.report.text.path_overview import render_paths
from lanewise.topology.model import Kind
from lanewise.topology.read import read_system

UNKNOWN = """
lanewise: 1
system: unknown
devices: {cpu0: {cpu: null}, "gpu[0-2]": {gpu: null}}
links:
  - {from: cpu0, to: gpu0, pcie: gen4 x16}
  - {from: cpu0, to: "gpu[1-2]", pcie: auto}
"""


def counts(overview: PathOverview) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for group in overview.groups:
        total[group.source, group.target] += group.count
    return total


@pytest.mark.parametrize("name", ["rack-16gpu", "dgx-a100", "composable-server-two-hosts"])
def test_every_pair_is_in_one_group_and_has_an_interval(name: str) -> None:
    overview = lanewise.predict_paths(name)
    bound = [device for device in overview.system.of_kind(Kind.GPU) if overview.system.device(device).host]
    assert counts(overview)["GPU", "GPU"] == len(bound) * (len(bound) - 1)
    assert counts(overview)["memory", "GPU"] == counts(overview)["GPU", "memory"] == len(bound)
    for group in overview.groups:
        assert group.rate is not None
        assert group.rate.low <= group.rate.rate <= group.rate.high
        alone = lanewise.predict(overview.system, [group.flow]).rates[0]
        assert group.rate.rate == alone.rate


def test_paths_of_which_nothing_is_known_say_so() -> None:
    overview = lanewise.predict_paths(read_system(UNKNOWN, "u.yaml"))
    assert overview.missing == ()
    unknown = {(g.source, g.target): g.reason for g in overview.groups if g.rate is None}
    assert unknown["memory", "GPU"].startswith("nothing is known that would limit host0->gpu1: name the parts")
    assert "nothing is known that would limit host0->gpu1" in render_paths(overview)
    assert [row["why_unknown"] for row in paths(overview)["paths"]].count(None) == len(overview.groups) - len(unknown)


def test_ends_without_a_route_are_named() -> None:
    text = UNKNOWN.replace("cpu0: {cpu", '"cpu[0-1]": {cpu').replace(
        'cpu0, to: "gpu[1-2]", pcie: auto', 'cpu1, to: "gpu[1-2]", pcie: gen4 x8'
    )
    overview = lanewise.predict_paths(read_system(text, "u.yaml"))
    assert "GPU to GPU, 4 without a route: no inter-socket link joins cpu0 and cpu1" in overview.missing


def test_a_system_without_paths() -> None:
    with pytest.raises(Unreachable, match="has no path"):
        lanewise.predict_paths(read_system("lanewise: 1\nsystem: s\ndevices: {cpu0: {cpu: null}}\n", "s.yaml"))


PAIR = """
lanewise: 1
system: pair
hosts: [left, right]
devices:
  cpu0: {cpu: null, host: left}
  cpu1: {cpu: null, host: right}
  nic0: {nic: connectx-7-ndr200, host: left}
  nic1: {nic: connectx-7-ndr200, host: right}
links:
  - {from: "cpu[0-1]", to: "nic[0-1]", pairs: true, pcie: gen5 x16}
  - {from: nic0, to: nic1, network: 100gbe}
"""


def test_hosts_without_gpus_are_told_what_their_network_carries() -> None:
    overview = lanewise.predict_paths(read_system(PAIR, "p.yaml"))
    (network,) = (group for group in overview.groups if group.target == "memory of another host")
    assert (network.source, network.count, network.flow.src, network.flow.dst) == ("memory", 2, "left", "right")
    assert network.rate is not None
    assert network.rate.rate == pytest.approx(100e9 / 8 * 1024 / 1106)  # RoCE at Ethernet's usual MTU
    with_gpus = PAIR.replace("nic0:", '"gpu[0-1]": {gpu: l40s}\n  nic0:').replace(
        "links:", 'links:\n  - {from: "cpu[0-1]", to: "gpu[0-1]", pairs: true, pcie: auto}'
    )
    assert counts(lanewise.predict_paths(read_system(with_gpus, "p.yaml")))["memory", "memory of another host"] == 0
