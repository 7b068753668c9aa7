"""How wrong speeds, rates and counts of links are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from inline_snapshot import snapshot

Shown = Callable[..., str]


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
    assert "'PCIe 4.1 x16' is not a PCIe speed" in refused(body.replace("fast", "PCIe 4.1 x16"))


@pytest.mark.parametrize("stated", ["three", "UPI 2.0", "4 lanes each"])
def test_what_is_no_number_of_links(refused: Shown, stated: str) -> None:
    body = """\
devices: {cpu0: {cpu: null}, cpu1: {cpu: null}}
links:
  - {from: cpu0, to: cpu1, socket: stated}
"""
    assert refused(body.replace("stated", stated)) == f"""\
error: s.yaml:5: '{stated}' is not a number of links
hint:  write socket: 3, auto to follow the parts, or '?' where nobody knows"""


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


def test_a_rate_that_is_not_finite(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: 1, rate: 1e999}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: '1e999' must be finite
hint:  leave it out if it is unknown\
""")


def test_a_rate_in_the_wrong_unit(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null}, sw1: {switch: null}}
links:
  - {from: gpu0, to: gpu1, nvlink: 1, rate: 5 ms}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: '5 ms' is in ms, not in B/s
hint:  write a number and a unit, such as '25.1 GB/s'\
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
error: s.yaml:7: a port of connectx-6-hdr does 200 Gb/s; the link cannot be 400 Gb/s
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


def test_a_payload_that_pcie_does_not_have(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: genoa}
  gpu0: {gpu: t4}
links:
  - {from: cpu0, to: gpu0, pcie: gen3 x16, max_payload: 100 B}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: PCIe has no max payload of 100 B
hint:  one of 128, 256, 512, 1024, 2048, 4096 B\
""")
