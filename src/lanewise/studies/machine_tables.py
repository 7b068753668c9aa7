"""Tables of a study whose rows are those of measured machines: each with what was published, not written twice."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.collectives.model import Collective
from lanewise.evidence.model import EvidenceRow
from lanewise.evidence.reading import ready_machine
from lanewise.evidence.traffic_prediction import SHORT, size_class
from lanewise.perf.flow import names_of
from lanewise.results.block_rows import block_settings
from lanewise.results.traffic import BlockCopies, CollectiveMessage, MachineTraffic, Traffic
from lanewise.studies.form import RowForm, SystemRef
from lanewise.yaml_positions import YamlNode

FIELDS = ("name", "title", "machines", "metric", "unit", "match", "where", "note")
METRICS = {"busbw": "B/s", "goodput": "B/s", "time": "s"}
_EXAMPLE = "machines: {8 H100: h100-p5-nccl}"


def machine_refs(tables: Sequence[YamlNode]) -> dict[str, SystemRef]:
    """The measured machines that tables name; UnknownName with the line of one that does not exist."""
    refs: dict[str, SystemRef] = {}
    for table in tables:
        for node in table["machines"].members(_EXAMPLE).values():
            name = node.needed()
            if name not in refs:
                refs[name] = SystemRef(name, name, {}, node.location, ready_machine(name, node.location))
    return refs


def machine_rows(node: YamlNode, table: str, refs: dict[str, SystemRef]) -> list[RowForm]:
    """Every row of the machines in the table's metric that is not skipped, whose label has the text `match` and whose
    settings are those of `where`.

    FormatError with its line for a table without rows.
    """
    node.check_fields(FIELDS, "a table of machines", needed=("machines", "metric", "unit"))
    metric = node["metric"].choice(METRICS, "", "metric of machines")
    unit, match = node["unit"].needed(), node["match"].line()
    where = {key: each.integer() for key, each in node["where"].members("where: {ranks: 8}").items()}
    names = {each.needed(): label for label, each in node["machines"].members(_EXAMPLE).items()}
    rows: list[RowForm] = []
    for name, own in names.items():
        machine = refs[name].machine
        assert machine is not None
        for row in machine.rows:
            published = _published(row, metric)
            label = _label(own if len(names) > 1 else "", row)
            if published is None or row.traffic is None or row.skip or match not in label:
                continue
            settings = _settings(row.traffic)
            if not where.items() <= settings.items():
                continue
            rows.append(
                RowForm(
                    table=table, label=label, system=name, settings=settings,
                    scenario=MachineTraffic(row.traffic, row.text, frozenset({name}), label), metric=metric, unit=unit,
                    published=published, extrapolated=False, role="input" if row.learned else "prediction",
                    note="; ".join(filter(None, (row.note, node["note"].line()))), derive="", group="",
                    location=node.location,
                )
            )  # fmt: skip
    if not rows:
        raise node.error(f"no row of these machines has a {metric}" + f" and '{match}'" * bool(match), _EXAMPLE)
    return rows


def _published(row: EvidenceRow, metric: str) -> float | None:
    """What was measured as that metric (SI); None where it is not that of the row.

    Of collectives messages below 1 MiB have a time, longer ones a bus bandwidth, as `lanewise accuracy` scores them.
    """
    traffic = row.traffic
    if isinstance(traffic, CollectiveMessage):
        is_time = size_class(traffic.size) == SHORT
        if metric != ("time" if is_time else "busbw"):
            return None
        moved = traffic.size * traffic.collective.bus_factor(len(names_of(traffic.ranks)))
        return row.value if is_time == row.latency else moved / row.value
    if isinstance(traffic, BlockCopies):
        if metric == "goodput" and row.latency:
            return traffic.pieces.total / row.value
        return row.value if metric == ("time" if row.latency else "goodput") else None
    return row.value if traffic is not None and metric == "time" else None


def _label(machine: str, row: EvidenceRow) -> str:
    """What tells curves of a table apart: the machine if there are several, what ran, and how."""
    traffic = row.traffic
    if isinstance(traffic, CollectiveMessage):
        words = [
            str(traffic.collective) if traffic.collective is not Collective.ALL_REDUCE or not machine else "",
            str(traffic.settings.algorithm or ""),
            {False: "P2P off", True: "P2P on", None: ""}[traffic.settings.p2p],
        ]
    elif isinstance(traffic, BlockCopies):
        words = [row.path.rsplit(", ", 1)[0]]
    else:
        words = [row.path.removeprefix("load, ")]
        gpus = len(traffic.targets) if traffic is not None else 1
        words += [f"{gpus} GPUs"] if gpus > 1 else []
    return ", ".join(filter(None, [machine, *words]))


def _settings(traffic: Traffic) -> dict[str, int]:
    """What places a row on an axis: bytes of a message or a block, ranks, blocks, posters, readers, GPUs."""
    if isinstance(traffic, CollectiveMessage):
        return {"bytes": round(traffic.size), "ranks": len(names_of(traffic.ranks))}
    if isinstance(traffic, BlockCopies):
        return block_settings(traffic.pieces, traffic.posters)
    readers = {} if traffic.readers is None else {"readers": traffic.readers}
    return {"bytes": round(traffic.size), "gpus": len(traffic.targets), **readers}
