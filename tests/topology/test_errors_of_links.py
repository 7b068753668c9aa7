"""How wrong links are refused."""

from __future__ import annotations

from collections.abc import Callable

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
hint:  name two devices\
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
error: s.yaml:5: pairs need as many ends above as below: 2 and 1
hint:  make the ranges equal\
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


def test_no_lanes(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, pcie: x0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: a PCIe link cannot have 0 lanes
hint:  lanes are 1, 2, 4, 8, 16\
""")


def test_a_generation_that_does_not_exist(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, pcie: gen9 x16}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: there is no PCIe Gen9
hint:  generations are 1 to 6\
""")


def test_words_that_are_no_speed(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: gpu0, pcie: fast}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'fast' is not a PCIe speed
hint:  write 'gen4 x16', 'gen4', 'x8' or 'auto'; gen? and x? say unknown\
""")


def test_a_network_that_does_not_exist(refused: Shown) -> None:
    body = """\
devices: {n0: {nic: null}, n1: {nic: null}}
links:
  - {from: n0, to: n1, network: hdd}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: unknown network 'hdd'
hint:  did you mean hdr?\
""")


def test_a_rate_of_zero(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: 1, rate: 0 GB/s}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: '0 GB/s' must be more than zero
hint:  leave it out if it is unknown\
""")


def test_a_rate_in_the_wrong_unit(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: 1, rate: 5 ms}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: '5 ms' is in ms, which is not a kind of B/s
hint:  for example '25.1 GB/s'\
""")


def test_no_nvlinks(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: 0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: a link of 0 NVLinks is none
hint:  take the link out, or write 1 or more\
""")


def test_nvlinks_that_the_parts_do_not_count(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: the parts do not say how many NVLinks they have
hint:  write nvlink: <number>\
""")


def test_a_generation_above_the_part(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: sapphire-rapids}
  gpu0: {gpu: l40s}
links:
  - {from: cpu0, to: gpu0, pcie: gen5 x16}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: l40s is Gen4; the link cannot be Gen5
hint:  write gen4, or leave it out: it then follows the parts\
""")


def test_more_lanes_than_the_part(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: skylake-sp}
  ssd0: {ssd: micron-9300}
links:
  - {from: cpu0, to: ssd0, pcie: x8}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: micron-9300 is x4; the link cannot be x8
hint:  write x4, or leave it out: it then follows the parts\
""")


def test_more_lanes_than_the_socket(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: ivy-bridge-ep}
  "gpu[0-2]": {gpu: k40}
links:
  - {from: cpu0, to: "gpu[0-2]", pcie: gen3 x16}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: 'cpu0' (ivy-bridge-ep) has 40 PCIe lanes; its links need 48
hint:  use fewer or narrower links at 'cpu0'\
""")


def test_more_nvlinks_than_the_gpu(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0-2]": {gpu: a100-sxm-80gb}
links:
  - {mesh: "gpu[0-2]", nvlink: 8}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: 'gpu0' (a100-sxm-80gb) has 12 NVLinks; its links need 16
hint:  use fewer links at 'gpu0'
also:  s.yaml:6: 'gpu1' (a100-sxm-80gb) has 12 NVLinks; its links need 16
also:  s.yaml:6: 'gpu2' (a100-sxm-80gb) has 12 NVLinks; its links need 16\
""")


def test_more_nvlinks_on_one_link_than_the_gpu(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0-1]": {gpu: a100-sxm-80gb}
links:
  - {mesh: "gpu[0-1]", nvlink: 18}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:6: a100-sxm-80gb has 12 NVLinks; the link cannot bond 18
hint:  write 12 or less\
""")


def test_more_network_ports_than_the_card(refused: Shown) -> None:
    body = """\
devices:
  n0: {nic: connectx-6-hdr}
  "s[0-1]": {netswitch: null}
links:
  - {from: n0, to: "s[0-1]", network: hdr}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: 'n0' (connectx-6-hdr) has 1 network port(s); its links need 2
hint:  use fewer links at 'n0'\
""")


def test_a_network_faster_than_the_card(refused: Shown) -> None:
    body = """\
devices:
  n0: {nic: connectx-6-hdr}
  s0: {netswitch: null}
links:
  - {from: n0, to: s0, network: ndr}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: a port of connectx-6-hdr does 200.0 Gb/s; the link cannot be 400.0 Gb/s
hint:  write network: auto to follow the parts\
""")


def test_a_rate_stated_twice(refused: Shown) -> None:
    body = """\
devices:
  n0: {nic: null}
  s0: {netswitch: null}
links:
  - {from: n0, to: s0, network: ndr, rate: 1 GB/s}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: the link states its rate twice
hint:  write network: auto, or take out rate:\
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


def test_two_cables_to_one_switch(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: auto}
  - {chain: [cpu0, sw0], pcie: auto}
  - {chain: [cpu0, sw0], pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: PCIe links run in a circle: cpu0 - sw0 - cpu0
hint:  plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch\
""")


def test_a_switch_below_two_cpus(refused: Shown) -> None:
    body = """\
devices: {"cpu[0-1]": {cpu: null}, sw0: {switch: null}}
links:
  - {from: "cpu[0-1]", to: sw0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: PCIe links join two root ports: cpu0 - sw0 - cpu1
hint:  plain PCIe is a tree below each root port: make the extra link fabric:, or partition the switch\
""")
