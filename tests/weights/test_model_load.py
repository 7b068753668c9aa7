"""The time of a model's load: each stage against an equation worked out by hand, and which of them limits."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.errors import InputError
from lanewise.topology.read import read_system
from lanewise.weights.loaders import weight_loader, weight_loader_names
from lanewise.weights.prediction import LoadLimit

SYSTEM = "puget-wrx90"  # eight drives of 7.45 GB/s behind Gen4 x16, two GPUs of 26.8 GB/s


def load(size: str = "15 GB", source: str = "vol0", to: str = "gpu0", loader: str = "direct", **how):
    return lanewise.predict_load(SYSTEM, size, source, to, [loader], **how).loads[0]


def test_one_reader_of_a_mapped_file_waits_for_each_read():
    """Little's law: 128 KiB in flight, 0.4 ms a read, whatever the storage can do."""
    for rate in ("1000 MiB/s", "4000 MiB/s"):
        slow = load(source=rate, loader="safetensors", read_latency=0.4e-3)
        assert slow.stages[LoadLimit.LATENCY].rate.value == pytest.approx(128 * 1024 / 0.4e-3)
        assert slow.time == pytest.approx(0.17 + 15e9 / (128 * 1024 / 0.4e-3))
        assert slow.limit is LoadLimit.LATENCY


def test_a_longer_read_ahead_of_the_kernel_is_worth_as_much_as_readers():
    slow, ahead = (
        load(source="4 GB/s", loader="safetensors", read_latency=0.4e-3, read_ahead=size) for size in (None, 2**20)
    )
    assert ahead.stages[LoadLimit.LATENCY].rate.value == pytest.approx(8 * slow.stages[LoadLimit.LATENCY].rate.value)


@pytest.mark.parametrize(("gpu", "rate"), [("mi300x", 1.52e9), ("mi250", 1.52e9), ("h100-sxm", 7e9)])
def test_mapped_pages_go_slower_to_gpus_of_amd(gpu: str, rate: float):
    text = f"lanewise: 1\nsystem: s\ndevices: {{cpu0: {{cpu: null}}, gpu0: {{gpu: {gpu}}}}}\n"
    system = read_system(text + "links: [{from: cpu0, to: gpu0, pcie: auto}]\n", "s.yaml")
    mapped, direct = lanewise.predict_load(
        system, "15 GB", "9 GB/s", "gpu0", ["safetensors", "runai-streamer"], warm=True
    ).loads
    assert mapped.stages[LoadLimit.COPIES].rate.value == pytest.approx(rate)
    assert direct.stages[LoadLimit.COPIES].rate.value == pytest.approx(5.6e9)


def test_many_readers_reach_the_storage():
    fast = load(source="1000 MiB/s", loader="runai-streamer", read_latency=0.4e-3)
    assert fast.limit is LoadLimit.STORAGE
    assert fast.time == pytest.approx(0.05 + 15e9 / (1000 * 2**20))
    few = load(source="1000 MiB/s", loader="runai-streamer", read_latency=0.4e-3, readers=2)
    assert few.stages[few.limit].rate.value == pytest.approx(2 * 128 * 1024 / 0.4e-3)


def test_parts_of_a_model_take_every_gpus_link_and_copies_of_it_each_link_alone():
    one = load(source="500 GB/s", to="gpu0").stages[LoadLimit.LINK].rate.value
    parts = load(source="500 GB/s", to="gpu[0-1]")
    copies = load(source="500 GB/s", to="gpu[0-1]", replicated=True)
    assert parts.stages[LoadLimit.LINK].rate.value == pytest.approx(2 * one)
    assert copies.stages[LoadLimit.LINK].rate.value == pytest.approx(one)


