"""What a GPU can do by its name alone, and what a PCIe link carries: for results of machines that nobody described."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

from lanewise import late_re as re
from lanewise.catalog import Catalog, Part
from lanewise.catalog.keys import GENERATIONS
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# PCIe generation and lanes by series, for names that the catalogue does not have (the vendors' data sheets). The first
# that matches counts: RTX 2000 Ada before RTX 20x0, Quadro RTX 4000 before RTX 40x0.
_SERIES = (
    (r"Quadro RTX", 3, 16), (r"RTX PRO [12]000 Blackwell|RTX PRO 4000 Blackwell SFF", 5, 8),
    (r"RTX PRO [2-6]\d00 Blackwell|RTX 50[789]0", 5, 16), (r"RTX 50[56]0", 5, 8),
    (r"RTX 2000 Ada|RTX A(?:400|1000)\b|RTX 40[56]0", 4, 8),
    (r"RTX 40[789]0|RTX [3456]\d00 .*Ada|\bL(?:2|4|20|40S?)\b", 4, 16),
    (r"RTX 3050", 4, 8), (r"RTX 30[6789]0|RTX A[2456]\d00|\bA(?:10G?|16|30|40|100|800)\b", 4, 16), (r"\bA2\b", 4, 8),
    (r"RTX 20[678]0|TITAN RTX|Tesla T(?:4|10)\b|GTX 16\d0|\bT(?:400|600|1000)\b", 3, 16),
    (r"TITAN V|\bGV100|\bV100S?|\bP100|\bP40?\b", 3, 16),
    (r"\bK20[cmsXx]*\b|\bM20[579]\d\b|\bC20[57]\d\b|GTX [45]\d0\b", 2, 16), (r"GT 1030", 3, 4), (r"GT 7[13]0", 2, 8),
    (r"GTX 10[678]0|TITAN|GTX [679]\d0|Quadro [PM]\d000|Tesla [MK]\d0", 3, 16), (r"GTX 10[35]0", 3, 16),
    (r"\bH(?:20|100|200|800)\b|\bB(?:100|200)\b", 5, 16), (r"\bB300\b", 6, 16),
    (r"\bMI(?:6|8|25)\b|Vega (?:10|56|64|Frontier)|Radeon Pro WX|RX [45][789]0\b", 3, 16), (r"RX 5[56]0\b", 3, 8),
    (r"RX 6[45]\d0", 4, 4), (r"RX (?:55|66|76)\d0|Radeon Pro W[67][56]00", 4, 8),
    (r"\bMI(?:50|60|100|210|250X?)\b|Radeon VII|RX (?:5[67]|[67][789])\d0|Radeon Pro (?:W[67]\d00|V620)", 4, 16),
    (r"\bMI3\d\dX?\b|RX 90\d0|R9700", 5, 16),
    (r"Arc.* A(?:310|380|[45]0)\b|Arc.* B5[78]0\b|Flex 140", 4, 8), (r"Arc.* Pro B[56]0\b", 5, 8),
    (r"Arc.* A(?:580|60|7[57]0)\b|Flex 170|Gaudi ?2", 4, 16),
    (r"Arc.* Pro B[67][05]\b|Data Center GPU Max|Gaudi ?3", 5, 16),
)  # fmt: skip
# Laptops give a GPU eight lanes, whatever its chip and the card of that name have (their makers' specifications).
_LAPTOP = re.compile(r"\b(?:laptop|mobile|max-q|notebook)\b", re.IGNORECASE)
_LAPTOP_LANES = 8
# These reach host memory over a link that is no PCIe: rates of PCIe say nothing of them.
_COHERENT = re.compile(r"\bG[HB]\d+\b|MI300A|GB10", re.IGNORECASE)
# These have no memory of their own, so data of theirs need not cross a link to be in host memory.
_SHARED_MEMORY = re.compile(r"GB10|MI300A|\bOrin\b|\bThor\b|Strix|Radeon 80[56]0S", re.IGNORECASE)
# Their own links between GPUs are of no known rate here: Xe Link, RoCE of Gaudi, xGMI.
_OWN_LINKS = re.compile(r"\bMax 1\d{3}\b|Gaudi|\bHL-?[23]\d\d\b|\bMI\d{2,3}", re.IGNORECASE)
# Boards of SXM modules and superchips (NVIDIA's HGX and NVL72 data sheets); B200 and B300 exist on such boards alone.
_BOARDS = re.compile(r"(?!p100|v100).*sxm|g?b[23]00$")
_SWITCHED = re.compile(r"g?b[23]00$")
# What copies reach of the raw rate of 2.5 and 5 GT/s links (K20: 6.0 and 6.6 of 8 GB/s).
_OLD_SHARE = 0.8
_CODES = {1: 0.8, 2: 0.8, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 0.95}


@dataclass(frozen=True, slots=True)
class GpuAbility:
    """A GPU by its name: PCIe generation and lanes, and its part of the catalogue if it has one."""

    title: str
    gen: int
    lanes: int
    part: Part | None = None

    @property
    def source(self) -> str:
        """Where the generation and width come from."""
        return f"part {self.part.name}" if self.part is not None else "the data sheet of its series"

    @property
    def in_a_laptop(self) -> bool:
        """Whether its name says that it is in a laptop, whose memory and power limits are lower."""
        return _LAPTOP.search(self.title) is not None

    @property
    def has_own_links(self) -> bool:
        """Whether GPUs of its name have links to each other whose rate nobody knows."""
        return self.nvlink_rate is None and _OWN_LINKS.search(self.title) is not None

    @property
    def has_xgmi(self) -> bool:
        """Whether its links to other GPUs are AMD's Infinity Fabric, not NVLink."""
        return self.part is not None and (self.part.text("nvlink.part") or "").startswith("xgmi")

    def host_rate(self, to_device: bool) -> float:
        """The rate in B/s of a long pinned copy to or from host memory, with the link at its best."""
        key = f"engine.{'h2d' if to_device else 'd2h'}.gen{self.gen}"
        return self._measured(key) or link_rate(self.gen, self.lanes, to_device)

    def peer_rate(self) -> float:
        """The rate in B/s of a long peer write over PCIe with the links at their best."""
        key = f"engine.p2p_write.gen{self.gen}"
        return self._measured(key) or link_rate(self.gen, self.lanes, False)

    def _measured(self, key: str) -> float | None:
        """A figure of its part, in proportion where its slot has fewer lanes."""
        measured, lanes = (self.part.number(key), self.part.number("pcie.lanes")) if self.part else (None, None)
        return measured * min(1.0, self.lanes / lanes) if measured and lanes else measured

    @property
    def nvlink_rate(self) -> float | None:
        """The rate in B/s of a copy over all its NVLinks, one direction; None where it has none or nothing is known."""
        if self.part is None:
            return None
        raw = self.part.number("nvlink.rate")
        return self.part.number("engine.nvlink") or (None if raw is None else 0.9 * raw)

    @property
    def wires_to_host(self) -> float | None:
        """What its PCIe link to the host carries, B/s; None where NVLinks may lead there (P100, V100 on POWER)."""
        power = self.gen <= 3 and self.nvlink_rate is not None and self.part is not None and "sxm" in self.part.name
        return None if power else raw_rate(self.gen, self.lanes)

    @property
    def all_linked(self) -> bool:
        """Whether each pair of its boards is joined by NVLink: SXM boards since the A100."""
        return self.part is not None and on_a_board(self.part.name)

    @property
    def always_switched(self) -> bool:
        """Whether all its NVLinks lead to NVSwitches on every board: B200 and B300."""
        return self.part is not None and _SWITCHED.match(self.part.name) is not None


