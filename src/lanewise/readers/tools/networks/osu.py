"""OSU micro-benchmarks (osu_bw, osu_bibw, osu_latency) of host and GPU memory. Their MB is 1e6 bytes.

Source of what is read: the benchmarks' own heads (mvapich.cse.ohio-state.edu/benchmarks). D is a GPU, H host memory,
the sender's first. Two GPUs are taken for those of one host unless a command line names two hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import count, figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "OSU micro-benchmarks"
_TITLE = re.compile(
    r"# OSU MPI(?:-\w{2,10})?(?:[_ ](Put|Get|Accumulate))? ((?:Bi-Directional |Multiple )?Bandwidth|Latency)"
    r"(?: / Message Rate)? Test(?: v([\w.]{1,12}))?",
    re.IGNORECASE,
)
# A command whose title was cut out says as much.
_COMMAND = re.compile(r"(?:^|[\s/])osu_(put_|get_)?(bibw|bw|mbw_mr|latency)\b")
_OF_COMMAND = {
    "bibw": "bi-directional bandwidth",
    "bw": "bandwidth",
    "mbw_mr": "multiple bandwidth",
    "latency": "latency",
}
_LONGEST_LABEL = 60
_BUFFERS = re.compile(r"# Send Buffer on (HOST|DEVICE|MANAGED)\b.{0,20} Receive Buffer on (HOST|DEVICE|MANAGED)")
# The same as arguments: osu_bw -d cuda D H.
_ARGUMENTS = re.compile(r"\bosu_\w.{0,200}\s([DHM]) ([DHM])\s*$")
# Further columns are message rates, the least, the most and how often, and with -c whether the data came over.
_ROW = re.compile(r"\s*(\d{1,15})\s+(\d[\d.]{0,15})(?:\s+\d[\d.]{0,15}){0,8}(?:\s+(Pass|Fail))?\s*$")
_TWO_HOSTS = re.compile(
    r"(?:^|\s)(?:-N ?2|--nodes[= ]2|-(?:H|host|hosts) ?\w[\w.-]*(?::\d+)?,\w|--map-by (?:ppr:1:)?node)"
)
_METRICS = {  # metric, its unit, and that of the table in it
    "bandwidth": ("goodput", "GB/s", 1e-3),
    "multiple bandwidth": ("goodput", "GB/s", 1e-3),
    "bi-directional bandwidth": ("total", "GB/s", 1e-3),
    "latency": ("latency_mean", "us", 1.0),
}


def is_text(lines: Sequence[str]) -> bool:
    """Whether the lines hold a table of the benchmarks, or a command of one and rows."""
    commands = any("osu_" in line and _COMMAND.search(line) for line in lines)
    return any(_TITLE.match(line.strip()) for line in lines) or (commands and sum(map(_is_row, lines)) > 1)


def _is_row(line: str) -> bool:
    return _ROW.match(line) is not None


def read_text(lines: list[str], file: str) -> ImportedResults:
    """Every row of every table; FormatError with the line of a figure that is none.

    Tables below several commands are named by the words in which these differ.
    """
    rows: list[Observation] = []
    table, name, begun = "", "", False
    ends = stated = ("host0", "host1")
    hosts = any(_TWO_HOSTS.search(line) for line in lines if "osu_" in line)
    names = _names([line for line in lines if "osu_" in line and _COMMAND.search(line)])
    for number, line in enumerate(lines, 1):
        if line in names and (match := _COMMAND.search(line)):
            buffers = _ARGUMENTS.search(line)
            ends = stated = _ends(buffers[1] != "H", buffers[2] != "H", hosts) if buffers else ("host0", "host1")
            table, name, begun = (match[1] or "") + _OF_COMMAND[match[2]], names[line], False
        elif match := _TITLE.match(line.strip()):
            word = f"{match[1].lower()}_" if match[1] else ""
            table, ends, begun = word + match[2].lower(), stated, False
        elif match := _BUFFERS.match(line.strip()):
            ends = _ends(match[1] != "HOST", match[2] != "HOST", hosts)
        elif table and (match := _ROW.match(line)):
            at, begun = Location(file, number), True
            rows.append(_row(table, ends, count(match[1], at), figure(match[2], at), name))
            check_rows(rows, at)
        elif not line.lstrip().startswith("#") and (begun or line.strip(" .[]")):
            table = ""
    return ImportedResults(TOOL, tuple(rows))


def _names(commands: Sequence[str]) -> dict[str, str]:
    """What tells each command from the others: its words that they do not all have; nothing for one alone."""
    words = {command: command.split() for command in dict.fromkeys(commands)}
    shared = set.intersection(*(set(each) for each in words.values())) if words else set()
    own = {command: [word for word in each if word not in shared] for command, each in words.items()}
    return {command: " ".join(each)[:_LONGEST_LABEL] if len(words) > 1 else "" for command, each in own.items()}


def _ends(sends: bool, receives: bool, hosts: bool) -> tuple[str, str]:
    """Names of sender and receiver; over a network the other host stands for its GPU too."""
    if hosts:
        return ("gpu0" if sends else "host0", "host1")
    if sends and receives:
        return ("gpu0", "gpu1")
    return ("gpu0", "host0") if sends else ("host0", "gpu0") if receives else ("host0", "host1")


def _row(table: str, ends: tuple[str, str], size: int, value: float, name: str) -> Observation:
    side, _, plain = table.rpartition("_")
    ends = ends if side != "get" else (ends[1], ends[0])
    flow, back = "->".join(ends), "->".join(reversed(ends))
    metric, unit, scale = _METRICS[plain]
    flow = f"{flow}, {back}" if metric == "total" else flow
    path = "network" if "host1" in ends else "peer" if "host0" not in ends else "host to device"
    path = "device to host" if ends == ("gpu0", "host0") else path
    how = {"p2p": "on" if path == "peer" else "", "pattern": "MPI"}
    scenario = f"osu {table.replace('_', ' ')} {name}".strip()
    return observation(TOOL, scenario, ToolValue(flow, flow, metric, unit, path), value * scale, how, {"bytes": size})
