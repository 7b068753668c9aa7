"""How fast the load generator itself is on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from lanewise.loadtest import selftest
    from lanewise.loadtest.selftest import GeneratorCeiling


def loadtest_selftest(
    modes: Sequence[str] = ("plain", "coalesced"),
    *,
    bound: float = 0.015,
    seconds: float = 2.0,
    start: float = 50_000.0,
    precision: float = 0.05,
    tries: int = 2,
    at_once: bool = False,
    logs: str | Path | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> Iterator[GeneratorCeiling]:
    """The largest rate (queries/s) that LoadGen issues here within `bound` s at p99, of each mode, as it is found.

    Rates are doubled from `start`, then halved to a gap of `precision`; a run lasts `seconds`, and a rate has `tries`.
    Answers take the way of a real system's, through a thread, unless `at_once`. `logs` keeps LoadGen's.
    MissingDependency without LoadGen, CannotMeasure where not even `start` is reached.
    """
    from lanewise.loadtest import selftest

    for mode in modes:
        if mode not in selftest.MODES:
            raise unknown_name("mode", mode, selftest.MODES)
    if not (bound > 0.0 and seconds > 0.0 and start > 0.0 and 0.0 < precision <= 1.0 and tries >= 1):
        raise InputError("a bound, length, rate, gap or number of tries that is not above 0", hint="give larger ones")
    effort = selftest.Effort(start, seconds, tries, precision, bound)
    return _found(tuple(modes), effort, at_once, None if logs is None else Path(logs), say)


def _found(
    modes: tuple[str, ...], effort: selftest.Effort, at_once: bool, logs: Path | None, say: Callable[[str], object]
) -> Iterator[GeneratorCeiling]:
    from tempfile import TemporaryDirectory

    from lanewise.loadtest.selftest import ceilings, null_runner

    with TemporaryDirectory(prefix="lanewise-selftest-") as scratch:
        yield from ceilings(null_runner(logs or Path(scratch), at_once), effort, modes, say)
