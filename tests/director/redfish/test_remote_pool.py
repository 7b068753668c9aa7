"""Our client against our service: what it lists and offers is what the director says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from director.redfish.in_process import redfish_client
from director.redfish.services import Client

from lanewise.director.client.errors import RefusedByService
from lanewise.director.client.pool import RemotePool
from lanewise.pool.model import CompositionRequest, NoOffer, PathRequirement
from lanewise.topology.model import Kind


@pytest.fixture
def pool(client: Client) -> Iterator[RemotePool]:
    with redfish_client(client) as opened:
        yield RemotePool(opened)


def gpus(count: int, rate: float | None = None) -> tuple[PathRequirement, ...]:
    return (PathRequirement(Kind.GPU, count, rate),)


def test_offers_are_those_of_the_director(pool: RemotePool, client: Client) -> None:
    request = CompositionRequest(gpus(2, 5e9), server="host1")
    ours, theirs = client.running.director.offers(request), pool.offers(request)
    assert [(offer.server, offer.blocks, offer.losses) for offer in theirs] == [
        (offer.server, offer.blocks, offer.losses) for offer in ours
    ]
    for mine, remote in zip(ours[0].rates, theirs[0].rates, strict=True):
        assert (remote.device, remote.path, remote.limit, remote.basis) == (
            mine.device,
            mine.path,
            mine.limit,
            mine.basis,
        )
        assert (remote.rate, remote.required) == (pytest.approx(mine.rate, rel=1e-6), mine.required)


def test_a_system_is_composed_changed_and_released(pool: RemotePool) -> None:
    train = pool.compose(CompositionRequest(gpus(2, 5e9), server="host1", name="train"))
    assert (train.server, train.state, len(train.blocks)) == ("host1", "Composed", 2)
    free = next(block.name for block in pool.listing(rates=False).blocks if block.state == "Unused")
    more = pool.attach("train", free)
    assert set(more.blocks) == {*train.blocks, free}
    assert {rate.device for rate in more.rates} == set(more.blocks)
    listing = pool.listing()
    assert [system.name for system in listing.systems] == ["train"]
    assert {block.system for block in listing.blocks if block.name in more.blocks} == {"train"}
    assert pool.detach("train", free).blocks == train.blocks
    pool.release("train")
    listing = pool.listing()
    assert listing.systems == ()
    assert {block.state for block in listing.blocks} == {"Unused"}
    assert [server.name for server in listing.servers] == ["host0", "host1"]


def test_a_rate_that_no_path_gives_is_refused_with_the_nearest_offer(pool: RemotePool, client: Client) -> None:
    request = CompositionRequest(gpus(4, 20e9))
    with pytest.raises(NoOffer) as ours:
        client.running.director.offers(request)
    for ask in (pool.offers, pool.compose):
        with pytest.raises(NoOffer) as theirs:
            ask(request)
        assert (theirs.value.limit, theirs.value.cause) == (ours.value.limit, ours.value.cause)
        assert theirs.value.nearest is not None
        assert ours.value.nearest is not None
        assert theirs.value.nearest.blocks == ours.value.nearest.blocks


def test_a_block_that_somebody_has_is_refused(pool: RemotePool) -> None:
    pool.compose(CompositionRequest(blocks=("gpu0",), server="host0", name="a"))
    with pytest.raises(RefusedByService, match="gpu0 is in use by a") as refusal:
        pool.compose(CompositionRequest(blocks=("gpu0",), server="host1", name="b"))
    assert (refusal.value.status, refusal.value.keys[0]) == (409, "ResourceBlockInUse")


def test_a_reader_may_list_and_not_compose(client: Client) -> None:
    with redfish_client(client, "reader") as opened:
        pool = RemotePool(opened)
        assert len(pool.listing().blocks) == 8
        with pytest.raises(RefusedByService, match="Your role does not allow this"):
            pool.compose(CompositionRequest(blocks=("gpu0",), server="host0"))
