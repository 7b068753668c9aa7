"""Units: SI in memory (bytes, seconds, bytes per second, queries per second), formatted here and nowhere else.

GB is 1e9 bytes and GiB is 2**30 bytes, always; b is a bit, B is a byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lanewise.errors import FormatError, shorten

_SCALE: dict[str, tuple[str, float]] = {
    "B": ("B", 1.0), "kB": ("B", 1e3), "KB": ("B", 1e3), "MB": ("B", 1e6), "GB": ("B", 1e9), "TB": ("B", 1e12),
    "KiB": ("B", 2.0**10), "MiB": ("B", 2.0**20), "GiB": ("B", 2.0**30), "TiB": ("B", 2.0**40),
    "B/s": ("B/s", 1.0), "kB/s": ("B/s", 1e3), "KB/s": ("B/s", 1e3), "MB/s": ("B/s", 1e6), "GB/s": ("B/s", 1e9),
    "TB/s": ("B/s", 1e12),
    "KiB/s": ("B/s", 2.0**10), "MiB/s": ("B/s", 2.0**20), "GiB/s": ("B/s", 2.0**30),
    "b/s": ("B/s", 0.125), "kb/s": ("B/s", 0.125e3), "Mb/s": ("B/s", 0.125e6), "Gb/s": ("B/s", 0.125e9),
    "Tb/s": ("B/s", 0.125e12),
    "s": ("s", 1.0), "ms": ("s", 1e-3), "us": ("s", 1e-6), "µs": ("s", 1e-6), "ns": ("s", 1e-9),
    "min": ("s", 60.0),
    "1/s": ("1/s", 1.0), "Hz": ("1/s", 1.0), "QPS": ("1/s", 1.0), "IOPS": ("1/s", 1.0),
    "T/s": ("T/s", 1.0), "GT/s": ("T/s", 1e9),
    "%": ("1", 0.01), "1": ("1", 1.0), "x": ("1", 1.0), "m": ("m", 1.0), "W": ("W", 1.0),
}  # fmt: skip
# What services, networks, drives and programs count a second, as people write it.
COUNTED = (
    "inferences", "requests", "queries", "tokens", "samples", "images", "frames", "operations", "packets", "messages",
    "transactions", "batches", "files", "events", "iterations", "hashes", "signatures", "verifications", "steps",
    "calls", "records", "keys",
)  # fmt: skip
_SCALE |= {f"{noun}/s": ("1/s", 1.0) for noun in COUNTED}

# The unit in which people state each kind of quantity.
NATURAL = {"B/s": "GB/s", "B": "B", "s": "ns", "T/s": "GT/s"}
_PREFIX = {"k": 1e3, "M": 1e6}  # of counts and rates: 300k, 1.5M, 300k QPS
_LONGEST = 200  # characters of a quantity
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)"
_QUANTITY = re.compile(rf"^\s*([+-]?(?:{_DIGITS}\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%/0-9]*)\s*(QPS|IOPS)?\s*$")
_KIND = {
    "B": "size", "B/s": "rate", "s": "time", "1/s": "number of queries/s", "m": "length", "W": "power", "1": "number",
}  # fmt: skip


def dimension(unit: str) -> str:
    """The SI unit that `unit` scales: 'B', 'B/s', 's', '1/s', 'T/s', 'm' or '1'; FormatError if unknown."""
    return _lookup(unit)[0]


def to_si(value: float, unit: str) -> float:
    """`value` in `unit` as an SI number; FormatError if the unit is unknown."""
    return value * _lookup(unit)[1]


def from_si(value: float, unit: str) -> float:
    """An SI number expressed in `unit`; FormatError if the unit is unknown."""
    return value / _lookup(unit)[1]


def si_unit(unit: str) -> str:
    """The SI unit of a value that is shown in `unit`; `unit` itself if it is unknown, as nothing scales it then."""
    return _SCALE.get(unit, (unit, 1.0))[0]


def in_unit(value: float, unit: str) -> float:
    """An SI value as a number in `unit`, to 12 significant digits: a published 0.3 us stays 0.3."""
    return float(f"{value / _SCALE.get(unit, (unit, 1.0))[1]:.12g}")


def parse(text: str | float | int, expect: str) -> float:
    """Read a quantity such as '25.1 GB/s', '105 ns' or '256 B' as SI; a bare number is taken as SI already.

    `expect` is the SI unit it must have; FormatError if the text or its dimension is wrong.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    match = _QUANTITY.match(text) if len(text := str(text)) <= _LONGEST else None
    kind = _KIND.get(expect, "quantity")
    if not match or (match[3] and expect != "1/s"):
        raise FormatError(f"'{shorten(text)}' is not a {kind}", hint=f"write {_example(expect)}")
    number, unit = float(match[1].replace(",", "").replace("_", "")), match[2] or expect
    if expect in ("1", "1/s") and unit in _PREFIX:
        return number * _PREFIX[unit]
    if dimension(unit) != expect:
        raise FormatError(f"'{text}' is in {unit}, not in {expect}", hint=f"write {_example(expect)}")
    return to_si(number, unit)


