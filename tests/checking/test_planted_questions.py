"""Kinds of question times causes: a made but physically right input, its verdict and its cause among the first two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from checking.thread_list import verdict_of

from lanewise import api

FOLDER = Path(__file__).parent / "planted"
QUESTIONS: list[dict[str, Any]] = [
    question for name in ("figures", "texts") for question in yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
]


def text_of(question: dict[str, Any]) -> str:
    """What the user pastes: a text, or figures typed in."""
    if "text" in question:
        return str(question["text"])
    head = "".join(f"{key}: {json.dumps(question[key])}\n" for key in ("gpus", "stated") if key in question)
    return f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in question["rows"])


@pytest.mark.parametrize("question", QUESTIONS, ids=[question["name"] for question in QUESTIONS])
def test_a_planted_question_gets_its_verdict_and_its_cause(question: dict[str, Any], tmp_path: Path):
    path = tmp_path / "posted.txt"
    path.write_text(text_of(question), encoding="utf-8")
    checkup = api.check([path])
    verdict = verdict_of(checkup)
    assert verdict in question["verdict"]
    if verdict in ("slow", "fast", "fault") and question["causes"]:
        found = [cause.key[0] for finding in checkup.findings[:1] for cause in finding.causes[:2]]
        assert set(found) & set(question["causes"]), found


def test_a_planted_question_has_one_name():
    assert len({question["name"] for question in QUESTIONS}) == len(QUESTIONS) > 100
