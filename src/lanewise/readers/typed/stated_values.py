"""What people state of a machine, by the words of `results.posted.STATEMENTS`: in use, iommu=pt, 8x CX7 400G."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise import late_re as re
from lanewise.readers.words import spellings
from lanewise.results.posted import STATEMENTS

_MODULE = r"(?:dma-?buf|(?:nv(?:idia)?[-_]?)?peer_?mem\w*|nvidia[-_]fs)"
_DENIED = (
    r"(?:off|no|none|false|0|disabled?|unused|unsupported|inactive|"
    r"not (?:used|in use|loaded|supported|active|set|available|enabled|working)|without|gdr 0|absent|missing|cleared)"
)
_OFF = rf"(?:is |{_MODULE}\W+(?:is )?)?{_DENIED}\b.*"
_ON = (
    r"(?:is )?(?:on|yes|true|1|enabled?|used|in use|active|loaded|supported|available|works|working|native|gdr 1|"
    rf"{_MODULE})\b.*"
)
_ON_OFF = ((_OFF, "off"), (_ON, "on"))
# By key the words that people write and the one that is known, in turn.
_MEANT: Mapping[str, tuple[tuple[str, str], ...]] = {
    "iommu": (
        (r".*\biommu=pt\b.*|(?:on|enabled)\W+(?:in |with )?(?:pt|pass-?through)\b.*|pass-?through.*|pt\b.*", "pt"),
        (r".*iommu=off.*|no\b.*|none.*|off\b.*|disabled.*|false", "off"),
        (r"enabled.*|yes\b.*|true|strict.*|lazy.*|translat.*|.*iommu=on.*", "on"),
    ),
    "acs": (
        (r"redirect\w* (?:off|disabled).*|.*ReqRedir-.*", "off"), (r".*(?:ReqRedir|CmpltRedir)\+.*", "on"), *_ON_OFF,
    ),
    "resizable BAR": ((r"small\b.*|256 ?M(?:i?B)?", "off"), (r"large\b.*|full\b.*|\d+ ?G(?:i?B)?", "on"), *_ON_OFF),
    "relaxed ordering": _ON_OFF,
    "confidential computing": (*_ON_OFF, (rf"(?:tdx|sev)\b(?!.*\b{_DENIED}\b).*", "on")),
    "GPUDirect RDMA": _ON_OFF,
    "GPUDirect Storage": _ON_OFF,
    "mtu": ((r"jumbo(?: frames?)?|9k", "9000"),),
    "network transport": (
        (r"(?!tcp\b).*\bsockets?\b.*", "Socket"), (r"tcp\b.*", "TCP"), (r".*\broce\b.*", "RoCE"),
        (r".*\bib(?:ext)?\b.*|infiniband.*|.*\bverbs\b.*", "IB"), (r".*\brdma\b.*", "RDMA"),
    ),
    "peer transport": ((r"(?:shared|host|system) memory.*|shm\b.*", "SHM"), (r"nv(?:idia )?link.*", "P2P")),
}  # fmt: skip
_PATTERNS = {
    key: tuple((re.compile(written, re.IGNORECASE), meant) for written, meant in words) for key, words in _MEANT.items()
}
_SIZE_OF_BAR = re.compile(r"(\d+) ?([MG])(?:i?B)?")
_STATE = r"(?:on|off|pt|strict|lazy|enabled|disabled)"
# What tells nothing of a fact, or two things: no idea, used to work, 1 of 2 nodes, strict or off alike.
_NO_FACT = re.compile(
    r"(?:no|any) (?:idea|clue|difference|effect|change|matter)\b.*|used to\b.*|\d+ (?:out )?of \d+\b.*|.*\?|"
    rf".*\b(?:alike|either way|{_STATE} (?:or|and|vs\.?|versus) {_STATE})\b.*|(?:tried|both)\b.*|"
    r"(?:not|should|supposed|expected)(?: to)? (?:be|gen|pt|pass)\w*.*",
    re.IGNORECASE,
)
# Facts that any words state, but for these.
_ANY_WORDS = ("slot", "tunnel", "virtual machine")
_NOTHING = re.compile(
    r"(?:none|unknown|n/?a|without|bare[ -]?metal|not (?:a|an|checked|tested|known|sure|used|in use))\b.*", re.I
)
_SAYS_ON = re.compile(
    r"(?<!not )\b(?:on(?=\W*$|[,;.)]| here| now| by| in| on)|enabled|active|loaded|supported|available|yes|true)\b",
    re.I,
)
_SAYS_OFF = re.compile(rf"\b(?:{_DENIED}|not \w+|fail\w*|broken)\b", re.IGNORECASE)
_SWITCHES = ("iommu", "acs", "resizable BAR", "relaxed ordering", "confidential computing", "GPUDirect RDMA")
_TRANSPORTS = ("network transport", "peer transport")
_OTHER_CARDS = re.compile(r"[+&]|\band\b|,.*\d ?[x×*]|\b(?:down|used|unused|broken)\b", re.IGNORECASE)
# 8x ConnectX-7 400G, 2x 400G, 8 x NDR: how many cards, and what stands for the rate of each.
_CARDS = re.compile(
    r"(?P<count>\d{1,2})(?: ?[x×*] ?| (?=\D)|$)(?:(?:ConnectX|CX|BlueField|BF)-?\d\w{0,2})?[ ,(]*(?P<rate>[^)]*)\)?"
)


def meant(key: str, value: str) -> str:
    """The value by the words of STATEMENTS; itself if it has none, and empty if it tells nothing or two things."""
    if key in STATEMENTS and key != "acs" and re.fullmatch(STATEMENTS[key][0], value):
        return "" if key in _ANY_WORDS and (_NOTHING.fullmatch(value) or _NO_FACT.fullmatch(value)) else value
    if _is_unclear(key, value):
        return ""
    if key == "slot" and re.fullmatch(r"[1-6]\.0", value):  # pcie: 3.0
        return f"Gen{value[0]}"
    if key == "line":
        return spellings.line(value)
    if key == "BAR1" and (size := _SIZE_OF_BAR.fullmatch(value)):
        return f"{size[1]} {size[2]}iB"
    if key == "network cards" and (cards := _CARDS.fullmatch(value)):
        rate = re.search(r"\d[\d.]* [GT]b/s", spellings.line(cards["rate"].strip()))
        return f"{cards['count']} x {rate[0]}" if rate else cards["count"]
    return next((word for written, word in _PATTERNS.get(key, ()) if written.fullmatch(value)), value)


def _is_unclear(key: str, value: str) -> bool:
    if key in _SWITCHES:
        says_both = _SAYS_ON.search(value) and _SAYS_OFF.search(value)
        return _NO_FACT.fullmatch(value) is not None or says_both is not None
    if key in _TRANSPORTS:
        return re.search(r"\b(?:not|off|disabled|broken|fail\w*)\b", value, re.IGNORECASE) is not None
    return key == "network cards" and _OTHER_CARDS.search(value) is not None


# What people call the words of STATEMENTS, with the values of which they mean it: `nic: 400G` is a line,
# `pcie: gen4 x8` a slot. Case, hyphens and underscores do not count.
_RATE = r"(?:\d[\d.]* ?(?:G|Gb|GbE|Gbps|Gbit|[GT]b/s)\b.*|[FEHNX]DR\b.*|\d{1,3} ?(?:Gigabit|Gb).*)"
_LANES = r".*(?:gen ?\d|pcie|\d\.0|\bx ?\d{1,2}\b|chipset|\bpch\b).*"
_KEYS: tuple[tuple[str, str, str], ...] = (
    (r"(?:(?:host|client|server|sender|receiver|target|initiator)(?:'s)? )?(?:cpus?|processors?|cpu model)",
     r"(?!\d{1,5}(?: |$)).*[A-Za-z].*", "cpu"),
    (r"iommu(?: mode)?", r".*", "iommu"), (r"(?:pcie )?acs(?: redirect)?", r".*", "acs"),
    (r"bar1?(?: size)?", r"\d+ ?[MG].*", "BAR1"), (r"re-?bar|re-?siz(?:e|able) bar", r".*", "resizable BAR"),
    (r"confidential(?: computing| vm)?", r".*", "confidential computing"),
    (r"vm|virtual(?:i[sz]ed|i[sz]ation| machine)?|hypervisor|guest", r".*", "virtual machine"),
    (r"gdr|gpu ?direct(?: rdma)?|(?:nvidia )?peer ?mem(?:ory)?", r".*", "GPUDirect RDMA"),
    (r"gds|gpu ?direct storage|nvidia fs", r".*", "GPUDirect Storage"),
    (r"(?:(?:gpu|peer|nv) ?)?(?:links?|topology|topo|interconnect|transport|matrix)", r".*\bNV\d{1,2}\b.*",
     "NVLinks of a pair"),
    (r"(?:network|net|nccl)? ?transport", r".*(?:socket|tcp|\bib|roce|rdma|infiniband).*", "network transport"),
    (r"(?:peer|nccl|p2p)? ?transport", r"(?:shm|p2p|nv ?link|shared|net).*", "peer transport"),
    (r"(?:network )?(?:nics?|hcas?|cards?|adapters?|rails)",
     rf"\d{{1,2}}(?: ?[x×*] ?| )(?:{_RATE}|(?:ConnectX|CX|BlueField).*)", "network cards"),
    (r"(?:nic|hca|network|ethernet|infiniband|fabric|interconnect)", _RATE, "line"),
    (r"(?:network|link|line|nic|ethernet|port) (?:rate|speed)", r".*", "line"),
    (r"bonding|lacp|lagg?|link aggregation|team(?:ing)?|ether ?channel|port ?channel", r".*", "bond"),
    (r"(?:pcie |pci )?(?:slots?|link|lanes)|pci-?e", _LANES, "slot"),
    (r"thunderbolt|usb ?4|egpu", r"(?!(?:no|off|false|0)\b).*", "tunnel"),
    (r"rtt|ping|round trip(?: time)?", r".*", "round trip"),
    (r"clocks?|throttl\w*", r".*", "clocks"), (r"v?cpus|cpu count|cores", r".*", "cpus"),
    (r"(?:host |system )?(?:memory|d?ram|dimms|modules)", r".*", "memory modules"),
    (r"(?:.* )?memory (?:rate|bandwidth|speed|throughput)(?: .*)?", r".*", "memory rate"),
)  # fmt: skip
_KNOWN_KEYS = tuple(
    (re.compile(called, re.IGNORECASE), re.compile(of, re.IGNORECASE), key) for called, of, key in _KEYS
)


def _plain(key: str) -> str:
    return re.sub(r"[\s_-]+", " ", key).strip().casefold()


_BY_PLAIN = {_plain(key): key for key in STATEMENTS}


def known_key(key: str, value: str) -> str:
    """The word of STATEMENTS that a key with such a value means, itself if none."""
    plain = _plain(key)
    own = _BY_PLAIN.get(plain)
    means = (word for called, of, word in _KNOWN_KEYS if called.fullmatch(plain) and of.fullmatch(value.strip()))
    word = next(means, "")
    return own if own is not None and own != "cpus" and word != "NVLinks of a pair" else word or own or key
