"""A tool's output without what logs, launchers, terminals and pages put around its lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile

from lanewise import late_re as re
from lanewise.readers.texts import TAG

# A time as syslog, ts and dmesg -T write it, the host and program of a journal; the level of a logger.
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY = r"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d"
_UNIT = r"(?: [\w.-]{1,64} (?:[\w./-]{1,64}\[\d+\]|kernel):)?"
# A year only within brackets: elsewhere it may be a tool's first figure.
_SYSLOG = rf"(?:{_DAY} {_CLOCK}|\[{_DAY} {_CLOCK}(?: \d{{4}})?\]){_UNIT}"
_LEVEL = r"(?:- )?(?:[\w.-]{1,64} - )?\[?(?:TRACE|DEBUG|INFO|WARNING|ERROR|STDOUT|STDERR)\]?"
# Such a tag has a form that no tool's lines have; those below are tags only where the same ones come again and again.
_TIMES = tuple(re.compile(rf"^ {{0,8}}{form}(?: |$)") for form in (_SYSLOG, rf"\[?{_CLOCK}\]?"))
_SURE = (
    TAG, *_TIMES,
    re.compile(rf"^{_LEVEL}(?::[\w.]{{1,64}}:|(?: -|:)?(?: |$))"),
    re.compile(r"^\([^()]{0,64}\bpid=\d+[^()]{0,64}\)(?: |$)"),
)  # fmt: skip
# Ranks (mpirun, srun -l, torchrun), pods and hosts (kubectl --prefix, pdsh), containers (docker compose), bars of a
# terminal's panes, the plus of a patch, the bullets of a list.
_LAUNCHERS = tuple(
    re.compile(rf"^ {{0,8}}{tag}")
    for tag in (
        r"\[(?=[A-Za-z@.:-]{0,95}[\d/])[\w./:@-]{1,96}\](?:<std(?:out|err)>)?:? ?",
        r"\d{1,5}:(?: |$)", r"[\w./-]{1,64} {1,16}\|(?: |$)",
        r"[\u2502\u2503\u2551](?: |$)", r"\+(?! ?-{2,400}\+)", r"[*\u2022](?: |$)",
    )
)  # fmt: skip
_REPEATED = (*_LAUNCHERS, re.compile(r"^[\w.-]{1,64}:(?: |$)"))
_NUMBER = re.compile(r"^ {0,8}(\d{1,6})(?:[\t:|] ?| {2}|$)")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
# Fewer lines with a tag, or a smaller share of those between the first and the last, are no log.
_LEAST, _SHARE = 3, 0.8
# So many lines that all begin alike are a log's even if something could be read of them as they are.
_LEAST_ALIKE = 5
# The narrowest terminal that breaks lines of tools.
_LEAST_WIDTH, _WIDTHS = 60, (80, 100, 120, 132, 160)
_RULE = re.compile(r"[\s+|=*_-]+")
_DIGITS = re.compile(r"\d+(?:\.\d*)?")
# Rounds of tags one within another: a pod's, a time, a rank.
_ROUNDS = 4


def with_whole_end(text: str, lines: list[str]) -> list[str]:
    """The lines without the last if a copy of a terminal or file ended within its last figure.

    Such a text has no line end, and the figure none behind its point, or fewer decimals than that above it or, below
    heads, before it.
    """
    texts = [line for line in lines if line.strip()][-2:]
    if text.endswith(("\n", "\r")) or len(texts) < 2 or lines[-1] != texts[1]:
        return lines
    above, words = (line.split() for line in texts)
    column = len(words) - 1
    if not _DIGITS.fullmatch(words[column]):
        return lines
    whole = _decimals(above[column] if column < len(above) else "") or _decimals_before(words[:column])
    return lines[:-1] if _decimals(words[column]) < whole or words[column].endswith(".") else lines


def _decimals_before(words: Sequence[str]) -> int:
    """The decimals that all fractions at the end of a row have; 0 where they differ."""
    row = [*takewhile(_DIGITS.fullmatch, reversed(words))]
    decimals = {_decimals(word) for word in row if "." in word}
    return decimals.pop() if len(decimals) == 1 else 0


def _decimals(word: str) -> int:
    return len(word.partition(".")[2]) if _DIGITS.fullmatch(word) else 0


def rejoined(lines: Sequence[str]) -> list[str]:
    """The lines as they were before a terminal of a width broke them; the same ones if no width says so.

    A line that was broken is as wide as the terminal, and its end stands in a shorter line below: rows and rules of a
    table are as long as each other.
    """
    width = max(map(len, lines), default=0)
    broken = [False] * (len(lines) + 1)
    for at in range(len(lines) - 2, -1, -1):
        below = lines[at + 1]
        ends = 0 < len(below) < width or broken[at + 1]
        broken[at] = len(lines[at]) == width and ends and not (_RULE.fullmatch(lines[at]) or _RULE.fullmatch(below))
    if width not in _WIDTHS and (width < _LEAST_WIDTH or sum(broken) < 2):
        return list(lines)
    joined: list[str] = []
    for at, line in enumerate(lines):
        if at and broken[at - 1]:
            joined[-1] += line
        else:
            joined.append(line)
    return joined


def bared(lines: Sequence[str]) -> list[str]:
    """The lines of a text that is wrapped as a whole and beyond doubt: in strings of JSON, with a time in each line."""
    inner = _from_strings(lines)
    texts = [line for line in inner if line]
    if sum(map(len, texts)) < sum(map(len, lines)) / 2 or len(texts) < _LEAST:
        inner, texts = list(lines), [line for line in lines if line]
    if len(texts) >= _LEAST and all(line.endswith("\\") for line in texts[:-1]):
        inner = [line.removesuffix("\\").rstrip() for line in inner]
    margin = min((len(line) - len(line.lstrip(" ")) for line in texts), default=0)
    if margin and len(texts) >= _LEAST:  # a quotation or a list on a page sets all lines in
        inner, texts = [line[margin:] for line in inner], [line[margin:] for line in texts]
    tagged = any(len(texts) >= _LEAST and all(map(form.match, texts)) for form in _TIMES) or _is_tagged(texts)
    return _without_tags(inner) if tagged else inner


def _is_tagged(texts: Sequence[str]) -> bool:
    """Whether every line has the same tag, of a form that labels of a program's own lines do not have."""
    if len(texts) < _LEAST_ALIKE:
        return False
    tags = (match[0].strip() for form in (*_SURE, *_LAUNCHERS) if (match := form.match(texts[0])) and match[0].strip())
    return any(all(line.lstrip().startswith(tag) for line in texts) for tag in tags)


