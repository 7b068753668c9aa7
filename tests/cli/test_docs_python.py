"""What Python blocks of the README and the pages import from Lanewise is there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import lanewise

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def missing(node: ast.AST) -> list[str]:
    """The names that one statement or expression takes from Lanewise in vain."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lanewise":
        return [] if hasattr(lanewise, node.attr) else [f"lanewise.{node.attr}"]
    if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("lanewise"):
        return []
    module = importlib.import_module(str(node.module))
    return [f"{node.module}.{name.name}" for name in node.names if not hasattr(module, name.name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_imports_what_there_is(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        assert [name for node in ast.walk(ast.parse(block)) for name in missing(node)] == [], block
