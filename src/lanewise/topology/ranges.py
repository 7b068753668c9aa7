"""Host-list ranges: `gpu[0-3]` is gpu0 to gpu3, `a[0-1]b[0,2]` for the product."""

from __future__ import annotations

import re
from itertools import product

from lanewise.errors import Contradiction, FormatError, shorten

MAX_NAMES = 65_536
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_ITEM = re.compile(r"\s*(-?\d{1,9})\s*(?:-\s*(-?\d{1,9})\s*)?")
_NUMBERED = re.compile(r"(.*?)(0|[1-9]\d{0,8})")


def expand(pattern: str) -> list[str]:
    """The names of a pattern, the last range fastest; FormatError, Contradiction if it is backwards.

    A range that ends one below its start, such as `gpu[0--1]`, is empty.
    """
    pieces = _BRACKETS.split(pattern)
    choices: list[list[str]] = []
    total = 1
    for odd, piece in enumerate(pieces):
        choices.append(_numbers(piece, pattern) if odd % 2 else [piece])
        total *= len(choices[-1])
        if total > MAX_NAMES:
            cause = f"'{shorten(pattern)}' has {total} names"
            raise FormatError(cause, hint=f"a range may hold {MAX_NAMES} at most")
    names = ["".join(parts) for parts in product(*choices)]
    for name in names or ["".join(piece if not odd % 2 else "0" for odd, piece in enumerate(pieces))]:
        check_name(name)
    return names


def check_name(name: str) -> None:
    """FormatError unless `name` may be the name of a device, host, domain or volume."""
    if not NAME.fullmatch(name):
        hint = "a name has letters, digits and _ . : - and starts with a letter or digit; a range is gpu[0-3]"
        raise FormatError(f"'{name}' cannot be a name", hint=hint)


def _numbers(text: str, pattern: str) -> list[str]:
    numbers: list[str] = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if not match:
            raise FormatError(f"cannot read the range in '{pattern}'", hint="write gpu[0-3] or gpu[0,2,4-6]")
        low = int(match[1])
        high = low if match[2] is None else int(match[2])
        if high < low - 1:
            raise Contradiction(f"the range in '{pattern}' runs backwards", hint=f"write [{high}-{low}]")
        if low < 0 <= high:
            raise FormatError(f"'{pattern}' counts from below zero", hint="start the range at 0 or above")
        if high - low >= MAX_NAMES:
            raise FormatError(f"'{pattern}' has too many names", hint=f"{MAX_NAMES} at most")
        width = len(match[1]) if match[1].startswith("0") else 1
        numbers += [f"{number:0{width}d}" for number in range(low, high + 1)]
        if len(numbers) > MAX_NAMES:
            raise FormatError(f"'{shorten(pattern)}' has too many names", hint=f"{MAX_NAMES} at most")
    return numbers


def fold(names: list[str]) -> list[str]:
    """Patterns that expand to `names` in the same order, runs of consecutive numbers folded into ranges."""
    patterns: list[str] = []
    start = 0
    while start < len(names):
        head = _NUMBERED.fullmatch(names[start])
        stop = start + 1
        # The stem must not end in a digit, or "1" + "01" would fold into the wrong names.
        while head and names[stop : stop + 1] == [f"{head[1]}{int(head[2]) + stop - start}"]:
            stop += 1
        if head and stop - start > 1:
            patterns.append(f"{head[1]}[{head[2]}-{int(head[2]) + stop - start - 1}]")
        else:
            patterns.append(names[start])
        start = stop
    return patterns
