"""What a figure of a pasted table says of GPUs: a collective's bus bandwidth, a pair of peers, P2P on or off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lanewise import late_re as re
from lanewise.readers.words.devices import NAME_OF_COLLECTIVE, named_collective, size_in
from lanewise.readers.words.gpus import gpus_in
from lanewise.results.observation import Observation

_BUS = re.compile(r"\bbus[ _-]?(?:bw|bandwidth)\b", re.IGNORECASE)
_ALGORITHM = re.compile(r"\balg\w*[ _-]?(?:bw|bandwidth)\b|\btime\b|latency|%", re.IGNORECASE)
_SIZES = re.compile(r"size|bytes|message", re.IGNORECASE)
_HOSTS = re.compile(r"^\W*(?:num(?:ber of)? )?(?:nodes?|hosts?|machines?|servers?)\b", re.IGNORECASE)
_RANKS = re.compile(
    r"^\W*(?:num(?:ber of)? )?(?:gpus?(?: count)?|ranks?|world ?size)\b(?!.{0,9}(?:node|model|name))", re.IGNORECASE
)
_COUNT = re.compile(r"\D{0,2}(\d{1,5})(?: ?(?:nodes?|hosts?|machines?|servers?|gpus?|ranks?))?\s*$", re.IGNORECASE)
_ACROSS = re.compile(r"\b(?:nodes|hosts|machines|servers|inter-?node|multi-?node|cluster)\b", re.IGNORECASE)
_OF_ONE_HOST = re.compile(r"(?<![\w.])(\d{1,2}) ?(?:x|\u00d7) ?(?=\w*(?:\d|gpu))", re.IGNORECASE)
_ARROW = r"\s*(?:->|=>|\u2192|<->|<=>|\u2194|\u21c4|--?|\u2013|&|and|to|,|/)\s*"
_PAIR = re.compile(rf"(?:gpu[ _]?)(\d{{1,3}}){_ARROW}(?:gpu[ _]?)?(\d{{1,3}})(?!\w)", re.IGNORECASE)
_BARE_PAIR = re.compile(rf"\W*(\d{{1,3}}){_ARROW}(\d{{1,3}})\W*$", re.IGNORECASE)
# The ends of a pair in two cells, below heads that say so.
_SOURCE = re.compile(r"\W*(?:from|src|source|sender)\b", re.IGNORECASE)
_TARGET = re.compile(r"\W*(?:to|dst|dest(?:ination)?|target|receiver)\b", re.IGNORECASE)
_END = re.compile(r"\W*(?:gpu|cuda|device)?[ _:]?(\d{1,3})\W*$", re.IGNORECASE)
_OF_PAIRS = re.compile(r"\bpairs?\b|\bgpus\b|gpu.{0,6}gpu|p2p|peer", re.IGNORECASE)
_P2P = re.compile(r"\b(?:p2p|peer(?: ?to ?peer)?(?: access)?)\b", re.IGNORECASE)
_OFF = re.compile(r"\boff\b|disabled|\bwithout\b|\bno\b|=0\b|staged|not enabled", re.IGNORECASE)
_ON = re.compile(r"\bon\b|\benabled|\bwith\b|=1\b", re.IGNORECASE)
_BOTH = re.compile(r"bi-?dir|both (?:ways|directions)|duplex|<->|<=>|\u2194|\u21c4", re.IGNORECASE)
_ALONE = re.compile(r"\d{1,4}(?:\.\d)? ?(?:[kKMG]i?B?|B|bytes)", re.IGNORECASE)
_PAIRS_AT_ONCE = re.compile(r"^\W*(?:num(?:ber of)? |concurrent |parallel )?(?:flows|pairs|copies)\W*$", re.IGNORECASE)
_TOTAL = re.compile(r"\btotal|aggregate|\bsum\b|\ball\b|combined", re.IGNORECASE)
# nvidia-smi's classes of the way between two GPUs; sets in which GPUs are in several copies.
_CLASSES, _CROSSED = re.compile(r"\b(?:PIX|PXB|PHB|NODE|SYS)\b"), re.compile(r"all[ -]to[ -]all|1:[2-9n]|star", re.I)
_MOST_RANKS = 64


@dataclass(frozen=True, slots=True)
class GpuCell:
    """What the figure is of: its flows, and the path, metric and settings of the observation."""

    name: str
    flow: str
    path: str
    metric: str
    how: dict[str, str] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)


def of_gpus(head: str, labels: Sequence[tuple[str, str]], lead: str) -> GpuCell | None:
    """What the figure below a head is of, by the other cells of its row with their heads; None if of no peers."""
    words = " ".join([*(label for _, label in labels), head])
    if (several := _pairs_at_once(head, labels, lead)) is not None:
        return several
    collective = any(_BUS.search(said) for said in (words, lead)) and not _ALGORITHM.search(head)
    return _collective(head, labels, lead) if collective else _peers(words, labels, lead)


def gpus_by_number(rows: Sequence[Observation]) -> tuple[list[Observation], dict[str, str]]:
    """Rows whose GPUs a table calls by their models (`gpu_RTX_3090`), as gpu0, gpu1 and so on, and these models."""
    ends = dict.fromkeys(end for row in rows for end in re.findall(r"gpu\w*", row.how.get("flows", row.flow)))
    models = {end: gpus_in(end.removeprefix("gpu_").replace("_", " "), spoken=True) for end in ends}
    if not all(len(found) == 1 for end, found in models.items()) or not ends:
        return list(rows), {}
    numbers = {end: f"gpu{at}" for at, end in enumerate(ends)}

    def numbered(text: str) -> str:
        return re.sub(r"gpu\w*", lambda match: numbers.get(match[0], match[0]), text)

    renamed = [replace(row, flow=numbered(row.flow), how={**row.how, "flows": numbered(row.how.get("flows", row.flow))})
               for row in rows]  # fmt: skip
    return renamed, {numbers[end]: found[0] for end, found in models.items()}


def _pairs_at_once(head: str, labels: Sequence[tuple[str, str]], lead: str) -> GpuCell | None:
    """The sum of so many pairs of GPUs at once, by a column that counts them and one that says total; else None."""
    counts = [_whole(label) for said, label in labels if _PAIRS_AT_ONCE.search(said)]
    said_of = [label for said, label in labels if not _PAIRS_AT_ONCE.search(said)]
    words = " ".join(label for label in said_of if re.search(r"[A-Za-z]{2}", label))
    between = _CLASSES.search(f"{words} {lead}") or _P2P.search(f"{words} {lead}") or _OF_PAIRS.search(lead)
    if not counts or not 0 < counts[0] <= _MOST_RANKS or not between or _CROSSED.search(words):
        return None
    if counts[0] > 1 and not _TOTAL.search(head):
        return None
    flow = ", ".join(f"gpu{2 * at}->gpu{2 * at + 1}" for at in range(counts[0]))
    metric = "total" if counts[0] > 1 else "goodput"
    return GpuCell(f"{counts[0]}, {re.sub(r'[^A-Za-z0-9]+', ' ', words).strip()}", flow, "peer", metric, {"p2p": "on"})


def is_of_collectives(head: str) -> bool:
    """Whether a head says bus bandwidth, which nccl-tests and everybody after it give in GB/s."""
    return _BUS.search(head) is not None


def _collective(head: str, labels: Sequence[tuple[str, str]], lead: str) -> GpuCell:
    words = " ".join([*(label for _, label in labels), head])
    name = named_collective(words) or named_collective(lead) or "collective"
    settings = _settings(labels, lead)
    ranks = settings.get("ranks", 0)
    one_host = settings.get("hosts", 1) == 1 and 1 < ranks <= _MOST_RANKS and not _ACROSS.search(lead)
    ring = ", ".join(f"gpu{at}->gpu{(at + 1) % ranks}" for at in range(ranks)) if one_host else ""
    rest = [label for said, label in labels if not (_is_count(said) or _size_of(said, label))]
    rest.append(_BUS.sub("", head))
    program = " ".join(re.sub(r"[^\w=]+", " ", NAME_OF_COLLECTIVE.sub("", each)).strip() for each in rest).strip()
    return GpuCell(
        " ".join(filter(None, (name, program))), ring or f"{name} of its GPUs", "peer" if ring else "collective",
        "bus_bandwidth", settings=settings,
    )  # fmt: skip


def _settings(labels: Sequence[tuple[str, str]], lead: str) -> dict[str, int]:
    """Size, hosts and ranks by the cells below such heads, else the ranks of the one host that the text speaks of."""
    settings: dict[str, int] = {}
    for head, label in labels:
        if size := _size_of(head, label):
            settings["bytes"] = size
        for key, pattern in (("hosts", _HOSTS), ("ranks", _RANKS)):
            if pattern.search(head) and (count := _whole(label)):
                settings[key] = count
    one_host = _OF_ONE_HOST.search(lead)
    if one_host and "ranks" not in settings and settings.get("hosts", 1) == 1 and not _ACROSS.search(lead):
        settings["ranks"] = int(one_host[1])
    return settings


def _size_of(head: str, label: str) -> int:
    """The size of the messages that a cell says in bytes, 0 if it says none."""
    alone = _ALONE.fullmatch(label) is not None
    if _SIZES.search(head) or alone:
        return size_in(f"{label}{'' if alone else _unit_of(head)}") or (0 if alone else _whole(label))
    return 0


def _unit_of(head: str) -> str:
    """The unit in which the sizes below a head are: 'Size (MB)'; empty if it says none."""
    match = re.search(r"\((?:in )?([kKMG]i?B)\)", head)
    return match[1] if match else ""


def _whole(label: str) -> int:
    match = _COUNT.match(label.replace(",", ""))
    return int(match[1]) if match else int(label) if label.isdigit() and len(label) < 14 else 0


def _is_count(head: str) -> bool:
    return _HOSTS.search(head) is not None or _RANKS.search(head) is not None


def _ends(labels: Sequence[tuple[str, str]], words: str) -> tuple[str, ...]:
    """The numbers of the GPUs in the cells below 'from' and 'to'; none where nothing speaks of GPUs."""
    cells = [next((cell for head, cell in labels if end.match(head)), "") for end in (_SOURCE, _TARGET)]
    found = [match[1] for cell in cells if (match := _END.match(cell))]
    of_gpus = re.search(r"gpu|cuda|peer|p2p|nvlink", words, re.IGNORECASE) is not None
    return tuple(found) if len(found) == 2 and of_gpus else ()


def _peers(words: str, labels: Sequence[tuple[str, str]], lead: str) -> GpuCell | None:
    """A copy between two GPUs that the row names, or one with P2P on or off."""
    pair = _PAIR.search(words)
    if pair is None and any(_OF_PAIRS.search(said) for said in (*(head for head, _ in labels), lead)):
        pair = next((match for _, label in labels if (match := _BARE_PAIR.match(label))), None)
    spoken = _P2P.search(words) is not None and (_OFF.search(words) or _ON.search(words))
    ends = pair.groups() if pair else _ends(labels, f"{words} {lead}")
    if (not ends and not spoken) or (ends and ends[0] == ends[1]):
        return None
    src, dst = (f"gpu{end}" for end in ends or ("0", "1"))
    off = _P2P.search(words) is not None and _OFF.search(words) is not None
    both = _BOTH.search(f"{words}") or (_BOTH.search(lead) and not re.search(r"\buni-?dir", f"{words} {lead}", re.I))
    at_once = dict.fromkeys(f"gpu{match[1]}->gpu{match[2]}" for match in _PAIR.finditer(words))
    flows = [f"{src}->{dst}", f"{dst}->{src}"] if both else [*at_once] or [f"{src}->{dst}"]
    flow = ", ".join(flows)
    name = "" if ends and not pair else re.sub(r"\W+", " ", _PAIR.sub("", words)).strip()
    path = "peer, staged" if off else "peer"
    return GpuCell(name or flow, flow, path, "total" if len(flows) > 1 else "goodput", {"p2p": "off" if off else "on"})
