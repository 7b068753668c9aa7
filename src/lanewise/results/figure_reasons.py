"""Why one of two figures is less than the other on a sound machine, as their words say.

An older link, another medium, no cache, less work at once, a larger model: each is a rung below, and a figure is no
measure of one that stands on a lower rung. What a text says nothing of explains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lanewise import late_re as re


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_DUPLEX = _words(r"\b(?:both (?:ways|directions)|bi-?dir\w*|duplex)\b")
_ONE_WAY = _words(r"\buni-?dir\w*|\bone[ -]way|\beach way|\balone\b|\bsingle direction")
_MEDIA = tuple(
    _words(pattern)
    for pattern in (
        r"\bhdds?\b|\bhard (?:disk|drive)", r"\bssds?\b(?!.*nvme)", r"\bnvme", r"\bram ?disk|\btmpfs|\bddr\d|\bdram\b",
        r"\b(?:gpu|device|video) memory\b(?! over)|\bhbm|\bvram", r"\bsd ?card|\bemmc",
    )
)  # fmt: skip
# Of these the one with the lesser number carries less: generations of links and memory, lanes, ports, boards; and
# what is asked for at once.
_MORE_IS_FASTER = (
    _words(r"\b(?:gen ?|pcie ?)([1-6])\b"),
    # Cards are made for slots of eight and more; who has fewer (a riser) asks about them.
    _words(r"(?<!\w)x(8|16)\b(?! ?(?:gpus?|cards?|drives?|disks?|ssds?|ports?|nics?))"),
    _words(r"\busb ?([1-3])(?:\.\d)?\b"),
    _words(r"\bsata ?([1-3])\b"),
    _words(r"\bddr([2-6])\b"),
    _words(r"\bddr[2-6]-?(\d{4})\b"),
    _words(r"\bthunderbolt ?([1-5])\b"),
    _words(r"\bpi ?([1-5])\b"),
    _words(r"\b(\d{1,3}(?:\.\d)?) ?(?:gbe|g (?:port|nic|link|card|switch|ethernet|network)s?)\b"),
    _words(r"\b(?:batch(?: size)?|bs|qd|queue depth|io_?depth|depth|num_?jobs|concurrency)\W{0,3}(\d{1,6})\b"),
)
# And of these the one with the greater: parameters of a model, bits of a weight, tokens of context.
_LESS_IS_FASTER = (
    _words(r"(?<![\w.])(\d{1,4}(?:\.\d)?)B\b(?! ?(?:/s|messages?|blocks?|reads?|writes?|packets?))"),
    _words(
        r"\b(?:i?q|u?int|(?:mx|nv)?fp|bf|nf|b?float)(\d{1,2})(?:_\w+)?\b",
        r"\bw(4|8|16)(?:a\d{1,2})?\b",
        r"\b([2-8]|16)[- ]?bits?\b",
    ),
    _words(r"\b(?:context|ctx|isl)(?: (?:length|size|of))?\W{0,3}(\d{1,7})\b", r"\b(\d{1,7})k? (?:context|ctx)\b"),
)
_SIZE = _words(
    r"\b(\d{1,6}) ?([kmg]?)(?:i?b|bytes?)?[ -](?:blocks?|messages?|msgs?|packets?|buffers?|requests?|records?)\b"
)
# The slower of two figures says the first, the faster one the second.
_PAIRS = (
    (_words(r"\b(?:one|single|1) (?:\w+ )?(?:streams?|threads?|flows?|connections?|clients?|jobs?|cores?|process)\b"),
     _words(r"\b(?:many|several|multiple|parallel|all|more)\b")),
    # Of the ports of a card, and of the PCIe devices of a port, one carries no more than all.
    (_words(r"\b(?:one|single|1) (?:port|rail|nic|half)\b"),
     _words(r"\b(?:both|two|all|2) (?:\w+ )?(?:ports|rails|nics|halves)\b")),
    # A cloud's volume is limited by what was paid for.
    (_words(r"\b(?:attached|network|cloud|block|persistent|remote) (?:volumes?|dis[ck]s?|storage)\b|\bebs\b"),
     _words(r"\blocal(?:ly)?\b|\binternal\b|\binstance (?:store|storage)\b")),
    (_words(r"\b(?:between|across) (?:the |two |both )?(?:nodes|hosts|machines|servers)\b|\binter-?node\b"),
     _words(r"\b(?:inside|within|in|on) (?:one|a single|the same) (?:node|host|machine|server)\b|\bintra-?node\b")),
    (_words(r"\bwi-?fi\b|\bwireless\b|\bwlan\b|\blte\b|\b[45]g\b"),
     _words(r"\bcabled?\b|\bwired?\b|\bethernet\b|\blan\b|\bfib(?:re|er)\b")),
    (_words(r"\bon (?:the |a )?cpu\b"), _words(r"\bon (?:the |a )?(?:gpu|card)\b")),
    (_words(r"\bsmall files?\b"), _words(r"\b(?:large|big|one|single) (?:\w+ )?files?\b")),
    # A disk turns as fast at its inner tracks, which are shorter.
    (_words(r"\binner\b|\bat the end\b"), _words(r"\bouter\b|\bat the (?:beginning|start)\b")),
    # What was read before lies in memory, and what a drive took first in its fast cells.
    (_words(r"\bfirst (?:reads?|runs?|pass|epoch|time|try)\b|\bbefore warm-?up\b"),
     _words(r"\b(?:second|next|later|third) (?:reads?|runs?|pass|one|epoch|time|try)\b|\bagain\b|\bafterwards\b|"
            r"\bafter warm-?up\b")),
    (_words(r"\bafter \d+ ?(?:[GT]i?B|min\w*|s|seconds)\b|\bsustained\b|\bsteady\b"),
     _words(r"\bfresh\b|\bempty\b|\bburst\b|\bslc\b|\bpeak\b|\bat first\b|"
            r"\bfirst (?:minutes?|seconds?|\d+ ?[GT]i?B)\b")),
    (_words(r"\bdesktop\b|\blaptop\b|\bnotebook\b"), _words(r"\bservers?\b|\bworkstation\b")),
)  # fmt: skip
# Only the slower one says so: what passes a cache by or fills it, goes through host memory between two GPUs, or is
# one's share of many.
_ONLY_SLOWER = (
    _words(
        r"\b(?:larger than|beyond|exceed\w*|bypass\w*|outside|without|no|drop\w*) (?:the )?(?:\w+ )?caches?\b|\bcold\b|"
        r"\bcaches? (?:is |was |gets |ran |runs )?(?:full|exhausted)\b|"
        # A benchmark of the disk itself is no read from a cache.
        r"\b(?:dis[ck]|drive|device) benchmark\b|"
        r"\buncached|(?<!gpu)(?<!without o.lag=)(?:^|[ _=])direct\b|\bo_direct|\bfsync|\bsync\b"
    ),
    _words(r"\b(?:without|no) (?:p2p|peer)", r"\b(?:p2p|peer(?:[ -]access)?)\W{1,3}(?:is )?(?:off|disabled)"),
    _words(r"\bper (?:thread|connection|stream|client|core|channel|job|flow|session)\b"),
)
# Only the faster one says so: a cache, a GPU's own memory or a copy within it, one host's own network.
_ONLY_FASTER = (
    _words(r"\b(?:cached|warm|page ?cache|from (?:the )?cache|buffered|without o.lag=direct)\b"),
    _words(
        r"\bits (?:own )?memory\b|\bmemory of the (?:card|gpu)\b|\bvram\b|\bhbm",
        r"\b(?:gpu|device|video|global|on-?board) memory\b(?! (?:over|to|from|copies))",
        r"\bdevice[ -]to[ -]device\b|\bd2d\b|\bdtod\b",
    ),
    _words(r"\blocalhost\b|\bloop-?back\b|127\.0\.0\.1"),
    _words(r"\btmpfs\b|\bram ?(?:disk|drive)\b|/dev/shm\b|\ball zeros?\b|\bzero(?:es|s| pages)\b"),
)
# Slower by design, but not by any factor: what goes over another socket (Xeons keep 0.7 and more of 56 GB/s,
# `references.siblings`), and one stream of the kernel's TCP beside RDMA (30 and more of 100 Gb/s: ESnet's pages on
# tuning hosts).
_BY_SHARE = (
    (0.7, _words(r"\b(?:across|between|other|far|remote) (?:the )?(?:sockets?|numa)\b"), _words("")),
    (0.3, _words(r"\btcp\b|\bipoib\b"), _words(r"\brdma\b|\broce\b|\bib_(?:write|read|send)\w*|\bverbs\b|\bdpdk\b")),
)


# Programs that compute, and the two rates of one collective: of several none is a measure of the others.
_COMPUTED = _words(
    r"\b(algbw|busbw|gzip|pigz|zstd|lz4|lzo|bzip2|xz|zlib|snappy|brotli|sha\d{1,3}|md5|crc32|memcpy|memset|aes)\b"
)


def other_work(first: str, second: str) -> bool:
    """Whether the words of two figures name different programs that compute, or different rates of one collective."""
    found = _computed(first), _computed(second)
    return bool(all(found) and found[0] != found[1])


@lru_cache(maxsize=2**14)
def _computed(words: str) -> frozenset[str]:
    return frozenset(match.lower() for match in _COMPUTED.findall(words))


# iperf sends UDP at 1 Mb/s unless it is asked for more (iperf3's manual, -b), of 10^6 bits or 2^20 (B/s).
_UDP, _UDP_ASKED = _words(r"\budp\b|\biperf3? .*-u\b"), (0.9e6 / 8, 1.1e6 / 8)


def asked_for_no_more(words: str, rate: float) -> bool:
    """Whether a rate (B/s) is what its program sends unless it is asked for more."""
    return _UDP_ASKED[0] <= rate <= _UDP_ASKED[1] and _UDP.search(words) is not None


def explained(slower: str, faster: str, share: float = 0.0) -> bool:
    """Whether the words of two figures say why the first is less on a sound machine; `share`: how much it has."""
    mine, theirs = _traits(slower), _traits(faster)
    if mine is theirs:
        return False
    by_share = mine.share_low & theirs.share_high - theirs.share_low
    return _by_words(mine, theirs) or any(share >= _BY_SHARE[at][0] for at in by_share)


@dataclass(frozen=True, slots=True)
class _Traits:
    """What words say of a figure: each pattern of the tables above that they have, or the number in it."""

    media: frozenset[int]
    numbers: tuple[float | None, ...]  # more is faster; those of `_LESS_IS_FASTER` negative
    size: float
    low: frozenset[int]
    high: frozenset[int]
    only_slower: frozenset[int]
    only_faster: frozenset[int]
    share_low: frozenset[int]
    share_high: frozenset[int]
    duplex: bool
    one_way: bool


@lru_cache(maxsize=2**14)
def _traits(words: str) -> _Traits:
    """The traits of words, looked for once however many figures they are compared with: equal ones are one object."""
    return _one_object(_traits_of(words))


@lru_cache(maxsize=2**14)
def _one_object(traits: _Traits) -> _Traits:
    return traits


def _traits_of(words: str) -> _Traits:
    more = [_number(pattern, words) for pattern in _MORE_IS_FASTER]
    less = [_number(pattern, words) for pattern in _LESS_IS_FASTER]
    return _Traits(
        _found(_MEDIA, words), (*more, *(None if number is None else -number for number in less)), _size(words),
        _found([low for low, _ in _PAIRS], words), _found([high for _, high in _PAIRS], words),
        _found(_ONLY_SLOWER, words), _found(_ONLY_FASTER, words),
        _found([low for _, low, _ in _BY_SHARE], words), _found([high for _, _, high in _BY_SHARE], words),
        _DUPLEX.search(words) is not None, _ONE_WAY.search(words) is not None,
    )  # fmt: skip


def _found(patterns: Sequence[re.Pattern[str]], words: str) -> frozenset[int]:
    return frozenset(at for at, pattern in enumerate(patterns) if pattern.search(words))


def _by_words(mine: _Traits, theirs: _Traits) -> bool:
    """Whether words alone say why the first of two figures is less."""
    if mine.media and theirs.media and not mine.media & theirs.media:
        return True
    if _on_a_lower_rung(mine, theirs) or mine.low & theirs.high - theirs.low:
        return True
    if mine.only_slower - theirs.only_slower or theirs.only_faster - mine.only_faster:
        return True
    if mine.duplex:
        return not theirs.duplex
    return theirs.duplex and mine.one_way


def _on_a_lower_rung(slower: _Traits, faster: _Traits) -> bool:
    """Whether a number that both name says that the first is the lesser one."""
    for mine, theirs in zip(slower.numbers, faster.numbers, strict=True):
        if mine is not None and theirs is not None and mine < theirs:
            return True
    return 0 < slower.size < faster.size


def _size(words: str) -> float:
    """The size of what is moved at once, as words say it in bytes; 0 if they do not."""
    match = _SIZE.search(words)
    return float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}.get(match[2].lower(), 1.0) if match else 0.0


def _number(pattern: re.Pattern[str], words: str) -> float | None:
    match = pattern.search(words)
    return None if match is None else float(next(filter(None, match.groups())))
