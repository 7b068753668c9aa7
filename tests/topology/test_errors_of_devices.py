"""How wrong devices are refused."""
# ruff: noqa: E501 - what users see stands here as they see it

from __future__ import annotations

from collections.abc import Callable

from inline_snapshot import snapshot

Shown = Callable[..., str]


def test_a_system_without_devices(refused: Shown) -> None:
    body = """\
devices: {}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: the system has no devices
hint:  name one under devices:, such as cpu0: {cpu: null}\
""")


def test_a_system_whose_ranges_are_all_empty(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0--1]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: the system has no devices
hint:  name one under devices:, such as cpu0: {cpu: null}\
""")


def test_an_unknown_part(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
  gpu0: {gpu: l4s}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: unknown gpu part 'l4s'
hint:  did you mean l40s or l4 or l40? If it is another part: null, or lanewise parts template gpu\
""")


def test_a_name_nearer_to_an_alias(refused: Shown) -> None:
    """HBM3 is in no part's name, but in what a part is also called."""
    body = """\
devices:
  gpu0: {gpu: h100-96gb-hbm3}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: unknown gpu part 'h100-96gb-hbm3'
hint:  did you mean nvidia-h100-80gb-hbm3? If it is another part: null, or lanewise parts template gpu\
""")


def test_a_part_of_the_wrong_kind(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: l40s}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: part 'l40s' is a gpu, not a cpu
hint:  write gpu: l40s, or name a part of kind cpu\
""")


def test_a_device_that_is_two_things(refused: Shown) -> None:
    body = """\
devices:
  x: {cpu: null, gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: device 'x' is both cpu and gpu
hint:  write one of cpu, gpu, switch, adapter, nvswitch, nic, ssd, raid, netswitch, such as x: {gpu: l40s}\
""")


def test_a_device_that_is_nothing(refused: Shown) -> None:
    body = """\
devices:
  x: {numa: 0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: device 'x' does not say what it is
hint:  write one of cpu, gpu, switch, adapter, nvswitch, nic, ssd, raid, netswitch, such as x: {gpu: l40s}\
""")


def test_overlapping_ranges(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0-3]": {gpu: null}
  "gpu[3-5]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: device 'gpu3' is given twice, first in line 4
hint:  rename one, or let the ranges not overlap\
""")


def test_a_range_that_runs_backwards(refused: Shown) -> None:
    body = """\
devices:
  "gpu[3-0]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: the range in 'gpu[3-0]' runs backwards
hint:  write [0-3]\
""")


def test_a_range_that_is_none(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0..3]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: cannot read the range in 'gpu[0..3]'
hint:  write gpu[0-3] or gpu[0,2,4-6]\
""")


def test_a_range_that_never_ends(refused: Shown) -> None:
    body = """\
devices:
  "gpu[0-99999999]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'gpu[0-99999999]' has too many names
hint:  65536 at most\
""")


def test_a_name_with_a_space(refused: Shown) -> None:
    body = """\
devices:
  "my gpu": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'my gpu' cannot be a name
hint:  a name has letters, digits and _ . : - and starts with a letter or digit; a range is gpu[0-3]\
""")


def test_an_unknown_host(refused: Shown) -> None:
    body = """\
hosts: [alpha, beta]
devices:
  cpu0: {cpu: null, host: alpa}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: unknown host 'alpa'
hint:  did you mean alpha?\
""")


def test_a_cpu_without_a_host_among_several(refused: Shown) -> None:
    body = """\
hosts: [alpha, beta]
devices:
  cpu0: {cpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'cpu0' does not say which host it is in
hint:  add host: alpha\
""")


def test_a_host_that_stands_twice(refused: Shown) -> None:
    body = """\
hosts: [a, a]
devices:
  cpu0: {cpu: null, host: a}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: host 'a' is given twice
hint:  keep one of the two\
""")


def test_partitions_of_a_gpu(refused: Shown) -> None:
    body = """\
devices:
  gpu0: {gpu: null, partitions: [[a]]}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'gpu0' is no switch and has no partitions
hint:  take them out\
""")


def test_a_partition_that_names_no_neighbour(refused: Shown) -> None:
    body = """\
devices: {cpu0: {cpu: null}, gpu0: {gpu: null}, gpu1: {gpu: null}, sw0: {switch: null, partitions: [[cpu0, gpu1]]}, sw1: {switch: null}}
links:
  - {chain: [cpu0, sw0, gpu0], pcie: auto}
  - {from: cpu0, to: gpu1, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:3: a partition of 'sw0' names 'gpu1', which is not linked to it
hint:  its neighbours: cpu0, gpu0
also:  s.yaml:3: 'gpu0' is linked to 'sw0' but is in none of its partitions\
""")


def test_a_device_bound_to_a_host_that_does_not_reach_it(refused: Shown) -> None:
    body = """\
hosts: [a, b]
devices:
  cpu0: {cpu: null, host: a}
  cpu1: {cpu: null, host: b}
  gpu0: {gpu: null, host: b}
links:
  - {from: cpu0, to: gpu0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: 'gpu0' is bound to b, but only a reaches it
hint:  write host: a, or cable it to b\
""")


def test_numa_nodes_that_cannot_be(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null, numa_nodes: 4, numa: 0}
  cpu1: {cpu: null, numa_nodes: 4, numa: 2}
  gpu0: {gpu: null, numa: 9}
links:
  - {from: cpu0, to: gpu0, pcie: auto}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 'cpu0' and 'cpu1' both have NUMA node 2
hint:  leave numa: out of the CPUs to have their nodes numbered, or state the first node of each
also:  s.yaml:6: 'gpu0' is at NUMA node 9, but cpu0 above it has 0, 1, 2, 3\
""")
    assert refused(body.replace("numa: 9", "numa_nodes: 2")) == snapshot("""\
error: s.yaml:6: 'gpu0' is no CPU and has no NUMA nodes of its own
hint:  write numa: for the node of 'gpu0', and numa_nodes: at its CPU\
""")
    assert refused(body.replace("numa: 9", "shared: true")) == snapshot("""\
error: s.yaml:6: 'gpu0' is no CPU whose socket others use
hint:  write it at its CPU\
""")
    assert refused(body.replace("numa_nodes: 4", "numa_nodes: 0")) == snapshot("""\
error: s.yaml:4: 'cpu0' cannot have 0 NUMA nodes
hint:  write 1 to 64: 4 for NPS4, 2 for SNC2
also:  s.yaml:5: 'cpu1' cannot have 0 NUMA nodes\
""")


def test_names_of_the_operating_system_for_several_devices(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
  "gpu[0-1]": {gpu: l4, os_names: [0000:01:00.0]}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:5: 2 devices cannot have the same names
hint:  give each an entry of its own: gpu0: {..., os_names: [0000:01:00.0]}\
""")
