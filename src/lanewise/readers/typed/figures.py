"""Figures typed in by hand, `lanewise-rows: 1`: for questions that give numbers and no output of a tool."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from lanewise import late_re as re
from lanewise.readers.tool_results import ImportedResults, check_rows
from lanewise.readers.typed import machine, values
from lanewise.readers.typed.fields import BY_ALGORITHM
from lanewise.readers.typed.keys import near_miss, with_usual_keys
from lanewise.readers.typed.rows import FIELDS, observations
from lanewise.readers.typed.stated_values import known_key, meant
from lanewise.readers.typed.value_words import with_keys_for_all
from lanewise.readers.words.counted_gpus import gpu_name
from lanewise.readers.words.machines import NamedMachine
from lanewise.results.observation import Observation
from lanewise.results.posted import STATEMENTS, VARIABLE, PostedFacts, Statement, meaning
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

HEAD = "lanewise-rows"
_REFERENCE = "docs/reference/readers.md"
# A flow by the names of a description, and its value with a unit: `host0->gpu[0-3]: 96 GB/s`.
_BARE_ROW = re.compile(
    r"((?:host|gpu|nic|ssd|vol)[\w:.\[\]-]*<?->[a-z][\w:.\[\]-]*[\w\]])(?:\s*[:=,|])?\s+(~?\d[\d.,]* ?[a-zA-Z]+(?:/s)?)"
)
_LONGEST_BARE = 120  # characters of a line
_PEERS = re.compile(r"p2p|peer[ _-]?(?:to[ _-]?peer|access|copies)", re.IGNORECASE)


def is_text(text: str) -> bool:
    """Whether a text is such a list of figures, or nothing but flows with a value each."""
    return any(line.startswith(f"{HEAD}:") for line in text.split("\n", 50)[:50]) or _bare_rows(text) is not None


def _bare_rows(text: str) -> str | None:
    """Lines such as `host0->gpu0 25.4 GB/s` as such a list, line by line; None for any other text."""
    listed = []
    for line in text.split("\n"):
        plain = line[: _LONGEST_BARE + 1].partition("#")[0].strip()
        row = _BARE_ROW.fullmatch(plain) if len(plain) <= _LONGEST_BARE else None
        if plain and row is None:
            return None
        listed.append(f'{{flows: "{row[1]}", value: "{row[2]}"}},' if row else "")
    return f"{{{HEAD}: 1, rows: [" + "\n".join(listed) + "]}" if any(listed) else None


def read_text(text: str, file: str) -> ImportedResults:
    """Its rows, the names of the GPUs and what else was stated; FormatError or UnknownName with the line otherwise."""
    root = load(_bare_rows(text) or text, file, _REFERENCE).root
    fields = root.check_fields((HEAD, "title", "gpus", "gpu", "stated", "rows"), "the file", needed=(HEAD, "rows"))
    fields[HEAD].integer(1, 1, 1)
    nodes = fields["rows"].items()
    maps = [node for node in nodes if node.is_map]
    shared = {node.key: node for node in machine.shared_facts(maps, FIELDS)}
    rows: list[Observation] = []
    one_cpu = re.search(r"cpu ?[1-9]", text, re.IGNORECASE) is None
    stated = fields["stated"].members()
    peers = next((node for key, node in stated.items() if _PEERS.fullmatch(key)), fields["p2p"])
    for node in nodes:
        node = machine.with_peers(node, peers)
        rows += observations(_as_rows_have_it(node, shared, one_cpu) if node.is_map else node)
        check_rows(rows, node.location)
    of_others = {key: node for key, node in stated.items() if key != machine.GPU and not _PEERS.fullmatch(key)}
    posted = _posted({**shared, **of_others}, file)
    posted = replace(posted, devices=_devices(fields) or machine.gpu_names(maps))
    known = machine.named(stated.values(), fields["gpus"])
    if known is not None:
        posted = _of_named_machine(posted, known, file, says_line=any(row.how.get("line") for row in rows))
    return ImportedResults("typed in", tuple(rows), posted=posted)


def _of_named_machine(posted: PostedFacts, known: NamedMachine, file: str, *, says_line: bool) -> PostedFacts:
    """What was posted, with the GPUs and network cards of the named machine where nothing else says them."""
    devices = posted.devices or {"gpu": known.gpu}
    says_line = says_line or bool(posted.stated("line") or posted.stated("network cards"))
    cards = (Statement("network cards", known.cards, file),) if known.cards and not says_line else ()
    return replace(posted, devices=devices, statements=(*posted.statements, *cards))


def _devices(fields: YamlNode) -> dict[str, str]:
    """The names of GPUs by device: `gpus` is one name for all, a list of them, or a name for each."""
    named = (fields["gpus"], fields["gpu"], fields["stated"]["gpu"])
    gpus = next((node for node in named if node.given), fields["gpus"])
    if gpus.is_map:
        return {name: gpu_name(node.text()) for name, node in gpus.members().items()}
    if isinstance(gpus.value, list):
        return {f"gpu{number}": gpu_name(node.text()) for number, node in enumerate(gpus.items())}
    name = gpu_name(gpus.text())
    return {"gpu": name} if re.search("[A-Za-z]", name) else {}  # gpus: 8


def _posted(stated: Mapping[str, YamlNode], file: str) -> PostedFacts:
    """`stated` holds the words of docs/reference/readers.md."""
    statements: list[Statement] = []
    unused: list[Statement] = []
    for key, node in stated.items():
        value = node.as_written().strip()
        statement = Statement(known_key(key, value), value, f"{file}:{node.location.line}")
        said = meaning(statement.key, meant(statement.key, value)) if statement.key in STATEMENTS else ""
        is_known = bool(said) or VARIABLE.fullmatch(key) is not None
        if not is_known and statement.key == key and key not in STATEMENTS and near_miss(key, STATEMENTS):
            raise node.error(
                f"'{key}' is nothing that can be stated", f"known: {', '.join(STATEMENTS)}; NCCL_P2P_LEVEL etc."
            )
        # cores: 8P+16E says nothing that can be used
        known, vain = replace(statement, value=said or statement.value), replace(statement, key=key)
        (statements if is_known else unused).append(known if is_known else vain)
    return PostedFacts({}, tuple(statements), tuple(unused))


def _as_rows_have_it(row: YamlNode, shared: Collection[str], one_cpu: bool) -> YamlNode:
    """The row with the names of keys and of its flows' ends that rows have, without what is the machine's."""
    by_algorithm = "metric" not in row.value and any(values.metric(key) == BY_ALGORITHM for key in row.value)
    row = with_keys_for_all(machine.without(with_usual_keys(row), (*shared, machine.GPU)))
    if by_algorithm:  # algbw: 270 GB/s says both
        row = replace(row, value={**row.value, "metric": BY_ALGORITHM})
    flows = row["flows"].value
    if not isinstance(flows, str):
        return row
    flows = values.ends(re.sub(r"\bcpu ?0\b", "host0", flows) if one_cpu and "gpu" not in flows.lower() else flows)
    return replace(row, value={**row.value, "flows": flows})
