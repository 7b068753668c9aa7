"""Between which ends a GPU's figure in a text is, as the words beside it say, and what kind of copy it is of."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise import units
from lanewise.catalog.drive_models import drive_series
from lanewise.errors import LanewiseError
from lanewise.readers.words import spellings
from lanewise.readers.words.directions import FROM_DEVICE, TO_DEVICE, WITHIN_DEVICES
from lanewise.results.figure_words import count_in

_GPU = (
    r"(?:gpus?|device|card|vram|rtx|gtx|(?:tesla )?[abhltv]\d{1,3}0?0?\w{0,4}|mi\d{2,3}x?|radeon|vega|quadro|titan|rx|"
    r"arc|k\d0)"
)
_IN_HOST = r"(?:cpu|host|ram|dram|pinned|pageable|page-?locked|numpy)(?: memory)?"
_PEERS = re.compile(
    r"\bp2p(?=\b|bandwidth)|\bpeers?\b|" + WITHIN_DEVICES + r"|"
    r"\bgpus?\W{0,2}\d{0,2} ?(?:->|\u2192|<->|\u2194|to) ?gpus?\W{0,2}\d{0,2}\b|"
    r"\bbetween (?:\w+ ){0,3}(?:gpus|[abhltv]\d{1,3}0?0?|rtx|mi\d{2,3}x?)|\bpairs?\b|"
    r"\bbetween (?:any|each|all) (?:two|pairs?|of them)\b|\bnvlink (?:transfers?|copies|copy)\b",
    re.IGNORECASE,
)
_TO = re.compile(
    rf"{TO_DEVICE}|"
    rf"\b{_IN_HOST} ?(?:to|->|\u2192) ?(?:the |an? )?(?:gpus?|cuda|device)\b|\.cuda\(|\.to\([\"']?(?:cuda|gpu)|"
    rf"\b(?:to|onto|into|reach(?:es)?) (?:the |an? |its |each |one |my |our )?(?:nvidia |geforce |amd )?{_GPU}\b|"
    r"\buploads?\b|\bfrom (?:the |its )?(?:host|cpu|main memory)(?! (?:to|into)\b)\b|"
    r"\bfrom (?:pinned|pageable|host|system|malloc\S{0,4}) (?:host )?memory",
    re.IGNORECASE,
)
_FROM = re.compile(
    rf"{FROM_DEVICE}|"
    rf"\b(?:gpus?|cuda|device)(?: memory)? ?(?:to|->|\u2192) ?(?:the )?{_IN_HOST}\b|\.cpu\(|\.to\([\"']?cpu|"
    rf"\b(?:to|into) (?:the )?(?:host|cpu)\b|\bfrom (?:the |an? |its )?{_GPU}\b|"
    r"\breadback|\bread(?:ing)? back\b|\bback\b|\bdownloads?\b",
    re.IGNORECASE,
)
# Figures of a GPU that are no lone copy over its link.
_OTHER = re.compile(
    r"\b(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|nccl|rccl|busbw|algbw|bus bandwidth|stream|triad|hbm|"
    r"(?:gpu|device|vram|global|local|its|its own) memory(?: bandwidth)?|vram|nvlinks?|kernels?|"
    r"both (?:ways|directions)|bi-?dir\w*|duplex|at once|simultaneous\w*|together|total|sum|aggregate\w*|"
    r"all (?:two|four|eight|\d+|gpus)|"
    r"in parallel|concurrent\w*|files?|nvme|ssd|drives?|"
    r"disks?|network|nics?|rdma|ib_\w+|roce|hosts|nodes|machines|gds|cufile|storage|infiniband|"
    r"ethernet|unified|managed|uvm|um|each)\b",
    re.IGNORECASE,
)  # fmt: skip
_NVLINKS = re.compile(r"\bnvlinks?\b", re.IGNORECASE)
_COLLECTIVE = re.compile(
    r"\ball[ _-]?(?:reduce|gather)\b|\breduce[ _-]?scatter\b|\bbroadcast\b|\bbus ?bw\b|\bbus bandwidth\b|"
    r"\ball[ _-]?to[ _-]?all\b|\bsend_?recv(?:_perf)?\b|\b[nr]ccl\b(?![-_]tests?)",
    re.IGNORECASE,
)
# The operations of nccl-tests, as people and programs write them; their names there.
NAME_OF_COLLECTIVE = re.compile(
    r"all[ _-]?reduce|all[ _-]?gather|reduce[ _-]?scatter|all[ _-]?to[ _-]?all|send[ _-]?recv|broadcast", re.IGNORECASE
)
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}
_ACROSS = re.compile(
    r"\bnodes\b|\bhosts\b|\bservers\b|\bmachines\b|network|infiniband|\brdma|\broce|\bib\b|\befa\b|gb/s.{0,20}nic|\bnics?\b|"
    r"\balgbw\b|ethernet|\bhdr\b|\bndr\b|inter-?node|multi-?node|deepep|"
    r"\d ?ki?B\b|(?<![\d.])[1-5]?\d ?Mi?B\b", re.IGNORECASE,
)  # fmt: skip
# One GPU a host, and what carries data between hosts.
_ONE_EACH = re.compile(r"\bone \w{2,6} each\b|\bby sockets\b|\btcp\b", re.IGNORECASE)
_PAGEABLE = re.compile(
    r"\bpageable|\bunpinned|\bmmap\w*|\bmapped|\bmalloc\b|\bnon-pinned|\bwithout pinn|"
    r"\benqueue(?:write|read)buffer\b",  # of plain memory, as clpeak and most programs of OpenCL use it
    re.IGNORECASE,
)
_PINNED = re.compile(r"(?<!un)(?<!non-)\bpinned|\bpage-?locked|\bcudahostalloc", re.IGNORECASE)
_BY_SM = re.compile(r"\bby (?:the )?sms?\b|_sm\b|\bkernels?\b", re.IGNORECASE)
_NO_PEERS = re.compile(
    r"\bstaged\b|\b(?:without|no) (?:p2p|peer)|(?:p2p|peer\w*(?: access)?)\W{1,3}(?:is )?"
    r"(?:off\b|disabled|false|no\b|not (?:enabled|supported|possible|available)|un(?:supported|available))",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(?<![\w.])(\d{1,6}(?:\.\d{1,3})?) ?((?:[kKmMgG]i?)?B|bytes?|[kKmMgG])(?![\w/]|ps\b| ?/)")
_NOT_ONE = re.compile(
    r"\braid|\barray|\bpool|\bzfs|\bceph|\bvolume|\bnfs|\bsmb|\bsamba|\biscsi|\blustre|\bgpfs|\bstripe|\brand|\b4k|\bvm\b|guest|"
    r"\bluks|encrypt|crypt|\bmd\d|drives\b|disks\b|ssds\b",
    re.IGNORECASE,
)
_BUSES = (
    (re.compile(r"\bsata\b(?! ?(?:II|2|I|1)\b)", re.IGNORECASE), "600 MB/s"),
    (re.compile(r"\busb ?3(?:\.0)?\b(?!\.)", re.IGNORECASE), "500 MB/s"),
    (re.compile(r"\busb ?2(?:\.0)?\b(?!\.)", re.IGNORECASE), "60 MB/s"),
)
_LONG, _LONGEST = 128 * 2**10, 300
_FLOWS = {"host to device": "host0->gpu{}", "device to host": "gpu{}->host0", "peer": "gpu{}->gpu{}"}


def copy_of(parts: Sequence[str]) -> str:
    """'host to device', 'device to host', 'peer' or nothing, by the first of these words that say which copy it is."""
    for words in parts:
        peers = _PEERS.search(words) is not None
        if _OTHER.search(_NVLINKS.sub(" ", words) if peers else words):  # peers may well copy over NVLinks
            return ""
        found = [
            (match.start(), path)
            for pattern, path in ((_PEERS, "peer"), (_TO, "host to device"), (_FROM, "device to host"))
            if (match := pattern.search(words))
        ]
        if found:
            paths = [path for _, path in sorted(found)]
            return "peer" if "peer" in paths else paths[-1]
    return ""


def collective_of(words: str, line: str) -> str:
    """The collective of GPUs of one host that words name, 'NCCL' for one without a name; empty across hosts.

    `line`: all words of the line, which must speak of no network where the library alone is named.
    """
    match = _COLLECTIVE.search(words)
    if match is None or _ACROSS.search(words):
        return ""
    named = match[0].lower()
    if named in ("nccl", "rccl") and (_ACROSS.search(line) or _ONE_EACH.search(line)):
        return ""
    if named.startswith(("bus", "nccl", "rccl")):
        return "NCCL"
    name = re.sub(r"[ _-]|perf$", "", named)
    return {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}.get(name, name)


def clause_of(words: str, after: str) -> str:
    """The clause of a figure with its end, where neither speaks of several hosts; else empty."""
    return "" if _ACROSS.search(f"{words} {after}") else re.split("[,;]", after)[0]


def named_collective(words: str) -> str:
    """The collective that words name first, as nccl-tests calls it, whatever it runs over; empty if none."""
    match = NAME_OF_COLLECTIVE.search(words)
    name = re.sub(r"[ _-]", "", match[0].lower()) if match else ""
    return _NAMES.get(name, name)


def bus_share(name: str, ranks: int) -> float:
    """Bus bandwidth over that of the algorithm (nccl-tests, doc/PERFORMANCE.md); 0 where the ranks are not known."""
    if name in ("broadcast", "sendrecv"):
        return 1.0
    if ranks < 2:
        return 0.0
    return (2 if name == "all_reduce" else 1) * (ranks - 1) / ranks


def flow_of(path: str, gpu: int) -> str:
    """The flow of a copy of that GPU; a peer copy goes to the next one."""
    return _FLOWS[path].format(gpu, gpu + 1)


def ring_of(ranks: int) -> str:
    """The flows of a collective of so many GPUs of a host; of an unknown number one of them."""
    return ", ".join(f"gpu{at}->gpu{(at + 1) % ranks}" for at in range(ranks)) if ranks > 1 else flow_of("peer", 0)


def memory_of(words: str) -> str:
    """'pageable', 'pinned' or nothing."""
    return "pageable" if _PAGEABLE.search(words) else "pinned" if _PINNED.search(words) else ""


def how_of(path: str, words: str) -> dict[str, str]:
    """How a copy was made as words say it: the kind of host memory, the engine, whether peers reach each other."""
    how = {"host memory": memory_of(words), "engine": "SM" if _BY_SM.search(words) else ""}
    if path == "peer":
        how["p2p"] = "off" if without_peers(words) else "on"
    return {key: value for key, value in how.items() if value}


def without_peers(words: str) -> bool:
    """Whether words say that GPUs do not reach each other: a copy between them goes through host memory."""
    return _NO_PEERS.search(words) is not None


def size_in(words: str) -> int:
    """The least size in bytes that words name, 0 if none."""
    sizes = []
    for match in _SIZE.finditer(words):
        try:
            text = spellings.size(f"{match[1]} {match[2]}".replace("bytes", "B").replace("byte", "B"))
            sizes.append(int(units.parse(text, "B")))
        except (LanewiseError, ValueError):
            continue
    return min((size for size in sizes if size > 0), default=0)


def drive_in(lines: Sequence[str]) -> str:
    """The model of the drive that a text names, empty if none or several."""
    found: dict[str, str] = {}
    for line in lines:
        series = drive_series(line)
        if series is not None and series not in found:
            words = line[:_LONGEST].split()
            windows = (" ".join(words[at : at + size]) for size in (1, 2, 3) for at in range(len(words)))
            found[series] = next((each for each in windows if drive_series(each)), line[:_LONGEST]).strip(" ,.;:()")
    return next(iter(found.values())) if len(found) == 1 else ""


def is_one_drive(words: str) -> bool:
    """Whether words speak of long requests to one drive: of no array or volume, and nothing random."""
    return _NOT_ONE.search(words) is None and count_in(words) < 2 and not 0 < size_in(words) < _LONG


def bus_of(words: str) -> str:
    """What the bus carries that words name of one drive (SATA-IO, USB-IF: after line encoding); empty if none."""
    if not is_one_drive(words):
        return ""
    return next((rate for pattern, rate in _BUSES if pattern.search(words)), "")
