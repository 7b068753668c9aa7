"""The reference page names every field that a run file can hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracles.run_schema import run_schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "results-schema.md"


def fields() -> list[tuple[str, str]]:
    schema = run_schema()
    kinds = {"Run": schema, **schema["$defs"]}
    return [(kind, name) for kind, body in kinds.items() for name in body["properties"]]


@pytest.mark.parametrize(("kind", "name"), fields(), ids=lambda part: str(part))
def test_the_reference_documents_the_field(kind: str, name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8"), f"{kind}.{name}"


def test_the_schema_file_is_that_of_the_dataclasses() -> None:
    """Made by tests/oracles/run_schema.py."""
    assert json.loads(PAGE.with_name("run.schema.json").read_text(encoding="utf-8")) == run_schema()
