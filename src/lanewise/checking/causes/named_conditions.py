"""Causes that the names of typed rows say: a condition that somebody changed, or that a slow row states."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lanewise.checking.cause import Cause
from lanewise.checking.causes.conditions import (
    AWAY,
    CONDITIONS,
    DIRECT,
    FAR_DEVICE,
    OWN_CONDITIONS,
    READ_BY_PEERS,
    SHARED,
    TURNED_OFF,
)
from lanewise.checking.references.judged import COLLECTIVE
from lanewise.checking.references.texts import of_plain_text
from lanewise.checking.symptom import RowSymptom, value_text
from lanewise.checking.verdict import Verdict
from lanewise.results.observation import Observation
from lanewise.routes.classify import NEAR_TO_FAR

_FASTER = 1.2
_THINGS = r"(?:\w+ )?(cards?|gpus?|drives?|disks?|ports?|hosts?|nodes?|clients?)\b"
_ALL = re.compile(rf"\b(?:all|both|every|several|two|three|four|eight|[2-9]|[1-9]\d) {_THINGS}", re.IGNORECASE)
_ONE = re.compile(rf"\b(?:one|a single|single|1) {_THINGS}", re.IGNORECASE)
_CLASS = re.compile(rf"\b(?:{'|'.join(NEAR_TO_FAR)})\b")
# Paths between a GPU and another device.
_BETWEEN = ("network", "storage", "peer")
# Variables of the environment: with their value, or with the name of a library that has such.
_VARIABLE = re.compile(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+ ?= ?\S+|"
    r"\b(?:R?NCCL|CUDA|UCX|UCC|HSA|HIP|ROCR|GLOO|FI|OMP|OMPI|KMP|MV2|PYTORCH|TORCH|TF|NVSHMEM|SHARP|LD)_[A-Z0-9_]+\b"
)


def named_conditions(symptom: RowSymptom) -> Iterator[Cause]:
    """The conditions that the names of this row and of faster ones of the same path have, and that differ."""
    row = symptom.row
    if off := TURNED_OFF.search(row.scenario):
        what = f"a setting turns something off: {off[0]}"
        yield Cause(("setting",), what, f"run it again without {off[1] or off[2]}", evidence="the row's name")
    faster = [other for other in symptom.better_rates() if other.flow == row.flow and other.scenario != row.scenario]
    if _VARIABLE.search(row.scenario):
        faster += [other.row for other in symptom.results if _without(row, other.row) and other.row not in faster]
    if not faster:
        if row.metric == "time" and (own := _VARIABLE.findall(row.scenario)):  # the faster time is no row of the answer
            yield Cause(("setting",), f"a setting: {', '.join(own)}", "run it again without", evidence="the row's name")
        return
    # The name that differs in the fewest words shows what was changed alone, the fastest row what could be reached.
    nearest = min(faster, key=lambda other: len(_words(other) ^ _words(row)))
    best = max(faster, key=lambda other: other.value or 0.0)
    yield from _differing(row, best)
    if nearest is not best:
        yield from _differing(row, nearest)


def _without(row: Observation, other: Observation) -> bool:
    """Whether a faster row of the same devices has all of this one's name but its variable, peers on or off."""
    if other.metric != row.metric or (other.value or 0.0) < _FASTER * (row.value or 0.0):
        return False
    plain = (_VARIABLE.sub("", row.scenario).split(",")[0].strip(), row.how.get("flows", row.flow))
    same = plain == (_VARIABLE.sub("", other.scenario).split(",")[0].strip(), other.how.get("flows", other.flow))
    return same and not _VARIABLE.search(other.scenario)


def _differing(row: Observation, best: Observation) -> Iterator[Cause]:
    """What the names of a row and of a faster one of its path differ in."""
    evidence = f"'{best.scenario}' reached {value_text(best)} on the same path"
    typed = not of_plain_text(row)
    if typed and DIRECT.words.search(row.scenario) and not DIRECT.words.search(best.scenario):
        yield READ_BY_PEERS.cause(evidence)
    else:
        for condition in CONDITIONS if typed else ():  # of texts `stated_words`
            if condition.differs(row.scenario, best.scenario):
                yield condition.cause(evidence)
    by_hand = row.how.get("tool") == "typed in"
    if by_hand and _classes(row) - _classes(best) and _classes(best) - _classes(row):
        yield FAR_DEVICE.cause(evidence)
    several, one = _ALL.search(row.scenario), _ONE.search(best.scenario)
    if typed and several and one and several[1].rstrip("s") == one[1].rstrip("s"):
        yield SHARED.cause(evidence)
    # What a tool calls its own mode (CPU_GPU of gdsio) is no variable.
    modes = {word for each in (row, best) for key in ("mode", "engine") for word in each.how.get(key, "").split()}
    if variables := (set(_VARIABLE.findall(best.scenario)) ^ set(_VARIABLE.findall(row.scenario))) - modes:
        what = f"a setting that differs between the two: {', '.join(sorted(variables))}"
        step = "run both with NCCL_DEBUG=INFO, and set what the faster one has"
        yield Cause(("setting",), what, step, evidence=evidence)


def _classes(row: Observation) -> frozenset[str]:
    """The classes of a pair of devices that a row's name has."""
    return frozenset(_CLASS.findall(row.scenario))


def own_conditions(symptom: RowSymptom) -> Iterator[Cause]:
    """What a slow row's own name or note says of its path, unless a fine row says the same."""
    row = symptom.row
    if of_plain_text(row):
        return
    name, on_path = _name(row), symptom.table.on_path
    fine = symptom.table.once(
        ("fine names", row.path), lambda: [_name(each.row) for each in on_path(row.path) if each.verdict is Verdict.OK]
    )
    for condition in OWN_CONDITIONS:
        if (found := condition.words.search(name)) and not any(map(condition.words.search, fine)):
            told = FAR_DEVICE if condition is AWAY and "gpu" in row.flow and row.path in _BETWEEN else condition
            yield told.cause(f"the row says '{found[0]}'")
    own = [text for text in _VARIABLE.findall(name) if "=" in text and not any(text in each for each in fine)]
    if own and (row.path in _BETWEEN or row.metric == COLLECTIVE):
        what = f"a setting of this row: {', '.join(text.rstrip(',;') for text in own)}"
        yield Cause(("setting",), what, "run it again without", evidence="the row says so", inconclusive=True)


def _name(row: Observation) -> str:
    return f"{row.scenario} {row.how.get('note', '')}"


def _words(row: Observation) -> frozenset[str]:
    return frozenset(re.findall(r"[\w=]+", row.scenario.lower()))
