"""Pasted text: lines without colours and quote marks, and the matrices that tools print."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from lanewise import late_re as re
from lanewise.errors import FormatError, Location

# Colours, also without their first byte or with it as a caret; what else moves a terminal's cursor or sets its title.
_COLOUR = re.compile(
    r"(?:\x1b|\^\[)\[[0-?]{0,32}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|\[[0-9;]*m"
)
# Marks of code that a page or mail has left: a fence or its like alone in its line, elements of HTML at a line's ends.
_FENCE = re.compile(
    r"\s*(?:`{3,}\s?[\w+-]{0,20}|~{3,}\s?[\w+-]{0,20}|\{(?:noformat|code(?::\w{1,20})?)\}|\[/?(?:code|pre)\])\s*"
)
_ELEMENT = r"</?(?:pre|code|br|samp|tt|p|div)(?: [^<>\n]{0,80})?/?>"
_ELEMENTS = re.compile(rf"^(?:\s*{_ELEMENT})+|(?:{_ELEMENT}\s*)+$")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&nbsp;": " ", "&quot;": '"', "&#39;": "'", "&amp;": "&"}
# The two dashes of an option that a word processor joined: of a name with a sign within.
_OPTION = re.compile(r"(?<=\s)[\u2013\u2014](?=[a-z]\w{0,40}[-_=]\w)")
# A mark that Markdown needs before a sign of its own, and a prompt with no command.
_ESCAPE, _PROMPT = re.compile(r"\\(?=[_*#])"), re.compile(r"[^\s|]{1,80}(?: [^\s|]{1,40})?[$#>]")
# A figure that somebody emphasized within an output.
_BOLD = re.compile(r"(?<![\w*])\*\*(\d[\d.,]{0,24})\*\*(?![\w*])")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
# What mpirun (--tag-output), CI systems, containers and journals write before each line.
_TIME = r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: std(?:out|err) F)?(?=\s|$)"
TAG = re.compile(rf"^(?:\s{{0,8}}(?:\[[^\]\s]{{0,64}}\d,\d{{1,6}}\]<std(?:out|err|diag)>:|{_TIME}))+ ?")
# Full-width punctuation that editors of Chinese and Japanese pages put in place of a tool's own, blanks that do not
# break or have another width, minus signs and quotes of word processors; what has no width is dropped.
_WIDE = str.maketrans(
    "\uff0c\uff1a\uff08\uff09\uff1b\u3000\u00a0\u202f\u2002\u2003\u2007\u2009\u2212\u2011\u201c\u201d",
    ',:();       --""',
    "\u200b\u200c\u200d\u2060\ufeff\x00\x07\x08",
) | {0x2190: "<-", 0x2192: "->", 0x2194: "<->"}
# Thousands as people and spreadsheets part them, within a line of words or cells; a list of CSV or JSON has no blanks.
_GROUPED = re.compile(r"(?<=[\s|(=])\d{1,3}(?:,\d{3}){1,4}\.\d{1,6}(?![\d.,])")
_EMPTY = ("N/A", "NA", "nan", "-nan", "inf", "-", "--", "\u2013", "\u2014", "x", "X", "*")
# Of a table between bars the line below its heads, what marks its cells, and how it calls a row or column.
_RULE, _MARKS = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|?)+\s*"), re.compile(r"[*`]|^\s+|\s+$")
_GPU = re.compile(r"GPU ?(\d{1,3})$", re.IGNORECASE)
# A plain word, no path, option or name of a part; lines of tools and tables have fewer than three.
_WORD, _LEAST_WORDS = re.compile(r"(?<![\w/.-])[A-Za-z]?[a-z]{1,14}(?![\w/-])"), 3
# A fraction after a comma, not a list of numbers; figures with a point, not versions and addresses.
_COMMA = re.compile(r"(?:(?<=[\s|(-])|^)(?P<whole>\d{1,9}),(?P<digits>\d{1,9})(?![\d.,])(?=[\s|)%-]|$|[A-Za-z])")
_POINT = re.compile(r"(?<![\w.,-])\d{1,9}\.\d{1,9}(?![\w.])")
_LEAST_COMMAS = 3
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3}){1,5}(?:\.\d{1,9})?")
# Objects that cannot be read before the rest is left alone: each costs a pass over what follows.
_MOST_REFUSED = 4
_OBJECT = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
# Numbers by row and column, None where there is none.
Cells = Sequence[Sequence[float | None]]
WHOLE = "paste the whole output of the tool"
# No machine has more GPUs, no tool reports a larger figure.
MAX_COLUMNS, _MAX_FIGURE = 256, 1e18
# Longer lines are no output of a tool.
_MAX_LINE = 8192


def _with_points(lines: list[str]) -> list[str]:
    """The lines with decimal points, if people or a locale wrote most of the fractions with commas."""
    fractions = [match for line in lines if "," in line for match in _COMMA.finditer(line)]
    # 48,213 may be a whole number; 0,213 and 48,2 are none.
    sure = [match for match in fractions if len(match["digits"]) != 3 or match["whole"][0] == "0"]
    if len(sure) < _LEAST_COMMAS:
        return lines
    if sum(len(_POINT.findall(line)) for line in lines) > len(fractions) / 2:
        return lines
    return [_COMMA.sub(lambda match: match[0].replace(",", "."), line) if "," in line else line for line in lines]


def lines_of(text: str) -> list[str]:
    """The lines, whatever ends them, without colours, the marks of a quotation or page, the tags and times of a log."""
    plain = re.sub(r"\r+\n", "\n", _COLOUR.sub("", text).translate(_WIDE)).replace("\r", "\n")
    for entity, sign in _ENTITIES.items() if "&" in plain else ():
        plain = plain.replace(entity, sign)
    lines = (_ELEMENTS.sub("", line) if line.lstrip().startswith("<") else line for line in plain.split("\n"))
    return _with_points([_unmarked(TAG.sub("", _QUOTE.sub("", line))) for line in lines])


def _unmarked(line: str) -> str:
    """A line without the marks of a page's code; blank if it is only such, or a prompt."""
    if "<" in line:
        line = _ELEMENTS.sub("", line)
    if "\\" in line:
        line = _ESCAPE.sub("", line)
    if "**" in line:
        line = _BOLD.sub(r"\1", line)
    if "," in line:
        line = _GROUPED.sub(lambda match: match[0].replace(",", ""), line)
    line = line.rstrip()
    if line.startswith("`") and line.endswith("`"):
        line = line[1:-1] if line.count("`") == 2 else line
    if "\u2013" in line or "\u2014" in line:
        line = _OPTION.sub("--", line)
    return "" if _FENCE.fullmatch(line) or _PROMPT.fullmatch(line) else line


