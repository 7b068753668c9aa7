"""Rows over several rails, ports or cards of a network, compared with rows over fewer: do they add up?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lanewise.checking.expectation import too_short
from lanewise.checking.references.parts import Reference, best_of
from lanewise.checking.symptom import line_of, quantity_in
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.results.observation import Observation

# Two ports of one card, which share its slot, bring 11 % over one; one port each of two cards 100 %
# (openucx/ucx#9520). What adds less than a quarter adds nothing.
ADDED = 1.25
_WORDS = {word: at for at, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)}
_WORDS |= {"single": 1, "dual": 2, "both": 2}
# The halves of a port are PCIe functions of one card, each in lanes of its own (`lines.HALF_OF_PORT`).
_KIND = r"(?:rail|nic|hca|port|network card|adapter|interface|half|halve)"
# The 7 of a ConnectX-7 NIC is a model, the ports of a dual-port card or a 32-port switch are what it has.
_NO_MODEL, _NO_DEVICE = r"(?<![\w.-])(?<!connectx )(?<!bluefield )", r"(?![ -](?:card|nic|hca|adapter|switch))"
_COUNT = re.compile(
    rf"{_NO_MODEL}(?:1[ -]{_KIND}|\d{{1,2}}(?:[ -]{_KIND}s|-{_KIND})|({'|'.join(_WORDS)})[ -]?{_KIND}s?)\b{_NO_DEVICE}|"
    rf"\b{_KIND}s=\d{{1,2}}\b", re.IGNORECASE,
)  # fmt: skip
AT_ONCE = re.compile(r"\b(?:at once|simultaneous\w*|concurrently|in parallel|at the same time)\b", re.IGNORECASE)
# One of a kind (`port: 5201`, `nic: 2`) says which, several say how many.
_KEY = re.compile(f"{_KIND}s", re.IGNORECASE)


def rails(row: Observation) -> int:
    """Over how many rails, ports or cards a row says that it went; 0 if it does not."""
    for key, value in row.settings.items():
        if _KEY.fullmatch(key):
            return value
    match = _COUNT.search(row.scenario)
    if match is None:
        return 0
    digits = re.search(r"\d+", match[0])
    return int(digits[0]) if digits else _WORDS[match[1].lower()]


def over_more(other: Observation, row: Observation) -> bool:
    """Whether another row went over more rails, so that it is no measure of this one."""
    return row.path == "network" and rails(other) > max(1, rails(row))


def over_fewer(row: Observation, rows: Iterable[Observation]) -> Observation | None:
    """The fastest row of the same path over fewer rails; None for other rows, or where no row says so."""
    own = rails(row)
    if row.path != "network" or own < 2 or too_short(row) or row.how.get("tool") != "typed in":
        return None
    like = [
        each for each in rows
        if each.value and each.flow == row.flow and 0 < rails(each) < own and _but_rails(each) == _but_rails(row)
    ]  # fmt: skip
    return best_of(like)


def lesser_line_filled(row: Observation, results: Iterable[PathResult]) -> PathResult | None:
    """The same flow over a part of the line that is fine, and to which all of it adds nothing; None for other rows.

    One connection, or a number of them that nobody states, may keep to one port unless all ran at once.
    """
    line, at_once = quantity_in(line_of(row), "B/s"), AT_ONCE.search(row.scenario) is not None
    connections = row.settings.get("connections", 1)
    if row.path != "network" or "gpu" in row.flow or not line or not (at_once or connections > 1):
        return None
    for each in parts_of_the_line(row, results):
        on_each_port = at_once or connections * quantity_in(line_of(each.row), "B/s") >= line
        if on_each_port and (row.value or 0.0) < ADDED * (each.row.value or 0.0):
            return each
    return None


def parts_of_the_line(row: Observation, results: Iterable[PathResult]) -> Iterator[PathResult]:
    """The results of the same flow over a part of the row's line that are fine."""
    line = quantity_in(line_of(row), "B/s")
    for each in results:
        alike = each.row.flow == row.flow and each.row.metric == row.metric and each.verdict is Verdict.OK
        if alike and 0 < quantity_in(line_of(each.row), "B/s") < line:
            yield each


def of_fewer_rails(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Several rails compared with fewer of them, where no stated line says what all of them carry."""
    best = over_fewer(row, rows)
    if best is not None and best.value and not line_of(row):
        nominal, low = rails(row) / rails(best) * best.value, ADDED * best.value
        limit = f"{rails(row)} rails in place of {rails(best)}"
        yield Reference("same path", nominal, low, low, None, limit, "the other row", own=False)


def _but_rails(row: Observation) -> tuple[object, ...]:
    """What two rows share that differ in the number of rails alone."""
    settings = {key: value for key, value in row.settings.items() if not _KEY.fullmatch(key)}
    # What is said of which rails they are stands behind the number, unless all of the name does.
    match = _COUNT.search(row.scenario)
    before, behind = (row.scenario[: match.start()], row.scenario[match.end() :]) if match else (row.scenario, "")
    name = (before.strip(" ,;:") or behind).strip(" ,;:")
    return row.metric, row.flow, row.path, name, line_of(row), settings
