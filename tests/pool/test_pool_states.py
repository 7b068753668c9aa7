"""States of blocks, compositions and reservations: what may follow what, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.errors import Contradiction
from lanewise.pool.model import (
    BlockState,
    Composition,
    CompositionState,
    Reservation,
    ReservationState,
    ResourceBlock,
)
from lanewise.pool.states import block_in, composition_in, reservation_in
from lanewise.topology.model import Kind

BLOCK = ResourceBlock("gpu0", Kind.GPU, "gpu0")


def test_a_block_goes_from_unused_over_composing_to_composed_and_back() -> None:
    claimed = block_in(BLOCK, BlockState.COMPOSING, "job")
    composed = block_in(claimed, BlockState.COMPOSED)
    assert composed.holder == "job"
    assert block_in(composed, BlockState.UNUSED) == BLOCK


def test_a_claimed_block_is_refused_by_name() -> None:
    claimed = block_in(BLOCK, BlockState.COMPOSING, "job")
    with pytest.raises(Contradiction, match="block gpu0 is Composing and cannot become Composing"):
        block_in(claimed, BlockState.COMPOSING, "another")
    with pytest.raises(Contradiction, match="block gpu0 is in use by job"):
        block_in(claimed, BlockState.COMPOSED, "another")


def test_a_reserved_block_is_refused() -> None:
    reserved = replace(BLOCK, reservation="r1")
    with pytest.raises(Contradiction, match="block gpu0 is reserved by r1"):
        block_in(reserved, BlockState.COMPOSING, "job")


def test_a_failed_block_keeps_its_holder_until_it_is_unused() -> None:
    composed = block_in(block_in(BLOCK, BlockState.COMPOSING, "job"), BlockState.COMPOSED)
    failed = block_in(composed, BlockState.FAILED)
    assert failed.holder == "job"
    with pytest.raises(Contradiction, match="in use by job"):
        block_in(failed, BlockState.COMPOSING, "another")
    assert block_in(failed, BlockState.UNUSED).free


def test_a_claim_needs_a_holder() -> None:
    with pytest.raises(Contradiction, match="no composition claims it"):
        block_in(BLOCK, BlockState.COMPOSING)


def test_a_released_composition_is_an_end() -> None:
    released = Composition("job", "host0", (), state=CompositionState.RELEASED)
    with pytest.raises(Contradiction, match="composition job is Released and cannot become Composed"):
        composition_in(released, CompositionState.COMPOSED)


def test_an_expired_reservation_cannot_be_applied() -> None:
    active = Reservation("r1", "host0", ("gpu0",), expires=10.0)
    expired = reservation_in(active, ReservationState.EXPIRED)
    with pytest.raises(Contradiction, match="reservation r1 is Expired and cannot become Applied"):
        reservation_in(expired, ReservationState.APPLIED)