def is_prose(line: str) -> bool:
    """Whether a line has plain words as a sentence has."""
    return len(_WORD.findall(line[:400])) >= _LEAST_WORDS


def short_lines(lines: Sequence[str]) -> list[str]:
    """The lines as the texts of tools are read: one that is longer than any of theirs counts as blank."""
    return [line if len(line) <= _MAX_LINE else "" for line in lines]


def figure(word: str | float | int, location: Location) -> float:
    """A figure that a tool reports: finite and not negative; FormatError otherwise."""
    value = math.nan
    plain = not isinstance(word, str) or (word.isascii() and "_" not in word)  # float() takes 5_5 and other scripts
    with suppress(TypeError, ValueError, OverflowError):
        value = float(word) if plain else value
    if isinstance(word, bool) or not 0 <= value <= _MAX_FIGURE:
        text = str(word) if isinstance(word, (str, float)) else "this"
        cause = f"'{text if len(text) <= 40 else text[:37] + '...'}' is no figure that a tool reports"
        raise FormatError(cause, location=location, hint=WHOLE)
    return value


def grouped_figure(word: str, location: Location) -> float:
    """A figure that may have commas: 1,234 and 1,234.5 have thousands, 12,5 a fraction; FormatError as `figure`."""
    return figure(word.replace(",", "") if _THOUSANDS.fullmatch(word) else word.replace(",", "."), location)


def count(word: str, location: Location) -> int:
    """A whole number that a tool reports; FormatError otherwise."""
    return int(figure(word, location))


