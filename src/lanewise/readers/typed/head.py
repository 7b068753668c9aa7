"""What stands above the rows of figures typed in: the form's own keys, facts of the machine, and keys for all rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lanewise import late_re as re
from lanewise.readers.typed.keys import form_key, near_miss, usual_key, with_form_keys, with_text, with_texts
from lanewise.readers.typed.machine import GPU, OF_A_MACHINE, ends_of
from lanewise.readers.typed.stated_values import known_key
from lanewise.readers.typed.values import slot_and_link
from lanewise.readers.words.devices import memory_of, named_collective
from lanewise.results.posted import STATEMENTS, VARIABLE
from lanewise.yaml_positions import YamlNode

HEAD = "lanewise-rows"
_OWN = (HEAD, "title", "gpus", "gpu", "stated", "rows")
_GPUS = re.compile(r"gpus?|gpu[ _-](?:model|name|type)s?|accelerators?|apus?", re.IGNORECASE)
_ONE_GPU = re.compile(r"gpu ?\d{1,3}", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"env(?:ironment)?(?:[ _-]?variables?)?|env[ _-]?vars?", re.IGNORECASE)
_PEERS = re.compile(r"p2p|peer[ _-]?(?:to[ _-]?peer|access|copies)", re.IGNORECASE)
_PROGRAM = re.compile(r"tool|test|benchmark|program|command|collective|path", re.IGNORECASE)
_NAME = re.compile(r"name|model|type", re.IGNORECASE)
_DRIVE = re.compile(r"device|drive|disk|ssd|nvme", re.IGNORECASE)
# Keys of rows that a head may have by other words; what is wanted, and lines, are the machine's there.
_BY_OTHER_WORDS = ("bytes", "depth", "threads", "ranks", "hosts", "host memory", "NUMA node", "path", "device")
_COUNTS = ("depth", "threads", "ranks", "hosts")
# Settings and names that rows may have besides.
_SETTINGS = (GPU, "memory", "connections", "mtu")
# What only a row can have.
_OF_ONE_ROW = ("flows", "value")


@dataclass(frozen=True, slots=True)
class FileHead:
    """The `rows` of a file, the `gpus` that it names, what it states, and what all rows have unless they say more.

    `slots` are those of single GPUs by their device.
    """

    rows: Sequence[YamlNode]
    gpus: YamlNode
    stated: Mapping[str, YamlNode]
    for_rows: Mapping[str, YamlNode]
    slots: Mapping[str, YamlNode]


def file_head(root: YamlNode, of_rows: Collection[str]) -> FileHead:
    """The head of a file whose rows have the keys `of_rows`; FormatError or UnknownName with the line otherwise.

    Facts of the machine may stand at the top or below `stated`, and so may what all rows have.
    """
    root = with_form_keys(root, _OWN)
    others = [key for key in root.value if key not in _OWN] if root.is_map else []
    kept = [key for key in others if not near_miss(key, _OWN) or _is_known(root[key], of_rows)]
    root.check_fields((*_OWN, *kept), "the file", needed=(HEAD,))
    if not root["rows"].given and root.value.keys() <= {HEAD, "title"}:
        root["rows"].needed()
    root[HEAD].integer(1, 1, 1)
    described = [key for key in ("gpus", GPU) if _is_described(root[key])]
    nodes = [*(root[key] for key in (*kept, *described)), *root["stated"].members().values()]
    slots = next((found for node in nodes if (found := _slots_of_gpus(node))), {})
    words = _once(_words((node.key, node) for node in nodes if not _slots_of_gpus(node)), of_rows)
    listed = root["rows"].items() if root["rows"].given else []
    rows = [with_form_keys(row, (*of_rows, *_SETTINGS)) for row in listed]
    of_all = {name: node for node in words.values() if (name := _key_of_rows(node, of_rows))}
    programs = [node for node in words.values() if _key_of_rows(node, of_rows) == "path"]
    if len(programs) > 1:  # tool: fio, test: randread
        of_all["path"] = with_text(programs[0], " ".join(each.as_written() for each in programs))
    if one := next((key for key in _OF_ONE_ROW if key in of_all), ""):
        hint = "write it below rows: - {flows: ..., value: ...}"
        raise of_all[one].error(f"'{of_all[one].key}' belongs to a row", hint)
    if "slot" in words and (link := slot_and_link(words["slot"].as_written()))[1]:
        of_all.setdefault("link under load", _at(words["slot"], link[1]))
        words["slot"] = with_text(words["slot"], link[0])
    gpus = [root[key] for key in ("gpus", GPU) if key not in described]
    gpus += [node for key, node in words.items() if _GPUS.fullmatch(key)]
    by_number = {key: node.value for key, node in words.items() if _ONE_GPU.fullmatch(key)}  # gpu0: A100
    gpus += [replace(root, value=by_number)] if by_number else []
    taken = {node.key for node in [*of_all.values(), *programs] if node.key != "slot"}
    taken |= {key for key in words if _GPUS.fullmatch(key) or key in by_number}
    stated = {key: node for key, node in words.items() if key not in taken}
    return FileHead(rows, _names_of_gpus(gpus) or root["gpus"], stated, of_all, slots)


def _is_described(node: YamlNode) -> bool:
    """Whether GPUs have a map of what they are, `{name: A100, count: 4}`, and not a name by number."""
    return node.is_map and any(_NAME.fullmatch(str(word)) for word in node.value)


def _once(words: Iterable[tuple[str, YamlNode]], of_rows: Collection[str]) -> dict[str, YamlNode]:
    """The words by their keys; FormatError where a file says a fact twice, as nobody knows which of them holds."""
    found: dict[str, YamlNode] = {}
    said: dict[str, YamlNode] = {}
    for key, node in words:
        name = _key_of_rows(node, of_rows) or key.casefold()
        first = said.setdefault(name, node)
        if name != "path" and first.value != node.value:
            cause = f"'{key}' is {node.as_written()}, and {first.as_written()} in line {first.location.line}"
            raise node.error(cause, "leave one of them, or write it on the rows that it holds for")
        found[key] = node
    return found


def _names_of_gpus(nodes: Sequence[YamlNode]) -> YamlNode | None:
    """The value that names the GPUs and does not only count them; FormatError where two name others."""
    named = [node for node in nodes if node.given and not re.fullmatch(r"\d+", str(node.value).strip())]
    if other := next((node for node in named if node.value != named[0].value), None):
        raise other.error(f"the GPUs are {other.value}, and {named[0].value}", "write gpus: {gpu0: ..., gpu1: ...}")
    return named[0] if named else None


def with_keys_of_all(head: FileHead) -> list[YamlNode]:
    """The rows with what the head of their file says of all, but for what they say themselves."""
    of_gpus = all(_is_of(row, GPU, "host") for row in head.rows)
    rows = [_with_keys(row, head.for_rows, of_gpus) if row.is_map else row for row in head.rows]
    return [_with_slots(row, head.slots) if row.is_map else row for row in rows]


def _with_slots(row: YamlNode, slots: Mapping[str, YamlNode]) -> YamlNode:
    """The row with the slots of its GPUs."""
    texts = [slots[end].as_written() for end in ends_of(row) if end in slots]
    return with_texts(row, {"slot": ", ".join(texts)}, "flows") if texts and "slot" not in row.value else row


def _slots_of_gpus(node: YamlNode) -> dict[str, YamlNode]:
    """The slots that a list or a map gives single GPUs, [x16, x8], {gpu1: x8}; empty for any other value."""
    found = {str(key): each for key, each in node.members().items()} if node.is_map else {}
    if isinstance(node.value, list):
        found = {f"gpu{number}": each for number, each in enumerate(node.items())}
    plain = all(isinstance(each.value, str) and _ONE_GPU.fullmatch(key) for key, each in found.items())
    of_slots = plain and all(known_key(node.key, each.as_written()) == "slot" for each in found.values())
    return {key.lower().replace(" ", ""): each for key, each in found.items()} if of_slots else {}


def _with_keys(row: YamlNode, for_rows: Mapping[str, YamlNode], of_gpus: bool) -> YamlNode:
    added = {key: node for key, node in for_rows.items() if key not in row.value and _is_about(key, node, row, of_gpus)}
    for key, node in added.items():
        for positions in (row.document.values, row.document.keys):
            if node.path in positions:
                positions[*row.path, key] = positions[node.path]
    return replace(row, value={**row.value, **{key: node.value for key, node in added.items()}})


def _is_about(key: str, node: YamlNode, row: YamlNode, of_gpus: bool) -> bool:
    """Whether a key of the whole file says something of this row: peer copies, ranks and cards are not of all."""
    if key == "p2p":
        return _is_of(row, GPU)
    if key == "link under load":
        return "gpu" in "".join(ends_of(row))
    if key in ("ranks", "hosts"):
        source, _, target = str(row.value.get("flows", "")).partition("->")
        words = " ".join(str(row.value.get(other, "")) for other in ("path", "metric", "value"))
        return bool(named_collective(words) or re.search("bus|alg", words)) or (source == target and "[" in source)
    return key != "device" or (of_gpus and node.key.lower() == key) or not _is_of(row, GPU, "host0")


def _is_of(row: YamlNode, *kinds: str) -> bool:
    return all(end.startswith(kinds) for end in ends_of(row))


def _key_of_rows(node: YamlNode, of_rows: Collection[str]) -> str:
    """The key of rows that a word of the file's head is; empty for what is stated of the machine."""
    if _PEERS.fullmatch(node.key):
        return "p2p"
    key = form_key(node.key, of_rows)
    name = key if key in of_rows else usual_key(node, ())
    known = of_rows if key in of_rows else _BY_OTHER_WORDS
    if isinstance(node.value, dict | list) or key in STATEMENTS or name not in known:
        return ""
    counted = re.search(r"\d", str(node.value)) is not None
    if (name in _COUNTS and not counted) or (name == "host memory" and counted):  # threads: pinned, 8 x DDR5-4800
        return ""
    if name == "host memory" and not memory_of(str(node.value)):  # host memory: 512 GB
        return ""
    if (name == "path" and not _PROGRAM.fullmatch(key)) or (name == "device" and not _DRIVE.fullmatch(key)):
        return ""
    return "" if name == "hosts" and not isinstance(node.value, int) else name