def unwrapped(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines again and again, each time without one more of what may be around them."""
    now = list(lines)
    for step in (_from_strings, *[_without_tags] * _ROUNDS, _without_gaps, _without_indent):
        after = step(now)
        if after != now:
            now = after
            yield now


def _without_tags(lines: Sequence[str]) -> list[str]:
    """Without the tag that most lines begin with."""
    tests: list[tuple[re.Pattern[str], Callable[[list[str]], bool]]] = [
        *((form, lambda _: True) for form in _SURE), (_NUMBER, _counts), *((form, _repeats) for form in _REPEATED),
    ]  # fmt: skip
    for form, is_tag in tests:
        tags = {n: match[0] for n, line in enumerate(lines) if line and (match := form.match(line))}
        if len(tags) < _LEAST or not is_tag(list(tags.values())):
            continue
        within = sum(1 for line in lines[min(tags) : max(tags) + 1] if line)
        if len(tags) >= _SHARE * within:
            return [line[len(tags.get(n, "")) :] for n, line in enumerate(lines)]
    return list(lines)


def _repeats(tags: list[str]) -> bool:
    """Whether the same tags come again: names of a list, or of the lines of a summary, do not."""
    return 3 * len({tag.strip() for tag in tags}) <= len(tags)


def _counts(tags: list[str]) -> bool:
    """Whether the tags are the numbers of lines, one after another; from 0 on parts are numbered."""
    numbers = [int(match[1]) for tag in tags if (match := _NUMBER.match(tag))]
    return numbers[0] > 0 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _from_strings(lines: Sequence[str]) -> list[str]:
    """What the strings of JSON hold, if one has line breaks or if each is a line of its own (Ansible, notebooks)."""
    alone = [_string(line.strip().removesuffix(",")) for line in lines]
    if sum(map(bool, alone)) >= _LEAST:
        return [part.rstrip() for text in alone if text is not None for part in text.removesuffix("\n").split("\n")]
    if not any("\\n" in line for line in lines):
        return list(lines)
    inner: list[str] = []
    for line in lines:
        texts = [text for literal in _LITERAL.findall(line) if (text := _string(literal)) and "\n" in text]
        inner += [part.rstrip() for text in texts for part in text.split("\n")] or [line]
    return inner


def _string(literal: str) -> str | None:
    """The text of a JSON string; None if it is none."""
    if not literal.startswith('"') or _LITERAL.fullmatch(literal) is None:
        return None
    with suppress(ValueError):
        return str(json.loads(literal))
    return None


def _without_gaps(lines: list[str]) -> list[str]:
    """Without the blank line that a page or mail put after each: no two lines with text follow each other."""
    if sum(1 for line in lines if line) < _LEAST or any(a and b for a, b in pairwise(lines)):
        return lines
    return [line for line in lines if line]


def _without_indent(lines: list[str]) -> list[str]:
    """Without the four blanks or the tab by which a page tells code."""
    return [line.removeprefix("\t") if line.startswith("\t") else line.removeprefix("    ") for line in lines]
