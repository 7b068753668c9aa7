"""Names that several parts share: which parts a name may mean, and one part of what is known of all of them."""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Sequence
from functools import lru_cache

from lanewise.catalog.cpu_models import generation_of
from lanewise.catalog.drive_models import drive_series
from lanewise.catalog.gpu_names import driver_name
from lanewise.catalog.model import OR, Catalog, Figure, Part, letters, plain_name, without_maker

_MIDDLE = "the middle of theirs, whose sources lanewise parts show has"
_MOST = 8  # more parts share a word such as rtx, which tells nothing
_NO_PRODUCT = re.compile(r"driver patched|keeps 10-bit read tags")  # the title of a card in another state
# Others of a part's own name: the chip of a superchip and of a DGX Station, modules that differ by their memory.
_SAME_NAME = {
    "gb300": ("gb300-desktop",), "gh200": ("gh200-480gb",), "grace": ("grace-480gb", "grace-496gb"),
}  # fmt: skip
# A maker's name for a series, as manuals and lspci (pci.ids, 1000:c010 and 1000:c030) print it, by the names of parts.
_SERIES = re.compile(r"\bpex[ -]?(8[78]|89|97)0?(?:0|x)(?:0|xx?)\b", re.IGNORECASE)
# Microchip's numbers of fan-out switches: PM40100 is the PFX 100xG4, PM50084 the PFX 84xG5 (Linux, switchtec.c).
_PFX = re.compile(r"\bpm([45])0\d{3}\b", re.IGNORECASE)
# Words that make another product of the same number, and words that tell no two parts apart.
_OTHER_PRODUCT = frozenset({"dx", "lx", "ti", "xt", "xtx", "super", "threadripper"})
_EMPTY = frozenset({"nvidia", "geforce", "tesla", "amd", "instinct", "intel", "mellanox", "edition", "generation",
                    "gcd", "die", "gpu"})  # fmt: skip
# The rate of a port (Gb/s) in a card's name: ConnectX-7 200G, CX6 100GbE.
_PORT = re.compile(r"[ -](\d{2,3}) ?G(?:b(?:E|/s|ps|it)?|E)?\b", re.IGNORECASE)
_AS_PRINTED = 0.03  # makers round the data rate of a port by so much
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")


def meant_by(catalog: Catalog, name: str, kinds: Collection[str]) -> tuple[str, ...]:
    """The parts of those kinds that a name may mean: one where it is clear, none where nothing is called so.

    >>> meant_by(builtin(), "Tesla P100", ("gpu",))
    ('p100-pcie', 'p100-sxm2')
    """
    if plain_name(name) in catalog.parts and plain_name(name) not in _SAME_NAME:
        return (plain_name(name),)
    several = re.split(r"\s+or\s+", name.strip(), flags=re.IGNORECASE)
    if len(several) > 1:
        said_once = several[0].split()[0]  # A100 PCIe or SXM
        meant = [meant_by(catalog, each, kinds) or meant_by(catalog, f"{said_once} {each}", kinds) for each in several]
        return tuple(dict.fromkeys(part for parts in meant for part in parts)) if all(meant) else ()
    if "nic" in kinds and (port := _PORT.search(name)) and (cards := meant_by(catalog, _PORT.sub("", name), kinds)):
        return tuple(card for card in cards if _has_port(catalog.get(card), 1e9 / 8 * float(port[1])))
    own = catalog.get(name) if name in catalog else None
    is_short = own is not None and _words(name) == {own.name}
    name = driver_name(name) if "gpu" in kinds else name
    if own is not None and (own.kind not in kinds or _is_certain(own, name)):
        others = _SAME_NAME.get(own.name, ()) if is_short else ()
        return (own.name, *(other for other in others if other in catalog.parts))
    alike = _of_series(catalog, name, kinds) or _alike(catalog, name, kinds)
    if own is None:
        return alike if len(alike) > 1 or _names(catalog, alike, name) else ()
    return alike if own.name in alike else (own.name,)


def _has_port(part: Part, rate: float) -> bool:
    """Whether a card has a port of that rate (B/s), as far as anybody knows."""
    known = part.number("net.rate")
    return known is None or abs(known / rate - 1) <= _AS_PRINTED


