"""What a value of a row says besides its figure, under keys of its own: 72 of 100 GB/s, 270 GB/s busbw, of: total."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import late_re as re
from lanewise import units
from lanewise.readers.typed import values
from lanewise.readers.typed.keys import with_texts
from lanewise.readers.words.plain_values import plain
from lanewise.yaml_positions import YamlNode

# A value and what was wanted: 9 of 12 GB/s, 9 GB/s instead of 12.
_WANTED = re.compile(
    r"(?P<value>[^(]*?\d[^(]*?) ?,? ?\(?(?P<word>(?:out )?of|instead of)(?: the)?(?P<by> expected| promised)? "
    r"(?P<wanted>~?\d[\d.,]*)(?P<unit> ?[A-Za-z][\w/]*)?\)?",
    re.IGNORECASE,
)
# A share of what was wanted, alone or with the value: 58 % of 63 GB/s, 36.5 GB/s (58 % of 63), 36.5 GB/s = 58 %.
_SHARE = re.compile(
    r"~?(?P<share>\d[\d.]*) ?% of (?:the )?~?(?P<wanted>\d[\d.,]*) ?(?P<unit>[A-Za-z][\w/]*)", re.IGNORECASE
)
_WITH_SHARE = re.compile(
    r"(?P<value>.*?\d ?[A-Za-z][\w/]*)[ ,;=(]+~?\d[\d.]* ?%(?: of (?:the |its |what )?"
    r"(?:~?(?P<wanted>\d[\d.,]*)(?P<unit> ?[A-Za-z][\w/]*)?|[a-z ]{1,40}))?\)?", re.IGNORECASE,
)  # fmt: skip
# Two figures of one run: 48761 IOPS, 195 MB/s; 12.3 ms / 150 GB/s. Both say the same, and the first counts.
_FIGURE = r"~?\d[\d.,]* ?(?:IOPS|[kKMG]?i?[Bb](?:its?|ytes?)?(?:/s(?:ec)?|ps)|[num\u00b5]?s|seconds)"
_TWO = re.compile(rf"(?P<first>{_FIGURE})(?:,| /|;| at| \+| and|) ?\(?(?P<second>{_FIGURE})\)?", re.IGNORECASE)
# A figure of each of two copies: 25.4 / 26.8 GB/s.
_OF_TWO_COPIES = re.compile(
    r"(?P<first>~?\d[\d.,]*)(?P<unit> ?[A-Za-z][\w/]*)?(?: ?[/&;] ?|, | and )"
    r"(?P<second>~?\d[\d.,]*)(?P<last> ?[A-Za-z][\w/]*)"
)
_SAME = 0.05  # two figures of one run in other units, of 1000 and 1024 bytes, are alike by so much
_LONGEST = 100  # characters
_UNIT = re.compile(r"[\d.] ?([A-Za-z]+(?:/s(?:ec)?|ps|s))$")
_METRIC = re.compile(r"\(?(bus ?bw|alg ?bw|bus bandwidth|algorithm bandwidth)\)?:?", re.IGNORECASE)
_BARE = re.compile(r"~?\d[\d.,]*")
_RANGE = re.compile(r"(?P<low>\d[\d.,]*) ?(?:-|–|to|\.\.+) ?(?P<high>\d[\d.,]*)(?P<unit> ?[A-Za-z][\w/]*|)")
_OF = {
    "sum": re.compile(r"(?:the )?(?:sum|total|all|both|aggregated?|combined|together)", re.IGNORECASE),
    "each": re.compile(r"(?:of )?(?:each|per|every)(?: (?:one|gpu|flow|card|pair|direction|way))?", re.IGNORECASE),
}


def with_keys_for_all(row: YamlNode) -> YamlNode:
    """The row with a key for all that its values say."""
    if not row.is_map:
        return row
    said = _of_its_value(row) | _of_its_wish(row)
    of = row.value.get("of")
    if isinstance(of, str) and (word := next((word for word in _OF if _OF[word].fullmatch(of.strip())), None)):
        said["of"] = word
    return with_texts(row, said, "value")


def rows_of_copies(row: YamlNode) -> Iterator[YamlNode]:
    """A row of both copies that has a value of each as a row each, any other row as it is."""
    flows, value = (row.value.get(key) if row.is_map else None for key in ("flows", "value"))
    two = _OF_TWO_COPIES.fullmatch(value[:_LONGEST]) if isinstance(flows, str) and isinstance(value, str) else None
    if two is None or not (copies := values.apart(str(flows))):
        yield row
        return
    texts = (f"{two['first']}{two['unit'] or two['last']}", f"{two['second']}{two['last']}")
    for flow, text in zip(copies, texts, strict=True):
        yield with_texts(row, {"flows": flow, "value": text}, "value")


def _is_of_one_run(first: str, second: str) -> bool:
    """Whether two figures are of different kinds, or one and the same in two units."""
    (one, its_kind), (other, kind) = _figure(first), _figure(second)
    return its_kind != kind or abs(one - other) <= _SAME * max(one, other)


def _figure(text: str) -> tuple[float, str]:
    """A figure in the SI, and its unit there; as it is written where nobody knows the unit."""
    written = re.split(r"(?<=[\d.])(?=[^\d.])", text.lstrip("~").replace(",", ""), maxsplit=1)
    number, unit = (part.strip() for part in written)
    kind = units.si_unit(unit)
    return float(number.rstrip(".")) * (1.0 if kind == unit else units.to_si(1.0, unit)), kind


def _of_its_value(row: YamlNode) -> dict[str, str]:
    text, said = row.value.get("value"), {}
    if not isinstance(text, str) or len(text) > _LONGEST:
        return {}
    if (metric := _METRIC.search(text)) is not None:
        said["metric"] = metric[1]
        text = (text[: metric.start()] + text[metric.end() :]).strip()
    if (share := _SHARE.fullmatch(text.strip())) is not None:
        wanted = float(share["wanted"].replace(",", ""))
        said["rated"] = f"{share['wanted']} {share['unit']}"
        text = f"{float(share['share']) / 100 * wanted:.6g} {share['unit']}"
    elif (shown := _WITH_SHARE.fullmatch(text.strip())) is not None:
        text, unit = shown["value"], _UNIT.search(shown["value"])
        if shown["wanted"]:
            said["rated"] = f"{shown['wanted']} {(shown['unit'] or (unit[1] if unit else '')).strip()}"
        said["value"] = text
    elif (two := _TWO.fullmatch(text.strip())) is not None:
        if not _is_of_one_run(two["first"], two["second"]):
            raise row["value"].error(f"'{text.strip()}' has two values of one kind", "write a row for each of them")
        # A bus bandwidth is a rate.
        text = said["value"] = two["second" if metric and re.search(r"\d ?[mnu\u00b5]?s$", two["first"]) else "first"]
    elif (compared := _WANTED.fullmatch(text.strip())) is not None:
        unit = _UNIT.search(compared["value"])
        wish = "expected" if compared["by"] or compared["word"].lower() == "instead of" else "rated"
        if written := compared["unit"] or (unit and unit[1]):
            text = compared["value"] if unit else f"{compared['value']} {written.strip()}"
            said[wish] = f"{compared['wanted']} {written.strip()}"
    wished = said.keys() - {"value"}
    return {} if not said or wished & row.value.keys() else {**said, "value": text}


def _of_its_wish(row: YamlNode) -> dict[str, str]:
    """What is wanted, in the unit of the value where it has none; of a range the end from which on a row is in it."""
    unit = _UNIT.search(str(row.value.get("value", "")).strip())
    said = {}
    for key in ("expected", "rated"):
        wish = plain(str(row.value.get(key, "")).strip())
        if (both := _RANGE.fullmatch(wish)) is not None:
            wish = f"{both['high' if units.si_unit(both['unit'].strip()) == 's' else 'low']}{both['unit']}"
        wish = f"{wish} {unit[1]}" if unit and _BARE.fullmatch(wish) else wish
        if key in row.value and wish != str(row.value[key]).strip() and len(wish) <= _LONGEST:
            said[key] = wish
    return said
