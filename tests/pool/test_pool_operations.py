"""Every sequence of claims, attachments, failures and reservations ends in a pool that agrees with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lanewise.api import load_system
from lanewise.errors import Contradiction, LanewiseError
from lanewise.pool import operations as op
from lanewise.pool.model import BlockState, Composition, CompositionState, Pool, Reservation
from lanewise.pool.states import inconsistencies

SYSTEM = load_system("composable-server-two-hosts", {"gpus": 3, "bound": 1})
BLOCKS = tuple(f"gpu{number}" for number in range(3))
SERVERS = ("host0", "host1")
some_blocks = st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=2).map(tuple)
rare = st.integers(0, 4).map(lambda number: number == 4)


class Operations(RuleBasedStateMachine):
    """Any operation on what there is; what is refused leaves no trace, what is not leaves a consistent pool."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = op.pool_of(SYSTEM)
        self.now = 0.0
        self.count = 0

    def attempt(self, operation: Callable[[Pool], Pool]) -> None:
        with suppress(LanewiseError):
            self.pool = operation(self.pool)

    def fresh(self, used: bool) -> str:
        """A new name, or the last one again."""
        self.count += not used
        return f"n{self.count}"

    def live(self, number: int) -> str:
        """One of the compositions, the latest of a server first."""
        names = list(self.pool.compositions)[::-1]
        return names[number % len(names)]

    def server(self, number: int) -> str:
        """One of the servers, those that nobody has first."""
        return sorted(SERVERS, key=lambda server: self.pool.composition_on(server) is not None)[number]

    @rule(again=rare, number=rare, blocks=some_blocks)
    def claim(self, again: bool, number: bool, blocks: tuple[str, ...]) -> None:
        name, server = self.fresh(again), self.server(number)
        self.attempt(lambda pool: op.claim(pool, Composition(name, server, blocks)))

    @rule(number=st.integers(0, 2), block=st.sampled_from(BLOCKS), take=st.booleans())
    def move(self, number: int, block: str, take: bool) -> None:
        name = self.live(number)
        self.attempt(lambda pool: (op.with_block if take else op.without_block)(pool, name, block))

    @rule(number=st.integers(0, 2), release=rare)
    def end(self, number: int, release: bool) -> None:
        name = self.live(number)
        self.attempt(lambda pool: (op.released if release else op.settled)(pool, name))

    @rule(block=st.sampled_from(BLOCKS), state=st.sampled_from(BlockState))
    def change(self, block: str, state: BlockState) -> None:
        self.attempt(lambda pool: op.with_block_state(pool, block, state))

    @rule(again=rare, number=rare, blocks=some_blocks, seconds=st.integers(1, 3))
    def reserve(self, again: bool, number: bool, blocks: tuple[str, ...], seconds: int) -> None:
        kept = Reservation(self.fresh(again), self.server(number), blocks, self.now + seconds)
        self.attempt(lambda pool: op.reserve(pool, kept))

    @rule(number=st.integers(0, 2), drop=st.booleans())
    def use(self, number: int, drop: bool) -> None:
        names = list(self.pool.reservations)[::-1]
        if names:
            name, composition = names[number % len(names)], self.fresh(False)
            self.attempt(lambda pool: op.cancel(pool, name) if drop else op.apply(pool, name, composition, self.now))

    @rule()
    def wait(self) -> None:
        self.now += 1.0
        self.pool = op.expire(self.pool, self.now)

    @invariant()
    def no_block_is_in_two_compositions(self) -> None:
        listed = Counter(name for one in self.pool.compositions.values() for name in one.blocks)
        claimed = [name for name, block in self.pool.blocks.items() if block.holder is not None]
        assert all(count == 1 for count in listed.values())
        assert sorted(listed) == sorted(claimed)

    @invariant()
    def the_pool_agrees_with_itself(self) -> None:
        assert inconsistencies(self.pool) == []

    @invariant()
    def what_is_free_is_attached_to_nobody(self) -> None:
        assert all(self.pool.system.device(block.device).host is None for block in self.pool.free())


Operations.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestOperations = Operations.TestCase


@pytest.fixture
def pool() -> Pool:
    return op.pool_of(SYSTEM)


def test_what_is_attached_at_first_is_the_composition_of_its_server(pool: Pool) -> None:
    assert pool.composition("host0").blocks == ("gpu0",)
    assert [block.name for block in pool.free()] == ["gpu1", "gpu2"]


def test_a_device_in_a_slot_of_its_server_is_no_block() -> None:
    assert op.pool_of(load_system("dgx-a100")).blocks == {}


def test_a_server_with_a_composition_is_refused(pool: Pool) -> None:
    with pytest.raises(Contradiction, match="host0 is composed already, by host0"):
        op.claim(pool, Composition("a", "host0", ("gpu1",)))


def test_a_failed_block_is_not_handed_out_after_its_composition_is_released(pool: Pool) -> None:
    after = op.released(op.with_block_state(pool, "gpu0", BlockState.FAILED), "host0")
    assert after.composition("host0").state is CompositionState.RELEASED
    assert not after.block("gpu0").free
    with pytest.raises(Contradiction, match="cannot be reserved: it is Failed"):
        op.reserve(after, Reservation("r", "host1", ("gpu0",), expires=9.0))
    assert op.with_block_state(after, "gpu0", BlockState.UNUSED).block("gpu0").free


def test_an_expired_reservation_leaves_its_blocks_free(pool: Pool) -> None:
    kept = op.reserve(pool, Reservation("r", "host1", ("gpu1",), expires=9.0))
    with pytest.raises(Contradiction, match="block gpu1 is reserved by r"):
        op.with_block(kept, "host0", "gpu1")
    assert not op.expire(kept, 8.9).block("gpu1").free
    with pytest.raises(Contradiction, match="is Expired"):
        op.apply(kept, "r", "a", now=9.0)
    assert op.apply(kept, "r", "a", now=8.0).composition("a").blocks == ("gpu1",)


def test_a_block_that_is_not_attached_cannot_become_composed(pool: Pool) -> None:
    claimed = op.claim(pool, Composition("a", "host1", ("gpu1",)))
    with pytest.raises(Contradiction, match="gpu1 is attached to no server"):
        op.with_block_state(claimed, "gpu1", BlockState.COMPOSED)
    attached = op.with_block(claimed, "a", "gpu1")
    assert op.settled(attached, "a").composition("a").state is CompositionState.COMPOSED
    assert attached.system.device("gpu1").host == "host1"
