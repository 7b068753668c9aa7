"""How wrong links are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from inline_snapshot import snapshot

Shown = Callable[..., str]


def test_a_link_to_a_device_that_does_not_exist(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu7, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: unknown device 'gpu7'
hint:  did you mean gpu1 or gpu0 or cpu0?\
""")


def test_a_device_linked_to_itself(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: sw0, to: sw0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'sw0' is linked to itself
hint:  name two devices; a range all with all, as GPUs of a bridge over four cards, is mesh: 'gpu[0-3]'\
""")


def test_a_gpu_without_a_link(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: 'gpu1' has no link
hint:  add a link, such as {from: cpu0, to: gpu1, pcie: auto}\
""")


def test_a_link_without_a_speed(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: the link says no speed
hint:  state one of pcie, fabric, socket, nvlink, network, such as pcie: gen4 x16\
""")


def test_a_link_with_two_speeds(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, pcie: auto, nvlink: 2}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: the link has both pcie and nvlink
hint:  state one of pcie, fabric, socket, nvlink, network, such as pcie: gen4 x16\
""")


def test_a_link_that_joins_nothing(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: the link does not say what it joins
hint:  state one of chain, from, mesh, such as from: cpu0, to: gpu0\
""")


def test_a_link_with_one_end(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'from' and 'to' go together
hint:  write from: cpu0, to: gpu0\
""")


def test_pairs_of_unequal_ranges(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: "gpu[0-1]", to: sw0, pairs: true, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: pairs need as many ends below as above, or a multiple of it: 2 and 1
hint:  make the ranges equal, or write one link for each end above\
""")


def test_pairs_in_a_chain(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {chain: [cpu0, gpu0], pairs: true, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'pairs' goes with 'from' and 'to'
hint:  write from: 'a[0-3]', to: 'b[0-3]', pairs: true\
""")


def test_a_socket_link_to_a_gpu(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, socket: 2}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: a socket link cannot end at 'gpu0', a gpu
hint:  socket: joins two CPUs\
""")


def test_a_fabric_link_to_a_gpu(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: sw0, to: gpu0, fabric: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: a fabric link cannot end at 'gpu0', a gpu
hint:  fabric: joins two switches; elsewhere write pcie:\
""")


def test_a_pcie_link_between_endpoints(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'gpu0' and 'gpu1' are both endpoints
hint:  put a switch or a CPU between them\
""")


def test_a_pcie_link_between_cpus(refused: Shown) -> None:
    body = """\
devices: {"cpu[0-1]": {cpu: null}}
links:
  - {from: cpu0, to: cpu1, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'cpu0' and 'cpu1' are both CPUs
hint:  join CPUs with socket:\
""")


def test_a_socket_link_between_hosts(refused: Shown) -> None:
    body = """\
hosts: [a, b]
devices:
  cpu0: {cpu: null, host: a}
  cpu1: {cpu: null, host: b}
links:
  - {from: cpu0, to: cpu1, socket: 1}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: 'cpu0' is in a and 'cpu1' in b: no socket link joins them
hint:  join hosts with network: or fabric:\
""")


def test_a_port_away_from_a_cpu(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {from: sw0, to: sw1, pcie: auto, port: rp0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: 'sw0' to 'sw1' has no root port
hint:  port: and bridge: go with a PCIe link at a CPU; take them out\
""")


def test_one_root_port_with_two_links(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto, port: rp0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: root port 'rp0' of cpu0 has two links
hint:  a root port has one link; leave port: out to have them numbered\
""")


def test_a_pcie_circle(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {chain: [cpu0, sw0, sw1, cpu0], pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: PCIe links run in a circle: sw1 - sw0 - cpu0 - sw1
hint:  plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch\
""")


def test_two_cables_between_two_switches(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {chain: [cpu0, sw0, sw1], pcie: auto}
  - {chain: [sw0, sw1], pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: PCIe links run in a circle: sw0 - sw1 - sw0
hint:  write a switch for each uplink, and if 'sw1' joins them inside: fabric: gen5 x16, rate: 252 GB/s\
""")


def test_a_switch_with_two_uplinks_closes_no_loop_but_one_below_another_does(refused: Shown) -> None:
    body = """\
devices: {"cpu[0-1]": {cpu: null}, "sw[0-1]": {switch: null}}
links:
  - {from: "cpu[0-1]", to: sw0, pcie: auto}
  - {chain: [cpu1, sw1, sw0], pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: PCIe links join two root ports: cpu0 - sw0 - sw1 - cpu1
hint:  plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch\
""")


@pytest.mark.parametrize("word", ["many", "?x", "none"])
def test_a_number_of_socket_links_that_is_a_word(refused: Shown, word: str) -> None:
    body = f"""\
devices: {{"cpu[0-1]": {{cpu: null}}}}
links: [{{from: cpu0, to: cpu1, socket: "{word}"}}]
"""
    assert f"'{word}' is not a number of links\nhint:  write socket: 3, auto to follow the parts" in refused(body)
    assert "or '?' where nobody knows" in refused(body)