def test_a_model_for_every_gpu_is_read_once_through_the_page_cache_and_by_each_process_without():
    direct, cached = (
        load(source="1 GB/s", to="gpu[0-1]", loader=name, replicated=True) for name in ("direct", "vllm-prefetch")
    )
    assert direct.stages[LoadLimit.STORAGE].rate.value == pytest.approx(0.5e9)
    assert cached.stages[LoadLimit.STORAGE].rate.value == pytest.approx(1e9)
    passed_on = load(source="1 GB/s", to="gpu[0-1]", replicated=True, spread=True)
    assert passed_on.stages[LoadLimit.STORAGE].rate.value == pytest.approx(1e9)
    assert LoadLimit.PEERS in passed_on.stages


def test_a_warm_load_reads_no_drive_and_is_limited_by_copies():
    warm = load(loader="safetensors", warm=True)
    assert (LoadLimit.STORAGE in warm.stages, warm.limit) == (False, LoadLimit.COPIES)


NODE = """
lanewise: 1
system: one-node
devices:
  cpu0: {cpu: epyc-7742, numa_nodes: 4}
  "gpu[0-1]": {gpu: l40s, numa: 0}
  "ssd[0-3]": {ssd: samsung-990-pro, numa: 0}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}
  - {from: cpu0, to: "ssd[0-3]", pcie: gen4 x4}
volumes: {vol0: {raid: 0, drives: "ssd[0-3]"}}
"""


def test_reads_and_copies_to_gpus_share_the_memory_of_a_numa_node():
    """Each alone passes 25 GB/s and more; both at once cross one node's memory, r/R + w/W = 1."""
    node = read_system(NODE, "one-node.yaml")
    answer = lanewise.predict_load(node, "15 GB", "vol0", "gpu[0-1]", ["direct"]).loads[0]
    alone = min(stage.rate.value for limit, stage in answer.stages.items() if limit is not LoadLimit.SHARED)
    assert answer.limit is LoadLimit.SHARED
    assert answer.stages[LoadLimit.SHARED].rate.value < 0.7 * alone
    assert LoadLimit.SHARED not in load().stages


def test_buffers_are_where_the_gpu_is_so_that_reads_cross_the_sockets():
    across = NODE.replace("cpu0: {cpu: epyc-7742, numa_nodes: 4}", '"cpu[0-1]": {cpu: epyc-7742}')
    across = across.replace(", numa: 0", "").replace('{from: cpu0, to: "gpu', '{from: cpu1, to: "gpu')
    across = across.replace("links:", "links:\n  - {from: cpu0, to: cpu1, socket: 1}")
    system = read_system(across, "two-sockets.yaml")
    answer = lanewise.predict_load(system, "15 GB", "vol0", "gpu0", ["direct"]).loads[0]
    assert "cpu0->cpu1" in answer.stages[LoadLimit.STORAGE].detail


@pytest.mark.parametrize("name", weight_loader_names())
def test_the_time_lies_in_its_interval_and_figures_have_sources(name):
    answer = load(loader=name)
    assert answer.low <= answer.time <= answer.high
    for figure in (answer.loader.window, answer.loader.start, answer.loader.cold, answer.loader.warm):
        assert figure is None or figure.low <= figure.value <= figure.high
    assert weight_loader(name).source


def test_a_small_model_waits_for_the_start_of_the_loader():
    assert load("1 MB", loader="safetensors").limit is LoadLimit.START


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ({"source": "host0"}, "not where the weights lie"),
        ({"source": "fast"}, "unknown drive"),
        ({"source": "0 GB/s"}, "moves nothing"),
        ({"to": "ssd0"}, "no GPU"),
        ({"to": ","}, "no target"),
        ({"to": "gpu0,host0"}, "not GPUs of one host"),
        ({"warm": True}, "does not read from the page cache"),
        ({"loader": "x"}, "unknown loader"),
        ({"loader": "fastsafetensors-gds", "to": "host0"}, "straight to GPUs"),
        ({"size": "0 GB"}, "nothing to load"),
        ({"read_latency": 0.0}, "a read of 0 s"),
        ({"read_ahead": 0.0}, "no read-ahead"),
        ({"spread": True}, "whole model"),
        ({"readers": 0}, "--readers is 0"),
    ],
)
def test_what_cannot_be_loaded_is_one_error(how, cause):
    with pytest.raises(InputError, match=cause):
        load(**how)
