"""From a CPU's model name, as a manual or /proc/cpuinfo prints it, to the part that stands for its generation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from lanewise import late_re as re

# Model numbers name the generation: the last digit of an EPYC, the second of a Xeon Scalable, v2 to v4 of a Xeon E5.
# Between words may be blanks, hyphens or underscores, so that "EPYC 9554" and "epyc-9554" are the same name.
_GAP = r"[\s_-]+"
_SCALABLE = rf"(?:platinum|gold|silver|bronze|xeon(?={_GAP}8[1-5]\d\d)){_GAP}\d"  # Xeon 8480+ is a Platinum
_EPYC_GENERATIONS = (("1st", "naples"), ("2nd", "rome"), ("3rd", "milan"), ("4th", "genoa"), ("5th", "turin"))
_CORE = rf"(?:core{_GAP})?"
_MODELS = tuple(
    (re.compile(rf"\b{pattern}", re.IGNORECASE), part)
    for pattern, part in (
        (rf"epyc{_GAP}(7742|7452)\b", r"epyc-\1"),
        (rf"epyc{_GAP}(naples|rome|milan|genoa|siena|turin)\b", r"\1"),
        # Others of the same I/O die, and Frontier's CPU (AMD: EPYC 7003X, 9004X, 97x4, 7A53).
        (r"(?:milan-x|trento)\b", "milan"),
        (r"(?:genoa-x|bergamo)\b", "genoa"),
        (rf"(?:gold{_GAP})(6454s|6526y|6530|5120t)\b", r"xeon-gold-\1"),
        *((rf"(?:{number}{_GAP}gen(?:eration)?{_GAP}(?:amd{_GAP})?epyc|epyc{_GAP}(?:{number}{_GAP}gen|gen{_GAP}{number[0]}))\b", part)
          for number, part in _EPYC_GENERATIONS),
        (r"(?:trx40\b.*\bthreadripper|threadripper\b.*\btrx40)\b", "threadripper-3000"),  # the chipset of these alone
        (rf"epyc{_GAP}7\w\w1[a-z]?\b", "naples"),
        (rf"epyc{_GAP}7\w\w2[a-z]?\b", "rome"),
        (rf"epyc{_GAP}7\w\w3[a-z]?\b", "milan"),
        (rf"epyc{_GAP}9\w\w4[a-z]?\b", "genoa"),
        (rf"epyc{_GAP}9v33x\b", "genoa"),
        (rf"epyc{_GAP}8\w\w4p?[a-z]?\b", "siena"),
        (rf"epyc{_GAP}4\w\w4p[a-z]?\b", "ryzen-am5"),
        (rf"epyc{_GAP}4\w\w5p[a-z]?\b", "ryzen-9000"),
        (rf"epyc{_GAP}9\w\w5[a-z]?\b", "turin"),
        (rf"threadripper{_GAP}pro{_GAP}39\d5wx\b", "threadripper-pro-3000"),
        (rf"threadripper{_GAP}pro{_GAP}59\d5wx\b", "threadripper-pro-5000"),
        (rf"threadripper{_GAP}pro{_GAP}79\d5wx\b", "threadripper-pro-7000"),
        (rf"threadripper{_GAP}pro{_GAP}99\d5wx\b", "threadripper-pro-9000"),
        (rf"threadripper{_GAP}19\d0x\b", "threadripper-1000"),
        (rf"threadripper{_GAP}29\d0w?x\b", "threadripper-2000"),
        (rf"threadripper{_GAP}39\d0x\b", "threadripper-3000"),
        (rf"threadripper{_GAP}79\d0x\b", "threadripper-7000"),
        (rf"threadripper{_GAP}99\d0x\b", "threadripper-9000"),
        (rf"ryzen{_GAP}[3579]{_GAP}[35]\d[05]0(?:x|xt|x3d)?\b", "ryzen-am4"),
        (rf"ryzen{_GAP}[3579]{_GAP}[12]\d[05]0x?\b", "ryzen-2000"),
        (rf"ryzen{_GAP}[3579]{_GAP}7\d[05]0(?:x|f|x3d)?\b", "ryzen-am5"),
        (rf"ryzen{_GAP}[3579]{_GAP}9\d[05]0(?:x|f|x3d|x3d2)?\b", "ryzen-9000"),
        (rf"e5{_GAP}26\d\d[lw]?{_GAP}v2\b", "ivy-bridge-ep"),
        (rf"e5{_GAP}26\d\d[lw]?{_GAP}v3\b", "haswell-ep"),
        (rf"e5{_GAP}26\d\d[lw]?{_GAP}v4\b", "broadwell-ep"),
        (rf"{_SCALABLE}1\d\d", "skylake-sp"),
        (rf"{_SCALABLE}2\d\d", "cascade-lake-sp"),
        # Third-generation models on an H are of another series (Cooper Lake, PCIe Gen3).
        (rf"{_SCALABLE}3\d\d(?!\w*h)", "ice-lake-sp"),
        (rf"{_SCALABLE}4\d\d", "sapphire-rapids"),
        (rf"{_SCALABLE}5\d\d", "emerald-rapids"),
        (rf"xeon{_GAP}(?:6{_GAP})?69\d\dp", "granite-rapids"),
        (rf"xeon{_GAP}(?:6{_GAP})?6[57]\d\dp", "granite-rapids-sp"),
        (rf"xeon{_GAP}w[3579]?{_GAP}[23]4\d\dx?\b", "xeon-w-sapphire-rapids"),
        (rf"xeon{_GAP}w[3579]{_GAP}[23]5\d\dx?\b", "xeon-w-sapphire-rapids"),
        (rf"xeon{_GAP}w{_GAP}33\d\dx?\b", "xeon-w-3300"),
        (rf"xeon{_GAP}w{_GAP}32\d\dm?\b", "xeon-w-3200"),
        (rf"xeon{_GAP}w{_GAP}31\d\dx?\b", "xeon-w-3100"),
        (rf"xeon{_GAP}w{_GAP}2[12]\d\db?\b", "xeon-w-2200"),
        (rf"xeon{_GAP}max{_GAP}94\d\dc?\b", "sapphire-rapids"),
        (rf"e5{_GAP}16\d\d{_GAP}v3\b", "haswell-e"),
        (rf"e5{_GAP}16\d\d{_GAP}v4\b", "broadwell-e"),
        # Core: the generation is what stands before the last three digits; a few of the large socket count as another.
        (rf"{_CORE}i[79]{_GAP}(?:79|98|109)[0-9]{{2}}xe?\b", "xeon-w-2200"),
        (rf"{_CORE}i7{_GAP}(?:58[23]0|5930|5960)[kx]\b", "haswell-e"),
        (rf"{_CORE}i7{_GAP}(?:68[05]0|6900|6950)[kx]\b", "broadwell-e"),
        (rf"{_CORE}i[3579]{_GAP}(?:[6-9]|10)\d{{3}}(?:[kft]|kf|ks)?\b", "core-6-to-10"),
        (rf"{_CORE}i[3579]{_GAP}11\d{{3}}(?:[kft]|kf)?\b", "core-11"),
        (rf"{_CORE}i[3579]{_GAP}1[234]\d{{3}}(?:[kft]|kf|ks)?\b", "core-12-to-14"),
        (rf"core{_GAP}ultra{_GAP}[3579]{_GAP}2\d{{2}}(?:[kft]|kf)?\b", "core-ultra-200s"),
    )
)
# What model names carry beside the model, and how much of a name is looked at; none is longer.
_MARKS = re.compile(r"\((?:r|tm|c)\)|\bcpu\b|\bprocessor\b", re.IGNORECASE)
_LONGEST = 300

# Servers' CPUs of a maker by the PCIe generation of their slots, and the words that say no more than the maker.
_BY_SLOTS = {
    "intel": {3: "skylake-sp", 4: "ice-lake-sp", 5: "sapphire-rapids"},
    "amd": {3: "naples", 4: "rome-or-milan", 5: "genoa"},
}
_MAKER_WORDS = {"intel": "intel", "xeon": "intel", "amd": "amd", "epyc": "amd"}
_EMPTY_WORDS = frozenset({"scalable", "server", "host", "platinum", "gold", "silver", "bronze"})


def generations_of_maker(text: str) -> Mapping[int, str]:
    """The parts that a CPU may be of which a text names the maker alone, by the PCIe generation of its slots.

    >>> generations_of_maker("Intel Xeon")[4]
    'ice-lake-sp'
    """
    words = set(re.split(r"[\s-]+", _MARKS.sub(" ", text[:_LONGEST]).strip().lower())) - _EMPTY_WORDS
    makers = {_MAKER_WORDS.get(word, "") for word in words}
    return _BY_SLOTS.get(next(iter(makers)), {}) if len(makers) == 1 else {}


@lru_cache(maxsize=1024)
def generation_of(model: str) -> str | None:
    """The name of the part for a CPU's model name, None if no rule knows it.

    >>> generation_of("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz")
    'broadwell-ep'
    """
    text = " ".join(_MARKS.sub(" ", model[:_LONGEST]).split())
    matches = ((pattern.search(text), part) for pattern, part in _MODELS)
    return next((match.expand(part).lower() for match, part in matches if match), None)
