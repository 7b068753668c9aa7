"""A machine's check-up: every row judged, and one finding for each thing that is wrong, with all it explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lanewise.checking.causes import Case, Cause, causes
from lanewise.checking.model import too_short
from lanewise.checking.suspects import Machine, Suspect, intended, suspects
from lanewise.checking.tolerance import tolerance_for
from lanewise.checking.verdict import Expected, Judged, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanewise.checking.model import Model
    from lanewise.results.observation import Observation
    from lanewise.topology.model import System

FINE, WRONG, NOT_JUDGED = 0, 1, 3
MOST_CAUSES = 3
_FLOW = re.compile(r"[^\s,]+->[^\s,]+")
# What measures a kind of path again; all others are the GPUs'.
_AGAIN = {"host memory": "host", "storage": "storage FILE", "network": "network HOST"}
Expect = Callable[["Observation"], Expected]
Why = dict[int, tuple[Cause, ...]]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not fine: `kind` is fault (seen in the captures alone) or the verdict of its rows.

    The first of `causes` is the likeliest, as the model judges it for the first row; `step` is the command to type.
    """

    kind: str
    title: str
    rows: tuple[Judged, ...]
    causes: tuple[Cause, ...]
    step: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """All rows, the worst first, the findings, notes on what could not be looked at, and rows left `aside` unjudged."""

    rows: tuple[Judged, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    aside: tuple[Observation, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many rows have that verdict."""
        return sum(each.verdict is verdict for each in self.rows)

    @property
    def exit_code(self) -> int:
        """1 if something is wrong, else 3 if something could not be judged, else 0."""
        if any(finding.kind in ("fault", Verdict.SLOW) for finding in self.findings):
            return WRONG
        open_ones = (Verdict.UNKNOWN, Verdict.FAILED, Verdict.FAST)
        return NOT_JUDGED if not self.rows or any(self.count(each) for each in open_ones) else FINE


def check(
    rows: Iterable[Observation],
    machine: Machine,
    expect: Expect,
    model: Model | None,
    wanted: System | None = None,
    share: float | None = None,
) -> Checkup:
    """Judge rows by what is expected of them and say why not; `share` (0..1) takes the place of every tolerance.

    `model` tells causes apart (None: nothing is known of the machine); `wanted` is what the machine should be.
    """
    judged = [_judge(row, expect, share) for row in rows]
    judged.sort(key=_badness)
    known = _once(suspects(machine, wanted))
    found = _findings(judged, machine, known, model) + _open(judged)
    return Checkup(tuple(judged), tuple(found))


def expected_system(machine: Machine, wanted: System | None) -> System | None:
    """What rows are judged by: the system named, else the machine as found with the policies that it should have."""
    return wanted or (intended(machine.system) if machine.system is not None else None)


def _judge(row: Observation, expect: Expect, share: float | None) -> Judged:
    expected = expect(row)
    return judge(row, expected, tolerance_for(expected, share))


def _badness(judged: Judged) -> tuple[int, float]:
    """The worst first: slow, fast, failed, unknown, fine; the farthest from its expectation first."""
    order = list(Verdict).index(judged.verdict)
    share = judged.share or 1.0
    return (order, -max(share, 1 / share) if judged.verdict in (Verdict.SLOW, Verdict.FAST) else 0.0)


def _once(found: Sequence[Suspect]) -> tuple[Suspect, ...]:
    kept: dict[tuple[str, ...], Suspect] = {}
    for suspect in found:
        kept.setdefault(suspect.key, suspect)
    return tuple(kept.values())


def _findings(
    judged: Sequence[Judged], machine: Machine, known: tuple[Suspect, ...], model: Model | None
) -> list[Finding]:
    """The rows that are slow or fast by what explains them, and the faults that explain none."""
    bad = [each for each in judged if each.verdict in (Verdict.SLOW, Verdict.FAST)]
    why = {
        id(each): causes(Case(each, model, machine.conditions, known, judged)) if model is not None else ()
        for each in bad
    }
    found = [_finding(rows, {id(each): why[id(each)] for each in rows}) for rows in _grouped(bad, why)]
    blamed = {finding.causes[0].suspect.key for finding in found if finding.causes}
    faults = [suspect for suspect in known if suspect.fault and suspect.key not in blamed]
    return found + [Finding("fault", each.what, (), (Cause(each, None, False),), each.step) for each in faults]


def _grouped(bad: Sequence[Judged], why: Why) -> list[list[Judged]]:
    """Rows by their likeliest cause: of causes that are as likely, the one of most rows, then the one that fits best.

    Its rows' first cause is that one afterwards; rows without any cause go by their kind of path.
    """
    groups: list[list[Judged]] = []
    left = [each for each in bad if why[id(each)]]
    while left:
        support: dict[tuple[object, ...], list[float]] = defaultdict(list)
        for each in left:
            for cause in _likeliest(why[id(each)]):
                support[cause.level, each.verdict, *cause.suspect.key].append(cause.distance(each))
        _, verdict, *key = min(support, key=lambda at: (at[0], -len(support[at]), sum(support[at])))
        group = [each for each in left if each.verdict is verdict and _has(why[id(each)], tuple(key))]
        for each in group:
            why[id(each)] = tuple(sorted(why[id(each)], key=lambda cause: cause.suspect.key != tuple(key)))
        groups.append(group)
        left = [each for each in left if not any(each is other for other in group)]
    alone: dict[tuple[object, ...], list[Judged]] = defaultdict(list)
    for each in bad:
        if not why[id(each)]:
            alone[each.verdict, each.row.path, each.row.metric, each.row.how.get("p2p", "")].append(each)
    return [*groups, *alone.values()]


def _likeliest(ranked: tuple[Cause, ...]) -> list[Cause]:
    return [cause for cause in ranked if cause.level == ranked[0].level]


def _has(ranked: tuple[Cause, ...], key: tuple[object, ...]) -> bool:
    return any(cause.suspect.key == key for cause in _likeliest(ranked))


def _finding(rows: list[Judged], why: Why) -> Finding:
    first = rows[0]
    ranked = why[id(first)]
    if ranked:
        best = ranked[0].suspect
        title = best.what if best.seen or ranked[0].predicted is None else _possible(best)
        return Finding(first.verdict.value, title, tuple(rows), ranked[:MOST_CAUSES], best.step)
    what = "no evidence explains it, and no single change of the model does"
    again = _AGAIN.get(first.row.path, f"gpu --flows '{first.row.flow}'")
    step = f"lanewise measure {again} -o again.json; then lanewise check --from again.json"
    return Finding(first.verdict.value, what, tuple(rows), (), step)


def _open(judged: Sequence[Judged]) -> list[Finding]:
    """Rows that failed or that nothing is expected of, those of one reason together."""
    groups: dict[tuple[Verdict, str], list[Judged]] = defaultdict(list)
    for each in judged:
        if each.verdict in (Verdict.FAILED, Verdict.UNKNOWN):
            groups[each.verdict, _FLOW.sub("these flows", each.note)].append(each)
    return [
        Finding(verdict.value, note or "nothing is known of it", tuple(rows), (), _step(rows[0]))
        for (verdict, note), rows in groups.items()
    ]


def _step(judged: Judged) -> str:
    """What to do about a row that could not be judged."""
    if "no peer access" in judged.note:
        return "nvidia-smi topo -p2p r; look at ACS and IOMMU (lanewise check without files reads them)"
    if judged.verdict is Verdict.FAILED:
        return "lanewise doctor"
    if judged.value is None:
        return "measure longer (--seconds, or a larger --size)"
    if judged.note.startswith("unknown device"):
        return "say which device it is (--as WORD=DEVICE), or name the machine that has it (--system machine.yaml)"
    return "describe the machine with its parts (--system machine.yaml), or --expect EARLIER.json"


def beside(checkup: Checkup, notes: Iterable[str], aside: Iterable[Observation]) -> Checkup:
    """The same with notes on what could not be looked at, and the rows that nothing can be expected of."""
    left = tuple(aside)
    if left:
        kinds = dict.fromkeys(f"{row.metric} of {'short ' * too_short(row)}{row.path or row.flow}" for row in left)
        told = f"{len(left)} row{'s' if len(left) > 1 else ''} left aside, as the model has no {', '.join(kinds)}"
        notes = (*notes, f"{told}; an earlier run may have (--expect)")
    return replace(checkup, notes=(*checkup.notes, *notes), aside=left)



def _possible(suspect: Suspect) -> str:
    """A suspect without direct evidence, as a title."""
    return suspect.what if suspect.key[0] == "link" else f"perhaps {suspect.what}"


__all__ = ["FINE", "NOT_JUDGED", "WRONG", "Checkup", "Expect", "Finding", "beside", "check", "expected_system"]
