"""What holds for every system: contiguous, symmetric, never through an endpoint, and no shorter way missed."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routes.route_systems import build, way

from lanewise.api.loading import load_system, ready_systems
from lanewise.errors import InputError, UnknownName
from lanewise.routes.classify import class_of
from lanewise.routes.find import route, routes, sharers
from lanewise.routes.matrix import class_matrix
from lanewise.routes.model import Via
from lanewise.routes.paths import cpu_above, cpus_passed, hops_to_cpu
from lanewise.topology.model import Kind, LinkKind
from lanewise.topology.read import read_system

ENDS = (Kind.GPU, Kind.SSD, Kind.NIC)
MEDIA = (LinkKind.PCIE, LinkKind.FABRIC)


@st.composite
def trees(draw, fabric=False):
    """One to three sockets, up to six switches anywhere below them, up to seven devices, maybe fabric links."""
    cpus = [f"cpu{i}" for i in range(draw(st.integers(1, 3)))]
    chains = [f"{a} == {b}" for a, b in pairwise(cpus)]
    above = list(cpus)
    for i in range(draw(st.integers(0, 6))):
        chains.append(f"{draw(st.sampled_from(above))} -- sw{i}")
        above.append(f"sw{i}")
    for i in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(["gpu", "gpu", "ssd", "nic"]))
        chains.append(f"{draw(st.sampled_from(above))} -- {kind}{i}")
    switches = above[len(cpus) :]
    if fabric and len(switches) > 1:
        pairs = st.tuples(st.sampled_from(switches), st.sampled_from(switches)).filter(lambda ab: ab[0] < ab[1])
        chains += [f"{a} ~~ {b}" for a, b in draw(st.lists(pairs, max_size=4, unique=True))]
    scope = draw(st.sampled_from(["none", "root-complex", "socket", "system"]))
    return build(", ".join(chains if len(cpus) > 1 else [cpus[0], *chains]), cpu_part=scope)


def ends_of(system):
    return system.of_kind(*ENDS, Kind.CPU)


def all_pairs(system):
    names = ends_of(system)
    return [(a, b) for a in names for b in names if a != b]


def least_hops(system, a, b, middle):
    """The oracle: the fewest hops of all simple ways whose inner devices are of the kinds `middle`."""
    best = None
    stack: list[tuple[str, tuple[str, ...]]] = [(a, (a,))]
    while stack:
        here, passed = stack.pop()
        for link in system.links_at(here):
            there = link.far_end(here)
            if link.kind not in (*MEDIA, LinkKind.SOCKET) or there in passed:
                continue
            if there == b:
                best = min(best or len(passed), len(passed))
            elif system.device(there).kind in middle:
                stack.append((there, (*passed, there)))
    return best


@given(trees(fabric=True))
@settings(deadline=None)
def test_hops_join_up_from_end_to_end(system):
    for a, b in all_pairs(system):
        for found in (*routes(system, a, b), route(system, a, b, p2p=False)):
            assert found.hops[0].start == a
            assert found.hops[-1].end == b
            assert all(one.end == other.start for one, other in pairwise(found.hops))
            assert found.nodes == (a, *(hop.end for hop in found.hops))


@given(trees(fabric=True))
@settings(deadline=None)
def test_no_route_passes_an_endpoint(system):
    for a, b in all_pairs(system):
        for found in routes(system, a, b):
            assert not [n for n in found.nodes[1:-1] if system.device(n).kind in ENDS]


@given(trees(fabric=True))
@settings(deadline=None)
def test_straight_routes_take_the_same_links_both_ways_and_have_one_class(system):
    for a, b in all_pairs(system):
        there, back = route(system, a, b), route(system, b, a)
        assert (there.via, there.cls) == (back.via, back.cls)
        if not there.stages:
            assert there.hops == tuple(hop.reverse for hop in reversed(back.hops))


@given(trees())
@settings(deadline=None)
def test_in_trees_no_shorter_way_is_missed(system):
    """On trees the only simple way between two ends is the one that data takes, over CPUs if it must."""
    for a, b in all_pairs(system):
        found = route(system, a, b)
        if not found.stages:
            assert len(found.hops) == least_hops(system, a, b, (Kind.SWITCH, Kind.CPU))
        else:
            assert sum(len(stage.hops) for stage in found.stages) == len(found.hops)


@given(trees(fabric=True))
@settings(deadline=None)
def test_in_fabrics_peers_take_the_shortest_way_below_the_cpus(system):
    for a, b in all_pairs(system):
        least = least_hops(system, a, b, (Kind.SWITCH,))
        kinds = {system.device(a).kind, system.device(b).kind}
        if Kind.CPU in kinds or Kind.GPU not in kinds or least is None:
            continue
        found = route(system, a, b)
        assert (found.via, len(found.hops)) == (Via.PCIE, least)
        assert not cpus_passed(system, found.hops)


@given(trees(fabric=True))
@settings(deadline=None)
def test_the_default_is_first_and_allowed_and_the_list_is_in_order(system):
    for a, b in all_pairs(system):
        found = routes(system, a, b)
        assert found[0] == route(system, a, b)
        assert found[0].allowed
        assert [each.allowed for each in found] == sorted((each.allowed for each in found), reverse=True)
        assert all(each.allowed or each.reason for each in found)


@given(trees(fabric=True))
@settings(deadline=None)
def test_the_matrix_is_symmetric(system):
    cells = class_matrix(system, ends_of(system)).cells
    assert cells == tuple(zip(*cells, strict=True))


@pytest.mark.parametrize("name", ready_systems())
def test_every_pair_of_a_ready_system_has_routes(name):
    system = load_system(name)
    bound = [n for n in system.of_kind(*ENDS, Kind.RAID) if system.device(n).host is not None]
    for a in bound[:12]:
        for b in bound[:12]:
            found = route(system, a, b)
            assert found.allowed
            assert found.nodes[0] == a
            assert found.nodes[-1] == b
            assert found.stages or found.cls == class_of(system, found.hops)


def test_a_raid_controller_passes_its_drives_data_to_the_host_and_nothing_else():
    system = build("cpu0 -- sw0 -- roc0 -- ssd0, roc0 -- ssd1, sw0 -- gpu0")
    assert way(route(system, "ssd0", "gpu0")) == "ssd0 - roc0 - sw0 - gpu0"
    assert way(route(system, "host0", "ssd1")) == "cpu0 - sw0 - roc0 - ssd1"
    assert way(route(system, "roc0", "gpu0")) == "roc0 - sw0 - gpu0"
    assert route(system, "ssd0", "ssd1").via is Via.STAGED


def test_ties_go_to_what_the_description_names_first_and_both_ways_alike():
    system = build("cpu0 -- sw0 -- gpu0, cpu0 -- sw3 -- gpu1, sw0 ~~ sw1 ~~ sw3, sw0 ~~ sw2 ~~ sw3")
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - sw0 - sw1 - sw3 - gpu1"
    assert way(route(system, "gpu1", "gpu0")) == "gpu1 - sw3 - sw1 - sw0 - gpu0"


def test_the_root_of_a_device_and_the_cpus_where_routes_turn():
    system = build("cpu0 == cpu1, cpu0 -- sw0 -- gpu0, cpu1 -- gpu1", cpu_part="system")
    cpu, up = cpu_above(system, "gpu0"), hops_to_cpu(system, "gpu0")
    assert (cpu, [hop.end for hop in up]) == ("cpu0", ["sw0", "cpu0"])
    assert (cpu_above(system, "cpu1"), hops_to_cpu(system, "cpu1")) == ("cpu1", ())
    assert cpus_passed(system, route(system, "gpu0", "gpu1").hops) == ("cpu0", "cpu1")


def test_three_sockets_in_a_row_are_crossed_one_by_one():
    system = build("cpu0 == cpu1 == cpu2, cpu0 -- gpu0, cpu2 -- gpu1", cpu_part="system")
    assert way(route(system, "gpu0", "gpu1")) == "gpu0 - cpu0 - cpu1 - cpu2 - gpu1"


def test_a_gpu_on_nvlinks_of_a_cpu_reaches_memory_over_them():
    system = build("cpu0 ##x3 gpu0, cpu0 -- nic0, cpu0 ##x3 gpu1")
    found = route(system, "host0", "gpu0")
    assert (found.via, way(found)) == (Via.NVLINK, "cpu0 - gpu0")
    assert way(route(system, "nic0", "gpu0")) == "nic0 - cpu0 - gpu0"


def test_routes_share_the_uplink_of_their_switch():
    system = load_system("cirrascale-typical")
    shared, _ = sharers(system, route(system, "host0", "gpu0"))
    (users,) = (found for key, found in shared.items() if key[:2] == ("cpu0", "sw0"))
    pairs = {(user.src, user.dst) for user in users}
    assert ("cpu0", "gpu1") in pairs
    assert not pairs & {("cpu0", "gpu0"), ("cpu0", "gpu2"), ("gpu1", "cpu0"), ("gpu0", "cpu0")}


def test_of_a_large_system_the_pairs_of_the_ends_are_looked_at():
    lines = ["lanewise: 1", "system: large", "devices:", "  cpu0: {cpu: null}", "  sw0: {switch: null}"]
    lines += ["  gpu[0-99]: {gpu: null}", "links:", "  - {from: cpu0, to: sw0, pcie: gen5 x16}"]
    system = read_system("\n".join([*lines, "  - {from: sw0, to: 'gpu[0-99]', pcie: gen5 x16}", ""]), "large.yaml")
    shared, complete = sharers(system, route(system, "gpu0", "gpu99"))
    assert not complete
    assert {len(routes) for routes in shared.values()} == {99}  # to or from 98 GPUs and the memory


def test_systems_on_another_catalogue_know_their_own_peer_scopes():
    class Other:
        def get(self, name):
            from routes.route_systems import FakePart

            return FakePart("none")

    system = build("cpu0 -- gpu0, cpu0 -- gpu1", cpu_part="system")
    assert route(system, "gpu0", "gpu1").via is Via.PCIE
    assert route(system.with_catalog(Other()), "gpu0", "gpu1").via is Via.STAGED
    assert route(system, "gpu0", "gpu1").via is Via.PCIE


def test_an_unknown_end_of_a_route_is_not_reported_at_the_line_of_the_other() -> None:
    text = """\
