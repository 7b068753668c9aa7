"""`nvidia-smi topo -m`, `topo -p2p`, `nvlink -s` and its lists of GPUs: with or without colours, cards and legends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from lanewise import late_re as re
from lanewise.discovery.facts import DumpFacts, first
from lanewise.errors import FormatError, Location

TOPO, PEERS, NVLINKS = "nvidia-smi topo -m", "nvidia-smi topo -p2p", "nvidia-smi nvlink -s"
NAMES = "names of GPUs"  # of nvidia-smi -L, of its table or of -q
_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
_NAME = re.compile(r"GPU\d+|NIC\d+|mlx\d+_\d+|[a-z]+\d*_\d+|ib\w+|roce\w+")
_CLASS = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC")
_STATUS = re.compile(r"X|OK|CNS|GNS|TNS|DR|NS|U")
# No line of the output names the ability that the command queried: it is looked for in the command line, else in the
# name of the file.
_ABILITY = re.compile(r"-?p2p[-_ ]*(rw|[rwnap])(?![a-z])")
_ABILITIES = {
    "r": ("read",), "w": ("write",), "rw": ("read", "write"), "n": ("nvlink",), "a": ("atomics",), "p": ("pci",),
}  # fmt: skip
_ROCM = re.compile(r"(?:Weight|Hops|Link Type) between two GPUs")
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)")
# No nvidia-smi lists more GPUs and cards.
_MAX_HEADS = 1024
_WHOLE = "keep the whole output of the command"
_GPU = re.compile(r"GPU (\d{1,6}): (.*)")
_LINK = re.compile(r"\s+Link \d+: (<inactive>|[\d.]+ GB/s)")
_NONE = re.compile(r"all links are inactive", re.IGNORECASE)
_LISTED = re.compile(r"GPU (\d{1,4}): (\S.{1,80}?) \(UUID: GPU-")
_IN_TABLE = re.compile(
    r"\|\s{1,6}(\d{1,4})\s{1,6}(\S[^|]{1,60}?)\s{1,24}(?:On|Off|WDDM|TCC|MCDM|N/A)\s{0,9}\|\s{0,9}[0-9A-F]{4,8}:"
)
_QUERIED = re.compile(r"\s{1,12}Product Name\s{1,60}: (\S.{1,80}?)\s*$")


_ROW_OF_A_DEVICE = re.compile(r"\s{0,8}[A-Za-z]\w{1,24}\s.*\bX\s")
# What people write in place of lines.
_LEFT_OUT = re.compile(r"\s*[\[<({]{0,2}\s*(?:\.\.\.|\u2026|snip|cut|rest\b|etc\b)", re.IGNORECASE)


def plain(text: str) -> str:
    """The text without terminal colours."""
    return _COLOUR.sub("", text)


def read_topo(text: str, file: str) -> DumpFacts:
    """The classes of all pairs, NUMA affinities and the cards' names; FormatError for a row that does not fit."""
    if _ROCM.search(text):
        hint = "give lspci -tvnn or lstopo --whole-io machine.xml of the machine instead"
        raise FormatError("the matrices of rocm-smi --showtopo are not read", location=Location(file), hint=hint)
    lines = plain(text).splitlines()
    at = next((n for n, line in enumerate(lines) if _heads(line) and not _is_peers(lines, n)), None)
    if at is None:
        raise FormatError("no line of heads with GPU0", location=Location(file), hint=_WHOLE)
    heads = _heads(lines[at])
    facts = DumpFacts(file, TOPO)
    affinity = "NUMA Affinity" in lines[at]
    end = next((n for n in range(at + 1, len(lines)) if _heads(lines[n])), len(lines))
    known = ("class", "NV#, PIX, PXB, PHB, NODE and SYS")
    for number, name, cells, rest in _rows(lines, at, end, facts, _CLASS, known):
        facts.add(name, "listed", True, "row", number)
        row = heads.index(name)
        for index, (column, cell) in enumerate(zip(heads, cells, strict=True)):
            if index > row:
                facts.add_pair(name, column, "SYS" if cell == "SOC" else cell, "matrix", number)
        if affinity and len(rest) > 1:
            facts.add(name, "numa", first(rest[1]), "NUMA Affinity", number)
            if not rest[1].isdigit() and first(rest[1]) is not None:
                facts.notes.append(f"{facts.file}: {name} is near NUMA nodes {rest[1]}; the first is taken")
    for number, line in enumerate(lines[at + 1 : end], at + 2):
        if legend := _LEGEND.fullmatch(line):
            facts.add(legend[1], "alias", legend[2], "NIC legend", number)
    shown = "topo -m shows no link speeds, no uplinks that cards share, and no partitions of a switch"
    facts.notes.append(f"{facts.file}: {shown}")
    return facts


def matrix_kinds(text: str) -> set[str]:
    """Which of the two commands' matrices a text holds."""
    lines = plain(text).splitlines()
    return {PEERS if _is_peers(lines, n) else TOPO for n, line in enumerate(lines) if line and _heads(line)}


def is_cut(text: str) -> bool:
    """Whether somebody left out rows of a matrix of classes and says so below those that remain: "[... rest cut]"."""
    lines = plain(text).splitlines()
    for at, line in enumerate(lines):
        heads = _heads(line)
        if heads and not _is_peers(lines, at):
            rows = list(takewhile(_ROW_OF_A_DEVICE.match, lines[at + 1 :]))
            below = next((row for row in lines[at + 1 + len(rows) :] if row.strip()), "")
            return 0 < len(rows) < len(heads) and _LEFT_OUT.match(below) is not None
    return False


