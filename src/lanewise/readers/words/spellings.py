"""Quantities as people write them in questions: Gbps, Mbit/s, MBytes/sec, 128K, tokens/s, 4-5 MB/s.

`units` knows each unit by one name; here other spellings become that name. bps counts bits unless its B is a capital,
K, M and G of a request's size are powers of 1024, as fio, dd and perftest take them.
"""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.readers.words.plain_values import LONGEST, plain

_NUMBER = r"\d[\d,_]*(?:\.\d*)?(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"\s*(?:[~≈<>]|about |ca\.? )?\s*({_NUMBER}|\.\d+)\s*(.*)$", re.IGNORECASE)
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:-|–|to|\.\.|~)\s*({_NUMBER})\s*([A-Za-z].*)$")
_SECOND = r"(?:ps|/s|/sec|/second| per sec(?:ond)?)"
_BITS = re.compile(rf"([kKmMgGtT]?)(?:b|[Bb]its?){_SECOND}")
_BYTES = re.compile(rf"([kKmMgGtT]i?|)(?:B|[Bb]ytes?){_SECOND}")
_BITS_ALONE = re.compile(r"(?<=\d)( ?[GM])(?:b|(?i:bits?))$")  # 9 Gbit: nobody counts a copy's size in bits
_SMALL_B = re.compile(r"([kmg])b(?:/s|/sec|/second| per sec(?:ond)?)")
_NEITHER = re.compile(r"([kKMG]i?)/s(?:ec)?")  # 9 G/s: of a drive or a copy bytes
# What services, networks and drives count a second: how people shorten the nouns that `units` knows.
_NOUNS = {
    "inferences": r"infer(?:ence)?s?", "requests": r"req(?:uest)?s?|r(?=ps)", "queries": r"quer(?:y|ies)|q(?=ps)",
    "tokens": r"tok(?:en)?s?|(?<![GgMm])t(?=/s)",
    "samples": r"samples?", "images": r"im(?:a)?ge?s?", "frames": r"frames?|f(?=ps)",
    "operations": r"o(?=ps)|ops?|operations?", "packets": r"packets|pkts?|p(?=ps)", "messages": r"msgs?|messages",
    "transactions": r"transactions", "batches": r"batch(?:es)?", "files": r"files", "events": r"events",
    "iterations": r"it(?:er)?s?", "hashes": r"hash(?:es)?|h(?=/s)", "signatures": r"sign(?:ature)?s?",
    "verifications": r"verif(?:y|ies)", "steps": r"steps?", "calls": r"calls?", "records": r"records?",
    "keys": r"keys?",
}  # fmt: skip
_OF_NOUN = "|".join(f"(?P<{noun}>{spelled})" for noun, spelled in _NOUNS.items())
# Transactions or tokens: who writes tps does not say.
_COUNTED = re.compile(rf"(?P<scale>[kKMG]?) ?(?:(?:{_OF_NOUN}|(?P<io>ios?)) ?{_SECOND}|tps)", re.IGNORECASE)
# A port of Ethernet by its usual name, and one of InfiniBand of four lanes by the name of its generation (IBTA's
# roadmap); QDR's and FDR's payload after line encoding.
_ETHERNET = re.compile(r"(\d{1,4}(?:\.\d)?) ?(?:G|GE|GbE|GigE|GBASE-\w{1,4})", re.IGNORECASE)
# Ports that carry data together: 2x100 Gb/s, 4 x HDR.
_SEVERAL = re.compile(r"([1-9]\d?) ?[x×*] ?(\S.*)")
_GIGABITS = re.compile(r"(\d[\d.]*) ([MGT]b/s)")
_INFINIBAND = re.compile(r"(?:infiniband |ib )?(SDR|DDR|QDR|FDR|EDR|HDR|NDR|XDR)(100|200)?", re.IGNORECASE)
_INFINIBAND_RATES = {"SDR": 8, "DDR": 16, "QDR": 32, "FDR": 54, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
# The time of one iteration, step or token, which programs print once they are slow (tqdm: s/it).
_EACH = re.compile(
    r"(u|µ|m|)s(?:ec(?:onds?)?)?(?:/| per | each | an? )(?:it(?:er(?:ation)?)?|step|tok(?:en)?|batch|image|img|sample|"
    r"frame)", re.IGNORECASE,
)  # fmt: skip
_TIMES = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6}
# What people add to a rate that changes nothing of it; 'per GPU', 'both ways' and the like do.
_ADDED = re.compile(
    r"((?:[kMG] )?[A-Za-z]{0,16}(?:/s(?:ec(?:ond)?)?|[bBiqrtfp]ps|IOPS)|[mnu\u00b5]?s)"
    r"(?P<added> ?\([^()]{1,60}\)|,? [A-Za-z][\w .-]{0,60})"
)
_CHANGES = re.compile(
    r"\b(?:per|each|every|both|bi-?dir\w*|duplex|total|sum|combined|aggregate\w*|together|all|of|or|and|to|x ?\d*|"
    r"times|vs|versus|than|less|more|lower|higher|slower|faster|missing|lost|below|above|before|after|instead)\b",
    re.IGNORECASE,
)
_SIZE = re.compile(rf"\s*({_NUMBER})\s*([kKmMgG])(?:i?[bB])?\s*$")
# What people add to a size: 4 KiB random, 64 MiB per GPU, 64 kB (default).
_OF_SIZES = re.compile(
    r"(?:(?<=\w) ?(?:\([^()]*\)|(?:buffer|block|message|request|chunk|packet|file|transfer|tensor)s?|each|random|"
    r"sequential|(?:per|a|for each) (?:gpu|rank|copy|call|request|message|direction)))+$",
    re.IGNORECASE,
)
_SIZES = re.compile(rf"({_NUMBER}) ?([kKMG]?i?B?) ?(?:-|–|to|\.\.+) ?{_NUMBER} ?([kKMG]i?B?|B)")
_COUNTS = {"one": 1, "single": 1, "single-threaded": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}
_DECIMAL_SIZE = re.compile(rf"\s*{_NUMBER}\s*(?:KB|kB|MB|GB)\s*$")