def either(parts: Sequence[Part]) -> Part:
    """One part that stands for each of several: the figures that they share, else the middle and a range of them all.

    Words and whole numbers (a generation, lanes, links) in which they differ are unknown.
    """
    keys = sorted({key for part in parts for key in part.figures})
    figures = {key: figure for key in keys if (figure := _of_all(key, parts)) is not None}
    titles = " or ".join(part.title for part in parts)
    one_maker = len({part.title.partition(" ")[0] for part in parts}) == 1
    return Part(
        OR.join(part.name for part in parts), parts[0].kind, titles if one_maker else f"either {titles}", (), figures
    )


def _of_all(key: str, parts: Sequence[Part]) -> Figure | None:
    """What several parts show of one figure; None where they show nothing in common."""
    stated = [part.figures[key] for part in parts if key in part.figures and part.figures[key].known]
    values = [figure.value for figure in stated if isinstance(figure.value, float)]
    if len(stated) == len(parts) and len({figure.value for figure in stated}) == 1:
        return stated[0]
    if parts[0].kind == "cpu" and len(stated) < len(parts):
        return None  # what no figure limits in one CPU, one that another states must not limit
    if not values or (stated[0].unit == "1" and len(set(values)) > 1 and all(value.is_integer() for value in values)):
        return None
    ends = [end for figure in stated for end in (figure.low, figure.high) if end is not None]
    return Figure(
        statistics.median(values), stated[0].unit, _MIDDLE, basis="typical",
        machines=tuple(dict.fromkeys(machine for figure in stated for machine in figure.machines)),
        low=min(values + ends), high=max(values + ends),
    )  # fmt: skip


def _is_certain(part: Part, name: str) -> bool:
    """Whether a name is the part's own, its title or what its driver prints, or a model by number."""
    plain = plain_name(name)
    printed = [alias for alias in part.aliases if without_maker(plain_name(alias)) != plain_name(alias)]
    own = {letters(written) for written in (part.name, part.title.partition(",")[0])}
    return (
        letters(name) in own
        or plain in map(plain_name, printed)
        or generation_of(name) == part.name
        or drive_series(name) is not None
    )


def _of_series(catalog: Catalog, name: str, kinds: Collection[str]) -> tuple[str, ...]:
    """The switches of a series that is named without the model."""
    series, pfx = _SERIES.search(name), _PFX.search(name)
    if "switch" not in kinds or (series is None and pfx is None):
        return ()
    start = f"pex{series[1]}" if series is not None else f"switchtec-pfx-gen{pfx[1]}" if pfx is not None else ""
    return tuple(part for part in catalog.names("switch") if part.startswith(start))


def _alike(catalog: Catalog, name: str, kinds: Collection[str]) -> tuple[str, ...]:
    """The parts that all words of a name fit, a number among them; none where more than a few do."""
    bracketed = _BRACKETS.search(name)
    words = _words(bracketed[1] if bracketed is not None else name)
    if not any(character.isdigit() for word in words for character in word):
        return ()
    alike = [
        part.name for kind in kinds for part in map(catalog.get, catalog.names(kind))
        if words <= _words_of(part) and not (_words(part.name) - words) & _OTHER_PRODUCT
        and not _NO_PRODUCT.search(part.title)
    ]  # fmt: skip
    return tuple(alike) if len(alike) <= _MOST else ()


def _names(catalog: Catalog, alike: tuple[str, ...], name: str) -> bool:
    """Whether a name has all words of a name or an alias of the only part alike: WX 8100 of Radeon Pro WX 8100."""
    words = _words(name)
    parts = [catalog.get(part) for part in alike]
    return any(_words(each) <= words for part in parts for each in (part.name, *part.aliases)) or (
        bool(_PFX.search(name)) and len(alike) == 1
    )


def _words_of(part: Part) -> frozenset[str]:
    return frozenset().union(*map(_words, (part.name, part.title, *part.aliases)))


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    plain = re.sub(r"\bcx-?(?=\d)", "connectx-", name.casefold())
    return frozenset(re.sub(r"^sxm\d$", "sxm", word) for word in re.findall(r"[a-z0-9+]+", plain)) - _EMPTY
