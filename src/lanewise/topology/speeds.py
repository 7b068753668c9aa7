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
# What manuals and lspci print: PCIe 5.0 x16, PCI-E Gen 5 (x16), x16 PCIe 5, 16 lanes of Gen5, Speed 32GT/s, Width x16.
_PCIE_WORDS = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        ("\u00d7", "x"),  # the sign of multiplication
        (r"\bpci[ -]?e(?:xpress)?\s*(?=[1-6](?:\.0)?(?:\s|x\d|$))", " gen"),
        (r"\bpci[ -]?e(?:xpress)?|\b(?:speed|width|of|lnk(?:cap|sta):)(?=\s)|[,()/]|(?<=\d)-(?=x|gen)", " "),
        (r"(?<=\d)x(?=\d)", " x"),  # gen5x16
        (r"\bx\s+(?=\d)|\b(\d+)[ -]?lanes?\b", r"x\1"),
        (r"\b(?:gen(?:eration)?\s*|g)?(?<![\d.x])([1-6])\.0(?=\s|$)", r" gen\1"),
        (r"\bg(?:en(?:eration)?)?[ -]*([1-6?])(?=\s|$)", r" gen\1"),
    )
)
_TRANSFERS = re.compile(r"\b\d+(?:\.\d+)?\s*gt\s?(?:/?s)?(?![a-z])")
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
_NETWORK_KIND = re.compile(r"\b(?:infiniband|ib|ethernet|roce(?:v2)?)\b", re.IGNORECASE)
_NAMED_TWICE = {"edr100": "edr", "hdr200": "hdr", "ndr400": "ndr", "xdr800": "xdr"}  # by generation and rate


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
    for word in _pcie_words(text).split():
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


def _pcie_words(text: str) -> str:
    """A speed as people write it in the words of the format; what is none of them stays."""
    plain = _TRANSFERS.sub(lambda rate: f"gen{generation(rate[0].upper()[:-1] + 's') or rate[0]}", text.lower())
    for pattern, written in _PCIE_WORDS:
        plain = pattern.sub(written, plain)
    return plain


def generation(text: str) -> int | None:
    """The PCIe generation of `16GT/s`, `16.0 GT/s PCIe` and the like; None if unknown."""
    match = re.match(r"\s*(\d+(?:\.\d+)?)\s*GT/s", text)
    return next((gen for gen, rate in GENERATIONS.items() if match and float(match[1]) == rate), None)


def write_pcie(gen: int | None, lanes: int | None) -> str:
    """The words that `read_pcie` reads back to exactly this speed."""
    return f"gen{gen if gen else '?'} x{lanes if lanes else '?'}"


def read_network(text: str) -> float:
    """The data rate in B/s of a named network or a quantity like '100 Gb/s'; UnknownName, FormatError."""
    word = _network_word(text)
    if word in NETWORKS:
        return units.to_si(NETWORKS[word], "Gb/s")
    if not word[:1].isdigit() or word.endswith("gbe"):
        raise unknown_name("network", text.strip().lower(), [*NETWORKS, AUTO])
    return read_positive(word, "B/s")


def is_ethernet(text: str) -> bool:
    """Whether the words of a network name Ethernet: 100gbe, 400 GbE, 100G RoCE."""
    return re.search(r"ethernet|roce|gbe", text, re.IGNORECASE) is not None


def _network_word(text: str) -> str:
    """A network as people write it by its name in NETWORKS or as a rate: InfiniBand HDR200 is hdr, 200G 200 Gb/s."""
    plain = " ".join(text.split())
    bare = _NETWORK_KIND.sub("", plain).strip()
    rate = re.fullmatch(r"(\d+)\s*G(?:b(?:it)?(?:/s|ps)?|be?)?(?:/s)?", bare, re.IGNORECASE)
    if rate is not None and "GB/" not in bare:
        return f"{rate[1]}gbe" if is_ethernet(text) else f"{rate[1]} Gb/s"
    return _NAMED_TWICE.get(bare.lower(), bare.lower() if bare.lower() in NETWORKS else bare)


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
