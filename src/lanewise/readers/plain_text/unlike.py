"""Figures of a text that are no measure of each other, whatever their words compare: other devices, work or units."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.catalog.drive_models import drive_series
from lanewise.readers.plain_text.figure import TextFigure
from lanewise.readers.words.devices import copy_of
from lanewise.readers.words.gpus import gpus_in, same_gpu
from lanewise.results.figure_reasons import asked_for_no_more, other_work

# No link to a host or peer carries as much in one direction (NVLink 5: 900 GB/s; B/s).
_OWN_MEMORY = 1e12
# What another model explains: Gen3 and Gen5 of 16 lanes differ by 4, T4 and V100 too; a seventh is worth the question.
_OF_OTHER_MODEL = 0.15
# What Gen5 x16 carries, the most of a copy over PCIe in use; a memory has several times as much (B/s).
_OF_A_LINK = 64e9
_OVER_NVLINK = re.compile(
    r"\bnvlink|\bpeers?\b|\bp2p\b|reduce|gather|\bxgmi|\bgrace\b|\bg[hb][23]00\b|c2c|memory|memtest|vram|hbm|triad",
    re.IGNORECASE,
)
# Counters of what a program happened to move.
_OBSERVED = re.compile(r"\bnvidia-smi\b|\bdmon\b|\bi[of]top\b|\bnload\b|\bwhile (?:training|serving|idle)\b", re.I)
# Which links lie between a GPU and its peers differs from one to the next.
_TO_OTHERS = re.compile(
    r"\bto (?:the |all |its )?(?:next|others?|another|neighbou?rs?)\b(?! (?:ports?|slots?|nodes?|hosts?))",
    re.IGNORECASE,
)
_PEERS = re.compile(r"\bpeers?\b|\bp2p\b|\btiles?\b|\bnvlinks?\b|\bxgmi\b", re.IGNORECASE)
# A rate in bytes of one in bits, with what protocols cost: 35 MB/s of 300 Mb/s.
_AN_EIGHTH = (0.75 / 8, 1.06 / 8)
_OF_A_LINE = re.compile(
    r"\b(?:line|internet|connection|uplink|isp|subscription|broadband|fib(?:re|er)|"
    r"my (?:\w+ )?bandwidth)\b", re.IGNORECASE,
)  # fmt: skip
# NVLinks of P100 to B300 in both directions together, B/s (NVIDIA's data sheets of each; A800 and H800: 400).
_NVLINK_SUMS = (160e9, 300e9, 400e9, 600e9, 900e9, 1.8e12)
_NVLINKS = re.compile(r"\bnvlinks?\b|\bintra-?node\b|\ball_?reduce|\bnvswitch", re.IGNORECASE)
_BOTH = re.compile(r"\bbi-?dir\w*|\bboth (?:ways|directions)|\bduplex\b", re.IGNORECASE)
_AT_ONCE = re.compile(
    r"\b(?:two|both|three|four|six|eight|all|\d{1,3}) (?:\w+ )?(?:gpus|cards|drives|disks|ssds|ports|flows|pairs) "
    r"(?:at once|together|in parallel|at the same time|simultaneously|in all)\b", re.IGNORECASE,
)  # fmt: skip
# What is counted of failures, and how busy something is.
_LOST = re.compile(r"(?:drop|loss|lost|err|retr|util|overrun)[\w.]*\s{0,20}[:=]", re.IGNORECASE)


def of_other_things(first: TextFigure, second: TextFigure, words: Sequence[str]) -> bool:
    """Whether two figures of a sentence, with the words of each, are of other devices, memory or work."""
    low, high = sorted((first.quantity.value, second.quantity.value))
    whole = f"{first.words.before} {words[0]}"
    line = f"{whole} {second.words.between} {second.words.after}"
    if _of_other_ends(words) or _of_more_at_once(first, second, words):
        return True
    if _among_peers(whole, words) or _OBSERVED.search(line) or (low >= _OF_OTHER_MODEL * high and _unlike(*words)):
        return True
    # A GPU's own memory is no measure of what reaches it.
    own = high > _OWN_MEMORY or (low < _OF_A_LINK < high / 3 and _is_own_memory(first, line))
    if own and first.quantity.si == "B/s":
        return True
    return other_work(whole, f"{second.words.between} {second.words.after}")


def _of_other_ends(words: Sequence[str]) -> bool:
    """Whether one figure is of a copy between GPUs and the other of one from or to host memory."""
    kinds = [copy_of((each,)) for each in words]
    return all(kinds) and ("peer" in kinds) and len(set(kinds)) > 1


def _of_more_at_once(first: TextFigure, second: TextFigure, words: Sequence[str]) -> bool:
    """Whether the second figure is higher and of several at once; what the first says may hold for both."""
    higher = first.quantity.value < second.quantity.value
    return higher and _AT_ONCE.search(words[1]) is not None and _AT_ONCE.search(words[0]) is None


def _unlike(first: str, second: str) -> bool:
    """Whether the words of two figures name two models of GPUs or of drives."""
    gpus = [gpus_in(words, spoken=True) for words in (first, second)]
    drives = [drive_series(words) for words in (first, second)]
    if all(gpus) and not any(same_gpu(one, other) for one in gpus[0] for other in gpus[1]):
        return True
    return all(drives) and drives[0] != drives[1]


def _is_own_memory(figure: TextFigure, line: str) -> bool:
    """Whether a GPU's figure far above all links can only be of its memory: the line speaks of no peers."""
    return figure.path == "device" and _OVER_NVLINK.search(line) is None


def _among_peers(whole: str, words: Sequence[str]) -> bool:
    """Whether two figures are of one GPU's copies to several others, as a sentence with their words says."""
    return _PEERS.search(whole) is not None and any(map(_TO_OTHERS.search, words))


def perhaps_bits(figure: TextFigure, other: TextFigure) -> bool:
    """Whether a figure fills a line whose rate was written in bits: people write mb/s for both."""
    if figure.quantity.si != "B/s" or not _OF_A_LINE.search(f"{other.words.before} {other.words.after}"):
        return False
    return _AN_EIGHTH[0] * other.quantity.value <= figure.quantity.value <= _AN_EIGHTH[1] * other.quantity.value


def one_way(figure: TextFigure, nominal: TextFigure) -> float:
    """What is nominal in one direction: of NVLinks data sheets give the sum of both."""
    value = nominal.quantity.value
    words = f"{nominal.words.before} {nominal.words.after} {figure.words.before} {figure.words.after}"
    both = nominal.role == "nominal" and value in _NVLINK_SUMS and _NVLINKS.search(words) and not _BOTH.search(words)
    return value / 2 if both else value


def no_rate(figure: TextFigure) -> bool:
    """Whether a figure is a counter at rest or of what was lost: nothing that another could be faster than."""
    words = f"{figure.words.between} {figure.row} {figure.head}"
    unasked = figure.quantity.si == "B/s" and asked_for_no_more(figure.words.before, figure.quantity.value)
    return figure.quantity.value == 0 or unasked or _LOST.search(words) is not None