def _words(nodes: Iterable[tuple[str, YamlNode]]) -> Iterator[tuple[str, YamlNode]]:
    """Words of the asker's own with a text each: of a machine with words of its own those."""
    for key, node in nodes:
        if node.is_map and _ONE_GPU.fullmatch(key):
            raise node.error(f"'{key}' must be a name", f"write {key}: RTX 3090, and slot: {{{key}: x8}}")
        if _ENVIRONMENT.fullmatch(key) and (variables := _variables(node)):
            yield from variables.items()
        elif node.is_map and (OF_A_MACHINE.fullmatch(key) or (_GPUS.fullmatch(key) and _is_described(node))):
            yield from ((key if _NAME.fullmatch(word) else word, part) for word, part in _words(node.members().items()))
        elif node.given:
            text = _as_text(node)
            yield key, with_text(node, text) if text else node


def _variables(node: YamlNode) -> dict[str, YamlNode]:
    """The variables of an environment: {NCCL_P2P_DISABLE: 1}, or NCCL_P2P_DISABLE=1."""
    if node.is_map:
        return node.members() if any(map(VARIABLE.fullmatch, node.value)) else {}
    words = " ".join(map(str, node.value)) if isinstance(node.value, list) else str(node.value)
    pairs = (word.partition("=") for word in re.split(r"[\s,;]+", words))
    return {name: _at(node, value) for name, _, value in pairs if value}


