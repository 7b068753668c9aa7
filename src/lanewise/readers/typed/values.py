"""Values of figures typed in, by other words than the form has: busbw, page-locked, p2p: enabled, 8x NVIDIA H100."""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.readers.words.devices import NAME_OF_COLLECTIVE, memory_of, named_collective
from lanewise.results.posted import slot_link
from lanewise.yaml_positions import YamlNode

_YES = re.compile(r"(?:yes|on|true|enabled?|active|works|ok|direct)", re.IGNORECASE)
_NO = re.compile(r"(?:no|off|false|disabled?|none|not supported|unsupported|staged)", re.IGNORECASE)
# How tools and people call the metrics that rows have (nccl-tests prints busbw and algbw).
_METRICS = {
    "bus_bandwidth": re.compile(r"bus ?(?:bw|bandwidth)", re.IGNORECASE),
    "algorithm_bandwidth": re.compile(r"alg(?:o(?:rithm)?)? ?(?:bw|bandwidth)", re.IGNORECASE),
    "goodput": re.compile(r"bandwidth|bw|throughput|rate|unidirectional(?: bandwidth)?", re.IGNORECASE),
    "total": re.compile(r"sum|(?:aggregate|total|bidirectional)(?: (?:bandwidth|bw|throughput))?", re.IGNORECASE),
}
# How people name a machine's GPUs and its memory: GPU 0, cuda:0, CPU, RAM; and ranges of them: gpu[0..7], gpu{0-7}.
_GPU_END = re.compile(r"\b(?:gpu ?|cuda:?|hip:?)(?=\d|[\[{]\d)", re.IGNORECASE)
_CPU_END = re.compile(r"\bcpu ?(?=\d)", re.IGNORECASE)
_HOST_END = re.compile(
    r"(?<![\w:.-])(?:host|cpu|d?ram|sysmem|(?:host|system|main|cpu) (?:memory|ram))(?![\w:.\[{])(?!-(?!>))",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(?<=\w)[\[{](\d+) ?(?:\.\.+|-|–|:) ?(\d+)[\]}]")
_OF_MEMORIES = re.compile(r"cpu(\d+) ?-> ?cpu(\d+)")
_SEVERAL = re.compile(r"\d{1,3} ?[x×*] ?(?=\D)")


def peers(node: YamlNode) -> bool:
    """Whether a row says that GPUs reach each other, true if it says nothing; FormatError for other words."""
    if isinstance(node.value, str):
        if _YES.fullmatch(node.value.strip()):
            return True
        if _NO.fullmatch(node.value.strip()):
            return False
    return node.flag(True)


def ends(flows: str) -> str:
    """Flows with the names of ends that rows have: GPU 0 is gpu0, CPU host0, cpu1->cpu1 the memory of node 1."""
    flows = _GPU_END.sub("gpu", flows)
    flows = _RANGE.sub(r"[\1-\2]", _CPU_END.sub("cpu", flows))
    return _OF_MEMORIES.sub(r"host0:\1->host0:\2", _HOST_END.sub("host0", flows))


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


def gpu_name(text: str) -> str:
    """The name of a GPU without the number of them: 8x NVIDIA H200."""
    return _SEVERAL.sub("", text.strip(), count=1)


def collective_first(name: str) -> str:
    """A row's name that begins with its collective as nccl-tests calls it: AllReduce, NCCL all-reduce."""
    match = NAME_OF_COLLECTIVE.search(name)
    if match is None:
        return name
    before, after = name[: match.start()].strip(), name[match.end() :]
    return f"{named_collective(name)}{f' {before}' * bool(before)}{after}"
