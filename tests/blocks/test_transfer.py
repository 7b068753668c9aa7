"""The time of pieces: closed forms, what always holds, and measured transfers."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise.blocks.pieces import Pieces
from lanewise.blocks.rails import own_cards
from lanewise.blocks.software import block_software, block_software_names
from lanewise.blocks.transfer import BlockLimit, BlockTransfer, medium_of, predict_blocks, transfer
from lanewise.errors import InputError, UnknownName
from lanewise.perf.flow import parse_flows
from lanewise.perf.predict import FlowRate
from lanewise.topology.model import System
from lanewise.topology.read import read_system

FLOWS = ("gpu0->gpu1", "gpu0->host0")
COUNTS = st.integers(1, 10**6)
SIZES = st.sampled_from([512 * 2**power for power in range(22)])


@cache
def path_of(flow: str) -> tuple[FlowRate, str]:
    system = lanewise.load_system("h200-pair")
    rate = lanewise.predict(system, flow).rates[0]
    return rate, medium_of(system, rate.routes[0])


def one(flow: str, count: int, size: float, software: str | None = None, posters: int = 1) -> BlockTransfer:
    rate, medium = path_of(flow)
    return transfer(rate, Pieces(count, size), block_software(software, medium), medium, posters)


def test_small_pieces_take_what_posting_takes() -> None:
    small = one("gpu0->gpu1", 1000, 4096)
    assert small.limit is BlockLimit.SOFTWARE
    assert small.time == pytest.approx(16e-6 + 1000 * 5.9e-6)
    assert one("gpu0->gpu1 read", 1000, 4096).time == pytest.approx(16e-6 + 1000 * 7.8e-6)
    assert one("gpu0->gpu1", 1000, 4096, posters=4).on_software == pytest.approx(small.on_software / 4)


def test_long_pieces_take_what_the_path_takes() -> None:
    rate, _ = path_of("gpu0->host0")
    long = one("gpu0->host0", 8, 2**30)
    assert long.limit is BlockLimit.PATH
    assert long.time == pytest.approx(2.8e-6 + 8 * (0.6e-6 + 2**30 / rate.rate))


def test_the_first_token_waits_for_prefill_and_transfer() -> None:
    kv = lanewise.kv_pieces("llama-3-70b", 32000, tp=4)
    first = lanewise.predict_blocks("h200-pair", "gpu[0-1]->host0", kv, prefill=8000.0).first_token
    slowest = max(each.time for each in lanewise.predict_blocks("h200-pair", "gpu[0-1]->host0", kv).transfers)
    assert first is not None
    assert (first.prefill, first.transfer, first.time) == (4.0, slowest, 4.0 + slowest)
    assert first.share == pytest.approx(slowest / (4 + slowest))
    assert first.share_interval[0] < first.share < first.share_interval[1]
    assert first.prefill_workers == pytest.approx(4 / slowest)
    with pytest.raises(InputError, match="--prefill is 0 tokens/s"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1", kv, prefill=0.0)
    with pytest.raises(InputError, match="a prefill of no tokens"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "8 x 1 MiB", prefill=8000.0)


def test_the_other_direction_and_small_pieces_to_a_gpu_cost_more() -> None:
    def times(flows: str, software: str, blocks: str) -> list[float]:
        return [each.time for each in lanewise.predict_blocks("h200-pair", flows, blocks, software).transfers]

    for software, factor in (("cuMemcpyAsync", 3.5 / 2.8), ("kernel", 0.92 / 0.77)):
        both, alone = (
            lanewise.predict_blocks("h200-pair", flows, "65536 x 16 KiB", software).transfers[0]
            for flows in ("gpu0->host0, host0->gpu0", "gpu0->host0")
        )
        slower = alone.path.rate / both.path.rate if software == "kernel" else 1.0  # copies wait for their posts
        assert both.time / alone.time == pytest.approx(factor * slower, rel=0.05)
    small = "1000 x 16 KiB"
    rate, _ = path_of("host0->gpu0")
    expected = 2.8e-6 + 1000 * (0.6e-6 + 16384 / 4.4e9 + 16384 / rate.rate)
    assert times("host0->gpu0", "cuMemcpyBatchAsync", small) == pytest.approx([expected])
    assert times("gpu0->host0", "cuMemcpyBatchAsync", small)[0] < 0.3 * expected
    assert times("host0->gpu0", "cuMemcpyBatchAsync", "1000 x 32 KiB")[0] < expected


def test_a_block_to_a_peer_over_nvlink_costs_what_it_costs_there() -> None:
    small = "8192 x 64 KiB"
    for software, alone, opposed in (("cuMemcpyAsync", 2.6, 3.1), ("cuMemcpyBatchAsync-256", 1.26, 1.77)):
        ways = [
            lanewise.predict_blocks("h200-pair", flows, small, software).transfers
            for flows in ("gpu0->gpu1", "gpu0->gpu1, gpu1->gpu0")
        ]
        assert [each.piece for transfers in ways for each in transfers] == pytest.approx(
            [alone * 1e-6, opposed * 1e-6, opposed * 1e-6]
        )
    to_host = lanewise.predict_blocks("h200-pair", "gpu0->host0", small, "cuMemcpyBatchAsync-256").transfers[0]
    assert to_host.piece == pytest.approx(0.6e-6)
    # Other paths between GPUs have the general cost, one way and both.
    assert block_software("cuMemcpyAsync", "pcie").opposed == block_software("cuMemcpyAsync", "pcie").piece
    assert block_software("cuMemcpyAsync", "host").opposed.value == pytest.approx(3.5e-6)


def test_blocks_to_the_host_are_faster_in_the_order_of_their_addresses() -> None:
    rate, _ = path_of("gpu0->host0")
    given, sorted_ = (
        one("gpu0->host0", 8192, 128 << 10, f"cuMemcpyBatchAsync-256{order}").rate for order in ("", "-sorted")
    )
    assert 0.97 * rate.rate < sorted_ < rate.rate
    assert given < sorted_


def test_copies_in_turn_add_their_cost_to_the_path() -> None:
    rate, _ = path_of("host0->gpu0")
    copies = one("host0->gpu0", 128, 150528, "cuMemcpyAsync")
    assert copies.time == pytest.approx(128 * (2.8e-6 + 150528 / rate.rate))
    assert one("host0->gpu0", 128, 150528, "cuMemcpyAsync", posters=4).time == copies.time


@given(count=COUNTS, size=SIZES, flow=st.sampled_from(FLOWS), posters=st.integers(1, 16), data=st.data())
def test_what_always_holds(count: int, size: int, flow: str, posters: int, data: st.DataObject) -> None:
    rate, medium = path_of(flow)
    known = [name for name in block_software_names() if medium in block_software(name, _any_medium(name)).share]
    name = data.draw(st.sampled_from(known))
    whole = one(flow, count, size, name, posters)
    assert whole.rate <= rate.rate * (1 + 1e-12)
    assert whole.low <= whole.time <= whole.high
    assert one(flow, count, size, name, posters + 1).time <= whole.time
    assert one(flow, 2 * count, size / 2, name, posters).time >= whole.time
    assert one(flow, count + 1, size, name, posters).time > whole.time


def _any_medium(name: str) -> str:
    """A medium that this software moves data over."""
    for medium in ("nvlink", "host", "network", "efa", "storage"):
        try:
            block_software(name, medium)
        except InputError:
            continue
        return medium
    raise AssertionError(name)


def test_the_default_goes_by_the_path() -> None:
    system = lanewise.load_system("dgx-a100-network")
    over = {
        flow: predict_blocks(system, parse_flows(flow), Pieces(8, 2**20)).transfers[0].software.name
        for flow in ("gpu0->gpu1", "gpu0->accelerator", "gpu0->frontend")
    }
    assert list(over.values()) == ["nixl-cuda-ipc", "cuMemcpyBatchAsync", "nixl-rc"]
    staged = lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "8 x 1 MiB", p2p=False)
    assert staged.transfers[0].software.name == "cuMemcpyAsync"


def test_words_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"io_uring moves nothing over this path \(nvlink\)"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "8 x 1 MiB", "io_uring")
    with pytest.raises(UnknownName, match="unknown software 'nixl'"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "8 x 1 MiB", "nixl")
    with pytest.raises(InputError, match="has a size or a time"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1 1 GiB", "8 x 1 MiB")
    with pytest.raises(InputError, match="posters is 0"):
        lanewise.predict_blocks("h200-pair", "gpu0->gpu1", "8 x 1 MiB", posters=0)


# Time in us of pieces between two H200 of one host by NIXL 1.5.1 (cuda_ipc): the rows that its costs were learned from,
# benchmarks/runs/2026-11-23-kv-blocks.md. Single pieces below 1 GiB scatter by a factor of four and are left to that.
LEARNED = [
    ("write", 1024, 4096, 6296.4), ("write", 1024, 8192, 5966.5), ("write", 16384, 8192, 101296.7),
    ("write", 1024, 32768, 6193.1), ("write", 8192, 32768, 52228.4), ("write", 8192, 65536, 43761.5),
    ("write", 8192, 131072, 43998.8), ("write", 1024, 2**20, 5391.7), ("write", 1, 2**30, 3764.6),
    ("read", 1024, 4096, 8289.9), ("read", 1024, 8192, 8288.4), ("read", 16384, 8192, 157819.7),
    ("read", 1024, 32768, 7676.4), ("read", 8192, 32768, 60613.7), ("read", 8192, 65536, 51119.3),
    ("read", 8192, 131072, 51994.9), ("read", 1024, 2**20, 8720.8), ("read", 1, 2**30, 3836.3),
]  # fmt: skip


@pytest.mark.parametrize(("way", "count", "size", "measured"), LEARNED)
def test_the_transfers_that_costs_come_from(way: str, count: int, size: int, measured: float) -> None:
    predicted = one("gpu0->gpu1" + " read" * (way == "read"), count, size)
    assert predicted.time * 1e6 == pytest.approx(measured, rel=0.3)
    assert predicted.low * 1e6 <= measured <= predicted.high * 1e6
    assert predicted.limit is (BlockLimit.PATH if count == 1 else BlockLimit.SOFTWARE)


# Pieces of 1 MiB between all eight GPUs of two hosts, GB/s written and read (Mooncake's documentation of EFA). That
# pieces go over all cards, and that one takes at most 10.7 us, comes from them. The number of pieces is not stated.
PUBLISHED = {("h100-sxm", "efa-100", 4): (388.9, 381.64), ("b300", "efa-400", 2): (780.33, 755.78)}


def two_hosts(gpu: str, card: str, cards: int, link: str = "gen5 x16") -> System:
    """Two hosts of eight GPUs, each with that many cards below a switch of its own."""
    return read_system(
        f"""
