"""What a posted text says besides its figures: the names of the GPUs in a tool's header, and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lanewise import late_re as re

# PCIe 4.0, gen4, and 4.0 alone before lanes.
_GENERATION = re.compile(
    r"(?:\b(?:pci-?e(?:xpress)? ?(?:gen ?)?|gen(?:eration)? ?)|(?<![\w.])(?=[1-6]\.0 ?[x\u00d7]))([1-6])(?:\.0)?(?!\d)",
    re.IGNORECASE,
)
# x8, 8x at the end, 8 lanes.
_LANES = re.compile(
    r"(?:(?<![a-z.])[x\u00d7] ?(?=\d{1,2}(?!\w))|(?<![\w.])(?=\d{1,2}(?: ?x(?! ?\w)|[ -]?lanes?\b)))(16|8|4|2|1)(?!\d)",
    re.IGNORECASE,
)
_ON_OFF = (r"(?i)on|off|yes|no|enabled|disabled|true|false|1|0", "on, off")
# What a text may state besides variables of libraries: the values that mean something (a pattern), and examples.
STATEMENTS: Mapping[str, tuple[str, str]] = {
    "cpu": (r".+", "EPYC 7763"),
    "tunnel": (r".+", "Thunderbolt 4, USB4"),
    "slot": (rf"(?i).*(?:{_GENERATION.pattern}|{_LANES.pattern}|chipset).*|pch|cpu", "gen3 x8, gen5, x16, chipset"),
    "iommu": (r"(?i)translat\w*|on|dma|pt|passthrough|identity|off|disabled", "translate, pt, off"),
    "acs": (rf"{_ON_OFF[0]}|redirect", "on, off"),
    "BAR1": (r"\d+ ?[MG]i?B", "256 MiB"),
    "resizable BAR": _ON_OFF,
    "clocks": (r".+", "thermal slowdown, power cap"),
    "relaxed ordering": _ON_OFF,
    "confidential computing": _ON_OFF,
    "virtual machine": (r".+", "yes, no"),
    "GPUDirect RDMA": _ON_OFF,
    "GPUDirect Storage": (rf"{_ON_OFF[0]}|supported|unsupported|compat\w*(?: mode)?", "on, off, compat mode"),
    "other programs": (r".+", "vLLM on gpu0"),
    "warm-up": (r"none|\d{1,6}", "none"),
    "NVLinks of a pair": (r".*\bNV\d{1,2}\b.*", "NV12"),
    "peer transport": (r"(?i)p2p.*|shm|net.*", "SHM, P2P"),
    "line": (r"\d[\d.]* ?[MGT]b/s", "100 Gb/s"),
    "bond": (r"(?i).*\b[1-9]\d? ?x ?\d.*|.*\b[1-9]\d? (?:ports|links)\b.*", "LACP of 2 x 10 Gb/s, 2 ports"),
    "network cards": (r"\d{1,2}(?: ?x \d[\d.]* ?[MGT]b/s)?", "8 x 400 Gb/s"),
    "mtu": (r"\d{3,5}", "1500, 9000"),
    "network transport": (r"(?i)socket|tcp|ib|rdma|roce", "Socket, IB"),
    "round trip": (r"\d[\d.]* ?[mu]s", "20 ms"),
    "faster before": (r".+", "yesterday"),
    "lost packets": (r".+", "rx_out_of_buffer 1234, 180000 retransmits"),
    "link errors": (r".+", "BadTLP, 1500 replays"),
    "drive health": (r".+", "percentage used 98 %"),
    "drive temperature": (r".+", "91 C, thermal throttling"),
    "drive setting": (r".+", "using_dma = 0"),
    "fabric manager": (r".+", "not running"),
    "cpus": (r"\d{1,5}\b.*", "8, 4 of 64"),
    "memory modules": (r"(?i).*\bDDR[345].*", "24 x DDR5-4800"),
    "memory rate": (r"\d[\d.]* ?[MGT]B/s", "936 GB/s"),
}
# Modules of a host's memory: 24 x DDR5-4800, 8 x 32 GB DDR4-3200, 8x32GB RDIMM DDR4 3200 MT/s.
MODULES = re.compile(
    r"(?<![\w.])(?P<count>\d{1,2}) ?(?:x|\u00d7|\*) ?(?:\d{1,3} ?G(?:i?B)? ?)?\)?,? ?(?:(?:ECC|REG|[A-Z]{0,5}DIMMs?) )*"
    r"(?<!G)DDR[345]L?[ -]?(?P<rate>\d{4,5})\b",
    re.IGNORECASE,
)
GPU_TO_CARD = "GPU to network card"  # the class of both in `nvidia-smi topo -m`
BY_LSCPU = "by lscpu"  # a virtual machine that nobody mentions
# What people write before a figure that they know only about.
_ABOUT = r"(?i:[~\u2248<>]|about |around |some |ca\.? )?\s*"
LONGEST = 1000  # characters of a value
# Variables of NCCL, UCX and others may be stated as they are.
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")


def meaning(key: str, value: str) -> str:
    """What of a value says something of a word of STATEMENTS, '20 ms' of '~20 ms to AWS'; empty if nothing does."""
    if len(value) > LONGEST:
        return ""
    pattern = STATEMENTS[key][0] if key in STATEMENTS else r".*"
    if re.fullmatch(pattern, value):
        return value
    begun = re.match(rf"{_ABOUT}(?P<said>{pattern.removeprefix('(?i)')})(?![\w.%-])", value, re.IGNORECASE)
    return begun["said"] if begun else ""


@dataclass(frozen=True, slots=True)
class SlotLink:
    """PCIe generation and lanes that somebody says a slot has, None for the one that is left out."""

    gen: int | None
    lanes: int | None

    @property
    def whole(self) -> tuple[int, int] | None:
        """Both, None unless both are known."""
        return (self.gen, self.lanes) if self.gen and self.lanes else None


def slot_link(text: str) -> SlotLink | None:
    """What a text says of a slot's link, of several figures the least ('x16, electrically x4'); None if nothing."""
    gens, lanes = ([int(each) for each in pattern.findall(text)] for pattern in (_GENERATION, _LANES))
    return SlotLink(min(gens, default=None), min(lanes, default=None)) if gens or lanes else None


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a text states: `key` of docs/reference/readers.md, its `value`, and the `source` (file:line)."""

    key: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class PostedFacts:
    """The devices' names by device (`gpu0`; `gpu` stands for every GPU), statements, and those that mean nothing."""

    devices: Mapping[str, str] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    unused: tuple[Statement, ...] = ()

    def title(self, device: str) -> str:
        """The name that the text gives a device, empty if none."""
        kind = re.sub(r"\d+$", "", device)
        return self.devices.get(device) or self.devices.get(kind, "")

    def completed(self, devices: Mapping[str, str]) -> PostedFacts:
        """The same, with the names of further `devices`: those that a text gives come first."""
        return replace(self, devices={**{name: title for name, title in devices.items() if not self.title(name)},
                                      **self.devices})  # fmt: skip

    def stated(self, key: str) -> tuple[Statement, ...]:
        """All statements of one key."""
        return tuple(statement for statement in self.statements if statement.key == key)

    def slot_links(self) -> list[SlotLink]:
        """What each stated slot is said to have, of its generation and lanes."""
        links = (slot_link(statement.value) for statement in self.stated("slot"))
        return [link for link in links if link is not None]

    def slots(self) -> list[tuple[int, int]]:
        """Generation and lanes of each stated slot of which both are known: 'gen3 x8'."""
        return [link.whole for link in self.slot_links() if link.whole]


def join(facts: Iterable[PostedFacts]) -> PostedFacts:
    """Several texts' facts as one; where two name a device, the later says."""
    devices: dict[str, str] = {}
    statements: dict[Statement, None] = {}
    unused: dict[Statement, None] = {}
    for each in facts:
        devices |= each.devices
        statements |= dict.fromkeys(each.statements)
        unused |= dict.fromkeys(each.unused)
    return PostedFacts(devices, tuple(statements), tuple(unused))