def rate_or_time(text: str, bits: bool) -> tuple[str, str]:
    """A rate, time or count by the names that `units` knows, and a note on what was taken for what.

    `bits`: of a network, where mb/s may be either and is left as it is; elsewhere it counts bytes.
    """
    note, text = "", _BITS_ALONE.sub(r"\1b/s", plain(text))
    if match := _RANGE.match(text):
        low, high = (float(number.replace(",", "").replace("_", "")) for number in match.groups()[:2])
        if low < high:
            text, note = f"{(low + high) / 2:.12g} {match[3]}", f"the middle of {text.strip()}"
    match = _PLAIN.match(text.strip())
    if match is None:
        return text, note
    number, unit = match.groups()
    if (longer := _ADDED.fullmatch(unit)) and not _CHANGES.search(longer["added"]):
        unit = longer[1]
    if (each := _EACH.fullmatch(unit)) and (seconds := float(number.replace(",", "").replace("_", ""))) > 0:
        return f"{1 / (seconds * _TIMES[each[1].lower()]):.12g} 1/s", "; ".join(
            filter(None, (note, f"from {text.strip()}"))
        )
    if (small := _SMALL_B.fullmatch(unit) or _NEITHER.fullmatch(unit)) and not bits:
        prefix = {"K": "k", "G": "G", "M": "M"}[small[1][0].upper()] + small[1][1:]
        return f"{number} {prefix}B/s", "; ".join(filter(None, (note, f"{unit} taken for {prefix}B/s")))
    if count := _COUNTED.fullmatch(unit):
        value = float(number.replace(",", "").replace("_", "")) * _SCALES[count["scale"].lower()]
        return f"{value:.12g} {_counted_unit(count)}", note
    return f"{number} {_unit(unit)}".rstrip(), note


def _counted_unit(count: re.Match[str]) -> str:
    """What is counted a second, by the name that `units` knows: tokens/s for tok/s, 1/s where nothing says it."""
    if count["io"]:
        return "IOPS"
    return next((f"{noun}/s" for noun in _NOUNS if count[noun]), "1/s")


def line(text: str) -> str:
    """The data rate of a network by the name that `units` knows: 10GbE, 25G, HDR, 2x100 Gb/s and other spellings."""
    text = re.split(r"[,(;]", text)[0]  # 25 Gb/s (bonded)
    several = _SEVERAL.fullmatch(text.strip())
    one = _line(several[2] if several else text)
    if several is None:
        return one
    rate = _GIGABITS.fullmatch(one)
    return f"{int(several[1]) * float(rate[1]):.12g} {rate[2]}" if rate else text


def _line(text: str) -> str:
    """The data rate of one link of a network, as `line` has it."""
    if match := _ETHERNET.fullmatch(text.strip()):
        return f"{match[1]} Gb/s"
    if match := _INFINIBAND.fullmatch(text.strip()):
        return f"{match[2] or _INFINIBAND_RATES[match[1].upper()]} Gb/s"
    return rate_or_time(text, bits=True)[0]


def count(text: str) -> int | None:
    """The whole number that a text says, '8 streams', 'QD32' or '2 nodes x 8'; None if it says none."""
    if len(text) > LONGEST:
        return None
    text = re.sub(r" ?\(.*\)$", "", text.strip().lower())
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    if scaled := re.fullmatch(r"(\d{1,4}) ?([km])(?:\s+[a-z][\w -]*)?", text):  # threads of a GPU: 16K of them
        return int(scaled[1]) * {"k": 2**10, "m": 2**20}[scaled[2]]
    if (word := text.split(" ")[0]) in _COUNTS:
        return _COUNTS[word]
    if each := re.fullmatch(r"(\d{1,5})(?: ?(?:nodes?|hosts?))? ?[x×*] ?(\d{1,5})(?: ?[a-z]+)?", text):
        return int(each[1]) * int(each[2])
    match = re.fullmatch(
        r"(?:qd ?|depth ?|x ?|all |-p ?|\w+ ?= ?)?(\d{1,7})(?:\s+(?!(?:x|or|and|to) )[a-z][\w -]*)?", text
    )
    return int(match[1]) if match else None


def _unit(unit: str) -> str:
    """The name of a unit of rate; other units as they are."""
    if (match := _BITS.fullmatch(unit)) and not _SMALL_B.fullmatch(unit):
        return {"": "b/s", "k": "kb/s"}.get(match[1].lower(), f"{match[1].upper()}b/s")
    if match := _BYTES.fullmatch(unit):
        prefix = match[1][:1].upper() + match[1][1:]
        return f"{'k' if prefix == 'K' else prefix}B/s"
    return unit


def size(text: str) -> str:
    """A size by the names that `units` knows, of a range the least: 128K is 128 KiB; 128 KB stays what it says."""
    text = _OF_SIZES.sub("", plain(text.strip()))
    if (least := _SIZES.fullmatch(text)) is not None:
        text = least[1] + (least[2] or least[3])
    text = re.sub(r"(?i)(?<=\d) ?bytes?$", " B", text)
    match = _SIZE.match(text)
    if match is None or _DECIMAL_SIZE.match(text):
        return text
    return f"{match[1]} {match[2].upper()}iB"
