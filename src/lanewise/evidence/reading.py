"""Reads an evidence file (docs/reference/evidence-format.md): one measured machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from lanewise import package_data
from lanewise.errors import Contradiction, Location, UnknownName, error_location, unknown_name
from lanewise.evidence.collective_reading import collective_rows
from lanewise.evidence.model import EACH, FIRST, TOTAL, EvidenceMachine, EvidenceRow
from lanewise.evidence.traffic_reading import block_rows, load_row
from lanewise.perf.flow import parse_flows
from lanewise.perf.schedules import SCHEDULES, TOGETHER
from lanewise.topology.validate import VERSION as SYSTEM_VERSION
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

VERSION = 1
_TOP = (
    "lanewise-evidence", "machine", "title", "source", "tool", "wiring", "held_out", "same_as", "parts", "system",
    "rows",
)  # fmt: skip
_ROW = (
    "path", "flows", "p2p", "value", "of", "low", "high", "latency", "schedule", "skip", "quality", "note",
)  # fmt: skip
_START = f"begin the file with 'lanewise-evidence: {VERSION}'"
_EXAMPLE = "- {path: one socket, flows: 'gpu0->gpu1', value: 25.8 GB/s}"
QUALITIES = ("", "weak")


def ready_machines() -> tuple[EvidenceMachine, ...]:
    """The machines that come with Lanewise, in alphabetical order."""
    return tuple(_ready_machine(name) for name in package_data.names("evidence"))


def ready_machine(name: str, location: Location | None = None) -> EvidenceMachine:
    """The machine of that name that comes with Lanewise; UnknownName at `location` if there is none."""
    names = package_data.names("evidence")
    if name not in names:
        several = [part.strip() for part in name.split(",")]
        if len(several) > 1 and set(several) <= set(names):
            hint = f"separate machines by spaces: {' '.join(several)}"
            raise UnknownName(f"unknown measured machine '{name}'", location=location, hint=hint)
        raise unknown_name("measured machine", name, names, location)
    return _ready_machine(name)


@cache
def _ready_machine(name: str) -> EvidenceMachine:
    return read_machine(*package_data.text("evidence", name, "machine"))


def read_machine(text: str, file: str) -> EvidenceMachine:
    """The machine in `text`; InputError with file, line and hint for anything that cannot be used.

    Its description is read only when its system is wanted.
    """
    top = load(text, file, "docs/reference/evidence-format.md").root
    if not top.value:
        raise top.error("the file holds no machine", _START)
    top.check_fields(_TOP)
    if top["lanewise-evidence"].value != VERSION or isinstance(top["lanewise-evidence"].value, bool):
        raise top["lanewise-evidence"].error(f"this is no evidence file of format {VERSION}", _START)
    top.check_fields(_TOP, "the file", needed=("machine", "source", "system", "rows"))
    rows = tuple(row for node in top["rows"].items() for row in _rows(node))
    if not rows:
        raise top["rows"].error("the machine has no rows", f"add what was measured: {_EXAMPLE}")
    return EvidenceMachine(
        name=top["machine"].needed(),
        title=top["title"].line() or top["machine"].needed(),
        source=" ".join(top["source"].needed().split()),
        rows=rows,
        description=top["system"].as_document({"lanewise": SYSTEM_VERSION}),
        parts=top["parts"],
        tool=top["tool"].line(),
        wiring=top["wiring"].line(),
        held_out=top["held_out"].flag(False),
        same_as=top["same_as"].line(), same_as_location=top["same_as"].location,
    )


def _rows(node: YamlNode) -> Iterator[EvidenceRow]:
    """The rows of an entry: a path, or traffic of LLM serving and training."""
    if node["collective"].present:
        yield from collective_rows(node)
    elif node["blocks"].present:
        yield from block_rows(node)
    elif node["load"].present:
        yield load_row(node)
    else:
        yield _row(node)


def _row(node: YamlNode) -> EvidenceRow:
    skip = node.check_fields(_ROW, "a row", needed=("path", "value"), hint=_EXAMPLE)["skip"].line()
    flows, latency = node["flows"], node["latency"].flag(False)
    unit, example = ("s", "2.4 us") if latency else ("B/s", "25.8 GB/s")
    if not flows.given and not skip:
        raise node.error("a row has no flows", f"write {_EXAMPLE}; or skip: <why it cannot be predicted>")
    with error_location(flows.location):
        parsed = parse_flows(flows.needed(), node["p2p"].flag(True)) if flows.given else ()
    low, high = (
        bound.quantity(unit, 0, bare=False, example=example) if bound.given else None
        for bound in (node["low"], node["high"])
    )
    if low is not None and high is not None and low > high:
        raise Contradiction("low is above high", location=node["low"].location, hint="exchange the two")
    return EvidenceRow(
        path=node["path"].line(), text=flows.line(), flows=parsed,
        value=node["value"].quantity(unit, 0, bare=False, example=example), unit=unit,
        of=node["of"].choice((TOTAL, EACH, FIRST), TOTAL), latency=latency,
        schedule=node["schedule"].choice(SCHEDULES, TOGETHER.name), skip=skip, low=low, high=high,
        quality=node["quality"].choice(QUALITIES), note=node["note"].line(), location=node.location,
    )  # fmt: skip
