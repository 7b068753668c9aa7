"""$filter: comparisons of properties with literals, joined by and, or, not and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from lanewise.director.redfish.messages import RedfishError, refusal
from lanewise.errors import printable, shorten

LONGEST = 1000
_DEEPEST = 20
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<bracket>[()])|(?P<number>-?\d+(?:\.\d+)?(?![\w:.-]))"
    r"|(?P<word>[@A-Za-z0-9_][\w@./:+-]*))"
)
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
_WORDS = {"true": True, "false": False, "null": None}

Predicate = Callable[[Mapping[str, Any]], bool]


def parse_filter(text: str) -> Predicate:
    """The predicate over a resource's properties that a $filter expression stands for; RedfishError if it is none."""
    if len(text) > LONGEST:
        raise _wrong(text)
    reader = _FilterReader(text)
    predicate = reader.either(0)
    if reader.rest():
        raise _wrong(text)
    return predicate


class _FilterReader:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None or match.lastgroup is None:
                raise _wrong(text)
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self.at = 0

    def rest(self) -> bool:
        return self.at < len(self.tokens)

    def _take(self) -> tuple[str, str]:
        if not self.rest():
            raise _wrong(self.text)
        self.at += 1
        return self.tokens[self.at - 1]

    def _accept(self, word: str) -> bool:
        if self.rest() and self.tokens[self.at][1] == word and self.tokens[self.at][0] != "text":
            self.at += 1
            return True
        return False

    def either(self, depth: int) -> Predicate:
        terms = [self.both(depth)]
        while self._accept("or"):
            terms.append(self.both(depth))
        return terms[0] if len(terms) == 1 else lambda item: any(term(item) for term in terms)

    def both(self, depth: int) -> Predicate:
        factors = [self.factor(depth)]
        while self._accept("and"):
            factors.append(self.factor(depth))
        return factors[0] if len(factors) == 1 else lambda item: all(factor(item) for factor in factors)

    def factor(self, depth: int) -> Predicate:
        if depth > _DEEPEST:
            raise _wrong(self.text)
        if self._accept("not"):
            inner = self.factor(depth + 1)
            return lambda item: not inner(item)
        if self._accept("("):
            inner = self.either(depth + 1)
            if not self._accept(")"):
                raise _wrong(self.text)
            return inner
        return self.comparison()

    def comparison(self) -> Predicate:
        kind, path = self._take()
        operator = self._take()[1]
        literal = self._literal()
        if kind != "word" or operator not in ("eq", "ne", *_ORDER):
            raise _wrong(self.text)
        steps = path.split("/")
        if operator in ("eq", "ne"):
            return lambda item: _same(_value(item, steps), literal) is (operator == "eq")
        compare = _ORDER[operator]
        return lambda item: _comparable(value := _value(item, steps), literal) and compare(value, literal)

    def _literal(self) -> Any:
        kind, text = self._take()
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text)
        if kind == "word":
            return _WORDS.get(text, text)
        raise _wrong(self.text)


def _value(item: Any, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(item, Mapping) or step not in item:
            return None
        item = item[step]
    return item


def _same(value: Any, literal: Any) -> bool:
    if isinstance(value, list):
        return any(_same(entry, literal) for entry in value)
    return bool(value == literal and isinstance(value, bool) == isinstance(literal, bool))


def _comparable(value: Any, literal: Any) -> bool:
    if isinstance(value, bool) or isinstance(literal, bool):
        return False
    numbers = isinstance(value, int | float) and isinstance(literal, int | float)
    return numbers or (isinstance(value, str) and isinstance(literal, str))


def _wrong(text: str) -> RedfishError:
    return refusal(400, "Base.QueryParameterValueFormatError", shorten(printable(text)), "$filter")
