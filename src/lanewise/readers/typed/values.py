"""Values of figures typed in, by other words than the form has: busbw, page-locked, p2p: enabled, 8x NVIDIA H100."""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.readers.words.devices import NAME_OF_COLLECTIVE, memory_of, named_collective
from lanewise.readers.words.directions import FROM_DEVICE, TO_DEVICE, WITHIN_DEVICES
from lanewise.results.posted import slot_link
from lanewise.yaml_positions import YamlNode

# Also as nvidia-smi topo -p2p (OK, NS, CNS), NCCL (P2P, SHM) and CUDA's samples (1, 0) say it.
_YES = re.compile(r"(?:yes|on|true|enabled?|active|works|ok|direct|p2p(?:/\w+)?|nvlink|unknown|1)", re.IGNORECASE)
_NO = re.compile(r"(?:no|off|false|disabled?|none|not supported|unsupported|staged|shm|c?ns|n/?a|0)", re.IGNORECASE)
# How tools and people call the metrics that rows have (nccl-tests prints busbw and algbw).
_METRICS = {
    "bus_bandwidth": re.compile(r"bus ?(?:bw|bandwidth)", re.IGNORECASE),
    "algorithm_bandwidth": re.compile(r"alg(?:o(?:rithm)?)? ?(?:bw|bandwidth)", re.IGNORECASE),
    "goodput": re.compile(
        r"bandwidth|(?:avg |average )?bw(?: avg| average| mean)?|throughput|rate|unidirectional(?: bandwidth)?",
        re.IGNORECASE,
    ),
    "iops": re.compile(r"iops|io/s", re.IGNORECASE),
    "total": re.compile(r"sum|(?:aggregate|total|bidirectional)(?: (?:bandwidth|bw|throughput))?", re.IGNORECASE),
}
# How people write what joins ends, a machine's GPUs and its memory, and ranges of them, and how rows have it, in turn.
_SPELLED = tuple(
    (re.compile(spelled, re.IGNORECASE), ours)
    for spelled, ours in (
        (r" ?(?:↔|<=>|<-->) ?", "<->"), (r" ?(?:→|⟶|=>|-->) ?|(?<=[\w\]}]) to (?=[A-Za-z])", "->"),
        (r"\b(?:apu|xpu|dcu|gcd) ?(?=\d|[\[{]\d)", "gpu"),
        (r"\bs3://[\w./]+(?:-(?!>)[\w./]+)*", "s3"),
        (r"\b(object|block|cloud|network|shared|local) (?=stor|share|disk|drive|vol)", r"\1-"),
        (r"(?<=gpu)( ?\d+) memory\b", r"\1"), (r"\b(?:gpu ?|cuda:?|hip:?)(?=\d|[\[{]\d)", "gpu"),
        (r"\bcpu ?(?=\d)", "cpu"), (r"\b(?:numa(?: ?node)?|socket) ?(\d+)\b", r"host0:\1"),
        (r"^(\d+) ?(<?->|<-) ?(\d+)$", r"gpu\1\2gpu\3"), (r"^(gpu\d+ ?(?:<?->|<-) ?)(\d+)$", r"\1gpu\2"),
        (r"\bgpu(\d+)(?:-|\.\.+)(\d+)(?![\w:.])", r"gpu[\1-\2]"),
        (r"(?<=[a-z])\[(\d+)\]", r"\1"),
        (r"(?<=\w)[\[{](\d+) ?(?:\.\.+|-|–|:) ?(\d+)[\]}]", r"[\1-\2]"),
        (r"(?<=\w){(\d+(?:,\d+)+)}", r"[\1]"), (r"\bgpu(\d+(?:, ?\d+)+)(?![\w:.]|-(?!>))", r"gpu[\1]"),
        (r"(?<![\w:.-])(?:(?:host|system|main|cpu) (?:memory|ram)|host|cpu|d?ram|sysmem|memory)(?![\w:.\[{])(?!-(?!>))",
         "host0"),
        (r"cpu(\d+) ?-> ?cpu(\d+)", r"host0:\1->host0:\2"),
    )
)  # fmt: skip
# Copies by their usual names, and ends of one GPU: H2D, DtoH of GPU 3, device->host.
_COPY = re.compile(
    rf"(?:(?P<to>{TO_DEVICE})|(?P<back>{FROM_DEVICE})|{WITHIN_DEVICES})(?: (?:of )?gpu ?(?P<gpu>\d+))?", re.IGNORECASE
)
_BOTH_COPIES = re.compile(
    rf"(?:{TO_DEVICE})(?: ?[/&] ?|,? and |, ?| or )(?:{FROM_DEVICE})(?: (?:of )?gpu ?(\d+))?|"
    rf"(?:{FROM_DEVICE})(?: ?[/&] ?|,? and |, ?| or )(?:{TO_DEVICE})(?: (?:of )?gpu ?(\d+))?",
    re.IGNORECASE,
)
_LONE_GPU = re.compile(r"gpu(?= ?<?->)|(?<=->)gpu$|(?<=-> )gpu$", re.IGNORECASE)
_COUNTS = {"two": 2, "both": 2, "three": 3, "four": 4, "eight": 8}
_NODES = re.compile(
    rf"\b(?:over|across|between|on|of|with) (?:the |all )?(?P<count>{'|'.join(_COUNTS)}|[2-9]|[1-9]\d{{1,3}}) "
    r"(?:nodes|hosts|servers|machines)\b|\b(?:inter|multi|cross)-?nodes?\b", re.IGNORECASE,
)  # fmt: skip
_LONGEST = 200  # characters of what a slot is said to be
_TRAINS = re.compile(
    r"(?P<slot>[^,;(]*?(?:gen ?\d|x ?\d{1,2})[^,;(]*?)[ ,;(]+(?:(?:but|which|and|it|card|link|gpu)\s)*(?:only\s)?"
    r"(?:trains?|trained|runs?|running|negotiate[sd]?|comes up|came up|drops?|dropped|links? up|downgraded|now)\b"
    r"\D{0,12}?(?P<link>(?:(?:pcie ?)?gen ?\d(?:\.0)?)? ?x ?\d{1,2}|(?:pcie ?)?gen ?\d)\b.*", re.IGNORECASE,
)  # fmt: skip
_WIRED = re.compile(r"electric|wired|wiring|physical|mechanical", re.IGNORECASE)
_DEVICE_END = re.compile(r"\bdevice ?(\d*)", re.IGNORECASE)
_DEVICE = r"(?:device ?\d*|host(?: memory)?\d*|cpu ?\d*|d?ram|memory)"
_OF_DEVICES = re.compile(rf"\s*{_DEVICE}\s*(?:<?[-=]>|→|↔|\bto\b)\s*{_DEVICE}\s*", re.IGNORECASE)
_ALL = re.compile(r"(?<!\d)(?:all )?([1-9]\d{0,8}) gpus", re.IGNORECASE)
_EVERY = re.compile(r"(?:all (?:the )?)?gpus(?: ?->\s*(?:all (?:the )?)?gpus)?|all (?:the )?gpus?", re.IGNORECASE)
_TWO_GPUS = re.compile(r"gpu ?(?:->|→|=>|to) ?gpu", re.IGNORECASE)
_LONE = re.compile(r"gpu(?:\d+|\[[\d,-]+\])|host0(?::\d+)?")
# What people add to a value that says of what it is.
_OF_EACH = re.compile(
    r",? ?\(?(?:each(?: way)?|(?:per|a|for each) (?:gpu|[adnx]pu|card|device|accelerator|drive|disk|flow|direction|"
    r"pair|way))\)?$",
    re.IGNORECASE,
)
_PER_GPU = re.compile(r"\b(?:per|a|for each) (?:gpu|[adnx]pu|card|device|accelerator)\)?$", re.IGNORECASE)
_OF_ALL = re.compile(r",? ?\(?(?:in )?(?:total|aggregated?|combined|summed|sum|all|together)\)?$", re.IGNORECASE)
_DUPLEX = re.compile(
    r",? ?\(?(?:bi-?dir(?:ectional(?:ly)?)?|(?:in )?both (?:ways|directions)(?: at once)?|(?:full )?duplex)\)?$",
    re.IGNORECASE,
)


