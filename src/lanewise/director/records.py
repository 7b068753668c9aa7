"""What the director returns: tasks, events, and the pool with the versions of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lanewise.director.drivers.base import DeviceHolder, DriverHealth
from lanewise.pool.model import Composition, Pool, ResourceBlock


class Health(StrEnum):
    """Redfish's words for how something is."""

    OK = "OK"
    WARNING = "Warning"
    CRITICAL = "Critical"


class TaskState(StrEnum):
    """Redfish's words for where a task is; Exception: it failed, as its problem says."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    EXCEPTION = "Exception"


class Action(StrEnum):
    """What a task does."""

    COMPOSE = "compose"
    ATTACH = "attach"
    DETACH = "detach"
    RELEASE = "release"
    REPAIR = "repair"


class ProblemKind(StrEnum):
    """Why a task failed, by the driver's error; `Retryable`: every retry failed too."""

    RETRYABLE = "Retryable"
    BUSY = "Busy"
    GONE = "Gone"
    UNKNOWN = "Unknown"
    INTERNAL = "Internal"


@dataclass(frozen=True, slots=True)
class TaskProblem:
    """Why a task failed: a cause in a sentence, the device, and what holds it if it was in use."""

    kind: ProblemKind
    cause: str
    device: str = ""
    holders: tuple[DeviceHolder, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One change of the pool, kept in the store; times in s since 1970.

    `blocks` are those it attaches or detaches; `messages` say what happened, oldest first.
    """

    name: str
    action: Action
    composition: str
    blocks: tuple[str, ...]
    state: TaskState
    created: float
    changed: float
    percent: int = 0
    messages: tuple[str, ...] = ()
    problem: TaskProblem | None = None
    client: str = ""

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.state is not TaskState.RUNNING


class EventKind(StrEnum):
    """What an event reports."""

    COMPOSITION_CREATED = "composition created"
    COMPOSITION_CHANGED = "composition changed"
    COMPOSITION_RELEASED = "composition released"
    BLOCK_CHANGED = "block changed"
    LINK_TRAINED_DOWN = "link trained down"
    RESERVATION_CREATED = "reservation created"
    RESERVATION_ENDED = "reservation ended"
    POOL_CHANGED = "pool changed"


@dataclass(frozen=True, slots=True)
class Event:
    """One commit of the store, in the outbox until it is pruned; `id` is the pool's version after it.

    Ids rise without gaps, and an event is visible only when all before it are. `time` is in s since 1970.
    """

    id: int
    kind: EventKind
    time: float
    text: str
    severity: Health = Health.OK
    composition: str | None = None
    blocks: tuple[str, ...] = ()
    reservation: str | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A block with its version, and a note why it is Failed or Unavailable or how its link trained down."""

    block: ResourceBlock
    version: int
    health: Health = Health.OK
    note: str = ""


@dataclass(frozen=True, slots=True)
class CompositionRecord:
    """A composition with its version, health and notes on its blocks, and who made it; times in s since 1970."""

    composition: Composition
    version: int
    created: float
    changed: float
    health: Health = Health.OK
    notes: tuple[str, ...] = ()
    client: str = ""
    p2p: bool = False


@dataclass(frozen=True)
class PoolView:
    """The pool at one version: immutable, held in memory, with the version of each block and composition for ETags."""

    version: int
    pool: Pool
    blocks: Mapping[str, BlockRecord] = field(default_factory=dict)
    compositions: Mapping[str, CompositionRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What the director did to open operations at start, and what it cannot vouch for.

    `finished` and `undone` are tasks, `failed` are blocks whose state is unknown or contradicts the store,
    `adopted` are compositions that the fabric had and an empty store did not know.
    """

    finished: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    driver: DriverHealth = field(default_factory=lambda: DriverHealth(ok=True))
