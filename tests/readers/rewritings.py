"""Captured outputs of tools, and what people, pages and terminals make of a text without changing what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lanewise.errors import FormatError
from lanewise.readers.kinds import KNOWN, read_plain, read_results
from lanewise.results.observation import Observation

TESTS = Path(__file__).parent.parent
# Where outputs lie. Those held out of `checking/pasted` are counted by no test that shapes a reader.
_PLACES = ("readers/data/*", "checking/pasted/*.txt", "checking/provoked/**/*.txt")
HELD_OUT = ("checking/pasted/held/*.txt",)
_JSON = re.compile(r'^\s*"?\w+"?\s*: [{\[]|^\s*\{', re.MULTILINE)
_FIGURE = r"(?<![\w.,:/])\d+\.\d+(?=[\s|)-]|$)"


def outputs(places: tuple[str, ...] = _PLACES) -> dict[str, str]:
    """The texts of tools among the tests, by path; without JSON and what no tool wrote."""
    paths = [path for place in places for path in sorted(TESTS.glob(place))]
    texts = {str(path.relative_to(TESTS)): path.read_text(encoding="utf-8") for path in paths}
    return {name: text for name, text in texts.items() if not _JSON.search(text) and _is_of_a_tool(text)}


def _is_of_a_tool(text: str) -> bool:
    try:
        return bool(read_results(text, "f").observations)
    except FormatError:
        return False


def rows(text: str) -> list[Observation] | str:
    """The rows of a text as `check` reads it, those of plain text as well; the error where there are none."""
    try:
        return [*read_results(text, "f").observations] or "no rows"
    except FormatError as error:
        if error.hint != KNOWN:
            return error.cause
    try:
        return [*read_plain(text, "f").observations] or "no rows"
    except FormatError as error:
        return error.cause


def compared(before: list[Observation] | str, after: list[Observation] | str) -> str:
    """Whether two readings are equal; else whether the second is refused, has other settings, fewer rows or others.

    Values are equal to 1e-4: units of other versions are rounded.
    """
    if isinstance(before, str) or isinstance(after, str):
        return "equal" if isinstance(before, str) and isinstance(after, str) else "refused"
    left = sorted(before, key=_order)
    for row in sorted(after, key=_order):
        match = next((at for at, other in enumerate(left) if _is_alike(row, other)), None)
        if match is None:
            return "others"
        del left[match]
    if left:
        return "fewer"
    words = [Counter(tuple(sorted(row.settings.items())) for row in reading) for reading in (before, after)]
    return "equal" if words[0] == words[1] else "settings"


def _order(row: Observation) -> tuple[object, ...]:
    return row.flow, row.metric, row.value or 0.0


def _is_alike(a: Observation, b: Observation) -> bool:
    return (a.flow, a.metric) == (b.flow, b.metric) and abs((a.value or 0) - (b.value or 0)) <= 1e-4 * (a.value or 0)


def _lines(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, text.split("\n")))


def _figures(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: re.sub(_FIGURE, lambda match: change(match[0]), text)


def _grouped(figure: str) -> str:
    whole, _, fraction = figure.partition(".")
    return f"{int(whole):,}.{fraction}"


def _broken(width: int) -> Callable[[str], str]:
    return _lines(lambda line: "\n".join(line[at : at + width] for at in range(0, max(1, len(line)), width)))


# HTML without <pre> runs blanks together and trims lines; editors put tabs for blanks (unexpand) or blanks for tabs;
# spreadsheets and locales change figures; authors emphasize one; mail and wikis set lines in or make lists of them.
REWRITINGS: dict[str, Callable[[str], str]] = {
    "one blank for several": _lines(lambda line: re.sub(r"(?<=\S)[ \t]+", " ", line)),
    "one blank, none at the ends": _lines(lambda line: " ".join(line.split())),
    "tabs for blanks": _lines(lambda line: re.sub(r"(?<=\S) {2,}(?=\S)", "\t", line)),
    "set in by 2": _lines(lambda line: f"  {line}" if line else line),
    "set in by 8": _lines(lambda line: f"        {line}" if line else line),
    "blanks at the ends": _lines(lambda line: f"{line}   "),
    "no blank lines": lambda text: re.sub(r"\n\s*\n+", "\n", text),
    "two blank lines": lambda text: text.replace("\n\n", "\n\n\n"),
    "figures in colour": _figures(lambda figure: f"\x1b[32m{figure}\x1b[0m"),
    "figures in bold": _figures(lambda figure: f"**{figure}**"),
    "decimal commas": _figures(lambda figure: figure.replace(".", ",")),
    "thousands": _figures(_grouped),
    "minus signs": lambda text: text.replace("-", "\u2212"),
    "arrows": lambda text: text.replace("<->", "\u2194").replace("->", "\u2192").replace("<-", "\u2190"),
    "a list": _lines(lambda line: f"* {line}" if line.strip() else line),
    "between sentences": lambda text: f"Hello,\nthis is what I got:\n\n{text}\n\nThanks, any idea?\n",
    "100 columns": _broken(100),
    "132 columns": _broken(132),
}
