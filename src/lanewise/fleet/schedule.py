"""The phases of a survey and the longest time that each can take, stated before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.fleet.node import (
    ALONE,
    DRIVE,
    FACTS,
    NETWORK,
    SHARED_ALONE,
    SHARED_TOGETHER,
    TOGETHER,
)
from lanewise.fleet.rounds import most_rounds, rounds_again
from lanewise.options.fleet import RANDOM_ROUNDS

# Nodes that read the shared storage one after the other; all of them do so together.
MOST_SHARED_ALONE = 32
# Seconds until a node that has not answered is given up, by phase: of one step.
LIMITS = {FACTS: 90.0, ALONE: 180.0, TOGETHER: 120.0, NETWORK: 30.0, DRIVE: 60.0, SHARED_ALONE: 30.0,
          SHARED_TOGETHER: 60.0}  # fmt: skip
_WHAT = {
    FACTS: "machine, GPUs, what is busy; all nodes at once",
    ALONE: "host memory and GPU copies, one path at a time; all nodes at once, as they share none of it",
    TOGETHER: "every GPU of every node, and host memory, at once",
    NETWORK: "one step to listen, {rounds} of pairs both ways, no two of which share a node{again}",
    DRIVE: "each node's own drive; all nodes at once",
    SHARED_ALONE: "shared storage, one node at a time",
    SHARED_TOGETHER: "shared storage, all nodes at once",
}


@dataclass(frozen=True, slots=True)
class SurveyPhase:
    """A phase: so many `steps`, one after the other, each given up after `limit` seconds; `what` says what is done."""

    name: str
    steps: int
    limit: float
    what: str

    @property
    def most_seconds(self) -> float:
        """The longest that it can take."""
        return self.steps * self.limit


def survey_phases(
    nodes: int, *, drive: bool = False, shared: bool = False, network: bool = True, rounds: int = RANDOM_ROUNDS,
    patience: float = 1.0,
) -> tuple[SurveyPhase, ...]:  # fmt: skip
    """The phases of a survey of so many nodes; `rounds` of the network above 32 nodes, every limit times `patience`."""
    steps = {
        # What is slow at first is measured a second time.
        FACTS: 1, ALONE: 2, TOGETHER: 2,
        # Its first step starts the listeners; slow pairs are measured again.
        NETWORK: most_rounds(nodes, rounds) + 1 + rounds_again(nodes) if network and nodes > 1 else 0,
        DRIVE: 2 * drive, SHARED_ALONE: min(nodes, MOST_SHARED_ALONE) * shared, SHARED_TOGETHER: 2 * shared,
    }  # fmt: skip
    number, again = most_rounds(nodes, rounds), rounds_again(nodes)
    words = {"rounds": "1 round" if number == 1 else f"{number} rounds",
             "again": f", {again} more of slow pairs" if again else ""}  # fmt: skip
    return tuple(
        SurveyPhase(name, count, patience * LIMITS[name], _WHAT[name].format(**words))
        for name, count in steps.items() if count
    )  # fmt: skip


def most_seconds(phases: tuple[SurveyPhase, ...]) -> float:
    """The longest that all phases together can take."""
    return sum(phase.most_seconds for phase in phases)
