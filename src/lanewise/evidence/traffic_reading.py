"""Reads the rows of an evidence file that are blocks of KV caches or loads of a model's weights."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import units
from lanewise.blocks.pieces import pieces_of
from lanewise.errors import error_location
from lanewise.evidence.model import EvidenceRow
from lanewise.perf.flow import names_of, parse_flows
from lanewise.results.traffic import BlockCopies, Traffic, WeightLoad
from lanewise.weights.prediction import WeightSource
from lanewise.yaml_positions import YamlNode

_COMMON = ("path", "time", "skip", "quality", "note", "learned")
_BLOCKS = ("blocks", "rate", "software", "posters", *_COMMON)
_LOAD = ("load", "from", "latency", "to", "loader", "readers", "warm", "replicated", *_COMMON)
_BLOCKS_EXAMPLE = "- {blocks: gpu0->gpu1, rate: {1024 x 1 MiB: 199 GB/s}}"
_LOAD_EXAMPLE = "- {load: 15 GB, from: 1000 MiB/s, to: gpu0, loader: safetensors, time: 48 s}"


def block_rows(node: YamlNode) -> Iterator[EvidenceRow]:
    """A row for each number and size of pieces of an entry; InputError with its line for what cannot be used."""
    node.check_fields(_BLOCKS, "an entry of blocks", needed=("blocks",), hint=_BLOCKS_EXAMPLE)
    if not node["rate"].given and not node["time"].given:
        raise node.error("blocks have neither 'rate' nor 'time'", f"write {_BLOCKS_EXAMPLE}")
    with error_location(node["blocks"].location):
        flows = parse_flows(node["blocks"].needed())
    software = node["software"].line() or None
    posters = node["posters"].integer(1, 1_000_000) if node["posters"].given else 1
    for key, unit, example in (("rate", "B/s", "199 GB/s"), ("time", "s", "5.4 ms")):
        if node[key].given:
            for text, value in node[key].members(f"{key}: {{1024 x 1 MiB: {example}}}").items():
                with error_location(value.location):
                    pieces = pieces_of(text)
                label = node["path"].line() or "blocks"
                path = f"{label}, {pieces.count:,} x {units.size(pieces.size)}"
                copies = BlockCopies(flows, pieces, software, posters)
                yield _row(node, path, node["blocks"].line(), value, unit, example, copies)


def load_row(node: YamlNode) -> EvidenceRow:
    """The row of a model's load; InputError with its line for what cannot be used."""
    node.check_fields(_LOAD, "a load", needed=("load", "time"), hint=_LOAD_EXAMPLE)
    if not node["skip"].given:
        node.check_fields(_LOAD, "a load", needed=("from", "to", "loader"), hint=_LOAD_EXAMPLE)
    size, loader = node["load"].quantity("B", 0, bare=False, example="15 GB"), node["loader"].line()
    readers = node["readers"].integer(1, 100_000) if node["readers"].given else None
    warm, text = node["warm"].flag(False), f"{node['from'].line()} to {node['to'].line()}"
    load = WeightLoad(
        size, _source(node), tuple(names_of(node["to"].line())), loader, readers, warm, node["replicated"].flag(False)
    )
    threads = f"{readers} reader{'s' * (readers > 1)}" if readers else ""
    words = (node["path"].line() or loader, threads, "warm" if warm else "")
    path = ", ".join(["load", units.show(size, "GB"), *filter(None, words)])
    return _row(node, path, text, node["time"], "s", "48 s", load)


def _source(node: YamlNode) -> WeightSource:
    """A drive, volume or host by name, or storage of the rate that the text states."""
    text = node["from"].line()
    latency = node["latency"].quantity("s", above=0, example="0.4 ms") if node["latency"].given else None
    if text[:1].isdigit():
        return WeightSource(rate=node["from"].quantity("B/s", 0, bare=False, example="1000 MiB/s"), latency=latency)
    return WeightSource(text, latency=latency)


def _row(
    node: YamlNode, path: str, text: str, value: YamlNode, unit: str, example: str, traffic: Traffic
) -> EvidenceRow:
    return EvidenceRow(
        path=path, text=text, flows=(), value=value.quantity(unit, 0, bare=False, example=example), unit=unit,
        latency=unit == "s", skip=node["skip"].line(), quality=node["quality"].choice(("", "weak")),
        note=node["note"].line(), location=value.location, traffic=traffic, learned=node["learned"].flag(False),
    )  # fmt: skip
