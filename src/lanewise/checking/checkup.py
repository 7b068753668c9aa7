"""A machine's check-up: every row judged, and one finding for each thing that is wrong, with all it explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lanewise.checking.causes import Cause, Symptom, causes
from lanewise.checking.model import ExpectationModel, too_short
from lanewise.checking.suspects import Machine, Suspect, intended, suspects
from lanewise.checking.verdict import Expected, PathResult, Verdict, judge, tolerance_for
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
    rows: tuple[PathResult, ...]
    causes: tuple[Cause, ...]
    step: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """All rows, the worst first, the findings, notes on what could not be looked at, and rows left `aside` unjudged."""

    rows: tuple[PathResult, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    aside: tuple[Observation, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many rows have that verdict."""
        return sum(result.verdict is verdict for result in self.rows)

    @property
    def exit_code(self) -> int:
        """1 if something is wrong, else 3 if something could not be judged, else 0."""
        if any(finding.kind in ("fault", Verdict.SLOW) for finding in self.findings):
            return WRONG
        open_ones = (Verdict.UNKNOWN, Verdict.FAILED, Verdict.FAST)
        return NOT_JUDGED if not self.rows or any(self.count(verdict) for verdict in open_ones) else FINE


def check(
    rows: Iterable[Observation],
    machine: Machine,
    expect: Expect,
    model: ExpectationModel | None,
    target: System | None = None,
    share: float | None = None,
) -> Checkup:
    """Judge rows by what is expected of them and say why not; `share` (0..1) takes the place of every tolerance.

    `model` tells causes apart (None: nothing is known of the machine); `target` is what the machine should be.
    """
    results = [_judge(row, expect, share) for row in rows]
    results.sort(key=_badness)
    machine_suspects = _once(suspects(machine, target))
    findings = _findings(results, machine, machine_suspects, model) + _open(results)
    return Checkup(tuple(results), tuple(findings))


def expected_system(machine: Machine, target: System | None) -> System | None:
    """What rows are judged by: the system named, else the machine as found with the policies that it should have."""
    return target or (intended(machine.system) if machine.system is not None else None)


def _judge(row: Observation, expect: Expect, share: float | None) -> PathResult:
    expected = expect(row)
    return judge(row, expected, tolerance_for(expected, share))


def _badness(result: PathResult) -> tuple[int, float]:
    """The worst first: slow, fast, failed, unknown, fine; the farthest from its expectation first."""
    order = list(Verdict).index(result.verdict)
    share = result.share or 1.0
    return (order, -max(share, 1 / share) if result.verdict in (Verdict.SLOW, Verdict.FAST) else 0.0)