def on_a_board(part: str) -> bool:
    """Whether GPUs of a part come on boards that join each pair by NVLink: SXM since the A100, B200 and later."""
    return _BOARDS.match(part) is not None


def ability(title: str, catalog: Catalog) -> GpuAbility | None:
    """What a GPU of that name can do; None for a name that tells nothing, or a GPU that is not behind PCIe."""
    if not title or _COHERENT.search(title):
        return None
    part = catalog.gpu(title)
    gen, lanes = (part.number("pcie.gen"), part.number("pcie.lanes")) if part is not None else (None, None)
    if gen and lanes:
        return GpuAbility(title, int(gen), int(lanes), part)
    series = next(((gen, lanes) for pattern, gen, lanes in _SERIES if re.search(pattern, title, re.IGNORECASE)), None)
    if series is None:
        return None
    return GpuAbility(title, series[0], min(series[1], _LAPTOP_LANES) if _LAPTOP.search(title) else series[1])


def is_coherent(title: str) -> bool:
    """Whether a GPU of that name reaches host memory over a coherent link, not over PCIe."""
    return bool(_COHERENT.search(title))


def shares_host_memory(title: str) -> bool:
    """Whether a GPU of that name has no memory but the host's."""
    return bool(_SHARED_MEMORY.search(title))


