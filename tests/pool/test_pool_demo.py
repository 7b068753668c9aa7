"""The ready pool `composable-pool`: unequal paths, a narrow link, a server with two cables, a GPU and its card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.api import load_system
from lanewise.pool import operations as op
from lanewise.pool.model import CompositionRequest, NoOffer, PathRequirement, Pool
from lanewise.pool.offers import offers, preview
from lanewise.topology.model import Kind
from lanewise.topology.write import write_system

GB = 1e9
FOUR = PathRequirement(Kind.GPU, 4, 20 * GB)


@pytest.fixture(scope="module")
def pool() -> Pool:
    """Three servers, sixteen GPUs of which host0 has two."""
    return op.pool_of(load_system("composable-pool"))


def test_four_gpus_of_20_gb_s_are_spread_over_the_server_with_two_cables(pool: Pool) -> None:
    (offer, *_) = offers(pool, CompositionRequest((FOUR,)))
    assert offer.server == "host2"
    boxes = [rate.path[-2] for rate in offer.rates]
    assert boxes == ["box_b", "box_b", "box_c", "box_c"]
    assert offer.met
    assert offer.losses == ()
    assert offer.notes == (
        "gpu4 and gpu8: cross-domain P2P is off, so host2_near and host2_far meet only above their root ports",
    )


def test_a_server_with_one_cable_refuses_them_and_names_the_nearest(pool: Pool) -> None:
    with pytest.raises(NoOffer) as caught:
        offers(pool, CompositionRequest((FOUR,), server="host1"))
    assert caught.value.show() == (
        "error: 4 GPUs on host1 would get 14.36 GB/s each, 20 GB/s requested; "
        "the limit is link h1_cpu0->h1_hba (Gen5 x16)\n"
        "hint:  nearest: 4 GPUs at 20 GB/s each on host2; or 2 GPUs at 20 GB/s each on host1; "
        "or 4 GPUs at 14.3 GB/s each on host1"
    )


def test_the_narrow_link_is_the_limit_of_what_is_behind_it(pool: Pool) -> None:
    rates = preview(pool, "host1", [f"gpu{n}" for n in range(12, 16)]).rates
    assert {rate.limit for rate in rates} == {"link far->box_d (Gen4 x8)"}
    assert sum(rate.rate for rate in rates) == pytest.approx(14.36 * GB, rel=1e-3)


def test_a_longer_path_gives_no_less_until_the_cable_is_shared(pool: Pool) -> None:
    empty = op.released(pool, "host0")
    near, far = (preview(empty, "host1", [name]).rates[0] for name in ("gpu2", "gpu8"))
    assert (near.hops, far.hops) == (4, 5)
    assert near.rate == far.rate == pytest.approx(0.965 * 26.8 * GB, rel=1e-3)  # measured at AMD, here a Xeon


def test_a_network_card_comes_from_the_box_of_its_gpus_and_adds_no_load(pool: Pool) -> None:
    requirement = PathRequirement(Kind.GPU, 2, 20 * GB, nics=1)
    (offer, *_) = offers(pool, CompositionRequest((requirement,), server="host1"))
    assert offer.blocks == ("gpu4", "gpu5", "nic1")
    assert offer.paired == (("nic1", "gpu4"),)
    assert offer.rates[2].path == ("nic1", "box_b", "gpu4")
    assert offer.total == offer.rates[0].rate + offer.rates[1].rate
    assert preview(pool, "host1", offer.blocks, [requirement]).paired == offer.paired
    with pytest.raises(NoOffer):
        offers(pool, CompositionRequest((replace(requirement, count=4, nics=4, rate=None),)))


def test_another_tenant_on_the_same_link_loses_and_the_offer_says_how_much(pool: Pool) -> None:
    pool = op.with_block(pool, "host0", "gpu12")
    offer = preview(pool, "host1", ["gpu13"])
    (loss,) = offer.losses
    assert (loss.composition, loss.device) == ("host0", "gpu12")
    assert loss.before == pytest.approx(13.89 * GB, rel=1e-3)
    assert loss.after == pytest.approx(14.36 * GB / 2, rel=1e-3)
    assert offer.rates[0].alone == pytest.approx(13.89 * GB, rel=1e-3)
    chosen = offers(pool, CompositionRequest((PathRequirement(Kind.GPU, 1, part="h100-nvl"),), server="host1"))
    assert (chosen[0].blocks, chosen[0].lost) == (("gpu4",), 0.0)


def test_a_tenant_keeps_the_rate_that_it_asked_for(pool: Pool) -> None:
    pool = op.with_block(pool, "host0", "gpu12")
    required = (PathRequirement(Kind.GPU, 2), PathRequirement(Kind.GPU, 1, 12 * GB))
    pool = replace(pool, compositions={"host0": replace(pool.composition("host0"), requirements=required)})
    request = CompositionRequest((PathRequirement(Kind.GPU, 1),), server="host1", blocks=("gpu13",))
    with pytest.raises(NoOffer) as caught:
        offers(pool, request)
    assert caught.value.cause == (
        "with 1 block more on host1, gpu12 of host0 would get 7.182 GB/s of the 12 GB/s that it requested"
    )
    assert caught.value.nearest is not None
    assert caught.value.nearest.lost == 0.0


def test_what_is_attached_can_be_written_and_read_again(pool: Pool) -> None:
    moved = op.with_block(pool, "host0", "ssd6")
    assert "h0_cpu0" in write_system(moved.system)
