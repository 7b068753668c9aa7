"""The steps of one operation on the fabric: one by one, each idempotent, finished or taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from lanewise.director.drivers.base import Busy, Driver, DriverError, Gone, Retryable, Unknown
from lanewise.director.records import ProblemKind, TaskProblem
from lanewise.director.store.rows import Step, StepVerb

ATTEMPTS = 4


class StepOutcome(StrEnum):
    """Where a device is after an operation, as the driver says."""

    BOUND = "bound"
    FREE = "free"
    GONE = "gone"
    UNKNOWN = "unknown"


GOALS = {StepVerb.BIND: StepOutcome.BOUND, StepVerb.UNBIND: StepOutcome.FREE}
_PROBLEMS = (
    (Busy, ProblemKind.BUSY), (Gone, ProblemKind.GONE), (Unknown, ProblemKind.UNKNOWN),
    (Retryable, ProblemKind.RETRYABLE),
)  # fmt: skip


@dataclass
class StepsResult:
    """Where each device is after the steps, why they did not all succeed, and notes on devices that went astray.

    `observed`: a call failed, and where its device is was observed on its server.
    """

    states: dict[str, StepOutcome]
    problem: TaskProblem | None = None
    notes: dict[str, str] = field(default_factory=dict)
    observed: bool = False


class StepRunner:
    """Runs steps over a driver; `pause` waits before the n-th retry, `moved` hears where each device is now."""

    def __init__(
        self, driver: Driver, pause: Callable[[int], None], moved: Callable[[str, str | None], None],
    ) -> None:  # fmt: skip
        self._driver, self._pause, self._moved = driver, pause, moved

    def run(self, steps: Iterable[Step], progress: Callable[[int], None] = lambda _: None) -> StepsResult:
        """Do every step in order, or take back those done if one fails; never raises a DriverError.

        A device that vanished does not stop a removal, and one whose state is unknown stays where it is for a person to
        look at, while the others are removed.
        """
        wanted = list(steps)
        result = StepsResult({step.block: _origin(step) for step in wanted})
        done: list[Step] = []
        for number, step in enumerate(wanted, 1):
            problem = self._attempt(step, result)
            if result.states[step.block] is GOALS[step.verb]:
                done.append(step)
            elif problem is not None:
                result.problem = result.problem or problem
                if not _goes_on(step, result.states[step.block]):
                    self._take_back(done, result)
                    return result
            progress(number)
        return result

    def _attempt(self, step: Step, result: StepsResult) -> TaskProblem | None:
        """One step with its retries; what is wrong if it failed, and where its device is then in the result."""
        problem = None
        for attempt in range(1, ATTEMPTS + 1):
            problem = self._call(step)
            if problem is None:
                state = GOALS[step.verb]
                break
            result.observed = True
            state = self._observed(step, problem)
            if state is GOALS[step.verb]:  # it did happen, and only the reply was lost
                problem = None
                break
            if problem.kind in (ProblemKind.BUSY, ProblemKind.GONE) or attempt == ATTEMPTS:
                break
            self._pause(attempt)
        result.states[step.block] = state
        if state is StepOutcome.UNKNOWN and problem is not None:
            result.notes[step.block] = f"its state is unknown after {step.verb} on {step.server}: {problem.cause}"
        if state is not StepOutcome.UNKNOWN:
            self._moved(step.block, step.server if state is StepOutcome.BOUND else None)
        return problem

    def _call(self, step: Step) -> TaskProblem | None:
        call = self._driver.bind if step.verb is StepVerb.BIND else self._driver.unbind
        try:
            call(step.operation, step.server, step.block)
        except DriverError as error:
            kind = next((kind for type_, kind in _PROBLEMS if isinstance(error, type_)), ProblemKind.UNKNOWN)
            holders = error.holders if isinstance(error, Busy) else ()
            return TaskProblem(kind, str(error), step.block, holders)
        except Exception as error:  # a fault of the driver must not leave the operation open
            return TaskProblem(ProblemKind.INTERNAL, f"{type(error).__name__}: {error}", step.block)
        return None

    def _observed(self, step: Step, problem: TaskProblem) -> StepOutcome:
        """Where the fabric says the device is after a call that failed."""
        if problem.kind is ProblemKind.GONE:
            return StepOutcome.GONE
        for attempt in range(1, ATTEMPTS + 1):
            try:
                bound = step.block in self._driver.observe(step.server)
            except Retryable:
                self._pause(attempt)
            except Gone:
                return StepOutcome.GONE
            except Exception:
                break
            else:
                return StepOutcome.BOUND if bound else StepOutcome.FREE
        # A driver that says Busy has changed nothing.
        busy = problem.kind is ProblemKind.BUSY and step.verb is StepVerb.UNBIND
        return StepOutcome.BOUND if busy else StepOutcome.UNKNOWN

    def _take_back(self, done: list[Step], result: StepsResult) -> None:
        """Undo steps, the last one first; a device that cannot go back is noted."""
        for step in reversed(done):
            back = step.inverse()
            problem = self._attempt(back, result)
            if problem is not None and result.states[step.block] is not StepOutcome.GONE:
                where = f"on {step.server}" if back.verb is StepVerb.UNBIND else f"to {step.server}"
                result.notes[step.block] = f"could not be taken back {where}: {problem.cause}"


def _origin(step: Step) -> StepOutcome:
    return StepOutcome.FREE if step.verb is StepVerb.BIND else StepOutcome.BOUND


def _goes_on(step: Step, state: StepOutcome) -> bool:
    """Whether the other devices of a removal are removed although this step failed."""
    return step.verb is StepVerb.UNBIND and state in (StepOutcome.GONE, StepOutcome.UNKNOWN)
