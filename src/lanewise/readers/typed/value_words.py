"""What a value of a row says besides its figure, under keys of its own: 72 of 100 GB/s, 270 GB/s busbw, of: total."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from lanewise import late_re as re
from lanewise.yaml_positions import YamlNode

# A value beside what was wanted: 9 of 12 GB/s, 9 GB/s instead of 12.
_WANTED = re.compile(
    r"(?P<value>[^(]*?\d[^(]*?) ?,? ?\(?(?P<word>(?:out )?of|instead of)(?: the)?(?P<by> expected| promised)? "
    r"(?P<wanted>~?\d[\d.,]*)(?P<unit> ?[A-Za-z][\w/]*)?\)?",
    re.IGNORECASE,
)
_LONGEST = 100  # characters
_UNIT = re.compile(r"[\d.] ?([A-Za-z]+(?:/s(?:ec)?|ps|s))$")
_METRIC = re.compile(r"\(?(bus ?bw|alg ?bw|bus bandwidth|algorithm bandwidth)\)?:?", re.IGNORECASE)
_BARE = re.compile(r"~?\d[\d.,]*")
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
    values, keys = row.document.values, row.document.keys
    for name, text in said.items():
        place = (*row.path, name if name in row.value else "value")
        values[*row.path, name], keys[*row.path, name] = copy(values[place]), keys[place]
        values[*row.path, name].value = text
    return replace(row, value={**row.value, **said})


def _of_its_value(row: YamlNode) -> dict[str, str]:
    text, said = row.value.get("value"), {}
    if not isinstance(text, str) or len(text) > _LONGEST:
        return {}
    if (metric := _METRIC.search(text)) is not None:
        said["metric"] = metric[1]
        text = (text[: metric.start()] + text[metric.end() :]).strip()
    if (beside := _WANTED.fullmatch(text.strip())) is not None:
        unit = _UNIT.search(beside["value"])
        wish = "expected" if beside["by"] or beside["word"].lower() == "instead of" else "rated"
        if written := beside["unit"] or (unit and unit[1]):
            text = beside["value"] if unit else f"{beside['value']} {written.strip()}"
            said[wish] = f"{beside['wanted']} {written.strip()}"
    return {} if not said or said.keys() & row.value.keys() else {**said, "value": text}


def _of_its_wish(row: YamlNode) -> dict[str, str]:
    """What is wanted, in the unit of the value where it has none."""
    unit = _UNIT.search(str(row.value.get("value", "")).strip())
    wishes = {key: str(row.value[key]).strip() for key in ("expected", "rated") if key in row.value}
    return {key: f"{wish} {unit[1]}" for key, wish in wishes.items() if unit and _BARE.fullmatch(wish)}
