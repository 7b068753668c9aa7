"""Reads the rows of an evidence file that are collectives: one entry holds a curve of sizes."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import units
from lanewise.collectives.model import Algorithm, CollectiveSettings, Launch, collective_named
from lanewise.errors import error_location
from lanewise.evidence.model import EvidenceRow
from lanewise.results.traffic import CollectiveMessage
from lanewise.yaml_positions import YamlNode

_ROW = (
    "collective", "ranks", "busbw", "time", "algorithm", "force", "launch", "version", "p2p", "skip", "quality", "note",
)  # fmt: skip
_EXAMPLE = "- {collective: all_reduce, ranks: 'gpu[0-7]', busbw: {1 GiB: 466 GB/s}}"
_LATENCY_BELOW = 2.0**20


def collective_rows(node: YamlNode) -> Iterator[EvidenceRow]:
    """A row for each size of an entry; InputError with its line for what cannot be used.

    `busbw` and `time` are by message size. `algorithm` is what ran by default, a word or one by the size that it begins
    at; `force` what NCCL_ALGO named.
    """
    node.check_fields(_ROW, "a collective", needed=("collective", "ranks"), hint=_EXAMPLE)
    if not node["busbw"].given and not node["time"].given:
        raise node.error("a collective has neither 'busbw' nor 'time'", f"write {_EXAMPLE}")
    with error_location(node["collective"].location):
        collective = collective_named(node["collective"].needed())
    settings = CollectiveSettings(
        version=node["version"].as_written() if node["version"].given else "",
        launch=Launch(node["launch"].choice([launch.value for launch in Launch], Launch.NCCL_TESTS.value)),
        algorithm=_algorithm(node["force"]),
        p2p=node["p2p"].flag(False) if node["p2p"].given else None,
    )
    for key, unit, example in (("busbw", "B/s", "466 GB/s"), ("time", "s", "28.6 us")):
        if node[key].given:
            for text, value in node[key].members(f"sizes with their values: {key}: {{1 MiB: {example}}}").items():
                with error_location(value.location):
                    size = units.parse(text, "B")
                yield EvidenceRow(
                    path=f"{collective}, {units.size(size)}", text=f"{node['ranks'].line()}", flows=(),
                    value=value.quantity(unit, 0, bare=False, example=example), unit=unit, latency=key == "time",
                    skip=node["skip"].line(), quality=node["quality"].choice(("", "weak")), note=node["note"].line(),
                    location=value.location, algorithm=_stated(node["algorithm"], size),
                    traffic=CollectiveMessage(collective, node["ranks"].line(), size, settings),
                )  # fmt: skip


def _algorithm(node: YamlNode) -> Algorithm | None:
    word = node.choice(["", *(algorithm.value for algorithm in Algorithm)])
    return Algorithm(word) if word else None


def _stated(node: YamlNode, size: float) -> str:
    """The algorithm that a row states for a size; '' for none."""
    if not node.is_map:
        return str(_algorithm(node) or "")
    begins = [(units.parse(text, "B"), member) for text, member in node.members().items()]
    fitting = [(begin, member) for begin, member in begins if begin <= size]
    return str(_algorithm(max(fitting, key=lambda pair: pair[0])[1]) or "") if fitting else ""
