"""What tools print of a network, a volume and memory while one thing is wrong on purpose, and while nothing is.

Recorded by benchmarks/network_faults.py; what is wrong and right to answer was written down before (cases.yaml).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from checking.thread_list import first_causes, verdict_of

from lanewise import api

TEXTS = Path(__file__).parent / "provoked"
CASES = [
    (group, case) for group in ("networks", "storage", "memory")
    for file in sorted((TEXTS / group).glob("cases*.yaml")) for case in yaml.safe_load(file.read_text(encoding="utf-8"))
]  # fmt: skip
FAULTY = [(group, case) for group, case in CASES if case["verdict"] == ["slow"]]
# Fewer in flight are slower by design, and the words claim what the other job of the same text shows.
UNKNOWN = ("one-job-of-sixteen",)
# The true cause is not among the first two: see benchmarks/runs/2026-11-27-network-faults.md.
NOT_NAMED = ("one-job-of-sixteen", "second-fast-ethernet-nuttcp")


def names(cases: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{group}/{case['name']}" for group, case in cases]


@pytest.mark.parametrize(("group", "case"), CASES, ids=names(CASES))
def test_the_verdict_is_one_that_an_engineer_would_sign(group: str, case: dict[str, Any]):
    verdict = verdict_of(api.check([TEXTS / group / f"{case['name']}.txt"]))
    assert (verdict in case["verdict"]) is (case["name"] not in UNKNOWN), verdict


@pytest.mark.parametrize(("group", "case"), FAULTY, ids=names(FAULTY))
def test_what_is_wrong_is_among_the_first_two_causes(group: str, case: dict[str, Any]):
    causes = first_causes(api.check([TEXTS / group / f"{case['name']}.txt"]))
    assert bool(set(causes) & set(case["causes"])) is (case["name"] not in NOT_NAMED), causes


def test_every_text_has_its_case():
    kept = {f"{path.parent.name}/{path.stem}" for group, _ in CASES for path in (TEXTS / group).glob("*.txt")}
    assert kept == set(names(CASES))
