"""How wrong domains, volumes and policies are refused."""

from __future__ import annotations

from collections.abc import Callable

from inline_snapshot import snapshot

Shown = Callable[..., str]


def test_a_domain_with_an_unknown_device(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: cpu0, devices: gpu9}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: unknown device 'gpu9'
hint:  did you mean gpu1 or gpu0 or cpu1?\
""")


def test_a_device_in_two_domains(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: cpu0, devices: gpu0}
  d1: {root: cpu0, devices: "gpu[0-1]"}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:12: 'gpu0' is in two domains, d0 and d1
hint:  keep one of the two\
""")


def test_a_domain_rooted_in_a_gpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: gpu0, devices: gpu1}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: the root of domain 'd0' is gpu0, a gpu
hint:  the root is a CPU: cpu0, cpu1\
""")


def test_a_domain_with_a_switch(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: cpu0, devices: sw0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'sw0' in domain 'd0' is a switch, not an endpoint
hint:  name GPUs, network cards, drives and controllers only\
""")


def test_a_domain_whose_root_does_not_reach(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: cpu1, devices: gpu0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: no PCIe or fabric link leads from cpu1 to 'gpu0' of domain 'd0'
hint:  add the link, or take the device out of the domain\
""")


def test_a_domain_device_bound_elsewhere(refused: Shown) -> None:
    body = """\
hosts: [a, b]
devices:
  cpu0: {cpu: null, host: a}
  cpu1: {cpu: null, host: b}
  "gpu[0-1]": {gpu: null, host: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
domains:
  d0: {root: cpu0, devices: gpu0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:7: 'gpu0' is unbound, but its domain 'd0' is rooted in a
hint:  take host: out of 'gpu0', or take it out of the domain\
""")


def test_a_volume_on_an_unknown_drive(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 0, drives: "ssd[4-5]"}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: unknown device 'ssd5'
hint:  did you mean ssd4 or ssd3 or ssd2?\
""")


def test_a_volume_on_a_gpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 0, drives: gpu0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'gpu0' is a gpu, not a drive
hint:  a drive would be ssd0, ssd1, ssd2, ssd3, ssd4\
""")


def test_raid_5_on_two_drives(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 5, drives: "ssd[0-1]"}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: volume 'v' has 2 drives; RAID-5 needs 3
hint:  add drives, or choose another level\
""")


def test_raid_10_on_five_drives(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 10, drives: "ssd[0-4]"}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: volume 'v' has 5 drives; RAID-10 needs an even number
hint:  add or take out one drive\
""")


def test_a_drive_twice_in_a_volume(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 0, drives: [ssd0, ssd0]}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'ssd0' is given twice in volume 'v'
hint:  name it once\
""")


def test_a_volume_named_as_a_device(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  gpu0: {raid: 0, drives: ssd0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'gpu0' is a device and a volume
hint:  rename one of the two\
""")


def test_a_controller_that_is_none(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 0, drives: ssd0, controller: sw0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'sw0' is a switch, not a RAID controller
hint:  the system has none; add one with raid:\
""")


def test_a_chunk_that_is_no_size(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
volumes:
  v: {raid: 0, drives: ssd0, chunk: 5 ms}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: '5 ms' is in ms, not in B
hint:  write a number and a unit, such as '256 B'\
""")


def test_cross_domain_peers_without_a_fabric(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies: {cross_domain_p2p: true}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:10: cross_domain_p2p is on, but the system has no domains and no fabric
hint:  add domains: or a fabric: link, or take cross_domain_p2p out\
""")


def test_acs_at_a_gpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies: {acs_redirect: gpu0}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:10: 'gpu0' is a gpu; only switches and CPUs redirect peer traffic
hint:  name switches, or write true for all of them\
""")


def test_peers_through_an_unknown_cpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies:
  peers: {cpu7: socket}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: unknown device 'cpu7'
hint:  did you mean cpu1 or cpu0 or gpu1?\
""")


def test_peers_through_a_gpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies:
  peers: {gpu0: socket}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: 'gpu0' is a gpu, not a CPU
hint:  a CPU would be cpu0, cpu1\
""")


def test_a_peer_scope_that_does_not_exist(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies: {peers: sockets}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:10: unknown peer scope 'sockets'
hint:  did you mean socket?\
""")


def test_peers_stated_twice_for_a_cpu(refused: Shown) -> None:
    body = """\
devices:
  "cpu[0-1]": {cpu: null}
  "gpu[0-1]": {gpu: null}
  "ssd[0-4]": {ssd: null}
  sw0: {switch: null}
links:
  - {from: cpu0, to: ["gpu[0-1]", "ssd[0-4]", sw0], pcie: auto}
policies:
  peers: {"cpu[0-1]": none, cpu1: socket}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:11: peers through 'cpu1' are stated twice
hint:  keep one of the two\
""")


def test_several_mistakes_at_once(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: skylake}
  gpu0: {gpu: l4s}
  "x[2-0]": {ssd: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: unknown cpu part 'skylake'
hint:  did you mean skylake-sp? If it is another part: null, or lanewise parts template cpu
also:  s.yaml:5: unknown gpu part 'l4s'
also:  s.yaml:6: the range in 'x[2-0]' runs backwards\
""")
