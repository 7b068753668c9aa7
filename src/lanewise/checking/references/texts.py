"""Verdicts on figures of plain text (`readers/plain_text`): by what the text itself puts beside them.

Nothing is known of such a figure but its words. It is slow where the text says that clearly more was expected of the
same thing, or has clearly more of it under another condition: before and after, with and without, another version or
setting. It is fine where it reaches the line or a nominal value that stands beside it. Everything else stays unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise import units
from lanewise.checking.expectation import expectation
from lanewise.checking.references.lines import FINE_SHARE, SLOW_SHARE
from lanewise.checking.references.one_setting import PER_ONE
from lanewise.checking.symptom import line_of
from lanewise.checking.tolerances import TOLERANCES
from lanewise.checking.verdict import PathResult, Verdict
from lanewise.errors import LanewiseError
from lanewise.results.figure_reasons import explained, other_work
from lanewise.results.figure_words import CONDITION, PLAIN_TEXT, THINGS, VERSION, without_counts, work_in
from lanewise.results.observation import Observation

# From what share on a figure is fine, and below what it is slow. What a data sheet says is reached to one half and
# more by healthy machines: STREAM's Triad has 0.55 of what eight channels of DDR4 carry (superuser.com 1815148).
_SHARES = {"expected": (0.9, 0.75), "other": (2.0, 0.75), "nominal": (0.7, 0.5), "bus": (0.7, 0.0)}
_OF_CONDITION = 0.75
# Repeated runs of one benchmark on one machine differ by a few per cent (`side_by_side`).
_OF_VERSION = 0.9
# Times differ more than rates (`references._LATE` is of the same copy in another program).
_LATE = 2.0
# No healthy path has more than what it is specified for; what is sent and counted otherwise differs by less.
_TOO_MUCH = 1.2
_SEVERAL = re.compile(
    r"\b(?:both|duplex|bi-?dir\w*|total|sum|together|aggregate\w*|bond\w*|lag|dual|each|raid\w*|all_?\w*|"
    r"(?:[2-9]|two|three|four|six|eight|several) (?:\w+ )?(?:ports|nics|cards|links|adapters|drives|disks|ssds|gpus|"
    r"rails))\b",
    re.I,
)
_BOTH_WAYS = re.compile(r"\bbi-?dir\w*|\b(?:full[- ])?duplex\b|\bboth (?:ways|directions)\b", re.IGNORECASE)
_TOGETHER = re.compile(r"\b(?:(?:both|all)(?: \w+)? (?:together|at once)|together|in sum|summed)\b", re.IGNORECASE)
# A setting with its value: (API: POSIX).
_STATED = re.compile(r"\((\w{2,20}) ?[:=]")
_VERSIONED = re.compile(r"\b(?:version|kernel|driver|release|firmware|cuda|build)\b", re.IGNORECASE)
_MOST_COMPARED = 20
# As of rows typed in (`one_setting._OF_FEWER`).
_OF_FEWER_THREADS, OF_FEWER_THREADS = 0.5, "threads in place of more"
_THREADS = re.compile(r"(?<![\w.])(\d{1,4}) threads?\b", re.IGNORECASE)
_THREADS_HEAD = re.compile(r"^\W*(?:num_?|n_?|nr_?)?threads?\b", re.IGNORECASE)
_ONE_DRIVE = re.compile(r"\b(?:one|a single|single|each) (?:\w+ )?(?:drive|disk|ssd|nvme|member)\b", re.IGNORECASE)
# Striped drives are read together; two at once reach this of the sum of each alone at least (`paths._OF_ALONE`).
_NUMBERS = {word: at for at, word in enumerate(("two", "three", "four", "five", "six", "seven", "eight"), 2)}
_NUMBER = rf"(?:{'|'.join(_NUMBERS)}|\d{{1,2}})"
_STRIPED = re.compile(
    rf"\b(?:raid(?: ?-?0)?|striped?|array|md\d?)(?: set)? (?:of|over|across|with) (?P<of>{_NUMBER})\b|"
    rf"\b(?P<drives>{_NUMBER}) (?:\w+ )?(?:drives|disks|ssds)\b(?=.*\b(?:raid|stripe|array)|.*\b(?:at once|together))",
    re.IGNORECASE,
)
_MIRRORED = re.compile(r"\braid ?-?(?:1|5|6|z\d?)\b|mirror|raidz", re.IGNORECASE)
_OF_ALONE, OF_STRIPED_DRIVES = 0.6, "striped drives"
# All NVLinks of a V100; A800 and H800; A100; H100 and H200; B200 (NVIDIA's data sheets), both directions.
_NVLINKS_BOTH_WAYS = (300e9, 400e9, 600e9, 900e9, 1800e9)
_PLAIN = re.compile(r"[^\W\d_]{2,}")


def of_plain_text(row: Observation) -> bool:
    """Whether a row is a figure of plain text, of which nothing is known but its words."""
    return row.how.get("tool") == PLAIN_TEXT


class PlainTextRows:
    """The figures of plain text in one check, by what they must share to be compared with each other."""

    def __init__(self, rows: Sequence[Observation]) -> None:
        self._rows = [row for row in rows if row.metric == "iops" and threads_of(row)][:_MOST_COMPARED]
        self._drives = [row for row in rows if row.how.get("about") == "storage" and row.metric == "goodput"]
        self._kinds: dict[tuple[object, ...], list[Observation]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: -(row.value or 0.0)):
            self._kinds[_kind(row)].append(row)

    def judge(self, result: PathResult) -> PathResult:
        """The result of such a figure, judged by what the text says of it, if it says anything."""
        row = result.row
        wanted = _expected(row)
        if wanted is not None:
            value, limit, (fine, slow) = wanted
            return self._by_one_drive(_judged(result, value, limit, fine, slow))
        best = self.best_of_another_condition(row)
        if best is None or not best.value:
            return self._by_one_drive(self._by_threads(result))
        lost = version_differs(row, best) and not _later_is_better(row, best)
        return _judged(result, best.value, f"'{best.scenario}'", 2.0, _OF_VERSION if lost else _OF_CONDITION)

    def _by_threads(self, result: PathResult) -> PathResult:
        """The result of a count a second of so many threads, beside the same of fewer."""
        row, own = result.row, threads_of(result.row)
        if row.metric != "iops" or own < 2 or rate_of_each(row):
            return result
        like = [each for each in self._rows if 0 < threads_of(each) < own and _but_threads(each) == _but_threads(row)]
        best = max(like, key=lambda each: each.value or 0.0, default=None)
        if best is None or not best.value:
            return result
        limit = f"the same with {threads_of(best)} {OF_FEWER_THREADS}"
        return _judged(result, best.value, limit, 2.0, _OF_FEWER_THREADS)

    def _by_one_drive(self, result: PathResult) -> PathResult:
        """The result of several striped drives, beside one of them alone: they have what two have at least."""
        row = result.row
        alone = [each for each in self._drives if _ONE_DRIVE.search(words_of(each))
                 and each.how.get("way") == row.how.get("way")]  # fmt: skip
        number = _striped(words_of(row))
        if result.verdict is not Verdict.UNKNOWN or row not in self._drives or number < 2 or len(alone) != 1:
            return result
        limit = f"'{alone[0].scenario}', twice, of {number} {OF_STRIPED_DRIVES}"
        return _judged(result, 2 * (alone[0].value or 0.0), limit, 2.0, _OF_ALONE)

    def best_of_another_condition(self, row: Observation) -> Observation | None:
        """The best figure of the same thing under another condition, as their words say; None if none is better."""
        if row.metric == "latency" or not row.value:
            return None
        for each in self._kinds[_kind(row)][:_MOST_COMPARED]:
            if each is row or (each.value or 0.0) <= row.value:
                return None
            words = _conditions(row, each)
            if _is_sum(words_of(each), words_of(row)):
                continue
            if _differ_in_a_condition(row, each) and not explained(*words) and not other_work(*words):
                return each
        return None


def _is_sum(words: str, own: str) -> bool:
    """Whether a figure's words say that it is of both directions or several paths together, and another's do not."""
    return any(what.search(words) is not None and what.search(own) is None for what in (_BOTH_WAYS, _TOGETHER))


def _striped(words: str) -> int:
    """How many drives words say that data is striped over; 0 if none, or where each holds the same."""
    match = None if _MIRRORED.search(words) or _ONE_DRIVE.search(words) else _STRIPED.search(words)
    number = (match["of"] or match["drives"]).lower() if match else ""
    return _NUMBERS.get(number) or int(number or 0)


def threads_of(row: Observation) -> int:
    """How many threads the words of a figure name, or the first column of its table; 0 if none."""
    label = row.how.get("label", "")
    match = _THREADS.search(label)
    if match is None and _THREADS_HEAD.match(row.how.get("heading", "")):
        match = re.match(r"\W*(\d{1,4})\b(?![.,]\d)", label)
    return int(match[1]) if match else 0


def rate_of_each(row: Observation) -> bool:
    """Whether the words of a figure say that it is of each of several threads."""
    return PER_ONE.search(words_of(row)) is not None


def _but_threads(row: Observation) -> tuple[object, ...]:
    """What figures of different numbers of threads share: the words, but for what stands in brackets."""
    name = re.sub(r"\([^()]*\)", " ", row.scenario.lower())
    return row.metric, _counted(row), row.flow, row.how.get("heading", ""), frozenset(_PLAIN.findall(name))


def _expected(row: Observation) -> tuple[float, str, tuple[float, float]] | None:
    """The value that the text expects of a row, what it calls it, and the shares from which it is fine or slow."""
    kind = row.how.get("expectation", "")
    name = {"expected": "what the text expects", "other": "what the text compares it with", "bus": "its bus"}
    against = row.how.get("against", "")
    alone = _ONE_DRIVE.search(words_of(row)) is not None and _striped(against) > 1
    summed = _is_sum(against, words_of(row))
    if kind == "other" and (alone or summed or other_work(words_of(row), against)):
        kind = ""
    try:
        if kind:
            value = units.parse(row.how["expected"], row.unit)
            if _one_way_of_nvlinks(row, value):
                limit = f"half of {row.how['expected']}, which data sheets of NVLinks count in both directions"
                return value / 2, limit, _SHARES["nominal"]
            return value, f"'{against}'" if against else name.get(kind, "the nominal value in the text"), _SHARES[kind]
        if line_of(row):
            line = units.parse(line_of(row), "B/s")
            return line, f"the line of {line_of(row)}", (FINE_SHARE, SLOW_SHARE)
    except LanewiseError:
        pass
    return None


def _one_way_of_nvlinks(row: Observation, wanted: float) -> bool:
    """Whether one way of a copy or ring is laid beside what data sheets say of all NVLinks in both directions."""
    # Of a collective in plain text its reader has halved it.
    metrics = ("goodput",) if of_plain_text(row) else ("goodput", "bus_bandwidth")
    one_way = row.path == "peer" and row.metric in metrics and (row.value or 0.0) <= wanted / 2
    return one_way and not _BOTH_WAYS.search(row.scenario) and wanted in _NVLINKS_BOTH_WAYS


def _judged(result: PathResult, value: float, limit: str, fine: float, slow: float) -> PathResult:
    """The verdict by one value: nothing is fine by another row alone (`fine` above 1)."""
    row, measured = result.row, result.row.value or 0.0
    most = _too_much(row, value)
    if most and measured > most:
        verdict, low, high = Verdict.FAST, None, most
    elif row.unit == "s":
        verdict = Verdict.SLOW if measured > _LATE * value else Verdict.UNKNOWN
        low, high = None, _LATE * value
    else:
        verdict = (
            Verdict.SLOW if measured < slow * value else Verdict.OK if measured >= fine * value else Verdict.UNKNOWN
        )
        low, high = slow * value, None
    if verdict is Verdict.UNKNOWN:
        return result
    expected = expectation(row, basis="as posted", value=value, limit=limit, rests_on=("as posted",)).expected
    return PathResult(row, expected, TOLERANCES["as posted"], verdict, low, high)


def _too_much(row: Observation, value: float) -> float:
    """Above what a rate is more than a nominal value or a line allows; 0 where several may add up, or none is said."""
    nominal = row.how.get("expectation") in ("nominal", "bus") or ("expectation" not in row.how and line_of(row))
    if not nominal or row.metric != "goodput" or _SEVERAL.search(words_of(row)):
        return 0.0
    return _TOO_MUCH * value


def _differ_in_a_condition(row: Observation, other: Observation) -> bool:
    """Whether the words that only one of two rows has name a condition, and no other machine or device."""
    texts = [text for pair in _differences(row, other) for text in pair]
    stated = [_STATED.search(each.how.get("heading", "")) for each in (row, other)]
    keys = {match[1] for match in stated if match}
    named = any(map(CONDITION.search, texts)) or (all(stated) and len(keys) == 1)
    headings = [each.how.get("heading", "") for each in (row, other)]
    named = named or (all(map(_VERSIONED.search, headings)) and any(map(str.isdigit, "".join(texts))))
    return any(texts) and named and not any(map(THINGS.search, texts))


def _conditions(row: Observation, other: Observation) -> tuple[str, str]:
    """The words that say under which condition each of two figures was measured: after it where they stand there."""
    afters = [each.how.get("after", "").strip(" ,;") for each in (row, other)]
    labels = [each.how.get("label", "").strip(" ,;") for each in (row, other)]
    if afters[1] and labels[1].endswith(afters[0] or "\n"):
        return afters[0], afters[1]
    return words_of(row), words_of(other)


def version_differs(row: Observation, other: Observation) -> bool:
    """Whether two rows differ by when or in which version they were measured."""
    return any(VERSION.search(text) for pair in _differences(row, other) for text in pair)


def words_of(row: Observation) -> str:
    """The heading and the words before a figure."""
    return f"{row.how.get('heading', '')}: {row.how.get('label', '')}"


def _later_is_better(row: Observation, best: Observation) -> bool:
    """Whether the better figure is that of the later version: a gain, which says less than a loss."""
    later = re.compile(r"\b(?:after|new|newer|now|with|patched|fixed)\b", re.I)
    return later.search(words_of(best)) is not None and later.search(words_of(row)) is None


def _differences(row: Observation, other: Observation) -> Iterator[tuple[str, str]]:
    """What only one of two rows has of words, in heading and in label."""
    for key in ("heading", "label"):
        mine, theirs = row.how.get(key, "").split(), other.how.get(key, "").split()
        yield " ".join(w for w in mine if w not in theirs), " ".join(w for w in theirs if w not in mine)


def _counted(row: Observation) -> str:
    """The SI unit of a row; of counts what is counted: requests are not tokens."""
    return row.display_unit if row.unit == "1/s" else row.unit


def _kind(row: Observation) -> tuple[object, ...]:
    """What rows must share: kind of quantity, path, direction, work, and the words that name no condition."""
    label = CONDITION.sub(" ", without_counts(row.how.get("label", "")))
    names = frozenset(word.lower() for word in _PLAIN.findall(label))
    return (
        row.metric,
        _counted(row),
        row.how.get("about", ""),
        row.flow,
        row.how.get("way", ""),
        work_in(words_of(row)),
        names,
    )