def not_in_the_catalogue(row: Observation, posted: PostedFacts, catalog: Catalog) -> str:
    """The names that the text gives GPUs of a row without a part of that name, in quotes."""
    gpus = dict.fromkeys(re.findall(r"\bgpu\d*\b", row.how.get("flows", row.flow)))
    titles = dict.fromkeys(title for gpu in gpus if (title := posted.title(gpu)))
    unknown = [title for title in titles if ability(title, catalog) is None and catalog.gpu(title) is None]
    return ", ".join(f"'{title}'" for title in unknown)


def raw_rate(gen: int, lanes: int) -> float:
    """What the wires of a link carry in one direction after line encoding, B/s; infinite for an unknown generation."""
    return GENERATIONS[gen] * 1e9 / 8 * lanes * _CODES[gen] if gen in GENERATIONS else math.inf


def link_rate(gen: int, lanes: int, to_device: bool) -> float:
    """What a long copy gets of a link, B/s: the median of the GPUs that were measured at that generation."""
    typical = _typical("h2d" if to_device else "d2h", gen)
    share = _OLD_SHARE if gen < 3 else 0.85
    return typical * lanes / 16 if typical is not None else share * raw_rate(gen, lanes)


@cache
def _typical(direction: str, gen: int) -> float | None:
    from lanewise.catalog import builtin

    parts = [part for name, part in builtin().parts.items() if part.kind == "gpu" and "ladder" not in name]
    figures = [part.figures.get(f"engine.{direction}.gen{gen}") for part in parts]
    values = [figure.value for figure in figures if figure is not None and isinstance(figure.value, float)]
    return statistics.median(values) if values else None


def lesser_links(gen: int, lanes: int) -> list[tuple[tuple[int, int], ...]]:
    """Every link (generation, lanes) below that one: those of the same rate together, the fastest first.

    A rate alone cannot tell links of one group apart; the likeliest of it is first.
    """
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for lower_gen, fewer_lanes in product(range(gen, 0, -1), (16, 8, 4, 2, 1)):
        # Each generation about doubles the rate of a lane, so steps down in either are alike.
        if fewer_lanes <= lanes and (steps := _steps(gen - lower_gen, lanes, fewer_lanes)):
            groups[steps].append((lower_gen, fewer_lanes))
    return [tuple(sorted(groups[steps], key=partial(_rarity, gen, lanes))) for steps in sorted(groups)]


def _steps(generations: int, lanes: int, fewer_lanes: int) -> int:
    return generations + (lanes // fewer_lanes).bit_length() - 1


def _rarity(gen: int, lanes: int, link: tuple[int, int]) -> tuple[int, ...]:
    """Sorts links of one rate: Gen1, narrow Gen2 and x2 are the rarest, then what differs most in one of the two."""
    lower_gen, fewer_lanes = link
    rare = (lower_gen == 1) + (lower_gen == 2 and fewer_lanes < 16) + (fewer_lanes == 2)
    farthest = max(gen - lower_gen, _steps(0, lanes, fewer_lanes))
    return (rare, farthest, fewer_lanes < 8, lower_gen < 3, -fewer_lanes)