def matrix(lines: list[str], at: int, file: str, rows: int | None = None) -> tuple[Cells, int]:
    """The cells of the matrix whose heads are the first line with text from `at` on (from 0), and the line after it.

    As many rows as columns unless `rows` says; FormatError with the line where it is cut short or has a wrong cell. At
    the end of the text whole rows are enough, of which `cut_note` tells.
    """
    start = next((n for n in range(at, len(lines)) if lines[n].strip(" `\t")), len(lines))
    columns = _columns(lines[start]) if start < len(lines) else 0
    if not columns:
        cause = f"no matrix below '{lines[at - 1].strip()}'" if at else "no matrix"
        raise FormatError(cause, location=Location(file, min(start + 1, len(lines))), hint=WHOLE)
    check_columns(columns, Location(file, start + 1))
    expected = columns if rows is None else rows
    first = start + 1 + (start + 1 < len(lines) and _RULE.fullmatch(lines[start + 1]) is not None)
    cells: list[tuple[float | None, ...]] = []
    for row in range(expected):
        number = first + row
        words = _words(lines[number]) if number < len(lines) else []
        if cells and ends_within(lines, number, words, columns + 1):
            break
        if not words or words[0] != str(row):
            cause = f"the matrix ends after {row} of {expected} rows"
            raise FormatError(cause, location=Location(file, min(number + 1, len(lines))), hint=WHOLE)
        if len(words) != columns + 1:
            cause = f"{len(words) - 1} cells for {columns} columns"
            raise FormatError(cause, location=Location(file, number + 1), hint=WHOLE)
        location = Location(file, number + 1)
        cells.append(tuple(None if word in _EMPTY else figure(word, location) for word in words[1:]))
    return cells, first + len(cells)


def ends_within(lines: Sequence[str], number: int, words: Sequence[str], expected: int) -> bool:
    """Whether a text breaks off in or before a row of a matrix: in its last line a row or its last figure is short.

    It looks no farther than the next line with text: a text may have as many matrices as lines.
    """
    if any(lines[at].strip(" `\t") for at in range(number + 1, len(lines))):
        return False
    if number >= len(lines) or not lines[number].strip(" `\t"):
        return True
    decimals = [len(word.partition(".")[2]) for word in words[1:] if word not in _EMPTY]
    short = len(decimals) > 2 and len(set(decimals[:-1])) == 1 and decimals[-1] < decimals[0]
    return len(words) < expected or short


def cut_note(cells: Cells, file: str, columns: int = 0) -> tuple[str, ...]:
    """A note on a square matrix of which the text holds the first rows alone."""
    columns = columns or len(cells[0])
    return (f"{file}: a matrix ends after {len(cells)} of {columns} rows",) if len(cells) < columns else ()


def check_columns(columns: int, location: Location) -> None:
    """FormatError for a matrix of more GPUs than a machine has."""
    if columns > MAX_COLUMNS:
        cause = f"{columns:,} columns; a matrix of at most {MAX_COLUMNS} GPUs is read"
        raise FormatError(cause, location=location, hint=WHOLE)


def cells_of(cells: Cells) -> Iterator[tuple[int, int, float | None]]:
    """Row, column and value of each cell."""
    return ((row, column, value) for row, values in enumerate(cells) for column, value in enumerate(values))


def _columns(line: str) -> int:
    """How many heads 0, 1, 2, ... the line has, after a word of its own or none; 0 if it is no line of heads."""
    words = _words(line)
    words = words[1:] if words and not words[0].isdigit() else words
    return len(words) if words == [str(n) for n in range(len(words))] else 0


def _words(line: str) -> list[str]:
    """The words of a row of a matrix; of one between bars its cells, `GPU 0` as 0, but for an empty corner."""
    if "|" not in line:
        return line.split()
    cells = [_MARKS.sub("", cell) or "-" for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return [_GPU.sub(r"\1", cell) for cell in cells]


def _integer(literal: str) -> int | float:
    """A whole number; one that is longer than Python converts is infinite."""
    return int(literal) if len(literal) < 400 else math.inf


def jsons_in(text: str, file: str) -> Iterator[Any]:
    """The JSON objects of a text that may have other lines around them, a FormatError for each that cannot be read."""
    end = refused = 0
    while refused < _MOST_REFUSED and (match := _OBJECT.search(text, end)):
        try:
            data, end = _json_at(text, match.end() - 1, file)
            yield data
        except FormatError as error:
            end, refused = match.end(), refused + 1
            yield error


def _json_at(text: str, start: int, file: str) -> tuple[Any, int]:
    """The JSON object that begins there, and where it ends; FormatError with the line if it breaks off or is none."""

    def finite(literal: str) -> float:
        if not math.isfinite(float(literal)):
            figure(literal, Location(file, text.count("\n", 0, text.find(literal, start)) + 1))
        return float(literal)

    try:
        decoder = json.JSONDecoder(parse_float=finite, parse_int=_integer, parse_constant=finite)
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        cause = "the JSON breaks off" if cut else f"not JSON: {error.msg}"
        hint = "give the whole file that the tool wrote" if cut else "give the file as the tool wrote it"
        raise FormatError(cause, location=Location(file, error.lineno, error.colno), hint=hint) from None
    except RecursionError:
        hint = "give the file as the tool wrote it"
        raise FormatError("nested too deeply", location=Location(file), hint=hint) from None
