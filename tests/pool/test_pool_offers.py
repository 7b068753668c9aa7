"""Offers: rates as predicted, as good as trying everything, and refusals that name the limit and the nearest offer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from pool.random_pools import best_of_all, placements, random_inventory, score

from lanewise.api import load_system
from lanewise.errors import Contradiction, FormatError, LanewiseError, Unreachable
from lanewise.perf.flow import Flow
from lanewise.perf.predict import predict
from lanewise.pool import operations as op
from lanewise.pool import search
from lanewise.pool.candidates import candidates
from lanewise.pool.model import (
    BlockState,
    Composition,
    CompositionRequest,
    NoOffer,
    PathRequirement,
    Pool,
    Reservation,
)
from lanewise.pool.offers import offers, preview
from lanewise.pool.rules import why_no_space
from lanewise.topology.compose import attach
from lanewise.topology.model import Kind
from lanewise.topology.read import read_system

TWO = load_system("composable-server-two-hosts")
GB = 1e9


def gpus(count: int, rate: float | None = None, **more: str | int) -> PathRequirement:
    """So many GPUs at so many GB/s each."""
    requirement = PathRequirement(Kind.GPU, count, None if rate is None else rate * GB)
    return replace(requirement, **more) if more else requirement  # type: ignore[arg-type]


def request(
    *requirements: PathRequirement, server: str | None = None, extends: str | None = None
) -> CompositionRequest:
    """A request for these."""
    return CompositionRequest(requirements, server, extends=extends)


def refused(pool: Pool, request: CompositionRequest) -> NoOffer:
    """The error where there is no offer."""
    with pytest.raises(NoOffer) as caught:
        offers(pool, request)
    return caught.value


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Two servers and eight GPUs, four of them with host0."""
    return op.pool_of(TWO)


@pytest.fixture(scope="module")
def empty(pool: Pool) -> Pool:
    """Two servers and eight free GPUs."""
    return op.released(pool, "host0")


@pytest.mark.parametrize("few", [0, search.MOST_OF_ALL], ids=["search", "all"])
def test_the_best_offer_is_as_good_as_the_best_of_all_placements(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_OF_ALL", few)
    for seed in range(8):
        inventory = random_inventory(seed, gpus=5)
        found = candidates(inventory.pool, inventory.request)
        best = found.placements(inventory.request.requirements).ranked()[0][0].key
        assert best == pytest.approx(best_of_all(inventory), abs=2e6), seed
        first = score(inventory, *next(placements(inventory)))
        assert best <= first.key or best == pytest.approx(first.key, abs=2e6), seed


def test_an_offer_says_what_predict_says_of_everything_together(pool: Pool) -> None:
    (offer, *_) = offers(pool, request(gpus(2, part="l40s")))
    system = pool.system
    for name in offer.blocks:
        system = attach(system, name, offer.server)
    flows = [Flow("host0", f"gpu{n}") for n in range(4)] + [Flow(offer.server, name) for name in offer.blocks]
    expected = predict(system, flows).rates[4:]
    assert [(one.device, one.limit, one.basis, one.sources) for one in offer.rates] == [
        (one.flow.dst, one.limit, one.basis, one.rests_on) for one in expected
    ]
    assert [one.rate for one in offer.rates] == pytest.approx([one.rate for one in expected])
    assert offer.rates[0].path == ("b_cpu0", "b_hba", "fabric", "gpu4")
    assert all(one.low < one.rate < one.high for one in offer.rates)


def test_a_rate_that_the_path_cannot_give_is_refused_with_the_limit_and_the_nearest(empty: Pool) -> None:
    error = refused(empty, request(gpus(4, 20)))
    assert error.show() == (
        "error: 4 GPUs on host0 would get 6.7 GB/s each, 20 GB/s requested; "
        "the limit is reads through root port rp0 of a_cpu0\n"
        "hint:  nearest: 1 GPU at 20 GB/s on host0; or 4 GPUs at 6.7 GB/s each on host0"
    )
    assert error.rate == pytest.approx(6.7 * GB)
    assert error.nearest is not None
    assert error.nearest.met
    assert len(error.nearest.blocks) == 1
    lower = offers(empty, request(*error.alternatives[1].requirements))[0]
    assert lower.blocks == error.alternatives[1].blocks


def test_what_another_composition_asked_for_is_kept(pool: Pool) -> None:
    promised = replace(pool.composition("host0"), requirements=(gpus(4, 5),))
    pool = replace(pool, compositions={"host0": promised})
    (offer, *_) = offers(pool, request(gpus(1), extends="host0"))
    assert [rate.device for rate in offer.rates] == ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]
    assert offer.total == pytest.approx(26.8 * GB)
    assert "5 GB/s requested" in refused(pool, request(gpus(2), extends="host0")).cause


