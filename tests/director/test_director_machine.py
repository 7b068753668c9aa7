"""After any requests, faults, meddling and crashes, pool, database and fabric agree, and nothing is given twice."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from director.directors import Clock, Crash, Running, check, copied, request, running, small_pool
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lanewise.director.drivers.base import DeviceHolder, HolderKind
from lanewise.director.drivers.sim import SimDriver, SimFaults
from lanewise.director.records import Task
from lanewise.errors import LanewiseError
from lanewise.pool.model import BlockState, ReservationState

SERVERS = ("host0", "host1")
GPUS = tuple(f"gpu{number}" for number in range(8))
some_server, some_gpu = st.sampled_from(SERVERS), st.sampled_from(GPUS)
some_gpus = st.lists(some_gpu, min_size=1, max_size=3, unique=True).map(tuple)
some_key = st.sampled_from(["", "", "", "k1", "k2"])
FAULTS = st.builds(
    SimFaults, *(st.sampled_from([0.0, 0.3]) for _ in ("trained_down", "stuck_quiesce", "lost_reply", "refused")),
    unclear=st.sampled_from([0.0, 0.3]),
)  # fmt: skip
EXAMPLES, STEPS = (int(word) for word in os.environ.get("LANEWISE_DIRECTOR_EXAMPLES", "10x12").split("x"))
TEMPLATE: list[Path] = []


class DirectorMachine(RuleBasedStateMachine):
    """Drives one director and judges it after every rule."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self._path = copied(TEMPLATE[0], Path(self._folder.name) / "director.db")
        self._one: Running | None = None
        self._crash_in = -1
        self._soon: tuple[str, str | None] | None = None

    @initialize(faults=FAULTS, seed=st.integers(0, 1000))
    def begin(self, faults: SimFaults, seed: int) -> None:
        driver = SimDriver(small_pool(), faults=faults, seed=seed, crash=self._reached)
        self._one = running(self._path, driver, Clock())

    @property
    def one(self) -> Running:
        assert self._one is not None
        return self._one

    @rule(server=some_server, blocks=some_gpus, key=some_key)
    def compose(self, server: str, blocks: tuple[str, ...], key: str) -> None:
        self._try(blocks, lambda: self.one.director.compose(request(*blocks, server=server), key=key))

    @rule(server=some_server, blocks=some_gpus)
    def extend(self, server: str, blocks: tuple[str, ...]) -> None:
        name = self._name(server)
        self._try(blocks, lambda: self.one.director.compose(request(*blocks, extends=name)))

    @rule(server=some_server, block=some_gpu)
    def detach(self, server: str, block: str) -> None:
        self._try((), lambda: self.one.director.detach(self._name(server), block))

    @rule(server=some_server)
    def release(self, server: str) -> None:
        self._try((), lambda: self.one.director.release(self._name(server)))

    @rule(server=some_server, blocks=some_gpus, seconds=st.sampled_from([1.0, 50.0]))
    def reserve(self, server: str, blocks: tuple[str, ...], seconds: float) -> None:
        self._try(blocks, lambda: self.one.director.reserve(request(*blocks, server=server), seconds))

    @rule()
    def apply(self) -> None:
        for name in self.one.director.view().pool.reservations:
            self._try((), partial(self.one.director.apply, name))

    @rule()
    def cancel(self) -> None:
        for name in self.one.director.view().pool.reservations:
            self.one.director.cancel(name)

    @rule(seconds=st.sampled_from([0.5, 20.0]))
    def wait(self, seconds: float) -> None:
        self.one.clock.now += seconds
        self.one.director.expire()

    @rule(block=some_gpu, used=st.booleans())
    def use(self, block: str, used: bool) -> None:
        self.one.driver.hold(block, *([DeviceHolder(HolderKind.MOUNT, "/data")] if used else []))

    @rule(block=some_gpu, server=st.sampled_from([*SERVERS, None]))
    def meddle(self, block: str, server: str | None) -> None:
        self.one.driver.meddle(block, server)
        self.one.director.poll()

    @rule(block=some_gpu, server=st.sampled_from([*SERVERS, None]))
    def meddle_soon(self, block: str, server: str | None) -> None:
        """During the next operation, whatever that is on."""
        self._soon = block, server

    @rule(block=some_gpu, back=st.booleans())
    def lose(self, block: str, back: bool) -> None:
        (self.one.driver.find if back else self.one.driver.lose)(block)
        self.one.director.poll()

    @rule(server=some_server)
    def answer_again(self, server: str) -> None:
        self.one.driver.blur(server, unclear=False)
        self.one.director.reconcile()

    @rule(block=some_gpu)
    def repair(self, block: str) -> None:
        self.one.director.repair(block)

    @rule(points=st.integers(0, 6))
    def crash_soon(self, points: int) -> None:
        self._crash_in = points

    @invariant()
    def agree(self) -> None:
        if self._one is None:
            return
        check(self.one)
        view, driver = self.one.director.view(), self.one.driver
        assert all(task.ended for task in self.one.director.tasks())
        for server in set(SERVERS) - driver._unclear:
            owner = view.pool.composition_on(server)
            mine = set() if owner is None else {
                name for name in owner.blocks if view.pool.block(name).state is BlockState.COMPOSED
            }  # fmt: skip
            known = {name for name in driver.observe(server) if view.pool.block(name).state is BlockState.COMPOSED}
            assert known == mine
            free = {block.name for block in view.pool.blocks.values() if block.state is BlockState.UNUSED}
            assert not free & driver.observe(server)
        held = [name for one in view.pool.compositions.values() for name in one.blocks]
        kept = [name for one in view.pool.reservations.values() for name in one.blocks]
        assert len(held + kept) == len({*held, *kept})
        assert all(one.state is ReservationState.ACTIVE for one in view.pool.reservations.values())

    def teardown(self) -> None:
        if self._one is not None:
            self._one.close()
        self._folder.cleanup()

    def _name(self, server: str) -> str:
        owner = self.one.director.view().pool.composition_on(server)
        return "none" if owner is None else owner.name

    def _try(self, blocks: tuple[str, ...], operation: object) -> None:
        """An operation that may be refused, fail, or end the director; what is not free is never given."""
        before = self.one.director.view()
        free = all(before.pool.block(name).free for name in blocks)
        expired = any(one.expires <= self.one.clock.now for one in before.pool.reservations.values())
        try:
            result = operation()  # type: ignore[operator]
        except LanewiseError:
            assert self.one.director.view().version == before.version or expired
        except Crash:
            self._crash_in = -1
            self.one.close()
            self._one = running(self._path, self.one.driver, self.one.clock)
        else:
            new = not isinstance(result, Task) or self.one.director.view().version != before.version
            assert free or expired or not new

    def _reached(self, _: str) -> None:
        if self._soon is not None:
            (block, server), self._soon = self._soon, None
            self.meddle(block, server)
        self._crash_in -= self._crash_in >= 0
        if self._crash_in == 0:
            raise Crash


def test_director_machine(template: Path) -> None:
    TEMPLATE[:] = [template]
    few = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, suppress_health_check=list(HealthCheck), deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if EXAMPLES < 100 else [])],
    )  # fmt: skip
    run_state_machine_as_test(DirectorMachine, settings=few)


pytestmark = pytest.mark.filterwarnings("error")