lanewise: 1
system: small
devices:
  cpu0: {cpu: genoa}
  sw0: {switch: pex88096}
  gpu0: {gpu: t4}
links:
  - {from: cpu0, to: sw0, pcie: gen4 x16}
  - {from: sw0, to: gpu0, pcie: gen3 x16}
"""
    system = read_system(text, "small.yaml")
    for ends in (("gpu0", "gpu9"), ("gpu9", "gpu0")):
        with pytest.raises(UnknownName, match="unknown device of small 'gpu9'") as raised:
            route(system, *ends)
        assert raised.value.location is None
    with pytest.raises(InputError, match="no data starts or ends at sw0") as refused:
        route(system, "gpu0", "sw0")
    assert refused.value.location is not None
    assert refused.value.location.line == 5


# The links between the dies of four MI250 as AMD draws them, and what one die measured with another, both ways.
DIES = {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4, (0, 6): 2, (2, 4): 2,
        (0, 2): 1, (1, 3): 1, (1, 5): 1, (4, 6): 1, (5, 7): 1, (3, 7): 1}  # fmt: skip
# rocm-bandwidth-test -A: 100.9 to 101.7 GB/s within each, 79.2 to 81.4 between them.
WIDE = ({0, 1, 6, 7}, {2, 3, 4, 5})


def dies(part="mi250x"):
    links = "".join(f"  - {{from: gpu{a}, to: gpu{b}, nvlink: {count}}}\n" for (a, b), count in DIES.items())
    return read_system(
        "lanewise: 1\nsystem: dies\ndevices:\n  cpu0: {cpu: rome}\n"
        f"  'gpu[0-7]': {{gpu: {part}}}\nlinks:\n  - {{from: cpu0, to: 'gpu[0-7]', pcie: gen4 x16}}\n{links}",
        "dies.yaml",
    )


def test_dies_without_a_direct_link_take_the_widest_path_over_others():
    system = dies()
    for a in range(8):
        for b in set(range(8)) - {a}:
            found = route(system, f"gpu{a}", f"gpu{b}")
            direct = DIES.get((min(a, b), max(a, b)))
            width = min(hop.link.count for hop in found.hops)
            assert (found.via, found.cls) == (Via.NVLINK, f"NV{width}")
            assert width == (direct or (2 if any({a, b} <= side for side in WIDE) else 1))
            assert len(found.hops) == (1 if direct else 3 if (min(a, b), max(a, b)) in ((1, 7), (3, 5)) else 2)
            back = route(system, f"gpu{b}", f"gpu{a}")
            assert [hop.reverse for hop in reversed(back.hops)] == list(found.hops)


def test_gpus_of_nvidia_pass_on_nothing_and_neither_do_dies_without_peer_access():
    assert route(dies("a100-sxm4-80gb"), "gpu0", "gpu3").via is not Via.NVLINK
    assert route(dies(), "gpu0", "gpu3", p2p=False).via is Via.STAGED
