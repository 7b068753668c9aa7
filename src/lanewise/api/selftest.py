"""How fast the load generator itself is on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import InputError, unknown_name
from lanewise.options.loadtest import SelftestOptions

if TYPE_CHECKING:
    from lanewise.loadtest.selftest import GeneratorCeiling

Say = Callable[[str], object]


def loadtest_selftest(
    options: SelftestOptions | None = None, *, say: Say = lambda _: None
) -> Iterator[GeneratorCeiling]:
    """The largest rate (queries/s) that LoadGen issues on this host within the bound, of each mode, as it is measured.

    Rates double from `start`, then the gap is halved down to `precision`. Raises MissingDependency without LoadGen and
    CannotMeasure where not even `start` is reached.
    """
    from lanewise.loadtest import selftest

    options = options or SelftestOptions()
    for mode in options.modes:
        if mode not in selftest.MODES:
            raise unknown_name("mode", mode, selftest.MODES)
    if not options.modes or not options.bound > 0.0:
        raise InputError("a self-test needs a mode and a bound above 0", hint="--modes plain,coalesced --bound '15 ms'")
    return _measure(options, say)


def _measure(options: SelftestOptions, say: Say) -> Iterator[GeneratorCeiling]:
    from tempfile import TemporaryDirectory

    from lanewise.loadtest.selftest import CeilingSearch, ceilings, null_runner

    effort = CeilingSearch(options.start, options.seconds, options.tries, options.precision, options.bound)
    with TemporaryDirectory(prefix="lanewise-selftest-") as scratch:
        runner = null_runner(options.logs or Path(scratch), options.at_once)
        yield from ceilings(runner, effort, options.modes, say)