def test_who_has_claimed_or_reserved_blocks_is_reckoned_with_before_they_are_attached() -> None:
    free = op.released(op.pool_of(load_system("composable-pool")), "host0")
    h100 = (gpus(1, 12, part="h100-nvl"),)
    for promised in (
        op.claim(free, Composition("job", "host0", ("gpu12",), h100)),
        op.reserve(free, Reservation("job", "host0", ("gpu12",), expires=1.0, requirements=h100)),
    ):
        offer = preview(promised, "host1", ["gpu13"])
        assert [(loss.composition, loss.device, loss.breaks) for loss in offer.losses] == [("job", "gpu12", True)]
    assert preview(free, "host1", ["gpu13"]).losses == ()


def test_equal_offers_take_the_first_blocks_of_the_description_however_a_pool_lists_them(empty: Pool) -> None:
    shuffled = replace(empty, blocks=dict(list(empty.blocks.items())[::-1]))
    assert offers(shuffled, request(gpus(2)))[0].blocks == offers(empty, request(gpus(2)))[0].blocks == ("gpu0", "gpu1")


def test_too_few_blocks_say_who_has_the_others(pool: Pool) -> None:
    pool = op.with_block_state(pool, "gpu7", BlockState.FAILED)
    error = refused(pool, request(gpus(5), server="host1"))
    assert error.cause == "host1 can be given 3 of 5 GPUs requested: 4 are in use by host0; 1 is Failed"
    assert error.hint == "nearest: 3 GPUs on host1"


def test_blocks_that_the_fabric_of_a_server_does_not_reach_are_named_with_the_reason() -> None:
    islands = read_system(
        "lanewise: 1\nsystem: islands\nhosts: [host0, host1]\ndevices:\n"
        "  cpu0: {cpu: xeon-gold-6454s, host: host0}\n  cpu1: {cpu: xeon-gold-6454s, host: host1}\n"
        '  "sw[0-1]": {switch: cdi-gen4-fabric-switch}\n  "gpu[0-1]": {gpu: l40s, host: null}\nlinks:\n'
        '  - {from: "cpu[0-1]", to: "sw[0-1]", pairs: true, pcie: gen4 x16}\n'
        '  - {from: "sw[0-1]", to: "gpu[0-1]", pairs: true, pcie: gen4 x16}\n',
        "islands.yaml",
    )
    pool = op.pool_of(islands)
    error = refused(pool, request(gpus(2), server="host0"))
    assert error.cause == "host0 can be given 1 of 2 GPUs requested: 1 is out of reach, no cable joins 'gpu1' and host0"
    assert [offer.server for offer in offers(pool, request(gpus(1)))] == ["host0", "host1"]
    with pytest.raises(Unreachable, match="no cable joins 'gpu1' and host0"):
        preview(pool, "host0", ["gpu1"])


def test_without_a_free_server_there_is_no_offer(pool: Pool) -> None:
    pool = op.claim(pool, Composition("job", "host1", ()))
    assert refused(pool, request(gpus(1))).cause == "none of 2 servers is free (host0 has host0, host1 has job)"


def test_a_part_that_the_pool_lacks_is_named_with_those_that_it_has(pool: Pool) -> None:
    error = refused(pool, request(gpus(1, part="h100-sxm")))
    assert (error.cause, error.hint) == ("the pool has no h100-sxm GPU", "GPUs of the pool: l40s")


