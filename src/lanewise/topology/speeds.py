"""Link speeds as people write them: `gen4 x16`, `hdr`, `100gbe`, `100 Gb/s`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lanewise import units
from lanewise.catalog.keys import GENERATIONS
from lanewise.errors import FormatError, unknown_name

LANES = (1, 2, 4, 8, 16)
AUTO = "auto"
UNKNOWN = "?"
_PREFIXES = {"B": ("KiB", "MiB", "GiB"), "B/s": ("Gb/s", "GB/s", "MB/s")}
_WORD = re.compile(r"(gen|x)(\d{1,3}|\?)")
_JOINED = re.compile(r"(?<=\d)x(?=\d)")  # gen5x16 is gen5 x16
# What manuals print: PCIe 5.0 x16, PCI-E Gen5 x16.
_NAME, _DOTTED = re.compile(r"^\s*pci[ -]?e(?:xpress)?\s*"), re.compile(r"^(?:gen\s*)?([1-6])\.0(?=\s|x|$)")
_HINT = "write 'gen4 x16', 'gen4', 'x8' or 'auto'; gen? and x? say unknown"

# Data rates after line encoding, Gb/s, one direction, 4x ports. InfiniBand: IBTA roadmap (FDR 56.25 Gb/s on
# the wire with 64b/66b, QDR 40 Gb/s with 8b/10b). Ethernet: IEEE 802.3 names a port by its data rate.
NETWORKS: dict[str, float] = {
    "qdr": 32.0,
    "fdr": 56.25 * 64 / 66,
    "edr": 100.0,
    "hdr100": 100.0,
    "hdr": 200.0,
    "ndr200": 200.0,
    "ndr": 400.0,
    "xdr": 800.0,
    **{f"{rate}gbe": float(rate) for rate in (10, 25, 40, 50, 100, 200, 400, 800)},
}


@dataclass(frozen=True, slots=True)
class Pcie:
    """A stated PCIe speed: None means unknown, and what is `auto` comes from the parts at the two ends."""

    gen: int | None = None
    lanes: int | None = None
    auto_gen: bool = True
    auto_lanes: bool = True


def read_pcie(text: str) -> Pcie:
    """The speed in words such as 'gen4 x16'; FormatError if it is none, or no legal one."""
    if text.strip().lower() == AUTO:
        return Pcie()
    stated: dict[str, int | None] = {}
    plain = _DOTTED.sub(r"gen\1 ", _NAME.sub("", text.strip().lower()))
    for word in _JOINED.sub(" x", plain).split():
        match = _WORD.fullmatch(word)
        if not match or match[1] in stated:
            raise FormatError(f"'{text}' is not a PCIe speed", hint=_HINT)
        stated[match[1]] = None if match[2] == "?" else int(match[2])
    if not stated:
        raise FormatError("the PCIe speed is empty", hint=_HINT)
    gen, lanes = stated.get("gen"), stated.get("x")
    if gen is not None and gen not in GENERATIONS:
        raise FormatError(f"there is no PCIe Gen{gen}", hint="generations are 1 to 6")
    if lanes is not None and lanes not in LANES:
        raise FormatError(f"a PCIe link cannot have {lanes} lanes", hint=f"lanes are {', '.join(map(str, LANES))}")
    return Pcie(gen, lanes, "gen" not in stated, "x" not in stated)


def generation(text: str) -> int | None:
    """The PCIe generation of `16GT/s`, `16.0 GT/s PCIe` and the like; None if unknown."""
    match = re.match(r"\s*(\d+(?:\.\d+)?)\s*GT/s", text)
    return next((gen for gen, rate in GENERATIONS.items() if match and float(match[1]) == rate), None)


def write_pcie(gen: int | None, lanes: int | None) -> str:
    """The words that `read_pcie` reads back to exactly this speed."""
    return f"gen{gen if gen else '?'} x{lanes if lanes else '?'}"


def read_network(text: str) -> float:
    """The data rate in B/s of a named network or a quantity like '100 Gb/s'; UnknownName, FormatError."""
    word = re.sub(r"(?<=\d)\s+(?=gbe$)", "", text.strip().lower())  # 400 GbE
    if word in NETWORKS:
        return units.to_si(NETWORKS[word], "Gb/s")
    if not word[:1].isdigit() or word.endswith("gbe"):
        raise unknown_name("network", word, [*NETWORKS, AUTO])
    return read_positive(text, "B/s")


def is_ethernet(text: str) -> bool:
    """Whether the words of a network name Ethernet: 100gbe, 400 GbE."""
    return text.strip().lower().endswith("gbe")


def write_network(rate: float, ethernet: bool) -> str:
    """The words that `read_network` and `is_ethernet` read back to exactly this network."""
    word = f"{rate * 8 / 1e9:g}gbe"
    return word if ethernet and word in NETWORKS else write_quantity(rate, "B/s")


def read_positive(value: str | float, unit: str) -> float:
    """A quantity above zero as SI in `unit`; FormatError otherwise."""
    number = units.parse(value, unit)
    if not 0 < number < float("inf"):
        limit = "finite" if number > 0 else "more than zero"
        raise FormatError(f"'{value}' must be {limit}", hint="leave it out if it is unknown")
    return number


def write_quantity(value: float, unit: str) -> str:
    """An SI number in the prefix that writes it shortest, and that reads back as exactly the same number."""
    return units.exact(value, unit, _PREFIXES.get(unit, ()))