def _at(node: YamlNode, text: str) -> YamlNode:
    """A text that is a part of another value, at its position."""
    path = (*node.path, text)
    for positions in (node.document.values, node.document.keys):
        positions[path] = positions[node.path]
    return with_text(replace(node, path=path), text)


def _as_text(node: YamlNode) -> str:
    """A list or a map of words as one text, `[Core i5, EPYC 7763]`, `{client: Core i5}`; empty for other values."""
    if isinstance(node.value, list):
        parts = {str(number): each for number, each in enumerate(node.value)}
    else:
        parts = node.value if node.is_map else {}
    plain = all(isinstance(each, str | int | float) for each in parts.values())
    return ", ".join(map(str, parts.values())) if plain else ""


def _is_known(node: YamlNode, of_rows: Collection[str]) -> bool:
    """Whether a key at the top is one of a row, of a machine, or a word that can be stated."""
    names = any(pattern.fullmatch(node.key) for pattern in (_GPUS, _ONE_GPU, OF_A_MACHINE))
    return names or _key_of_rows(node, of_rows) != "" or _states(node)


def _states(node: YamlNode) -> bool:
    """Whether a key is a word that can be stated of the whole machine."""
    return not isinstance(node.value, dict | list) and known_key(node.key, node.as_written()) in STATEMENTS
