"""Slow and fast rows by what explains them, and the order of the findings that they make."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from lanewise.checking.cause import Cause
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.judgement import HOST_COPIES
from lanewise.checking.symptom import row_devices
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
    groups = devices_together(groups)
    alone: dict[tuple[object, ...], list[Diagnosis]] = defaultdict(list)
    for result, ranked in diagnoses:
        if not ranked:
            row = result.row
            alone[result.verdict, row.path, row.metric, row.how.get("p2p", "")].append((result, ranked))
    return [*groups, *alone.values()]


def devices_together(groups: Sequence[list[Diagnosis]]) -> list[list[Diagnosis]]:
    """Groups whose likeliest causes differ in the device alone as one that names all of them: four GPUs at one rate."""
    alike: dict[tuple[object, ...], list[list[Diagnosis]]] = defaultdict(list)
    for at, group in enumerate(groups):
        result, ranked = group[0]
        alike[_but_for_the_device(result, ranked) or (at,)].append(group)
    return [_as_one(like) if len(like) > 1 else like[0] for like in alike.values()]


def _but_for_the_device(result: PathResult, ranked: Sequence[Cause]) -> tuple[object, ...]:
    """What the likeliest cause says of any device; empty if it is of none or several, or known by itself."""
    first = ranked[0] if ranked else None
    known = first is not None and first.fault and first.evidence
    if first is None or known or len(first.key) != 2 or first.devices != {first.key[1]}:
        return ()
    device = first.key[1]
    said = (re.sub(rf"\b{re.escape(device)}\b", "", text) for text in (first.what, first.step))
    return result.verdict, first.key[0], bool(first.evidence), result.row.metric, *said


def _as_one(groups: Sequence[list[Diagnosis]]) -> list[Diagnosis]:
    """The rows of groups alike as one group, in the order of their devices, whose causes name all of these."""
    by_device = sorted(groups, key=lambda group: (len(_device(group)), _device(group)))
    devices = list(map(_device, by_device))
    names = f"{', '.join(devices[:-1])} and {devices[-1]}"
    result, ranked = by_device[0][0]
    of_all = tuple(_of_devices(cause, devices, names) for cause in ranked)
    return [(result, of_all), *by_device[0][1:], *(each for group in by_device[1:] for each in group)]


def _device(group: Sequence[Diagnosis]) -> str:
    return group[0][1][0].key[1]


def _of_devices(cause: Cause, devices: Sequence[str], names: str) -> Cause:
    """A cause of the first of these devices as one of all of them."""
    own = rf"\b{re.escape(devices[0])}\b"
    what = re.sub(rf"^{own}'s link", f"each link of {names}", cause.what)
    what = re.sub(own, names, what) if what == cause.what else what
    if cause.devices != {devices[0]}:
        return replace(cause, what=what)
    return replace(cause, what=what, key=(*cause.key[:1], *devices), devices=frozenset(devices))


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
        flows, off = _flows_and_hosts(group), _off(group)
        before = (
            at for at, other in enumerate(ordered)
            if off > _FAR_OFF * _off(other) and flows & _flows_and_hosts(other)
        )  # fmt: skip
        ordered.insert(next(before, len(ordered)), group)
    return ordered


def _flows_and_hosts(group: Sequence[Diagnosis]) -> set[str]:
    """The flows of a group, and over a network the hosts of each: pairs that share a host share its card."""
    rows = [result.row for result, _ in group]
    return {row.flow for row in rows}.union(*(row_devices(row) for row in rows if row.path == "network"))


def _off(group: Sequence[Diagnosis]) -> float:
    """How many times the rows of a group are off, at most; 0 for other than slow ones with evidence."""
    evident = bool(group[0][1]) and group[0][1][0].rank <= 1 and group[0][0].verdict is Verdict.SLOW
    ratios = [result.ratio or 1.0 for result, _ in group]
    return max(max(ratio, 1 / ratio) for ratio in ratios) if evident else 0.0


def likeliest(ranked: tuple[Cause, ...]) -> list[Cause]:
    """The causes that are as likely as the first."""
    return [cause for cause in ranked if cause.rank == ranked[0].rank]
