"""What-if changes: the pool of afterwards, with today's one untouched."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.errors import Contradiction
from lanewise.pool.model import Pool
from lanewise.pool.operations import pool_of
from lanewise.pool.states import inconsistencies
from lanewise.pool.what_if import ChangeKind, PoolChange, active_flows, changed, predicted_rates


@pytest.fixture
def pool() -> Pool:
    """Four GPUs of host0 behind one cable, four that nobody has."""
    return pool_of(lanewise.load_system("composable-server-two-hosts"))


def test_a_gpu_moved_to_the_other_server_lowers_no_rate_and_leaves_the_pool_as_it_was(pool: Pool) -> None:
    move = [
        PoolChange(ChangeKind.DETACH, "host0", ("gpu3",)),
        PoolChange(ChangeKind.COMPOSE, "second", ("gpu3",), "host1"),
    ]
    after = changed(pool, move)
    assert inconsistencies(after) == []
    assert after.system.device("gpu3").host == "host1"
    assert pool.system.device("gpu3").host == "host0"
    before = {rate.device: rate.rate for rate in predicted_rates(pool)["host0"]}
    rates = predicted_rates(after)
    assert [rate.device for rate in rates["second"]] == ["gpu3"]
    # Four GPUs share the cable of host0; three are below what it carries.
    assert all(rate.rate > 1.2 * before[rate.device] for rate in rates["host0"])
    assert {(flow.src, flow.dst) for flow in active_flows(after)} == {
        ("host0", "gpu0"), ("host0", "gpu1"), ("host0", "gpu2"), ("host1", "gpu3"),
    }  # fmt: skip


def test_a_composed_server_gets_more_blocks_and_a_released_one_has_none(pool: Pool) -> None:
    more = changed(pool, [PoolChange(ChangeKind.COMPOSE, "x", ("gpu4",), "host0")])
    assert more.composition("host0").blocks[-1] == "gpu4"
    none = changed(more, [PoolChange(ChangeKind.RELEASE, "host0")])
    assert predicted_rates(none) == {}
    assert active_flows(none) == ()


def test_what_cannot_be_is_refused_with_the_reason(pool: Pool) -> None:
    with pytest.raises(Contradiction, match="has no block gpu7"):
        changed(pool, [PoolChange(ChangeKind.DETACH, "host0", ("gpu7",))])
    with pytest.raises(Contradiction, match="would have no blocks"):
        changed(pool, [PoolChange(ChangeKind.COMPOSE, "new", (), "host1")])
