"""What a survey knows of one node: facts, measured rows, findings; and what is said of it in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lanewise.results.match import CONTEXT, Identity, identity
from lanewise.results.observation import Observation, Source

# The phases of a survey, in their order.
PHASES = (FACTS, ALONE, TOGETHER, NETWORK, DRIVE, SHARED_ALONE, SHARED_TOGETHER) = (
    "facts", "alone", "together", "network", "drive", "shared alone", "shared together"
)  # fmt: skip
BOOT = "boot"  # among a node's facts: the same for nodes of one machine
SEND, RECEIVE = "network send", "network receive"
# What a node is compared with.
BASES = (CONTACT, MODEL, SIBLINGS, PAST) = ("contact", "model", "siblings", "past")


class NodeState(StrEnum):
    """What a node is, the worst first: `unknown` means that too little was measured, `busy` that it was left alone."""

    LOST = "lost"
    FAULT = "fault"
    SLOW = "slow"
    UNKNOWN = "unknown"
    BUSY = "busy"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """Something wrong with a node: `basis` is what it was compared with (contact, model, siblings, past).

    `kind` is lost, fault or slow. `cause` and `about` tell causes apart ("link", "gpu3"), `title` is a clause,
    `evidence` where it was observed, `step` the command to type next, `share` the worst measured value over the
    expected one (None: not a matter of rates), `rows` how many rows it explains, `phase` where the model saw it.
    """

    basis: str
    kind: str
    cause: str
    about: str
    title: str
    step: str
    evidence: str = ""
    share: float | None = None
    rows: int = 0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What was learned of a node: `facts` of its machine, `gpus` by their names, rows of all phases, findings by the
    model.

    `judged` counts the rows that the model had an expectation for. `failure` says why it is lost, `busy` why it was
    left alone.
    """

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    rows: tuple[Observation, ...] = ()
    findings: tuple[NodeFinding, ...] = ()
    notes: tuple[str, ...] = ()
    judged: int = 0
    failure: str = ""
    busy: str = ""

    def with_rows(self, *rows: Observation) -> NodeReport:
        """The same with more rows."""
        return replace(self, rows=(*self.rows, *rows))


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The one verdict on a node: its state, the findings with the decisive one first, and its class of machine.

    `shares`: by phase, the worst of its values over the median of its class. `tolerated`: by phase, why a value that is
    worth a look is no finding. `note`: why it was not judged, or what could not be measured.
    """

    name: str
    state: NodeState
    machine_class: str
    findings: tuple[NodeFinding, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    tolerated: Mapping[str, str] = field(default_factory=dict)

    @property
    def cause(self) -> NodeFinding | None:
        """The decisive finding; None for a node without any."""
        return self.findings[0] if self.findings else None


def in_phase(row: Observation, phase: str) -> Observation:
    """The row as one of that phase, which tells it from the same path in another; alone it is as `lanewise check` has
    it."""
    return replace(row, table=phase, how=row.how if phase == ALONE else {**row.how, "phase": phase})


def row_key(row: Observation) -> Identity:
    """What two rows of different nodes share if they are of the same path, in the same phase."""
    return (row.table, *identity(row, CONTEXT))


def network_row(scenario: str, values: tuple[float, ...], value: float, partners: int) -> Observation:
    """A node's row of all its tests in one direction: `value` of the `values` with so many partners."""
    return Observation(
        scenario, "host0->network" if scenario == SEND else "network->host0", "goodput", value, "GB/s",
        Source.MEASURED, table=NETWORK, path="network", samples=values, low=min(values), high=max(values),
        how={"partners": str(partners)},
    )  # fmt: skip
