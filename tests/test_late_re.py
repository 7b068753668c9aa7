"""Patterns that are compiled when first used: they find what the library's own find, and every one can be compiled."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise import late_re

PATTERNS = ("a", "(?P<n>a|b)+", "^ab?$", "", r"\bb")
ROOMS = ("lanewise.readers", "lanewise.checking", "lanewise.catalog", "lanewise.discovery", "lanewise.results")
METHODS = ("match", "search", "fullmatch", "findall", "split")


@given(st.sampled_from(PATTERNS), st.text("aAbB \n", max_size=12), st.sampled_from((0, re.IGNORECASE, re.MULTILINE)))
def test_a_late_pattern_finds_what_the_library_finds(pattern: str, text: str, flags: int) -> None:
    late, own = late_re.compile(pattern, flags), re.compile(pattern, flags)
    for method in METHODS * 2:
        assert shown(getattr(late, method)(text)) == shown(getattr(own, method)(text))
    assert [shown(each) for each in late.finditer(text)] == [shown(each) for each in own.finditer(text)]
    assert late.sub("x", text) == own.sub("x", text)
    assert (late.pattern, late.flags, late.groupindex) == (own.pattern, own.flags, own.groupindex)


def shown(result: object) -> object:
    """A match as what it holds; anything else as it is."""
    return (result.span(), result.groups(), result.groupdict()) if isinstance(result, re.Match) else result


def test_nothing_is_compiled_before_it_is_used() -> None:
    broken = late_re.compile("(")
    with pytest.raises(re.error):
        broken.match("(")


def test_every_late_pattern_can_be_compiled() -> None:
    patterns = [each for module in late_modules() for value in vars(module).values() for each in late_patterns(value)]
    assert len(patterns) > 500
    for pattern in patterns:
        assert isinstance(pattern.groups, int)


def late_modules() -> Iterator[ModuleType]:
    """The modules whose `re` is the late one."""
    for found in pkgutil.walk_packages(lanewise.__path__, "lanewise."):
        if found.name.startswith(ROOMS) and vars(module := import_module(found.name)).get("re") is late_re:
            yield module


def late_patterns(value: object) -> Iterator[late_re.LatePattern]:
    """The late patterns in a value and what it holds."""
    if isinstance(value, late_re.LatePattern):
        yield value
    elif isinstance(value, dict):
        yield from late_patterns((*value, *value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from late_patterns(each)