def test_named_blocks_are_offered_as_they_are(pool: Pool) -> None:
    named = CompositionRequest((gpus(2, 12),), blocks=("gpu5", "gpu7"))
    (offer,) = offers(pool, named)
    assert (offer.server, offer.blocks) == ("host1", ("gpu5", "gpu7"))
    error = refused(pool, replace(named, requirements=(gpus(2, 14),)))
    assert "would get 13.4 GB/s each, 14 GB/s requested" in error.cause
    assert error.nearest is not None
    assert error.nearest.requirements == (gpus(2, 13.4),)
    with pytest.raises(Contradiction, match="block gpu5 is a l40s, not a h100-nvl"):
        offers(pool, replace(named, requirements=(gpus(2, part="h100-nvl"),)))
    assert refused(pool, replace(named, blocks=("gpu0", "gpu5"))).cause == "block gpu0 is in use by host0"


def test_a_preview_says_what_is_not_enough(pool: Pool) -> None:
    offer = preview(pool, "host1", ["gpu4", "gpu5"], [gpus(2, 20)])
    assert not offer.met
    assert [round(rate.rate / GB, 1) for rate in offer.rates] == [13.4, 13.4]
    assert [rate.device for rate in preview(pool, "host0", (), extends="host0").rates] == [
        "gpu0",
        "gpu1",
        "gpu2",
        "gpu3",
    ]
    with pytest.raises(Contradiction, match="block gpu0 is in use by host0"):
        preview(pool, "host1", ["gpu0"])
    with pytest.raises(Contradiction, match="host0 is composed already"):
        preview(pool, "host0", ["gpu4"])


@dataclass(frozen=True)
class Space:
    """What a server has left."""

    slots: int | None = None
    buses: int | None = None
    bar_space: float | None = None


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (Space(slots=1), "host1 has 1 hot-plug slots left, and 2 devices need one each"),
        (Space(buses=0), "host1 has 0 PCIe bus numbers left"),
    ],
)
def test_a_server_without_space_is_passed_over(empty: Pool, space: Space, words: str) -> None:
    assert {offer.server for offer in offers(empty, request(gpus(2)), spaces={"host1": space})} == {"host0"}
    with pytest.raises(NoOffer, match=words):
        offers(empty, request(gpus(2), server="host1"), spaces={"host1": space})
    with pytest.raises(Unreachable, match=words):
        preview(empty, "host1", ["gpu0", "gpu1"], spaces={"host1": space})


def test_servers_are_asked_for_their_space_only_when_it_is_their_turn(empty: Pool) -> None:
    asked_of: list[str] = []

    class Spaces(dict[str, Space]):
        def get(self, server: str, default: Space | None = None) -> Space | None:  # type: ignore[override]
            asked_of.append(server)
            return Space(slots=8)

    (offer, *_) = offers(empty, request(gpus(2)), spaces=Spaces())
    assert (offer.server, offer.alike, asked_of) == ("host0", ("host1",), ["host0"])


def test_the_bars_of_gpus_need_address_space() -> None:
    system = load_system("puget-wrx90")
    assert why_no_space(system, "host", ["gpu0", "gpu1"], Space(bar_space=2.0**40)) == ""
    assert why_no_space(system, "host", ["gpu0", "gpu1"], Space(bar_space=2.0**30)) == (
        "host has 1 GiB of address space left, and the BARs need 128 GiB"
    )
    drives = load_system("pax-storage-fabric")
    assert why_no_space(drives, "host0", drives.of_kind(Kind.SSD), Space(bar_space=0.0)) == ""


def test_what_cannot_be_meant_is_refused(pool: Pool) -> None:
    for impossible in (request(), request(gpus(0)), request(PathRequirement(Kind.SWITCH, 1)), request(gpus(1, -1.0))):
        with pytest.raises(FormatError):
            offers(pool, impossible)
    nobody = (request(gpus(1), server="host7"), request(gpus(1), extends="nobody"), request(gpus(1), server="host0"))
    for impossible in nobody:
        with pytest.raises(LanewiseError):
            offers(pool, impossible)
