"""Names in src/lanewise: one class name stands for one thing, and a module is named by a noun."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lanewise

ROOT = Path(lanewise.__file__).parent

# Words that say nothing of what a module holds: participles, pronouns, and nouns with two meanings in this field.
WORDS = """
told asked busy closing room neighbours spending belief bench seen made found held shown sought kept given wanted tried
each other here there beside own spread marks checked planned predicted loaded
"""
VAGUE = set(WORDS.split())


def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name below `lanewise`."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def classes() -> dict[str, list[str]]:
    """The modules that define each class name, private and nested ones included; a module twice if it does so twice."""
    places = defaultdict(list)
    for module, path in modules().items():
        for node in statements(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    return places


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands below a node in blocks; a class is no part of an expression."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        block = getattr(node, part, ())
        for inner in block if isinstance(block, list) else ():
            yield inner
            yield from statements(inner)


def test_one_class_name_stands_for_one_thing() -> None:
    shared = {name: places for name, places in classes().items() if len(places) > 1}
    assert not shared, "qualify the name by its own noun"


def test_a_module_is_named_by_a_noun() -> None:
    vague = {module for module in modules() if VAGUE & set(module.split(".")[-1].split("_"))}
    assert not vague, "name the module by what it holds"


def test_no_two_files_of_tests_are_called_alike() -> None:
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1], "pytest imports them by that name alone"


def test_the_words_are_looked_for_in_every_module() -> None:
    assert {"cli.main", "results.observation", "serving.queues"} <= set(modules())
    assert classes()["Observation"] == ["results.observation"]


def test_no_tracked_page_holds_a_merge_conflict() -> None:
    """ruff and mypy stop at one in Python alone."""
    pages = [*ROOT.parents[1].glob("*.md"), *(ROOT.parents[1] / "docs").rglob("*.md")]
    assert pages
    assert [page.name for page in pages if "\n<<<<<<< " in page.read_text()] == []
