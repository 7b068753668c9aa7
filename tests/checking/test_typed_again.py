"""Questions that somebody else typed in again from their words, by the guide alone, are judged as they should be.

`typed_again/known-*.json`: the known questions of 2026-11, `kept-*.json`: kept ones; two people each, who had not seen
the program (benchmarks/runs/2026-11-28-check-typed-again.md). What is still wrong is listed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checking.thread_list import verdict_of

from lanewise import api
from lanewise.errors import LanewiseError

FOLDER = Path(__file__).parent / "typed_again"
# Wrong by each typist: (file, question).
WRONG: set[tuple[str, str]] = {
    ("kept-1", "nanonccl1-tcp"),
    ("kept-1", "i9triad-onechannel"),
    ("kept-1", "vllmascend6966-unbound"),
    ("kept-1", "sophgo34-sdcard"),
    ("kept-1", "exo2295-ring"),
    ("kept-1", "plxr9700-3-chainb"),
    ("kept-1", "alcf2-staged"),
    ("kept-2", "rome4090-stock"),
    ("kept-2", "fourh100-1-39"),
    ("kept-2", "tinyperf-a6000"),
    ("kept-2", "l20d1-remote"),
    ("kept-2", "c612-3090-ordered"),
    ("kept-2", "xestrata2-malloc"),
    ("known-1", "ROCm-legacy-rocm-build-2499-9"),
    ("known-1", "Spiderpool-documentation-13"),
    ("known-1", "deepseek-ai-DeepEP-16-21"),
    ("known-1", "NVIDIA-gdrcopy-221-31"),
    ("known-1", "NVIDIA-nccl-1130-35"),
    ("known-2", "ROCm-legacy-rocm-build-2499-9"),
    ("known-2", "Spiderpool-documentation-13"),
    ("known-2", "deepseek-ai-DeepEP-16-21"),
    ("known-2", "NVIDIA-gdrcopy-221-31"),
    ("known-2", "NVIDIA-nccl-1130-35"),
}


def questions() -> list[tuple[str, dict[str, Any]]]:
    """Each question with the file that it is in."""
    texts = sorted(FOLDER.glob("*.json"))
    return [(path.stem, question) for path in texts for question in json.loads(path.read_text(encoding="utf-8"))]


def verdict(rows: str, folder: Path) -> str:
    """What `check` says of rows, as a whole; 'refused' if it cannot read them."""
    path = folder / "typed.txt"
    path.write_text(rows, encoding="utf-8")
    try:
        return verdict_of(api.check([path], None))
    except LanewiseError:
        return "refused"


@pytest.mark.parametrize(("typist", "question"), questions(), ids=lambda each: each if isinstance(each, str) else "")
def test_other_typists_get_the_verdict_that_is_right(
    typist: str, question: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if (typist, question["question"]) in WRONG:
        request.applymarker(pytest.mark.xfail(reason="wrong as yet", strict=True))
    assert verdict(question["rows"], tmp_path) in question["verdicts"]
