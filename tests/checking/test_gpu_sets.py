"""Questions about several GPUs typed in: pairs at once, both ways, all of them, boards with a link for each pair."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.test_stated_words import typed as check_typed
from checking.thread_list import first_causes, verdict_of

from lanewise import api

SWITCHED = "gpus: NVIDIA RTX PRO 6000 Blackwell Server Edition\n"
MESH = "gpus: AMD Instinct MI300X\n"


@pytest.fixture
def typed(tmp_path: Path):
    """The verdict on rows typed in, and the first causes."""

    def check(*rows: str, head: str = SWITCHED) -> tuple[str, list[str]]:
        checkup = check_typed(tmp_path, *rows, head=head)
        return verdict_of(checkup), first_causes(checkup)

    return check


def test_pairs_that_bring_no_more_than_one_share_a_link(typed):
    alone, pairs = 'flows: "gpu0->gpu4", value: 56.3 GB/s', 'path: two, flows: "gpu0->gpu4, gpu1->gpu5", value: '
    verdict, causes = typed(alone, f"{pairs}56.4 GB/s, of: sum")
    assert (verdict, causes[0]) == ("slow", "shared")
    assert typed(alone, f"{pairs}104 GB/s, of: sum")[0] == "ok"
    # Both copies are out of one GPU, whose own link they share.
    out = 'path: two, flows: "gpu0->gpu4, gpu0->gpu5", value: 56.4 GB/s, of: sum'
    assert typed(alone, out)[0] == "ok"


def test_pairs_are_compared_with_as_many_others(typed):
    near = 'path: near, flows: "gpu0->gpu4, gpu1->gpu5", value: 112.5 GB/s, of: sum'
    far = 'path: far, flows: "gpu0->gpu2, gpu1->gpu3", value: 56.4 GB/s, of: sum'
    verdict, causes = typed(near, far)
    assert (verdict, causes[0]) == ("slow", "shared")
    one = 'path: far, flows: "gpu0->gpu2", value: 56.4 GB/s'
    assert typed(near, one)[0] == "ok"


def test_many_gpus_at_once_bring_more_than_one_and_a_half_times_one(typed):
    alone, all_of_them = 'flows: "host0->gpu0", value: 55 GB/s', 'path: all, flows: "host0->gpu[0-7]", value: '
    verdict, causes = typed(alone, f"{all_of_them}73 GB/s, of: sum")
    assert (verdict, causes[0]) == ("slow", "shared")
    assert typed(alone, f"{all_of_them}114 GB/s, of: sum")[0] == "ok"
    two = 'path: both, flows: "host0->gpu[0-1]", value: 55 GB/s, of: sum'  # below one port of many boards
    assert typed(alone, two)[0] == "ok"


def test_both_ways_of_a_pair_at_the_rate_of_one_way_are_sent_up_by_acs(typed):
    def pairs(first: float, *others: float) -> list[str]:
        return [f'flows: "gpu0<->gpu{at}", value: {rate} GB/s' for at, rate in enumerate((first, *others), 1)]

    verdict, causes = typed(*pairs(50, 103, 95))
    assert (verdict, causes[0]) == ("slow", "acs")
    assert typed(*pairs(80, 103, 95))[0] == "ok"
    assert typed(*pairs(50, 103))[0] == "ok", "one other pair is too few"
    assert typed(*pairs(50, 103, 52))[0] == "ok", "not all others are fine"


def test_a_ring_of_two_that_is_half_of_another_with_one_way_fine_is_sent_up_by_acs(typed):
    ring = "path: all_reduce, metric: bus_bandwidth, flows: "
    rows = [f'{ring}"gpu[0,1]->gpu[0,1]", value: 21 GB/s', f'{ring}"gpu[0,2]->gpu[0,2]", value: 38 GB/s']
    verdict, causes = typed(*rows, 'path: copy, flows: "gpu0->gpu1", value: 52 GB/s')
    assert (verdict, causes[0]) == ("slow", "acs")
    verdict, causes = typed(*rows)
    assert (verdict, causes[0]) == ("slow", "far device")
    # Bridges of NVLinks join some pairs.
    assert typed(*rows, head="gpus: NVIDIA A100 80GB PCIe\n")[0] != "slow"


def test_each_of_a_mesh_has_a_link_to_each_other(typed):
    row = 'path: all_reduce, flows: "gpu[0-{}]->gpu[0-{}]", value: {} GB/s, bytes: 1 GiB'
    assert typed(row.format(7, 7, 94), head=MESH) == ("slow", ["software", "peers"])
    assert typed(row.format(7, 7, 200), head=MESH)[0] == "unknown"
    assert typed(row.format(7, 7, 322), head=MESH)[0] == "ok"
    assert typed(row.format(3, 3, 140), head=MESH)[0] == "ok", "three links of each"
    assert typed(row.format(1, 1, 46), head=MESH)[0] == "ok", "one link"
    assert typed(row.format(7, 7, 94), head="gpus: AMD Instinct MI250X\n")[0] == "unknown", "no mesh"


def test_sends_between_neighbours_of_a_mesh_have_one_link(typed):
    row = 'path: sendrecv, flows: "gpu[0-7]->gpu[0-7]", value: 47 GB/s, metric: bus_bandwidth, bytes: 1 GiB'
    assert typed(row, head=MESH)[0] == "unknown"


def test_a_table_without_its_devices_is_fine_where_no_network_is_as_fast(tmp_path: Path):
    heads = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    row = "  1073741824  268435456  float  sum  -1  3990.0  {0}  {1}  0  3990.0  {0}  {1}  0\n"
    path = tmp_path / "post.txt"
    path.write_text(f"We see this on 8x H100 SXM5 80GB:\n\n{heads}{row.format(269.1, 470.9)}", "utf-8")
    assert verdict_of(api.check([path])) == "ok"
    # Perhaps of eight hosts.
    path.write_text(f"We see this on 8x H100 SXM5 80GB:\n\n{heads}{row.format(26.91, 47.09)}", "utf-8")
    assert verdict_of(api.check([path])) == "unknown"


def test_a_pair_of_a_mesh_has_one_link(typed):
    row = 'flows: "gpu0->gpu1", value: {} GB/s, bytes: 256 MiB'
    assert typed(row.format(48), head=MESH)[0] == "ok"
    assert typed(row.format(33.9), head=MESH)[0] == "ok", "what AMD's health test asks for"
    assert typed(row.format(20), head=MESH)[0] == "slow"


def test_hosts_of_a_board_that_reduce_as_fast_as_its_nvlinks_are_fine(typed):
    row = 'path: all_reduce, flows: "gpu[0-15]->gpu[0-15]", value: {} GB/s, metric: bus_bandwidth, hosts: 2'
    head = "gpus: NVIDIA H100 80GB HBM3\n"
    assert typed(row.format(450), head=head)[0] == "ok"
    assert typed(row.format(45), head=head)[0] == "unknown", "nobody says what the network carries"


def test_more_gpus_are_not_slower_than_fewer_of_them(typed):
    one = 'path: "27B INT4, one card", flows: "gpu0->gpu0", value: 28.5 tokens/s'
    both = 'path: "27B INT4, TP=2", flows: "gpu[0-1]->gpu[0-1]", value: '
    verdict, causes = typed(one, f"{both}17.5 tokens/s")
    assert (verdict, causes[0]) == ("slow", "software")
    assert typed(one, f"{both}25 tokens/s")[0] == "unknown"
    assert typed(one.replace("27B", "7B"), f"{both}17.5 tokens/s")[0] == "unknown", "another model"
    other = one.replace("gpu0->gpu0", "gpu5->gpu5")
    assert typed(other, f"{both}17.5 tokens/s")[0] == "unknown", "another GPU"


def test_one_kernel_by_two_programs_is_compared_closer_than_any_two(typed):
    dot = 'path: "Dot, {}", flows: "gpu0->gpu0", value: {} GB/s'
    head = "gpus: NVIDIA GeForce RTX 5090\n"
    assert typed(dot.format("Thrust", 1156), dot.format("CUDA", 1615), head=head)[0] == "slow"
    assert typed(dot.format("Thrust", 1300), dot.format("CUDA", 1615), head=head)[0] == "ok"
    triad = dot.format("CUDA", 1615).replace("Dot", "Triad")
    assert typed(dot.format("Thrust", 1156), triad, head=head)[0] == "ok", "another kernel"
