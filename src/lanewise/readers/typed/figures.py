"""Figures typed in by hand, `lanewise-rows: 1`: for questions that give numbers and no output of a tool."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from lanewise import late_re as re
from lanewise.perf.flow import names_of
from lanewise.readers.tool_results import ImportedResults, check_rows
from lanewise.readers.typed import machine, values
from lanewise.readers.typed.fields import BY_ALGORITHM
from lanewise.readers.typed.flows import is_over_a_network
from lanewise.readers.typed.gpu_to_card import gpu_to_card, says_where
from lanewise.readers.typed.head import HEAD, file_head, with_keys_of_all
from lanewise.readers.typed.keys import near_miss, with_texts, with_usual_keys
from lanewise.readers.typed.rows import FIELDS, observations
from lanewise.readers.typed.stated_values import known_key, meant
from lanewise.readers.typed.value_words import rows_of_copies, with_keys_for_all
from lanewise.readers.words import spellings
from lanewise.readers.words.counted_gpus import gpu_name
from lanewise.readers.words.gpus import gpus_in
from lanewise.readers.words.machines import NamedMachine, only_machine
from lanewise.results.observation import Observation
from lanewise.results.posted import STATEMENTS, VARIABLE, PostedFacts, Statement, meaning
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

_REFERENCE = "docs/reference/readers.md"
# A flow by the names of a description, and its value with a unit: `host0->gpu[0-3]: 96 GB/s`.
_BARE_ROW = re.compile(
    r"((?:host|gpu|nic|ssd|vol)[\w:.\[\]-]*<?->[a-z][\w:.\[\]-]*[\w\]])(?:\s*[:=,|])?\s+(~?\d[\d.,]* ?[a-zA-Z]+(?:/s)?)"
)
_SEVERAL_KINDS = re.compile(r"(?:,|;| \+| and|,? &)\s+(?=(?:\d{1,2} ?x ?)?[A-Z])")
_LONGEST_BARE = 120  # characters of a line


def is_text(text: str) -> bool:
    """Whether a text is such a list of figures, or nothing but flows with a value each."""
    heads = (line.lstrip("{ ").startswith(f"{HEAD}:") for line in text.split("\n", 50)[:50])
    return any(heads) or _bare_rows(text) is not None


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
    head = file_head(load(_bare_rows(text) or text, file, _REFERENCE).root, FIELDS)
    nodes = with_keys_of_all(head)
    maps = [node for node in nodes if node.is_map]
    shared = {node.key: node for node in machine.shared_facts(maps, FIELDS)}
    rows: list[Observation] = []
    one_cpu = re.search(r"cpu ?[1-9]", text, re.IGNORECASE) is None
    posted = _posted({**shared, **head.stated}, file)
    posted = replace(posted, devices=_devices(head.gpus) or machine.gpu_names(maps))
    for node in (copy for row in nodes for copy in rows_of_copies(row)):
        read = observations(_as_rows_have_it(node, shared, one_cpu) if node.is_map else node)
        other = machine.other_gpu(node, posted) if node.is_map else ""
        rows += (replace(row, how={**row.how, "GPU": other}) for row in read) if other else read
        check_rows(rows, node.location)
    rows = [_over_the_line(row, posted) for row in rows]
    known = machine.named(head.stated, head.gpus)
    if known is not None:
        posted = _of_named_machine(posted, known, file, says_line=any(row.how.get("line") for row in rows))
    return ImportedResults("typed in", tuple(rows), posted=posted)


def _over_the_line(row: Observation, posted: PostedFacts) -> Observation:
    """A row of storage behind a network with the line that the head of the file states, if it has none itself."""
    lines = posted.stated("line")
    if not lines or row.path != "storage" or "line" in row.how or not is_over_a_network(row.flow):
        return row
    return replace(row, how={**row.how, "line": spellings.line(lines[0].value)})


def _of_named_machine(posted: PostedFacts, known: NamedMachine, file: str, *, says_line: bool) -> PostedFacts:
    """What was posted, with the GPUs and network cards of the named machine where nothing else says them."""
    devices = posted.devices or {"gpu": known.gpu}
    unused = tuple(each for each in posted.unused if only_machine(each.value) != known)
    cards = [each.value for each in posted.stated("network cards")]
    if not known.cards or says_line or posted.stated("line") or cards not in ([], known.cards.split(" x ")[:1]):
        return replace(posted, devices=devices, unused=unused)
    # Who counts the machine's cards, and no more, leaves their rate to its name.
    others = (each for each in posted.statements if each.key != "network cards")
    statements = (*others, Statement("network cards", known.cards, file))
    return replace(posted, devices=devices, statements=statements, unused=unused)


def _devices(gpus: YamlNode) -> dict[str, str]:
    """The names of GPUs by device: `gpus` is one name for all, a list of them, or a name for each."""
    if gpus.is_map:
        named = ((_gpus_of(str(key)), node) for key, node in gpus.members().items())
        return {gpu: gpu_name(node.text()) for keys, node in named for gpu in keys}
    listed = isinstance(gpus.value, list)
    names = [node.text() for node in gpus.items()] if listed else _SEVERAL_KINDS.split(gpus.text())
    if listed or (len(names) > 1 and all(gpus_in(gpu_name(name), spoken=True) for name in names)):
        every = [name for name in names for _ in range(_count_of(name))]
        return {f"gpu{number}": gpu_name(name) for number, name in enumerate(every)}
    name = gpu_name(gpus.text())
    return {"gpu": name} if re.search("[A-Za-z]", name) else {}  # gpus: 8


def _gpus_of(key: str) -> list[str]:
    """The GPUs that a key of `gpus` means: gpu0, gpu[1-2], 0."""
    named = re.fullmatch(r"(?:gpu ?)?(\d{1,3}|\[[\d, -]{1,40}\])", key, re.IGNORECASE)
    return names_of(f"gpu{named[1]}") if named else [key]


def _count_of(name: str) -> int:
    """How many GPUs a name says: 4x GH200."""
    match = re.match(r"\s*([1-9]\d?) ?[x\u00d7*] ?(?=\D)", name)
    return int(match[1]) if match else 1


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
    if (distance := gpu_to_card(unused)) is not None:
        statements.append(distance)
        unused = [each for each in unused if not says_where(each)]
    return PostedFacts({}, tuple(statements), tuple(unused))


def _as_rows_have_it(row: YamlNode, shared: Collection[str], one_cpu: bool) -> YamlNode:
    """The row with the names of keys and of its flows' ends that rows have, without what is the machine's."""
    by_algorithm = "metric" not in row.value and any(values.metric(key) == BY_ALGORITHM for key in row.value)
    row = with_keys_for_all(machine.without(with_usual_keys(row), (*shared, machine.GPU)))
    if by_algorithm:  # algbw: 270 GB/s says both
        row = replace(row, value={**row.value, "metric": BY_ALGORITHM})
    if isinstance(slot := row["slot"].value, str) and (link := values.slot_and_link(slot))[1]:
        said = {"slot": link[0]} | ({} if row["link under load"].given else {"link under load": link[1]})
        row = with_texts(row, said, "slot")
    flows = row["flows"].value
    if not isinstance(flows, str):
        return row
    if values.is_both_copies(flows) and "of" not in row.value:
        row = with_texts(row, {"of": "each"}, "flows")
    flows = values.ends(re.sub(r"\bcpu ?0\b", "host0", flows) if one_cpu and "gpu" not in flows.lower() else flows)
    return replace(row, value={**row.value, "flows": flows})