def is_both_copies(flows: str) -> bool:
    """Whether flows are both directions of a copy by their names, of which a figure is that of each: H2D / D2H."""
    return _BOTH_COPIES.fullmatch(flows.strip()) is not None


def apart(flows: str) -> tuple[str, ...]:
    """Both directions of a copy in the order in which flows name them, H2D / D2H; empty for other flows."""
    if not is_both_copies(flows):
        return ()
    both = ends(flows).split(", ")
    back_first = re.match(FROM_DEVICE, flows.strip(), re.IGNORECASE) is not None
    return tuple(reversed(both)) if back_first else tuple(both)


def flag(node: YamlNode) -> bool:
    """Whether a row says yes to a key (`p2p`, `pinned`), true if it says nothing; FormatError for other words."""
    if isinstance(node.value, str | int) and not isinstance(node.value, bool):
        text = re.sub(r" ?\(.*\)$", "", str(node.value)).strip()
        if _YES.fullmatch(text):
            return True
        if _NO.fullmatch(text):
            return False
    return node.flag(True)


def ends(flows: str) -> str:
    """Flows with the names of ends that rows have: GPU 0 is gpu0, CPU host0, cpu1->cpu1 the memory of node 1."""
    if (copy := _COPY.fullmatch(flows.strip())) is not None:
        gpu = f"gpu{copy['gpu'] or 0}"
        return f"{'host0' if copy['to'] else gpu}->{'host0' if copy['back'] else gpu}"
    if (both := _BOTH_COPIES.fullmatch(flows.strip())) is not None:
        gpu = f"gpu{both[1] or both[2] or 0}"
        return f"host0->{gpu}, {gpu}->host0"
    if _OF_DEVICES.fullmatch(flows):
        flows = _DEVICE_END.sub(lambda end: f"gpu{end[1] or 0}", flows)
    if _TWO_GPUS.fullmatch(flows.strip()):
        return "gpu0->gpu1"
    if _EVERY.fullmatch(flows.strip()):
        return "gpu->gpu"  # nobody says how many
    flows = _ALL.sub(lambda gpus: f"gpu[0-{int(gpus[1]) - 1}]", flows).strip()
    for spelled, ours in _SPELLED:
        flows = spelled.sub(ours, flows)
    if len(_LONE_GPU.findall(flows)) == 1 and "," not in flows:
        flows = _LONE_GPU.sub("gpu0", flows)
    return f"{flows}->{flows}" if _LONE.fullmatch(flows) else flows


