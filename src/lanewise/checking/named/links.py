"""Links that the name of a row says: 'PCIe 3.0 x4', 'Gen3', 'Thunderbolt eGPU'; and slices of a GPU ('MIG 1g.5gb')."""

from __future__ import annotations

from dataclasses import replace

from lanewise import late_re as re
from lanewise.checking.named.abilities import GpuAbility
from lanewise.results.figure_words import PLAIN_TEXT
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

_GENERATION = re.compile(r"\b(?:pci-?e?(?: gen)?|gen) ?([1-6])(?:\.0)?(?=\b|x)", re.IGNORECASE)
_LANES = re.compile(r"(?<![\w.])x ?(16|8|4|2|1)(?:\b|(?=@))", re.IGNORECASE)
_TUNNEL = re.compile(r"\bthunderbolt\b|\busb ?4\b|\btb[345]\b|\begpu\b", re.IGNORECASE)
# Cables and slots of four lanes; docks for them are of Gen4 (SFF-8611, PCI-SIG M.2 specification).
_FOUR_LANES = re.compile(r"\bocu-?link\b|\bm\.?2\b|\bu\.?2\b", re.IGNORECASE)
_NO_TUNNEL = re.compile(r"\bocu-?link\b|\bm\.?2\b", re.IGNORECASE)
_LINK = re.compile(r"Gen ?(\d) ?x(\d{1,2})", re.IGNORECASE)
# A link that several devices share, whatever stands at it: none of the GPU's own.
_SHARED = re.compile(
    r"\bup-?(?:link|stream)\w*|\b(?:switch|backplane|chipset|retimer|root)(?:'s)? (?:up-?)?(?:link|port)\b",
    re.IGNORECASE,
)
_SLICE = re.compile(
    r"\bmig\b|\b\dg\.\d{1,3}gb\b|\bv-?gpu\b|\bgrid\b|\b[a-z]{1,2}\d+[a-z]{0,2}(?:-\d)?-\d{1,3}[qcab]\b", re.IGNORECASE
)


def by_named_link(ability: GpuAbility, row: Observation) -> GpuAbility:
    """What a GPU can do on the link that a row typed in is named after."""
    if row.how.get("tool") not in ("typed in", PLAIN_TEXT) or _SHARED.search(row.scenario):
        return ability
    gens = [int(gen) for gen in _GENERATION.findall(row.scenario)]
    lanes = [int(lanes) for lanes in _LANES.findall(row.scenario)]
    if _FOUR_LANES.search(row.scenario):
        lanes, gens = lanes or [4], gens or [min(ability.gen, 4)]
    gen = min([ability.gen, *gens]) if len(set(gens)) == 1 else ability.gen
    width = min([ability.lanes, *lanes]) if len(set(lanes)) == 1 else ability.lanes
    return replace(ability, gen=gen, lanes=width)


def tunnel_of(row: Observation, posted: PostedFacts) -> tuple[str, str] | None:
    """The tunnel that a text states or a row typed in is named after, with its source; None if there is none."""
    stated = posted.stated("tunnel")
    if stated:
        return stated[0].value, stated[0].source
    typed = row.how.get("tool") == "typed in" and _TUNNEL.search(row.scenario) and not _NO_TUNNEL.search(row.scenario)
    return (row.scenario, "the row's name") if typed else None


def stated_links(row: Observation) -> list[tuple[int, int]]:
    """Generation and lanes of the links that the row states: under load, else of its slot."""
    text = row.how.get("link under load") or row.how.get("slot", "")
    return [(int(gen), int(lanes)) for gen, lanes in _LINK.findall(text)]


def is_slice(words: str) -> bool:
    """Whether words name a part of a GPU (MIG, vGPU), which has a part of its memory's bandwidth."""
    return _SLICE.search(words) is not None
