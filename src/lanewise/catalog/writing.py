"""From a catalogue to the text of a part file that reads back as the same catalogue."""

from __future__ import annotations

from dataclasses import replace

from lanewise import units
from lanewise.catalog.keys import TEXT
from lanewise.catalog.model import Catalog, Figure, Part

# The prefixes a person would write; the shortest text that reads back as the same float is taken.
_PREFIXES = {
    "B": ("GB", "GiB", "MiB", "KiB"),
    "B/s": ("GB/s", "MB/s"),
    "s": ("ms", "us", "ns"),
    "T/s": ("GT/s",),
    "1/s": (),
    "W": (),
}


def write_parts(catalog: Catalog) -> str:
    """A catalogue as the YAML text of a part file, which load_catalog reads back; figures keep their units and sources.

    >>> lanewise.write_parts(lanewise.load_catalog()).splitlines()[:2]
    ['parts:', '- part: a10']
    """
    import yaml  # here, so that importing the catalogue stays cheap

    document = {"parts": [_part(part) for part in catalog.parts.values()]}
    # Letters beyond ASCII are escaped: PyYAML writes some of them (U+0085) so that they read back changed.
    return yaml.safe_dump(document, sort_keys=False, width=110)


def _part(part: Part) -> dict[str, object]:
    entry: dict[str, object] = {"part": part.name, "kind": part.kind, "title": part.title}
    if part.aliases:
        entry["aliases"] = list(part.aliases)
    if part.figures:
        entry["from"] = _blocks(part)
    return entry


def _blocks(part: Part) -> list[dict[str, object]]:
    groups: dict[tuple[tuple[str, str | tuple[str, ...]], ...], dict[str, object]] = {}
    for key, figure in part.figures.items():
        shared: dict[str, str | tuple[str, ...]] = {
            "source": figure.source, "basis": figure.basis, "condition": figure.condition,
            "machines": () if figure.measured or figure.measured_shared else figure.machines,
            "carried_from": figure.carried_from,
        }  # fmt: skip
        groups.setdefault(tuple(shared.items()), {})[key] = _figure(figure)
    return [
        {**{word: list(text) if isinstance(text, tuple) else text for word, text in common if text}, "figures": figures}
        for common, figures in groups.items()
    ]


def _figure(figure: Figure) -> object:
    groups = {"measured": figure.measured, "measured_shared": figure.measured_shared}
    if any(groups.values()):
        return {
            word: {name: _value(replace(figure, value=value)) for name, value in pairs}
            for word, pairs in groups.items() if pairs
        }  # fmt: skip
    ends = {"low": figure.low, "high": figure.high}
    stated = {end: _value(replace(figure, value=value)) for end, value in ends.items() if value is not None}
    return {"value": _value(figure), **stated} if stated else _value(figure)


def _value(figure: Figure) -> object:
    if figure.value is None or isinstance(figure.value, str) or figure.unit == TEXT:
        return figure.value
    if figure.unit == "1":
        return int(figure.value) if figure.value.is_integer() and figure.value < 2**53 else figure.value
    # The shortest reads best: 25.1 GB/s rather than 25100000000 B/s.
    return units.exact(figure.value, figure.unit, _PREFIXES[figure.unit])