def of_what(value: str) -> tuple[str, str]:
    """A value without what people add of which flows it is, and that: each, sum, both (both ways) or nothing."""
    for pattern, of in ((_OF_EACH, "each"), (_OF_ALL, "sum"), (_DUPLEX, "both")):
        if (match := pattern.search(value)) and re.search(r"\d", value[: match.start()]):
            return value[: match.start()], of
    return value, ""


def is_per_gpu(value: str) -> bool:
    """Whether a value is said to be that of a GPU: 175 GB/s per APU."""
    return _PER_GPU.search(value) is not None


def metric(text: str) -> str:
    """The metric that a word means, as rows have it; other words as they are."""
    plain = re.sub(r"[\s_-]+", " ", text.strip())
    return next((name for name, also in _METRICS.items() if also.fullmatch(plain)), text)


def host_memory(text: str) -> str:
    """'pinned' or 'pageable', as the words mean it; other words as they are."""
    return memory_of(text) or text


def link(text: str) -> str:
    """'Gen3 x4' of the link of a slot, or the part of it that is known; other words as they are."""
    found = slot_link(text := text.strip())
    if found is None:
        return text
    return " ".join(filter(None, (f"Gen{found.gen}" * bool(found.gen), f"x{found.lanes}" * bool(found.lanes))))


def hosts_named(name: str) -> int:
    """The number of hosts that a collective's name says: over two nodes, inter-node; 0 if it says none or one."""
    match = _NODES.search(name)
    word = (match["count"] or "two").lower() if match else ""
    return _COUNTS.get(word) or int(word or 0)


def slot_and_link(text: str) -> tuple[str, str]:
    """The slot that a text gives a card, and what its link is at under load, if less: x16, trains at x8."""
    match = _TRAINS.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    return (match["slot"], match["link"]) if match and not _WIRED.search(text) else (text, "")


def collective_first(name: str) -> str:
    """A row's name that begins with its collective as nccl-tests calls it: AllReduce, NCCL all-reduce."""
    match = NAME_OF_COLLECTIVE.search(name)
    if match is None:
        return name
    before, after = name[: match.start()].strip(), name[match.end() :]
    return f"{named_collective(name)}{f' {before}' * bool(before)}{after}"