def parse_with_unit(text: str, expect: str, example: str) -> float:
    """As parse, but a bare number is a FormatError too: '15' may mean GB as well as bytes. `example` is its hint."""
    if re.fullmatch(r"\s*[\d.,_eE+-]*\d\.?\s*", text):
        raise FormatError(f"'{shorten(text)}' has no unit", hint=f"write {example}")
    if not re.match(r"\s*[+-]?\.?\d", text):
        raise FormatError(f"'{shorten(text)}' is not a {_KIND.get(expect, 'quantity')}", hint=f"write {example}")
    return parse(text, expect)


def whole(text: str) -> int | None:
    """A whole number of up to 18 decimal digits; None for any other text, digits of other scripts included."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def show(value: float | None, unit: str, digits: int = 4) -> str:
    """`value` (SI) written in `unit` with that many significant digits; 'unknown' for None."""
    if value is None:
        return "unknown"
    text = number(from_si(value, unit), digits)
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return text if unit == "1" else f"{text} {unit}"


def exact(value: float, unit: str, prefixes: Iterable[str] = ()) -> str:
    """An SI number of `unit` in the prefix that writes it shortest and reads back as exactly the same number."""
    texts = [f"{_digits(from_si(value, prefix))} {prefix}" for prefix in prefixes]
    return min([*(text for text in texts if parse(text, unit) == value), f"{_digits(value)} {unit}"], key=len)


def _digits(value: float) -> str:
    """The shortest digits that read back as exactly the same number."""
    return repr(float(value)).removesuffix(".0")


def readable(value: float | None, si: str, digits: int = 4) -> str:
    """`value` (SI) in the unit people read it in: GB/s, ns to s, QPS; 'unknown' for None."""
    size = abs(value or 0.0)
    time = next((name for name, least in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if size >= least), "ns")
    unit = {"B/s": "GB/s", "s": time, "T/s": "GT/s", "1/s": "QPS"}.get(si, si)
    return show(value, unit, digits)


def number(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits, thousands separated, no exponent between 1e-4 and 1e12."""
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e12:
        return f"{value:.{digits}g}"
    before_point = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, digits - max(1, before_point))}f}"


def size(count: float) -> str:
    """Bytes as people write a copy's size: '64 MiB', '4 KiB', '100,000 B'."""
    for unit in ("GiB", "MiB", "KiB"):
        step = to_si(1, unit)
        if count >= step and count % step == 0:
            return f"{count / step:,.0f} {unit}"
    return f"{count:,.0f} B"


def sample(expect: str) -> str:
    """A quantity of that SI unit as an example."""
    return {"B": "256 B", "B/s": "25.1 GB/s", "s": "105 ns", "1/s": "64000 QPS", "m": "2 m"}.get(expect, "0.9")


def _lookup(unit: str) -> tuple[str, float]:
    try:
        return _SCALE[unit] if unit in _SCALE else _SCALE[_per_second(unit)]
    except KeyError:
        raise FormatError(
            f"unknown unit '{unit}'", hint="units: B KiB GB B/s GB/s GiB/s Gb/s s ms us ns QPS % GT/s m"
        ) from None


def _per_second(unit: str) -> str:
    """A unit of rates as _SCALE has it: Gbps, Gbit/s and Gb/sec are Gb/s, GBps and GB/sec are GB/s."""
    return re.sub(r"(?<=[bB])(?:ps|/sec)$", "/s", unit.replace("bit", "b"))


def _example(expect: str) -> str:
    if expect in ("1", "1/s"):
        return "300000, 300k or '300,000 QPS'" if expect == "1/s" else "a number, such as 0.9 or 300k"
    return f"a number and a unit, such as '{sample(expect)}'"
