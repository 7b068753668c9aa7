"""What people state of a machine, by the words of `results.posted.STATEMENTS`: in use, iommu=pt, 8x CX7 400G."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise import late_re as re
from lanewise.readers.words import spellings
from lanewise.results.posted import STATEMENTS, meaning, stated_as

_OFF = (
    r"(?:is )?(?:off|no|none|false|0|disabled?|unused|unsupported|inactive|"
    r"not (?:used|in use|loaded|supported|active|set|available|enabled|working)|without|gdr 0|absent|missing|cleared)"
    r"\b.*"
)
_ON = (
    r"(?:is )?(?:on|yes|true|1|enabled?|used|in use|active|loaded|supported|available|works|working|native|"
    r"dma-?buf|gdr 1|(?:nv(?:idia)?[-_]?)?peer_?mem\w*|nvidia[-_]fs)\b.*"
)
_ON_OFF = ((_OFF, "off"), (_ON, "on"))
# By key the words that people write and the one that is known, in turn.
_MEANT: Mapping[str, tuple[tuple[str, str], ...]] = {
    "iommu": (
        (r".*\biommu=pt\b.*|pass-?through.*|pt\b.*", "pt"), (r".*iommu=off.*|no\b.*|none.*|off\b.*|disabled.*", "off"),
        (r"enabled.*|yes\b.*|strict.*|lazy.*|translat.*|.*iommu=on.*", "on"),
    ),
    "acs": (
        (r"redirect\w* (?:off|disabled).*|.*ReqRedir-.*", "off"), (r".*(?:ReqRedir|CmpltRedir)\+.*", "on"), *_ON_OFF,
    ),
    "resizable BAR": ((r"small\b.*|256 ?M(?:i?B)?", "off"), (r"large\b.*|full\b.*|\d+ ?G(?:i?B)?", "on"), *_ON_OFF),
    "relaxed ordering": _ON_OFF,
    "confidential computing": ((r"tdx\b.*|sev\b.*", "on"), *_ON_OFF),
    "GPUDirect RDMA": _ON_OFF,
    "GPUDirect Storage": _ON_OFF,
    "mtu": ((r"jumbo.*|9k", "9000"),),
    "network transport": (
        (r".*\bsockets?\b.*|tcp\b.*", "Socket"), (r".*\broce\b.*", "RoCE"),
        (r".*\bib(?:ext)?\b.*|infiniband.*|.*\bverbs\b.*", "IB"), (r".*\brdma\b.*", "RDMA"),
    ),
    "peer transport": ((r"(?:shared|host|system) memory.*|shm\b.*", "SHM"), (r"nv(?:idia )?link.*", "P2P")),
}  # fmt: skip
_PATTERNS = {
    key: tuple((re.compile(written, re.IGNORECASE), meant) for written, meant in words) for key, words in _MEANT.items()
}
_BY_CASE = {key.casefold(): key for key in STATEMENTS}
_SIZE_OF_BAR = re.compile(r"(\d+) ?([MG])(?:i?B)?")
# 8x ConnectX-7 400G, 2x 400G, 8 x NDR: how many cards, and what stands for the rate of each.
_CARDS = re.compile(
    r"(?P<count>\d{1,2})(?: ?[x×*] ?| (?=\D)|$)(?:(?:ConnectX|CX|BlueField|BF)-?\d\w{0,2})?[ ,(]*(?P<rate>[^)]*)\)?"
)


def meant(key: str, value: str) -> str:
    """The value by the words of STATEMENTS; itself if it has none."""
    if key in STATEMENTS and key != "acs" and meaning(key, value):
        return value
    if key == "line":
        return spellings.line(value)
    if key == "BAR1" and (size := _SIZE_OF_BAR.fullmatch(value)):
        return f"{size[1]} {size[2]}iB"
    if key == "network cards" and (cards := _CARDS.fullmatch(value)):
        rate = re.search(r"\d[\d.]* [GT]b/s", spellings.line(cards["rate"].strip()))
        return f"{cards['count']} x {rate[0]}" if rate else cards["count"]
    return next((word for written, word in _PATTERNS.get(key, ()) if written.fullmatch(value)), value)


# What people call the words of STATEMENTS, with the values of which they mean it: `nic: 400G` is a line,
# `pcie: gen4 x8` a slot. Case, hyphens and underscores do not count.
_RATE = r"(?:\d[\d.]* ?(?:G|Gb|GbE|Gbps|Gbit|[GT]b/s)\b.*|[FEHNX]DR\b.*|\d{1,3} ?(?:Gigabit|Gb).*)"
_LANES = r".*(?:gen ?\d|pcie|\d\.0|\bx ?\d{1,2}\b|chipset|\bpch\b).*"
_KEYS: tuple[tuple[str, str, str], ...] = (
    (r"(?:host )?(?:cpus?|processors?|cpu model)", r"(?!\d{1,5}(?: |$)).*[A-Za-z].*", "cpu"),
    (r"iommu(?: mode)?", r".*", "iommu"), (r"(?:pcie )?acs(?: redirect)?", r".*", "acs"),
    (r"bar1?(?: size)?", r"\d+ ?[MG].*", "BAR1"), (r"re-?bar|re-?siz(?:e|able) bar", r".*", "resizable BAR"),
    (r"relaxed ordering", r".*", "relaxed ordering"),
    (r"confidential(?: computing| vm)?", r".*", "confidential computing"),
    (r"vm|virtual(?:i[sz]ed|i[sz]ation| machine)?|hypervisor|guest", r".*", "virtual machine"),
    (r"gdr|gpu ?direct(?: rdma)?|(?:nvidia )?peer ?mem(?:ory)?", r".*", "GPUDirect RDMA"),
    (r"gds|gpu ?direct storage|nvidia fs", r".*", "GPUDirect Storage"),
    (r"(?:network|net|nccl)? ?transport", r".*(?:socket|tcp|\bib|roce|rdma|infiniband).*", "network transport"),
    (r"(?:peer|nccl|p2p)? ?transport", r"(?:shm|p2p|nv ?link|shared|net).*", "peer transport"),
    (r"(?:network )?(?:nics?|hcas?|cards?|adapters?|rails)",
     rf"\d{{1,2}}(?: ?[x×*] ?| )(?:{_RATE}|(?:ConnectX|CX|BlueField).*)", "network cards"),
    (r"(?:nic|hca|network|ethernet|infiniband|fabric|interconnect|line|network (?:rate|speed))", _RATE, "line"),
    (r"(?:pcie |pci )?(?:slots?|link|lanes)|pci-?e", _LANES, "slot"), (r"mtu", r".*", "mtu"),
    (r"thunderbolt|usb ?4|egpu", r"(?!no\b|off\b).*", "tunnel"),
    (r"rtt|ping|round trip(?: time)?", r".*", "round trip"),
    (r"clocks?|throttl\w*", r".*", "clocks"), (r"(?:d?ram|memory)", r".*DDR.*", "memory modules"),
)  # fmt: skip
_KNOWN_KEYS = tuple(
    (re.compile(called, re.IGNORECASE), re.compile(of, re.IGNORECASE), key) for called, of, key in _KEYS
)


def known_key(key: str, value: str) -> str:
    """The word of STATEMENTS that a key with such a value means, itself if none."""
    plain = re.sub(r"[\s_-]+", " ", key).strip()
    if (own := _BY_CASE.get(plain.casefold())) is not None and own != "cpus":
        return own
    means = (word for called, of, word in _KNOWN_KEYS if called.fullmatch(plain) and of.fullmatch(value.strip()))
    return next(means, stated_as(key))