def _is_peers(lines: list[str], at: int) -> bool:
    """Whether the matrix below this line of heads shows statuses of peers, not classes."""
    row = next((lines[n].split() for n in range(at + 1, len(lines)) if lines[n].strip()), [])
    cells = row[1 : len(_heads(lines[at])) + 1]
    return cells != ["X"] and bool(cells) and all(_STATUS.fullmatch(cell) for cell in cells)


def read_peers(text: str, file: str) -> DumpFacts:
    """The statuses of all pairs, of every such matrix in the text; FormatError for a row that does not fit."""
    lines = plain(text).splitlines()
    facts = DumpFacts(file, PEERS)
    typed = ""
    for at, line in enumerate(lines):
        ability = _ABILITY.search(line)
        typed = ability[1] if ability else typed
        heads = _heads(line)
        if not heads or not _is_peers(lines, at):
            continue
        abilities, typed = _abilities(typed, facts), ""
        known = ("status", "OK, CNS, GNS, TNS, DR, NS and U")
        for number, name, cells, _ in _rows(lines, at, at + 1 + 2 * len(heads), facts, _STATUS, known):
            facts.add(name, "row", True, "row", number)
            for column, cell in zip(heads, cells, strict=True):
                for word in abilities if column != name else ():
                    facts.add_peer(name, column, word, cell, number)
    return facts


def _abilities(typed: str, facts: DumpFacts) -> tuple[str, ...]:
    named = typed or next((ability[1] for ability in _ABILITY.finditer(facts.file.lower())), "")
    if not named:
        facts.notes.append(f"{facts.file} does not say which ability its matrix of peers shows; reading is assumed")
    return _ABILITIES.get(named, ("read",))


def _heads(line: str) -> list[str]:
    words = line.split()
    names = []
    for word in words:
        if not _NAME.fullmatch(word):
            break
        names.append(word)
    return names if names[:1] == ["GPU0"] and "X" not in words else []


def _rows(
    lines: list[str], at: int, end: int, facts: DumpFacts, pattern: re.Pattern[str], known: tuple[str, str]
) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Line, name, cells and what follows of each row of the matrix below the heads in line `at`.

    FormatError for a cell that is not of `pattern`, and for a device without a row.
    """
    heads = _heads(lines[at])
    if len(heads) > _MAX_HEADS:
        cause = f"a matrix of {len(heads):,} devices; at most {_MAX_HEADS:,} are read"
        raise FormatError(cause, location=Location(facts.path, at + 1), hint=_WHOLE)
    missing = list(heads)
    for number, line in enumerate(lines[at + 1 : end], at + 2):
        name, *words = line.split() or [""]
        if name not in missing:
            continue
        missing.remove(name)
        cells = words[: len(heads)]
        wrong = [cell for cell in cells if not pattern.fullmatch(cell)]
        if len(cells) != len(heads) or wrong:
            cause = f"'{wrong[0]}' is no {known[0]}" if wrong else f"{len(cells)} cells for {len(heads)} devices"
            raise FormatError(cause, location=Location(facts.path, number), hint=f"X, {known[1]} are known")
        yield number, name, cells, words[len(heads) :]
    if missing:
        raise FormatError(f"no row for {missing[0]}", location=Location(facts.path, at + 1), hint=_WHOLE)


def is_nvlinks(text: str) -> bool:
    """Whether the text holds NVLinks by GPU."""
    lines = text.split("\n")
    return any(map(_GPU.match, lines)) and (any(map(_LINK.match, lines)) or bool(_NONE.search(text)))


def read_nvlinks(text: str, file: str) -> DumpFacts:
    """How many NVLinks of each GPU are up and down, and the rate of one; to whom they lead is not in it."""
    facts = DumpFacts(file, NVLINKS)
    gpus: list[tuple[int, re.Match[str], list[str]]] = []
    for number, text_line in enumerate(text.split("\n"), 1):
        head, link = _GPU.match(text_line), _LINK.match(text_line)
        if head:
            gpus.append((number, head, []))
        elif link and gpus:
            gpus[-1][2].append(link[1])
    for line, head, states in gpus:
        name, words = f"GPU{head[1]}", head[2].rstrip()
        rates = [state for state in states if state != "<inactive>"]
        facts.add(name, "row", True, "GPU", line)
        facts.add(name, "name", words.partition(" (UUID: ")[0] if words.endswith(")") else words, "GPU", line)
        facts.add(name, "nvlinks", len(rates), "Link", line)
        facts.add(name, "nvlinks_off", len(states) - len(rates) or None, "Link", line)
        facts.add(name, "nvlink_rate", rates[0] if rates else None, "Link", line)
    return facts


def has_names(text: str) -> bool:
    """Whether the text holds a list of GPUs; that of `nvlink -s` is read with the NVLinks."""
    return bool(_named(text)) and not is_nvlinks(text)


def read_names(text: str, file: str) -> DumpFacts:
    """The name of each GPU by its number; none that the table cut short."""
    facts = DumpFacts(file, NAMES)
    for line, number, name in _named(text):
        facts.add(f"GPU{number}", "name", name if not name.endswith("...") else None, "GPU", line)
    return facts


def _named(text: str) -> list[tuple[int, int, str]]:
    """Line, number and name of each GPU of `nvidia-smi -L`, of its table, and of `-q`, which lists them in order."""
    named = []
    queried = 0
    for line, words in enumerate(text.split("\n"), 1):
        if match := _LISTED.match(words) or _IN_TABLE.match(words):
            named.append((line, int(match[1]), match[2]))
        elif match := _QUERIED.match(words):
            named.append((line, queried, match[1]))
            queried += 1
    return named
