"""Words that several verbs, the page and the charts share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.catalog.model import OR
from lanewise.report.table import TableCell
from lanewise.topology.model import Link, System

if TYPE_CHECKING:
    from lanewise.perf.predict import FlowRate, Prediction
    from lanewise.report.screen import Screen
    from lanewise.results.statistics import Residuals

MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
UNKNOWN_RATE = "unknown"


def link_speed(link: Link) -> str:
    """'Gen4 x16', 'NVLink x12', 'socket x3' or the stated rate."""
    if link.gen and link.lanes:
        label = f"Gen{link.gen} x{link.lanes}"
    elif link.kind.value in ("pcie", "fabric"):
        label = f"Gen{link.gen or '?'} x{link.lanes or '?'}"
    elif link.kind.value == "nvlink":
        label = f"NVLink x{link.count if link.count_known else '?'}"
    else:
        count = link.count if link.count_known else "?"
        label = f"{link.kind} x{count}" if count != 1 else str(link.kind)
    return label if link.rate is None else f"{label}, {units.show(link.rate, 'GB/s', 3)}"


def part_word(name: str) -> str:
    """The name of a part in a table: of several that it may be, the first and how many others."""
    first, *others = name.split(OR)
    return f"{first} or {len(others)} other{'s' * (len(others) > 1)}" if others else name


def heading(system: System) -> str:
    """The system's name with its settings."""
    chosen = ", ".join(f"{name} {value}" for name, value in system.settings.items())
    return f"{system.name} ({chosen})" if chosen else system.name


def readings(system: System, screen: Screen) -> list[str]:
    """What names that several parts have were taken as, a wrapped line each."""
    return [screen.wrap(f"part: {text}", indent=2) for text in system.readings]


def grade(residual_pct: float | None) -> str:
    """'' up to 5 %, 'off' up to 10 %, 'far' beyond."""
    from lanewise.results.statistics import CLOSE_PCT, FAR_PCT

    if residual_pct is None or abs(residual_pct) <= CLOSE_PCT:
        return ""
    return "far" if abs(residual_pct) > FAR_PCT else "off"


def plural(count: int, noun: str) -> str:
    """'1 row', '2 rows', '1,200 rows'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock(seconds: float) -> str:
    """'0 s', '40.83 ms', '0.105 us'."""
    unit = "s" if seconds >= 1 or seconds == 0 else "ms" if seconds >= 1e-3 else "us"
    return units.show(seconds, unit)


def anchor(*names: str) -> str:
    """Names joined as an HTML id."""
    text = "-".join(names).lower()
    return "".join(letter if letter.isalnum() else "-" for letter in text).strip("-") or "part"


def place_name(x: float | str) -> str:
    """The name of a place on an axis: '4', 'path 1'."""
    return x if isinstance(x, str) else f"{x:g}"


def percent(value: float | None) -> str:
    """'3.2 %', or a dash for None."""
    return NONE if value is None else f"{value:.1f} %"


def signed(value: float | None) -> str:
    """'+3.2' with a true minus sign, or a dash for None."""
    if value is None:
        return NONE
    text = f"{abs(value):.1f}"
    if text == "0.0":
        return "0.0"
    return ("+" if value > 0 else MINUS) + text


def errors(total: Residuals) -> str:
    """'rms 3.1 %, worst −7.4 %'."""
    return f"rms {percent(total.rms_pct)}, worst {signed(total.worst_pct)} %"


def rms_cell(value: float | None) -> TableCell:
    """An rms residual in % without its sign, graded by how large it is, or a dash for None."""
    return TableCell(NONE if value is None else f"{value:.1f}", grade(value))


def residual_cell(value: float | None) -> TableCell:
    """A residual in %, graded by how large it is."""
    return TableCell(signed(value), grade(value))


# 'part key = value, condition (source)': a comma inside a number is followed by a digit.
_NARROW = 0.03  # of a rate: an interval no wider says nothing that a reader acts on
_FIGURE = re.compile(r"(?P<part>\S+) (?P<figure>[\w.]+ = .+?)(?P<rest>(?:,(?= )| \().*)", re.DOTALL)
_START = re.compile(r"; (?=\S+ [\w.]+ = )")


def shortened(text: str) -> str:
    """'p a = 1, so (s); p b = 2, so (s)' as 'p a = 1 and b = 2, so (s)'; anything else as it is."""
    matches = [_FIGURE.fullmatch(piece) for piece in _START.split(text)]
    pieces = list(zip(_START.split(text), matches, strict=True))
    texts = []
    for _, group in groupby(pieces, key=lambda piece: (piece[1]["part"], piece[1]["rest"]) if piece[1] else piece[0]):
        members = list(group)
        first = members[0][1]
        if first is None or len(members) == 1:
            texts += [piece for piece, _ in members]
            continue
        names = [match["figure"] for _, match in members if match]
        texts.append(f"{first['part']} {', '.join(names[:-1])} and {names[-1]}{first['rest']}")
    return "; ".join(texts)


def range_text(rate: float, low: float, high: float) -> str:
    """'24.9 to 27.4': the interval of a rate (B/s) in GB/s, '' where it is not wider than 3 % of the rate."""
    narrow = high - low <= _NARROW * rate
    return "" if narrow else f"{units.number(low / 1e9, 3)} to {units.number(high / 1e9, 3)}"


def rate_text(rate: FlowRate) -> str:
    """The rate of a flow in GB/s, or `unknown`."""
    return UNKNOWN_RATE if rate.why_unknown else units.number(rate.rate / 1e9)


def rate_interval(rate: FlowRate) -> str:
    """The interval of a flow's rate as `range_text`, and always where the rate is unknown."""
    return range_text(0.0 if rate.why_unknown else rate.rate, rate.low, rate.high)


def total_text(prediction: Prediction) -> str:
    """The sum of all flows in GB/s, or `unknown`."""
    return UNKNOWN_RATE if prediction.why_unknown else units.number(prediction.total / 1e9)


def total_interval(prediction: Prediction) -> str:
    """The interval of that sum, always shown where it is unknown."""
    known = 0.0 if prediction.why_unknown else prediction.total
    return range_text(known, prediction.total_low, prediction.total_high)


def basis_note(bases: Iterable[str]) -> str:
    """'calibrated: median error 6.1 %, nine in ten within 44 % (150 measured rates); ...', '' if nothing is known."""
    known = _errors_by_basis()
    return "; ".join(
        f"{basis}: median error {known[basis]['median_pct']:.1f} %, nine in ten within {known[basis]['p90_pct']:.0f} % "
        f"({known[basis]['rows']} measured rates)"
        for basis in dict.fromkeys(bases)
        if basis in known
    )


@cache
def _errors_by_basis() -> dict[str, Any]:
    """What `make accuracy` wrote (`evidence_page.basis_errors`)."""
    from importlib import resources

    text = (resources.files("lanewise.data") / "accuracy.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