def _once(all_suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
    by_key: dict[tuple[str, ...], Suspect] = {}
    for suspect in all_suspects:
        by_key.setdefault(suspect.key, suspect)
    return tuple(by_key.values())


def _findings(
    results: Sequence[PathResult],
    machine: Machine,
    machine_suspects: tuple[Suspect, ...],
    model: ExpectationModel | None,
) -> list[Finding]:
    """The rows that are slow or fast by what explains them, and the faults that explain none."""
    bad = [result for result in results if result.verdict in (Verdict.SLOW, Verdict.FAST)]
    why = {
        id(result): causes(Symptom(result, model, machine.conditions, machine_suspects, results))
        if model is not None
        else ()
        for result in bad
    }
    findings = [_finding(rows, {id(result): why[id(result)] for result in rows}) for rows in _grouped(bad, why)]
    blamed = {finding.causes[0].suspect.key for finding in findings if finding.causes}
    faults = [suspect for suspect in machine_suspects if suspect.fault and suspect.key not in blamed]
    return findings + [Finding("fault", fault.what, (), (Cause(fault, None, False),), fault.step) for fault in faults]


def _grouped(bad: Sequence[PathResult], why: Why) -> list[list[PathResult]]:
    """Rows by their likeliest cause: of causes that are as likely, the one of most rows, then the one that fits best.

    Its rows' first cause is that one afterwards; rows without any cause go by their kind of path.
    """
    groups: list[list[PathResult]] = []
    remaining = [result for result in bad if why[id(result)]]
    while remaining:
        support: dict[tuple[object, ...], list[float]] = defaultdict(list)
        for result in remaining:
            for cause in _likeliest(why[id(result)]):
                support[cause.level, result.verdict, *cause.suspect.key].append(cause.distance(result))
        _, verdict, *key = min(support, key=lambda at: (at[0], -len(support[at]), sum(support[at])))
        group = [result for result in remaining if result.verdict is verdict and _has(why[id(result)], tuple(key))]
        for result in group:
            why[id(result)] = tuple(sorted(why[id(result)], key=lambda cause: cause.suspect.key != tuple(key)))
        groups.append(group)
        remaining = [result for result in remaining if not any(result is member for member in group)]
    alone: dict[tuple[object, ...], list[PathResult]] = defaultdict(list)
    for result in bad:
        if not why[id(result)]:
            alone[result.verdict, result.row.path, result.row.metric, result.row.how.get("p2p", "")].append(result)
    return [*groups, *alone.values()]


def _likeliest(ranked: tuple[Cause, ...]) -> list[Cause]:
    return [cause for cause in ranked if cause.level == ranked[0].level]


def _has(ranked: tuple[Cause, ...], key: tuple[object, ...]) -> bool:
    return any(cause.suspect.key == key for cause in _likeliest(ranked))


def _finding(rows: list[PathResult], why: Why) -> Finding:
    first = rows[0]
    ranked = why[id(first)]
    if ranked:
        best = ranked[0].suspect
        title = best.what if best.evidence or ranked[0].predicted is None else _possible(best)
        return Finding(first.verdict.value, title, tuple(rows), ranked[:MOST_CAUSES], best.step)
    what = "no evidence explains it, and no single change of the model does"
    again = _AGAIN.get(first.row.path, f"gpu --flows '{first.row.flow}'")
    step = f"lanewise measure {again} -o again.json; then lanewise check --from again.json"
    return Finding(first.verdict.value, what, tuple(rows), (), step)


def _open(results: Sequence[PathResult]) -> list[Finding]:
    """Rows that failed or that nothing is expected of, those of one reason together."""
    groups: dict[tuple[Verdict, str], list[PathResult]] = defaultdict(list)
    for result in results:
        if result.verdict in (Verdict.FAILED, Verdict.UNKNOWN):
            groups[result.verdict, _FLOW.sub("these flows", result.note)].append(result)
    return [
        Finding(verdict.value, note or "nothing is known of it", tuple(rows), (), _step(rows[0]))
        for (verdict, note), rows in groups.items()
    ]


def _step(result: PathResult) -> str:
    """What to do about a row that could not be judged."""
    if "no peer access" in result.note:
        return "nvidia-smi topo -p2p r; look at ACS and IOMMU (lanewise check without files reads them)"
    if result.verdict is Verdict.FAILED:
        return "lanewise doctor"
    if result.value is None:
        return "measure longer (--seconds, or a larger --size)"
    if result.note.startswith("unknown device"):
        return "say which device it is (--as WORD=DEVICE), or name the machine that has it (--system machine.yaml)"
    return "describe the machine with its parts (--system machine.yaml), or --expect EARLIER.json"


def with_notes(checkup: Checkup, notes: Iterable[str], aside: Iterable[Observation]) -> Checkup:
    """The same with notes on what could not be looked at, and the rows that nothing can be expected of."""
    rows = tuple(aside)
    if rows:
        kinds = dict.fromkeys(f"{row.metric} of {'short ' * too_short(row)}{row.path or row.flow}" for row in rows)
        text = f"{len(rows)} row{'s' if len(rows) > 1 else ''} left aside, as the model has no {', '.join(kinds)}"
        notes = (*notes, f"{text}; an earlier run may have (--expect)")
    return replace(checkup, notes=(*checkup.notes, *notes), aside=rows)


def _possible(suspect: Suspect) -> str:
    """A suspect without direct evidence, as a title."""
    return suspect.what if suspect.key[0] == "link" else f"perhaps {suspect.what}"


__all__ = ["FINE", "NOT_JUDGED", "WRONG", "Checkup", "Expect", "Finding", "check", "expected_system", "with_notes"]
