"""What compositions do to pool, database and fabric: who wins, what is undone, reported, and never given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
from director.directors import Clock, Crash, Running, check, request, simulated, small_pool

from lanewise.director.drivers.base import (
    Busy,
    DeviceHolder,
    FabricEvent,
    FabricEventKind,
    Gone,
    HolderKind,
    Retryable,
    Unknown,
)
from lanewise.director.drivers.sim import SimDriver
from lanewise.director.errors import (
    BlockInUse,
    DeviceInUse,
    Expired,
    KeyReused,
    NoSpace,
    OperationRunning,
    StaleVersion,
    StoreError,
)
from lanewise.director.records import EventKind, Health, ProblemKind, TaskState
from lanewise.director.store.changes import Change
from lanewise.director.store.database import Store
from lanewise.director.store.rows import ClaimState
from lanewise.errors import Contradiction, InputError, UnknownName
from lanewise.pool.model import BlockState, CompositionRequest, CompositionState, NoOffer, PathRequirement
from lanewise.topology.model import Kind

Start = Callable[..., Running]
PYTHON = DeviceHolder(HolderKind.PROCESS, "python", 77)


def states(one: Running) -> dict[str, BlockState]:
    """The state of every block that is not Unused."""
    blocks = one.director.view().pool.blocks.values()
    return {block.name: block.state for block in blocks if block.state is not BlockState.UNUSED}


def test_a_new_director_has_the_blocks_in_the_order_of_the_description(start: Start) -> None:
    one = start(simulated())
    described = one.driver.discover().devices
    assert list(one.director.view().pool.blocks) == [name for name in described if name.startswith("gpu")]


def test_a_composition_gets_its_blocks_and_gives_them_back(start: Start) -> None:
    one = start(simulated())
    task = one.director.compose(request("gpu1", "gpu0", name="a"), client="eve")
    assert (task.state, task.blocks, task.client) == (TaskState.COMPLETED, ("gpu0", "gpu1"), "eve")
    assert one.driver.observe("host0") == {"gpu0", "gpu1"}
    record = one.director.view().compositions["a"]
    assert (record.composition.state, record.health, record.client) == (CompositionState.COMPOSED, Health.OK, "eve")
    check(one)
    one.director.attach("a", "gpu2")
    one.director.detach("a", "gpu0")
    assert one.driver.observe("host0") == {"gpu1", "gpu2"}
    check(one)
    one.director.release("a")
    assert one.driver.observe("host0") == set()
    assert "a" not in one.director.view().compositions
    assert states(one) == {}
    check(one)
    one.director.compose(request("gpu0", name="a"))
    check(one)


def test_what_is_refused_changes_nothing(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    one.driver.hold("gpu0", PYTHON)
    before = one.director.view()
    for error, words, refused in (
        (BlockInUse, "gpu0 is in use by a", lambda: one.director.compose(request("gpu0", "gpu1", server="host1"))),
        (BlockInUse, "host0 is in use by a", lambda: one.director.compose(request("gpu1"))),
        (Contradiction, "exists already", lambda: one.director.compose(request("gpu1", server="host1", name="a"))),
        (Contradiction, "named twice", lambda: one.director.compose(request("gpu1", "gpu1", server="host1"))),
        (UnknownName, "gpu99", lambda: one.director.compose(request("gpu99"))),
        (UnknownName, "host9", lambda: one.director.compose(request("gpu1", server="host9"))),
        (InputError, "needs blocks", lambda: one.director.compose(request())),
        (InputError, "no name", lambda: one.director.compose(request("gpu1", server="host1", name="../a"))),
        (StaleVersion, "at version", lambda: one.director.attach("a", "gpu1", version=before.version - 1)),
        (StaleVersion, "at version", lambda: one.director.release("a", version=before.version + 7)),
        (UnknownName, "unknown composition", lambda: one.director.attach("b", "gpu1")),
        (Contradiction, "no block gpu1", lambda: one.director.detach("a", "gpu1")),
        (DeviceInUse, r"gpu0 is in use on host0: process python \(pid 77\)", lambda: one.director.detach("a", "gpu0")),
        (DeviceInUse, "in use", lambda: one.director.release("a")),
        (UnknownName, "unknown task", lambda: one.director.task("b")),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            refused()
    assert one.director.view() is before
    check(one)


def test_an_attach_at_the_version_seen_succeeds(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    seen = one.director.view().compositions["a"].version
    one.director.attach("a", "gpu1", version=seen)
    with pytest.raises(StaleVersion):
        one.director.attach("a", "gpu2", version=seen)
    assert one.driver.observe("host0") == {"gpu0", "gpu1"}


def test_a_server_without_a_slot_gets_no_device(start: Start) -> None:
    one = start(SimDriver(small_pool(), slots=1))
    with pytest.raises(NoSpace, match="host0 has 1 hot-plug slots left, and 2 devices need one"):
        one.director.compose(request("gpu0", "gpu1"))
    one.director.compose(request("gpu0"))


def test_a_repeated_request_has_one_effect(start: Start) -> None:
    one = start(simulated())
    first = one.director.compose(request("gpu0", name="a"), key="k", client="eve")
    version = one.director.view().version
    assert one.director.compose(request("gpu0", name="a"), key="k", client="eve") == first
    assert one.director.view().version == version
    with pytest.raises(KeyReused):
        one.director.compose(request("gpu1", server="host1"), key="k", client="eve")
    with pytest.raises(BlockInUse):  # another client's key is another key
        one.director.compose(request("gpu0", name="a"), key="k", client="bob")
    gone = one.director.release("a", key="k2", client="eve")
    assert one.director.release("a", key="k2", client="eve") == gone
    kept = one.director.reserve(request("gpu0"), 10, key="k3")
    assert one.director.reserve(request("gpu0"), 10, key="k3") == kept
    check(one)


def test_a_request_repeated_at_the_same_time_has_one_effect(start: Start) -> None:
    one = start(simulated())
    tasks: list[str] = []
    threads = [
        Thread(target=lambda: tasks.append(one.director.compose(request("gpu0"), key="k").name)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tasks) == 8
    assert len(set(tasks)) == 1
    assert len(one.director.view().compositions) == 1
    check(one)


def test_a_task_without_wait_ends_by_itself(start: Start) -> None:
    one = start(simulated())
    task = one.director.compose(request("gpu0", name="a"), wait=False)
    assert one.director.wait(task.name).state is TaskState.COMPLETED
    assert [each.name for each in one.director.tasks()] == [task.name]
    check(one)


def test_events_come_in_order_to_listeners_and_to_those_who_wait(start: Start) -> None:
    one = start(simulated())
    heard: list[int] = []
    end = one.director.listen(lambda event: heard.append(event.id))
    last = one.director.view().version
    one.director.compose(request("gpu0", name="a"))
    assert heard == [last + 1, last + 2]
    end()
    one.director.release("a")
    assert heard == [last + 1, last + 2]
    kinds = [event.kind for event in one.director.wait_events(last)]
    assert kinds == [
        EventKind.COMPOSITION_CREATED, EventKind.COMPOSITION_CHANGED, EventKind.COMPOSITION_CHANGED,
        EventKind.COMPOSITION_RELEASED,
    ]  # fmt: skip
    assert one.director.wait_events(one.director.view().version, timeout=0) == ()


def test_a_link_that_trained_down_is_reported(start: Start) -> None:
    one = start(simulated(trained_down=1.0))
    one.director.compose(request("gpu0", name="a"))
    record = one.director.view().compositions["a"]
    assert record.health is Health.WARNING
    assert record.notes == ("gpu0: its link trained at Gen4 x8, of Gen4 x16",)
    events = [event for event in one.director.events() if event.kind is EventKind.LINK_TRAINED_DOWN]
    assert [(event.blocks, event.severity) for event in events] == [(("gpu0",), Health.WARNING)]
    check(one)


def test_a_link_that_trains_down_later_is_reported_and_forgotten_when_it_is_well(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    for lanes, health in ((4, Health.WARNING), (16, Health.OK)):
        one.driver.narrow("gpu0", lanes)
        assert one.director.poll() == 1
        assert one.director.view().compositions["a"].health is health
    check(one)


def test_a_lost_reply_is_no_failure(start: Start) -> None:
    one = start(simulated(lost_reply=1.0))
    assert one.director.compose(request("gpu0", "gpu1", name="a")).problem is None
    assert one.director.release("a").problem is None
    check(one)


def test_a_removal_that_never_rests_leaves_the_composition_as_it_was(start: Start) -> None:
    one = start(simulated(stuck_quiesce=1.0))
    one.director.compose(request("gpu0", name="a"))
    task = one.director.detach("a", "gpu0")
    assert task.state is TaskState.EXCEPTION
    assert task.problem
    assert (task.problem.kind, task.problem.device) == (ProblemKind.RETRYABLE, "gpu0")
    assert states(one) == {"gpu0": BlockState.COMPOSED}
    check(one)


class Failing(SimDriver):
    """A fabric on which one verb fails for one device."""

    def __init__(self, verb: str, device: str, error: Exception, often: int = 1000) -> None:
        super().__init__(small_pool())
        self.fault, self.error, self.often = (verb, device), error, often

    def _operate(self, verb: str, operation: str, server: str, device: str) -> None:
        if (verb, device) == self.fault and self.often:
            self.often -= 1
            raise self.error
        super()._operate(verb, operation, server, device)


def test_a_composition_of_which_one_device_fails_is_undone(start: Start) -> None:
    one = start(Failing("bind", "gpu1", Retryable("not now")))
    task = one.director.compose(request("gpu0", "gpu1", "gpu2", name="a"))
    assert task.problem
    assert task.problem.cause == "not now"
    assert (states(one), one.driver.observe("host0")) == ({}, set())
    assert "a" not in one.director.view().compositions
    check(one)


def test_a_device_that_is_refused_a_few_times_is_tried_again(start: Start) -> None:
    one = start(Failing("bind", "gpu1", Retryable("not now"), often=3))
    assert one.director.compose(request("gpu0", "gpu1", name="a")).problem is None
    check(one)


def test_a_release_stops_at_a_device_in_use_and_puts_the_others_back(start: Start) -> None:
    one = start(Failing("unbind", "gpu1", Busy("gpu1 is in use", (PYTHON,))))
    one.director.compose(request("gpu0", "gpu1", name="a"))
    task = one.director.release("a")
    assert task.problem
    assert (task.problem.kind, task.problem.holders) == (ProblemKind.BUSY, (PYTHON,))
    assert one.driver.observe("host0") == {"gpu0", "gpu1"}
    assert states(one) == {"gpu0": BlockState.COMPOSED, "gpu1": BlockState.COMPOSED}
    assert one.director.view().compositions["a"].composition.state is CompositionState.COMPOSED
    check(one)


def test_a_device_that_left_the_fabric_does_not_keep_a_composition(start: Start) -> None:
    one = start(Failing("unbind", "gpu1", Gone("gpu1 is not on the fabric")))
    one.director.compose(request("gpu0", "gpu1", name="a"))
    one.driver.lose("gpu1")
    one.director.release("a")
    assert states(one) == {"gpu1": BlockState.UNAVAILABLE}
    with pytest.raises(Contradiction, match="left the fabric"):
        one.director.compose(request("gpu1"))


def test_what_is_unknown_is_failed_and_never_given_to_anybody(start: Start) -> None:
    one = start(Failing("bind", "gpu1", Unknown("no reply"), often=4))
    one.driver.blur("host0")
    task = one.director.compose(request("gpu0", "gpu1", name="a"))
    assert task.problem
    assert task.problem.kind is ProblemKind.UNKNOWN
    assert states(one) == {"gpu1": BlockState.FAILED}
    record = one.director.view().compositions["a"]
    assert (record.composition.state, record.health) == (CompositionState.FAILED, Health.CRITICAL)
    with pytest.raises(BlockInUse):
        one.director.compose(request("gpu1", server="host1"))
    one.director.repair("gpu1")
    assert states(one) == {"gpu1": BlockState.FAILED}
    one.driver.blur("host0", unclear=False)
    one.director.repair("gpu1")
    assert states(one) == {}
    one.director.release("a")
    one.director.compose(request("gpu1", server="host1"))
    check(one)


def test_a_driver_at_fault_ends_the_task(start: Start) -> None:
    one = start(Failing("bind", "gpu0", KeyError("slot")))
    task = one.director.compose(request("gpu0", name="a"))
    assert task.problem
    assert (task.problem.kind, task.problem.cause) == (ProblemKind.INTERNAL, "KeyError: 'slot'")
    assert states(one) == {}
    check(one)


def test_a_reservation_keeps_blocks_until_it_expires(start: Start) -> None:
    clock = Clock()
    one = start(simulated(), clock)
    kept = one.director.reserve(request("gpu0", "gpu1"), 60)
    with pytest.raises(BlockInUse, match=f"gpu0 is in use by {kept.name}"):
        one.director.compose(request("gpu0", server="host1"))
    with pytest.raises(BlockInUse, match=f"host0 is in use by {kept.name}"):
        one.director.compose(request("gpu2"))
    check(one)
    clock.now += 60
    assert one.director.compose(request("gpu0", server="host1")).problem is None
    with pytest.raises(Expired):
        one.director.apply(kept.name)
    assert one.director.expire() == ()
    check(one)


def test_a_reservation_becomes_a_composition_or_is_cancelled(start: Start) -> None:
    one = start(simulated())
    kept = one.director.reserve(request("gpu0"), 60)
    task = one.director.apply(kept.name, name="a", key="k")
    assert one.director.apply(kept.name, name="a", key="k") == task
    assert states(one) == {"gpu0": BlockState.COMPOSED}
    with pytest.raises(Contradiction, match="is Applied"):
        one.director.apply(kept.name)
    other = one.director.reserve(request("gpu1", server="host1"), 60)
    one.director.cancel(other.name)
    one.director.compose(request("gpu1", server="host1"))
    check(one)


def test_what_others_do_to_the_fabric_is_seen(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", "gpu1", name="a"))
    one.driver.meddle("gpu7", "host1")
    one.driver.meddle("gpu0", None)
    one.driver.lose("gpu6")
    assert one.director.poll() == 3
    assert states(one) == {
        "gpu0": BlockState.FAILED, "gpu1": BlockState.COMPOSED, "gpu6": BlockState.UNAVAILABLE,
        "gpu7": BlockState.UNAVAILABLE,
    }  # fmt: skip
    assert one.director.view().compositions["a"].notes == (
        "gpu0: composed for host0, but the fabric has it at no server",
    )
    check(one)
    one.driver.meddle("gpu7", None)
    one.driver.find("gpu6")
    one.director.reconcile()
    one.director.repair("gpu0")
    assert states(one) == {"gpu1": BlockState.COMPOSED}
    check(one)


def test_peer_to_peer_is_as_the_driver_took_it(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    one.director.set_p2p("a", True)
    assert one.director.view().compositions["a"].p2p
    one.driver.set_p2p = lambda *_: (_ for _ in ()).throw(Unknown("no reply"))  # type: ignore[method-assign]
    with pytest.raises(Unknown):
        one.director.set_p2p("a", False)
    assert one.director.view().compositions["a"].p2p
    check(one)


def test_one_director_at_a_time(start: Start) -> None:
    one = start(simulated())
    store = Store(one.store.path)
    with pytest.raises(StoreError, match="another director uses"):
        store.hold()
    one.director.close()
    store.hold()
    store.close()


def crashing(start: Start, point: str) -> Running:
    """A director that ended at a point of an operation on composition a, and the next one over the same fabric."""
    one = start(simulated())
    one.director.compose(request("gpu0", "gpu1", name="a"))

    def crash(reached: str) -> None:
        if reached == point:
            raise Crash

    one.driver._crash = crash
    bind = point.split()[1] == "bind"
    added = request("gpu2", "gpu3", extends="a")
    with pytest.raises(Crash):
        _ = one.director.compose(added) if bind else one.director.release("a")
    one.driver._crash = lambda reached: None
    one.close()
    return start(one.driver)


@pytest.mark.parametrize("point", ["before bind gpu2", "after bind gpu2", "before bind gpu3", "after bind gpu3"])
def test_an_attach_that_a_crash_cut_is_finished(start: Start, point: str) -> None:
    again = crashing(start, point)
    assert again.driver.observe("host0") == {"gpu0", "gpu1", "gpu2", "gpu3"}
    assert len(states(again)) == 4
    check(again)


@pytest.mark.parametrize("point", ["before unbind gpu0", "after unbind gpu0", "after unbind gpu1"])
def test_a_release_that_a_crash_cut_is_finished(start: Start, point: str) -> None:
    again = crashing(start, point)
    assert again.driver.observe("host0") == set()
    assert states(again) == {}
    assert again.director.tasks()[-1].state is TaskState.COMPLETED
    check(again)


def test_what_came_attached_is_a_composition_of_its_server(start: Start) -> None:
    from lanewise.api.loading import load_system

    one = start(SimDriver(load_system("composable-server-two-hosts")))
    assert one.director.view().pool.compositions["host0-composed"].blocks == ("gpu0", "gpu1", "gpu2", "gpu3")
    one.director.detach("host0-composed", "gpu0")
    check(one)


def test_a_second_operation_on_a_composition_waits_for_its_turn(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    refused: list[BaseException] = []

    def meanwhile(point: str) -> None:
        if point == "before bind gpu1":
            with pytest.raises(OperationRunning) as caught:
                one.director.release("a")
            refused.append(caught.value)

    one.driver._crash = meanwhile
    one.director.attach("a", "gpu1")
    assert len(refused) == 1
    check(one)


def test_an_attach_that_can_no_more_be_finished_is_undone_by_the_next_director(start: Start) -> None:
    one = start(simulated())

    def crash(reached: str) -> None:
        if reached == "before bind gpu1":
            raise Crash

    one.driver._crash = crash
    with pytest.raises(Crash):
        one.director.compose(request("gpu0", "gpu1", name="a"))
    one.driver._crash = lambda reached: None
    one.driver.lose("gpu1")
    one.close()
    again = start(one.driver)
    assert again.driver.observe("host0") == set()
    assert states(again) == {"gpu1": BlockState.UNAVAILABLE}
    assert again.director.tasks()[-1].state is TaskState.EXCEPTION
    check(again)


def test_a_server_that_does_not_answer_keeps_what_it_has(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    one.driver.blur("host0")
    one.driver.meddle("gpu1", "host0")
    one.director.reconcile()
    assert states(one) == {"gpu0": BlockState.COMPOSED, "gpu1": BlockState.UNAVAILABLE}
    check(one)


def test_what_the_director_did_itself_is_no_news(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))
    one.driver._reports.append(FabricEvent(FabricEventKind.ATTACHED, "gpu0", "host0"))
    one.driver.observe = lambda server: pytest.fail("observed")  # type: ignore[method-assign]
    assert one.director.poll() == 1


def test_a_database_that_is_away_at_the_end_of_an_operation_is_waited_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start(simulated())
    change, failures = one.store.change, [StoreError("away"), StoreError("away")]

    def failing(now: float, work: Any, after: Any) -> Any:
        if one.driver.observe("host0") and failures:
            raise failures.pop()
        return change(now, work, after)

    monkeypatch.setattr(one.store, "change", failing)
    assert one.director.compose(request("gpu0", name="a")).problem is None
    check(one)


def test_a_database_that_stays_away_leaves_the_rest_to_a_reconcile(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = start(simulated())
    change = one.store.change

    def failing(now: float, work: Any, after: Any) -> Any:
        if one.driver.observe("host0"):
            raise StoreError("away")
        return change(now, work, after)

    monkeypatch.setattr(one.store, "change", failing)
    with pytest.raises(StoreError):
        one.director.compose(request("gpu0", name="a"))
    assert states(one) == {"gpu0": BlockState.COMPOSING}
    monkeypatch.undo()
    assert len(one.director.reconcile().finished) == 1
    assert states(one) == {"gpu0": BlockState.COMPOSED}
    check(one)


def test_what_happens_to_other_blocks_meanwhile_is_seen_at_the_end(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", "gpu1", name="a"))
    reached: list[CompositionState] = []

    def meanwhile(point: str) -> None:
        if point in ("before bind gpu2", "before unbind gpu1"):
            one.driver.meddle("gpu0" if "gpu2" in point else "gpu2", None)
            one.director.poll()
            reached.append(one.director.view().compositions["a"].composition.state)

    one.driver._crash = meanwhile
    one.director.attach("a", "gpu2")
    assert one.director.view().compositions["a"].composition.state is CompositionState.FAILED
    one.director.detach("a", "gpu0")
    assert one.director.view().compositions["a"].composition.state is CompositionState.COMPOSED
    one.director.release("a")
    assert reached == [CompositionState.CHANGING, CompositionState.RELEASING]
    assert states(one) == {}
    check(one)


def gpus(count: int, rate: float) -> CompositionRequest:
    """A request for so many GPUs with so many B/s each."""
    return CompositionRequest((PathRequirement(Kind.GPU, count, rate),))


def test_a_composition_gets_the_best_offer_or_the_reason_why_not(start: Start) -> None:
    one = start(simulated())
    task = one.director.compose(gpus(2, 8e9))
    assert (task.problem, len(task.blocks)) == (None, 2)
    with pytest.raises(NoOffer) as caught:
        one.director.compose(gpus(2, 20e9))
    assert caught.value.limit
    assert caught.value.nearest
    more = replace(gpus(1, 1e9), extends=task.composition)
    assert one.director.compose(more).problem is None
    assert len(one.director.view().compositions[task.composition].composition.requirements) == 2
    with pytest.raises(NoOffer):  # the GPUs that it has would no longer get what was requested
        one.director.compose(replace(gpus(4, 1e9), extends=task.composition))
    check(one)


def test_a_named_block_that_would_break_a_promised_rate_is_refused(start: Start) -> None:
    one = start(simulated())
    promised = (PathRequirement(Kind.GPU, 3, 8e9),)  # of 26.8 GB/s on the cable that all of host0 share
    one.director.compose(CompositionRequest(promised, "host0", name="train"))
    free = next(block.name for block in one.director.view().pool.free(Kind.GPU))
    with pytest.raises(NoOffer, match=r"would get 6\.7 GB/s each, 8 GB/s requested") as refused:
        one.director.attach("train", free)
    assert refused.value.limit
    assert len(one.director.view().pool.composition("train").blocks) == 3
    assert one.director.compose(request(free, server="host1")).state is TaskState.COMPLETED


def test_an_offer_that_another_client_took_is_replaced_by_the_next(start: Start) -> None:
    one = start(simulated())
    place = one.director._placer.place
    taken: list[str] = []

    def slow(pool: Any, request: CompositionRequest) -> Any:
        placement = place(pool, request)
        if not taken:
            taken.extend(placement.blocks)
            one.store.change(0.0, other_client, one.director._committed)
        return placement

    def other_client(change: Change) -> None:
        change.claim(taken, ClaimState.COMPOSED, composition="b")
        change.report(EventKind.POOL_CHANGED, "claimed")

    object.__setattr__(one.director._placer, "place", slow)
    task = one.director.compose(gpus(2, 1e9))
    assert task.problem is None
    assert not set(task.blocks) & set(taken)


def test_a_device_that_somebody_moved_during_its_removal_is_failed(start: Start) -> None:
    one = start(simulated())
    one.director.compose(request("gpu0", name="a"))

    def meanwhile(point: str) -> None:
        one.driver._crash = lambda reached: None
        one.driver.meddle("gpu0", "host1")

    one.driver._crash = meanwhile
    task = one.director.detach("a", "gpu0")
    assert task.problem
    assert task.problem.cause == "gpu0: the fabric has it at host1, where the director did not attach it"
    assert states(one) == {"gpu0": BlockState.FAILED}
