"""Slow and fast rows by what explains them, and the order of the findings that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lanewise.checking.cause import Cause
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.verdict import PathResult, Verdict

# Of two findings on one path the one that is off by this factor more comes first.
_FAR_OFF = 4
# A row, and what may be behind it, likeliest first.
Diagnosis = tuple[PathResult, tuple[Cause, ...]]


def grouped(diagnoses: Sequence[Diagnosis]) -> list[list[Diagnosis]]:
    """Rows by their likeliest cause: of causes that are as likely, the one of most rows, then the one that fits best.

    Its rows' first cause is that one afterwards; rows without any cause, and those of a program, go by their kind of
    path.
    """
    groups: list[list[Diagnosis]] = []
    remaining = [(result, ranked) for result, ranked in diagnoses if ranked]
    while remaining:
        support: dict[tuple[int, Verdict, tuple[str, ...]], list[float]] = defaultdict(list)
        for result, ranked in remaining:
            for position, cause in enumerate(likeliest(ranked)):
                # Causes of collectives have an order of their own: the network before NVLinks between hosts.
                far = float(position) if result.row.metric == COLLECTIVE else cause.distance(result)
                support[cause.rank, result.verdict, cause.key].append(far)
        _, verdict, key = min(support, key=lambda at: (at[0], -len(support[at]), sum(support[at])))
        group, rest = [], []
        for result, ranked in remaining:
            if result.verdict is verdict and (first := [cause for cause in likeliest(ranked) if cause.key == key]):
                group.append((result, (*first, *(cause for cause in ranked if cause.key != key))))
            else:
                rest.append((result, ranked))
        groups += _by_path(group) if key[0] == "software" else [group]
        remaining = rest
    alone: dict[tuple[object, ...], list[Diagnosis]] = defaultdict(list)
    for result, ranked in diagnoses:
        if not ranked:
            row = result.row
            alone[result.verdict, row.path, row.metric, row.how.get("p2p", "")].append((result, ranked))
    return [*groups, *alone.values()]


def _by_path(group: Sequence[Diagnosis]) -> list[list[Diagnosis]]:
    """The rows of one cause by their kind of path: what a program does to host copies says nothing of peers."""
    paths: dict[str, list[Diagnosis]] = defaultdict(list)
    for result, ranked in group:
        row = result.row
        host = set(row.path.split(", ")) <= set(HOST_COPIES)
        path = "host copies" if host else row.path.partition(" ")[0]
        paths[row.metric if row.metric == COLLECTIVE else path].append((result, ranked))
    return list(paths.values())


def farthest_first(groups: list[list[Diagnosis]]) -> list[list[Diagnosis]]:
    """Groups in their order, but of those with evidence on one path the one that is off far more goes first."""
    ordered: list[list[Diagnosis]] = []
    for group in groups:
        flows, off = {result.row.flow for result, _ in group}, _off(group)
        before = (
            at for at, other in enumerate(ordered)
            if off > _FAR_OFF * _off(other) and flows & {result.row.flow for result, _ in other}
        )  # fmt: skip
        ordered.insert(next(before, len(ordered)), group)
    return ordered


def _off(group: Sequence[Diagnosis]) -> float:
    """How many times the rows of a group are off, at most; 0 for other than slow ones with evidence."""
    evident = bool(group[0][1]) and group[0][1][0].rank <= 1 and group[0][0].verdict is Verdict.SLOW
    ratios = [result.ratio or 1.0 for result, _ in group]
    return max(max(ratio, 1 / ratio) for ratio in ratios) if evident else 0.0


def likeliest(ranked: tuple[Cause, ...]) -> list[Cause]:
    """The causes that are as likely as the first."""
    return [cause for cause in ranked if cause.rank == ranked[0].rank]
