"""The rows of the pool's tables as types; times in s since 1970, `version` that of the last commit that wrote one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lanewise.director.records import Action
from lanewise.pool.model import CompositionState, PathRequirement
from lanewise.topology.model import Kind


class Condition(StrEnum):
    """Whether a block may be handed out, whoever claims it."""

    OK = "OK"
    FAILED = "Failed"
    UNAVAILABLE = "Unavailable"


class ClaimKind(StrEnum):
    """What a claim is on."""

    BLOCK = "block"
    SERVER = "server"


class ClaimState(StrEnum):
    """What a claim is there for; all but Released are live, and a block or server has one live claim at most."""

    COMPOSING = "Composing"
    COMPOSED = "Composed"
    REMOVING = "Removing"
    RESERVED = "Reserved"
    RELEASED = "Released"


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block that the fabric has or had; `note` says why it is not OK."""

    name: str
    kind: Kind
    part: str | None
    condition: Condition
    note: str
    version: int


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim of a composition or of a reservation on a block or a server; `note` is what is wrong with its link."""

    kind: ClaimKind
    name: str
    since: int
    composition: str | None
    reservation: str | None
    state: ClaimState
    note: str
    version: int

    @property
    def holder(self) -> str:
        """The composition or reservation."""
        return self.composition or self.reservation or ""


@dataclass(frozen=True, slots=True)
class CompositionRow:
    """A composition, whose blocks are its claims."""

    name: str
    since: int
    server: str
    state: CompositionState
    client: str
    created: float
    changed: float
    version: int
    requirements: tuple[PathRequirement, ...] = ()
    p2p: bool = False


class IntentState(StrEnum):
    """Whether the steps of a task are still to be finished or undone."""

    OPEN = "Open"
    ENDED = "Ended"


class StepVerb(StrEnum):
    """What a driver does to a device."""

    BIND = "bind"
    UNBIND = "unbind"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the driver; the same `operation` twice has one effect."""

    operation: str
    verb: StepVerb
    server: str
    block: str

    def inverse(self) -> Step:
        """The step that takes this one back."""
        verb = StepVerb.UNBIND if self.verb is StepVerb.BIND else StepVerb.BIND
        return Step(f"{self.operation}-undo", verb, self.server, self.block)


@dataclass(frozen=True, slots=True)
class IntentRow:
    """What a task has begun, committed before its first step."""

    task: str
    action: Action
    composition: str
    state: IntentState = IntentState.OPEN
    steps: tuple[Step, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An idempotency key of a client: the SHA-256 of its request, and the task or reservation that came of it."""

    client: str
    key: str
    fingerprint: str
    result: str
    created: float
