"""The GPUs that the sentences of a text name, their CPU, and the slot that they speak of.

Lists of tools (`posted.gpus`) know more than sentences: what is named here counts only where no list names a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanewise import late_re as re
from lanewise.readers.texts import is_prose
from lanewise.results.posted import PostedFacts, Statement

# Models of the makers' product pages: GeForce, RTX, Quadro and data-centre cards of NVIDIA, AMD's Radeon and Instinct,
# Intel's Arc and Data Center GPU Max.
_SUFFIX = (
    r"(?:[ -]?(?:Ti|SUPER|XTX?|GRE|Ada(?: Generation)?|Blackwell|Laptop(?: GPU)?|Mobile|Max-Q|S(?:XM|MX)\d?|"
    r"PCIe|PCI-E|NVL|HBM\d?e?|HGX|\d{2,3} ?GB)\b){0,4}"
)
_GPU = re.compile(
    r"(?<![\w-])(?:NVIDIA |AMD |Intel )?(?:"
    r"(?:GeForce |Quadro )?[RG]TX ?(?:PRO ?|A)?\d{3,4}|Quadro [A-Z]{1,3}\d{3,4}|"
    r"(?:Tesla )?(?:GB?[23]00|GH200|H(?:20|100|200|800)|B(?:200|300)|A(?:10G?|16|30|40|100|800|[456][05]00)|V100S?|"
    r"P(?:40|100)|L(?:20|40S?)|K(?:20|40|80)|M(?:40|60))|Tesla [KMPT]\d{1,2}|TITAN (?:RTX|Xp|[VX])|CMP ?\d{2,3}HX|"
    r"(?:Instinct )?MI\d{2,3}[XA]?|(?:Radeon )?RX ?(?:Vega ?)?\d{2,4}|Radeon (?:VII|(?:AI )?PRO \w{4,5})|"
    r"(?:Radeon )?Vega (?:56|64|Frontier(?: Edition)?)|Arc (?:Pro )?[AB]\d{2,3}|(?:A3[18]0|A580|A7[57]0|B5[78]0)|"
    r"Max 1[15]\d0"
    r")" + _SUFFIX + r"(?!\w|\.\d)",
    re.IGNORECASE,
)
# Names that are short enough to mean other things count where the text speaks of GPUs at all.
_SHORT = re.compile(r"(?<![\w-])(?:NVIDIA |Tesla )?(?:T4|L4)(?!\w|\.\d)")
# GeForce cards by their number alone: 'two 3090'.
_NUMBER = re.compile(
    r"(?<![\w.,-])(?<!X )[2345]0[5-9]0(?: ?Ti| SUPER)?s?(?![\w.,]\d|\w| ?(?:[KMGT]i?)?[bB]\b|"
    r" ?(?:IOPS|MB|GB|tok|ms|us))"
)
_OF_GPUS = re.compile(r"\bgpus?\b|\bcuda|nvidia|\bh2d\b|\bd2h\b|\bvram\b|tensor|\bnccl\b|\bp2p\b", re.IGNORECASE)
_NOISE = re.compile(r"\b(?:nvidia|amd|intel|geforce|tesla|instinct|radeon)\b|[^a-z0-9]", re.IGNORECASE)
_CPU = re.compile(
    r"(?<![\w-])(?:EPYC ?\d{4}\w{0,2}|Xeon(?: (?:Gold|Silver|Platinum|Bronze))? (?:[EW][357]?-)?\d{4,5}\w{0,2}\+?"
    r"(?: v\d)?|(?:Ryzen )?Threadripper (?:PRO )?\d{4}\w{0,3}|Ryzen (?:[3579] )?(?:PRO )?\d{4}\w{0,3}|"
    r"(?:Core )?i[3579]-\d{4,5}\w{0,2}|Core Ultra \d \d{3}\w?)(?!\w|\.\d)"
)
# So many cores of the machine, not of a chip's graphics: 'it has 16 cores', 'a 64-core machine'.
_CORES = re.compile(
    r"\b(?:has|have|with|on|only|of|my|an?|the) (?:only |just |about )?(\d{1,3})[ -](?:physical |cpu )?"
    r"(?:cores?|cpus|vcpus)\b(?! ?(?:gpu|graphics))", re.IGNORECASE,
)  # fmt: skip
_GEN = r"(?:PCI-?e ?)?(?:Gen ?|PCI-?e ?(?:Gen ?)?)(?P<gen>[1-6])(?:\.0)?"
_LANES = r"(?:x|\u00d7)(?P<lanes>16|8|4|2|1)"
_SLOT = re.compile(rf"(?<!\w){_GEN}[ ,]{{1,2}}{_LANES}(?!\w)", re.IGNORECASE)
_SLOT_BACK = re.compile(rf"(?<!\w){_LANES} (?:of |at )?{_GEN}(?!\w|\.\d)", re.IGNORECASE)
_OF_SLOT = re.compile(r"\bslots?\b|\b(?:in|behind|on|via|over) (?:an? )?(?:full )?$|\b(?:in|behind) ", re.IGNORECASE)
# What a link was found to run at is what is asked about, not what it could.
_NOT_THE_SLOT = re.compile(
    r"negotiat|downgrad|instead|only|runs? |running|trained|theor|capable|support|max", re.IGNORECASE
)
_NO_SENTENCE = re.compile(r"Lnk(?:Cap|Sta)|GT/s|\|.*\|")
_OF_A_TOOL = re.compile(r"^\s*[#$|>\[{<]|^\S+[$#] |\S {3,}\S.* {3,}\S|\t.*\t|^\d{4}-\d\d|^\w+\(|=.*=|\|.*\||[{};]$")
# A part by itself on a line, or behind what it is: `GPU 0: Tesla V100-SXM2-16GB`, `- **Hardware:** 4x RTX 3090`.
_SPECIFICATION = re.compile(
    r"\s{0,8}(?:[-*+#>]{1,4} )?\W{0,3}(?:(?:GPUs?(?: ?\d{1,2})?|GPU model|graphics(?: cards?)?|video cards?|cards?|"
    r"devices?|accelerators?|hardware|system|machine|setup|rig|node|server|host|CPUs?|processors?|specs?)\W{0,3}[:=]\W{0,3})?"
    rf"(?:(?:\d{{1,2}} ?[x\u00d7*] ?|[x\u00d7]\d{{1,2}} )?{_GPU.pattern}|{_CPU.pattern})[^|]{{0,60}}$",
    re.IGNORECASE,
)  # fmt: skip
_SO_MANY = re.compile(
    rf"(?:(?<![\w.])\d{{1,2}} ?[x\u00d7*] ?|\b(?:two|three|four|six|eight|sixteen) )(?i:{_GPU.pattern})"
)
_LONGEST_NAME = 160
# What sentences say of the machine, as what tools print of it is stated (`posted.statements`).
_SPOKEN = tuple(
    (key, value, re.compile(pattern, re.IGNORECASE))
    for key, value, pattern in (
        ("virtual machine", "yes",
         r"\b(?:in|inside|within|on|from) (?:an? |the |my |our )?(?:\w+ )?(?:vms?|virtual machines?|guests?)\b|"
         r"\bproxmox|\besxi\b|\bwsl ?2\b|\bhyper-?v\b|\bpassed through\b|\bvfio\b"),
        ("iommu", "translate", r"\biommu (?:is |was )?(?:on|enabled)\b|\bwith (?:the )?iommu\b(?! off| disabled)"),
        ("acs", "on", r"\bacs (?:is |was )?(?:on|enabled)\b"),
        ("tunnel", "Thunderbolt or USB4", r"\bthunderbolt\b|\busb ?4\b|\begpu\b"),
        ("resizable BAR", "off", r"\b(?:resizable bar|rebar) (?:is |was )?(?:off|disabled|not)\b"),
        ("slot", "chipset",
         r"\b(?:behind|of|from|at|on|to) the (?:chipset|pch)\b|\b(?:chipset|pch)(?:'s)? (?:slot|lanes)"),
        ("GPUDirect RDMA", "off", r"\b(?:without|no) (?:gpu ?direct|gdr)|\bpeer_?mem\w* (?:is |was )?not\b|"
                                  r"\bgpu ?direct (?:rdma )?(?:is |was )?(?:off|disabled|not)\b"),
        ("network transport", "Socket", r"\bnet/socket\b|\btcp sockets\b"),
        ("mtu", "1500", r"\bmtu (?:of |is |= ?|at )?1500\b"),
        ("relaxed ordering", "off", r"\brelaxed[ _]ordering (?:is |was )?(?:off|disabled)\b"),
        ("confidential computing", "on", r"\bconfidential (?:computing|vm)|\btdx\b|\bsev-snp\b"),
        ("clocks", "thermal or power limit", r"\bthermal(?:ly)? throttl|\bpower[- ](?:limited|capped)|\boverheat"),
    )
)  # fmt: skip
# A bridge over a pair: "three NVLink bridges over 0/1 and three over 2/3", "an NVLink bridge between GPU 0 and GPU 1".
_BRIDGE = re.compile(r"\bnvlink[- ]?\d? ?(?:\d-slot )?bridges?\b(?P<behind>[^.;?]{1,120})", re.IGNORECASE)
_JOINED = re.compile(
    r"\b(?:over|between|across|on|joins?|joining|connects?|connecting) (?:the )?(?:gpus?|cards?)? ?#?(\d{1,2}) ?"
    r"(?:/|-|&|<->|and|with|to) ?(?:gpu|card)? ?#?(\d{1,2})\b(?! ?-?slots?)", re.IGNORECASE,
)  # fmt: skip
_NOT_JOINED = re.compile(
    r"\b(?:no|not|never|without|missing|removed?|if|would|should|could|add|buy)\b|n't\b", re.IGNORECASE
)
_TRIP = re.compile(
    r"\b(?:ping|rtt|round[- ]trip(?: time)?)\b[^\d,.;]{0,20}(\d{1,4}(?:\.\d{1,3})?) ?ms\b|"
    r"\b(\d{1,4}(?:\.\d{1,3})?) ?ms (?:ping|rtt|round[- ]trip|apart|away)\b", re.IGNORECASE,
)  # fmt: skip
# The same at another time: nothing is said to have changed.
_BEFORE = re.compile(r"\byesterday\b|\blast (?:night|week|month|year)\b", re.IGNORECASE)
_COUNTS = {"two": 2, "three": 3, "four": 4, "six": 6, "eight": 8, "sixteen": 16}
_COUNTED_GPUS = re.compile(
    rf"(?<![\w.])({'|'.join(_COUNTS)}|[2-9]|1[0-6])(?: ?[x\u00d7] ?| )(?:\w+ )?(?:{_GPU.pattern}|GPUs\b)", re.IGNORECASE
)
_MOST_GPUS = 16
_GPU_NUMBER = re.compile(r"\bgpu[ #]{0,2}(\d{1,2})\b(?! ?x\b)", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;.]|\b(?:and|but|while|whereas|vs|versus)\b", re.IGNORECASE)
_MOST_NAMES, _LONGEST = 8, 20_000


def gpus_in(words: str, *, spoken: bool | None = None) -> list[str]:
    """The names of GPUs that words have, each once in their order; of one name in two lengths the longer."""
    spoken = _OF_GPUS.search(words) is not None if spoken is None else spoken
    found = [match[0].strip() for match in _GPU.finditer(words)]
    if spoken:
        found += [match[0].strip() for match in _SHORT.finditer(words)]
        found += [f"RTX {match[0].rstrip('s')}" for match in _NUMBER.finditer(words)]
    names: dict[str, str] = {}
    for name in found:
        plain = _plain(name)
        like = next((key for key in names if key.startswith(plain) or plain.startswith(key)), None)
        if like is None:
            names[plain] = name
        elif len(plain) > len(like):
            names = {plain if key == like else key: name if key == like else each for key, each in names.items()}
    return list(names.values())[:_MOST_NAMES]


def spans_of_parts(line: str) -> list[tuple[int, int]]:
    """Where a line names GPUs and CPUs: the 6000 of an RTX PRO 6000 is no figure."""
    return [match.span() for pattern in (_GPU, _CPU) for match in pattern.finditer(line)]


def gpus_counted(words: str) -> int:
    """How many GPUs of one machine words speak of: 'eight H100', '8x MI300X', 'over two GPUs'; 0 if not."""
    found = [_COUNTS.get(match[1].lower()) or int(match[1]) for match in _COUNTED_GPUS.finditer(words)]
    return found[-1] if found and found[-1] <= _MOST_GPUS else 0


def same_gpu(name: str, other: str) -> bool:
    """Whether two names are of one GPU, one of them perhaps longer."""
    first, second = _plain(name), _plain(other)
    return first.startswith(second) or second.startswith(first)


def number_of(before: str, after: str) -> int | None:
    """The number of the GPU that the clause of a figure names, before it or after: 'GPU 2', '13 GB/s on gpu3'."""
    ends = _CLAUSE.split(after, maxsplit=1)[0], _CLAUSE.split(before)[-1]
    numbers = [int(match[1]) for words in ends for match in _GPU_NUMBER.finditer(words)]
    return numbers[0] if len(numbers) == 1 else None


def _plain(name: str) -> str:
    return _NOISE.sub("", name.lower())


def sentences(lines: Sequence[str]) -> list[str]:
    """The lines that are sentences of a post or list what a machine is made of; tools' and tables' left blank."""
    return [line if _is_spoken(line) or _specifies(line[:_LONGEST_NAME]) else "" for line in lines]


def _is_spoken(line: str) -> bool:
    return is_prose(line) and not _OF_A_TOOL.search(line)


def _specifies(line: str) -> bool:
    """Whether a line lists parts, or says how many GPUs of a model something is of."""
    return _SPECIFICATION.match(line) is not None or (
        _SO_MANY.search(line) is not None and not _OF_A_TOOL.search(line.lstrip(" #>"))
    )


def spoken_facts(lines: Sequence[str], file: str) -> PostedFacts:
    """The GPUs, CPU and slot that sentences name: `gpu` stands for the only one, `gpu0` for the first of several."""
    gpus = gpus_in("\n".join(lines)[:_LONGEST])
    devices = {"gpu": gpus[0]} if len(gpus) == 1 else {f"gpu{at}": name for at, name in enumerate(gpus)}
    return PostedFacts(devices, tuple(_statements(lines, file)))


def _statements(lines: Sequence[str], file: str) -> Iterator[Statement]:
    """The CPU, its cores and the slot that sentences name, if they name just one."""
    cpus: dict[str, int] = {}
    cores: dict[str, int] = {}
    slots: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if _NO_SENTENCE.search(line):
            continue
        for match in _CPU.finditer(line):
            cpus.setdefault(match[0], number)
        for match in _CORES.finditer(line):
            cores.setdefault(match[1], number)
        for pattern in (_SLOT, _SLOT_BACK):
            for match in pattern.finditer(line):
                around = line[max(0, match.start() - 25) : match.end() + 12]
                if _OF_SLOT.search(around) and not _NOT_THE_SLOT.search(around):
                    slots.setdefault(f"gen{match['gen']} x{match['lanes']}", number)
        for first, second in _bridged(line):
            yield Statement("NVLink bridge", f"gpu{first}, gpu{second}", f"{file}:{number}")
        if trip := _TRIP.search(line):
            yield Statement("round trip", f"{trip[1] or trip[2]} ms", f"{file}:{number}")
        if before := _BEFORE.search(line):
            yield Statement("faster before", before[0].lower(), f"{file}:{number}")
        for key, value, pattern in _SPOKEN:
            if pattern.search(line):
                yield Statement(key, value, f"{file}:{number}")
    for key, values in (("cpu", cpus), ("cpus", cores), ("slot", slots)):
        if len(values) == 1:
            value, number = next(iter(values.items()))
            yield Statement(key, value, f"{file}:{number}")


def _bridged(line: str) -> list[tuple[str, str]]:
    """The numbers of the pairs of GPUs that a sentence says a bridge of NVLinks joins."""
    match = _BRIDGE.search(line)
    if match is None or _NOT_JOINED.search(line[max(0, match.start() - 40) : match.end()]):
        return []
    return [(pair[1], pair[2]) for pair in _JOINED.finditer(match["behind"]) if pair[1] != pair[2]]
