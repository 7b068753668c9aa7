"""Clients that race for the blocks of one pool, at the tables alone or through a director, and what came of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from threading import Barrier, Thread

from director.racks import rack

from lanewise.director.drivers.sim import SimDriver
from lanewise.director.engine import Director
from lanewise.director.errors import BlockInUse
from lanewise.director.records import EventKind
from lanewise.director.store.changes import Change
from lanewise.director.store.database import Store
from lanewise.director.store.rows import BlockRow, ClaimKind, ClaimState, Condition
from lanewise.pool.model import CompositionRequest
from lanewise.topology.model import Kind


@dataclass
class RaceResult:
    """Blocks granted to each client, blocks that the database or the fabric has for it, and refusals."""

    granted: list[list[str]]
    recorded: dict[str, str] = field(default_factory=dict)
    refused: int = 0

    def faults(self, blocks: int) -> list[str]:
        """What is wrong: a block granted twice, one that was granted and is not recorded, one that nobody got."""
        counts = Counter(name for names in self.granted for name in names)
        problems = [f"{name} granted {count} times" for name, count in counts.items() if count > 1]
        if len(counts) != blocks:
            problems.append(f"{blocks - len(counts)} blocks went to nobody")
        for client, names in enumerate(self.granted):
            lost = [name for name in names if self.recorded.get(name) != f"c{client}"]
            problems += [f"{name} of client {client} is lost" for name in lost]
        return problems


def fill(store: Store, blocks: int) -> None:
    """Put free blocks into an empty store."""

    def work(change: Change) -> None:
        rows = [BlockRow(f"gpu{n}", Kind.GPU, None, Condition.OK, "", change.version) for n in range(blocks)]
        change.insert(*rows)
        change.report(EventKind.POOL_CHANGED, "filled")

    store.change(0.0, work)


def claim_all(url: str, client: int, blocks: int, seed: int) -> tuple[list[str], int]:
    """One client with a connection of its own: it tries to claim every block, one to three at a time."""
    store = Store(url)
    order = [f"gpu{number}" for number in range(blocks)]
    chance = random.Random(f"{seed}/{client}")
    chance.shuffle(order)
    granted: list[str] = []
    refused = 0
    while order:
        wanted = [order.pop() for _ in range(min(len(order), chance.choice((1, 1, 1, 2, 3))))]
        try:
            store.change(0.0, partial(_claim, names=wanted, client=client))
        except BlockInUse as error:
            refused += 1
            order += [name for name in wanted if name != error.name]  # this one is somebody's, the others perhaps not
        else:
            granted += wanted
    store.close()
    return granted, refused


def _claim(change: Change, names: list[str], client: int) -> None:
    change.claim(names, ClaimState.COMPOSED, composition=f"c{client}")
    change.report(EventKind.COMPOSITION_CHANGED, "claimed")


def race_for_tables(url: str, clients: int, blocks: int, seed: int, pool: Executor) -> RaceResult:
    """Clients that know nothing of each other claim blocks: the database decides."""
    store = Store(url)
    fill(store, blocks)
    futures = [pool.submit(claim_all, url, client, blocks, seed) for client in range(clients)]
    outcomes = [future.result() for future in futures]
    claims = [claim for claim in store.pool_rows().claims if claim.kind is ClaimKind.BLOCK]
    recorded = {claim.name: claim.holder for claim in claims}
    store.close()
    return RaceResult([names for names, _ in outcomes], recorded, sum(refused for _, refused in outcomes))


def race_at_director(url: str, clients: int, blocks: int, seed: int) -> RaceResult:
    """Clients of one director, each with a server of its own, attach every block that they can get."""
    store = Store(url)
    driver = SimDriver(rack(clients, blocks))
    director = Director(store, driver)
    director.start()
    start, result = Barrier(clients), RaceResult([[] for _ in range(clients)])

    def client(number: int) -> None:
        order = [f"gpu{each}" for each in range(blocks)]
        random.Random(f"{seed}/{number}").shuffle(order)
        start.wait()
        for name in order:
            granted = result.granted[number]
            composed = CompositionRequest(
                blocks=(name,), server=None if granted else f"host{number}", name="" if granted else f"c{number}",
                extends=f"c{number}" if granted else None,
            )  # fmt: skip
            try:
                task = director.compose(composed)
            except BlockInUse:
                result.refused += 1
            else:
                assert task.problem is None
                granted.append(name)

    run_all([partial(client, number) for number in range(clients)])
    for number in range(clients):
        result.recorded |= dict.fromkeys(driver.observe(f"host{number}"), f"c{number}")
    held = {claim.name: claim.holder for claim in store.pool_rows().claims if claim.kind is ClaimKind.BLOCK}
    assert held == result.recorded
    director.close()
    store.close()
    return result


def run_all(works: Sequence[Callable[[], object]]) -> None:
    """Run these in threads at once; the first that failed fails all."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