lanewise: 1
system: two-hosts
hosts: ["n[0-1]"]
devices:
  n0cpu0: {{cpu: null, host: n0}}
  n1cpu0: {{cpu: null, host: n1}}
  "n[0-1]sw[0-7]": {{switch: null}}
  "n[0-1]gpu[0-7]": {{gpu: {gpu}}}
  "n[0-1]nic[0-{8 * cards - 1}]": {{nic: {card}}}
  net: {{netswitch: null}}
links:
  - {{from: "n0cpu0", to: "n0sw[0-7]", pcie: gen5 x16}}
  - {{from: "n1cpu0", to: "n1sw[0-7]", pcie: gen5 x16}}
  - {{from: "n[0-1]sw[0-7]", to: "n[0-1]gpu[0-7]", pairs: true, pcie: {link}}}
  - {{from: "n[0-1]sw[0-7]", to: "n[0-1]nic[0-{8 * cards - 1}]", pairs: true, pcie: gen5 x16}}
  - {{from: "n[0-1]nic[0-{8 * cards - 1}]", to: net, network: auto}}
""",
        "two-hosts.yaml",
    )


@pytest.mark.parametrize("wiring", PUBLISHED, ids=lambda wiring: wiring[0])
def test_published_transfers_over_efa(wiring: tuple[str, str, int]) -> None:
    system = two_hosts(*wiring, "gen6 x16" if wiring[0] == "b300" else "gen5 x16")
    transfers = predict_blocks(system, parse_flows("n0gpu[0-7]->n1gpu[0-7]"), Pieces(1000, 2**20)).transfers
    written, read = PUBLISHED[wiring]
    total = sum(one.rate for one in transfers) / 1e9
    assert total == pytest.approx(written, rel=0.04)
    assert total == pytest.approx(read, rel=0.06)
    assert {(one.limit, one.software.name) for one in transfers} == {(BlockLimit.PATH, "nixl-efa")}
    assert sum(one.pieces.total / one.high for one in transfers) / 1e9 <= read


def test_gpus_divide_the_cards_near_them() -> None:
    system = two_hosts("h100-sxm", "efa-100", 4)
    assert own_cards(system, "n0gpu1") == ("n0nic4", "n0nic5", "n0nic6", "n0nic7")
    one_card = predict_blocks(system, parse_flows("n0gpu0->n1gpu0"), Pieces(1000, 2**20)).transfers[0].path
    assert one_card.limit.startswith("4 network cards: ")


def test_the_link_of_a_gpu_limits_many_cards() -> None:
    system = two_hosts("h100-sxm", "efa-100", 4, "gen3 x16")
    path = predict_blocks(system, parse_flows("n0gpu0->n1gpu0"), Pieces(1000, 2**20)).transfers[0].path
    assert path.rate < 15.76e9  # 16 lanes of Gen3, four cards carry 49.5 GB/s
    assert path.low <= path.rate <= path.high
