"""Which published values of a list of data paths of LLM serving and training are predicted, and why the others are not.

    python benchmarks/llm_paths.py LIST.json -o benchmarks/runs/DATE-llm-paths

The list has entries with `id`, `kind`, `source` and `values` (each with `value`, `unit`, a size and a metric). A value
is predicted if a row of src/lanewise/data/evidence from the same source has it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import kept

import lanewise
from lanewise import units
from lanewise.evidence.prediction import PredictedRow
from lanewise.results.traffic import BlockCopies, WeightLoad

MACHINES = {"o-azure-h200": "h200-azure-nd"}  # other machines are of the same document
UNITS = {"GB/s": "B/s", "us": "s", "ms": "s", "s": "s"}


def words(source: str) -> set[str]:
    """What tells a source from others: names of repositories, documents and numbers of threads."""
    return {word for word in re.findall(r"[\w./#-]{4,}", source) if re.search(r"[/#\d]|README|docs|guide|notes", word)}


def sizes_of(row: PredictedRow) -> set[float]:
    """The sizes (B) by which a list may name a row: of a message, a piece, a flow's or all flows' pieces, a model."""
    traffic = row.row.traffic
    if isinstance(traffic, BlockCopies):
        return {traffic.pieces.size, traffic.pieces.total, traffic.pieces.total * len(traffic.flows)}
    return {traffic.size} if traffic is not None else set()


def same_size(row: PredictedRow, value: kept.Record) -> bool:
    """Whether a row is of that size; True where one of the two states none."""
    size, own = value.get("size_bytes", value.get("block_bytes")), sizes_of(row)
    return size is None or not own or any(abs(each / size - 1) < 0.01 for each in own)


def values_of(row: PredictedRow) -> set[tuple[str, float]]:
    """Unit and value of a row, of a load also as a rate."""
    values = {(row.observation.unit, row.row.value)}
    if isinstance(row.row.traffic, WeightLoad):
        values.add(("B/s", row.row.traffic.size / row.row.value))
    if isinstance(row.row.traffic, BlockCopies) and row.observation.unit == "B/s":
        values.add(("s", row.row.traffic.pieces.total / row.row.value))
    return values


def status(value: kept.Record, rows: list[PredictedRow]) -> tuple[str, PredictedRow | None]:
    """ "predicted", or why a value is not."""
    if value["unit"] not in UNITS:
        return "no rate and no time", None
    unit = UNITS[value["unit"]]
    si = units.parse(f"{value['value']} {value['unit']}", unit)
    sized = [row for row in rows if same_size(row, value)]
    fitting = [row for row in sized if any(own == unit and abs(each / si - 1) < 2e-3 for own, each in values_of(row))]
    predicted = next((row for row in fitting if row.observation.value is not None), None)
    if predicted is not None:
        return "predicted", predicted
    if fitting:
        return fitting[0].row.skip or fitting[0].observation.note, None
    other_unit = "size_bytes" in value and any(row.observation.unit != unit for row in sized)
    return "the same call in another unit" if other_unit else "not in the evidence", None


def page(record: kept.Record) -> str:
    """One line an entry."""
    lines = kept.heading("Published values of LLM data paths: which are predicted", record)
    lines += [
        f"{record['predicted']} of {record['values']} values in {len(record['entries'])} entries are predicted. "
        "`lanewise accuracy --rows MACHINE` lists them with their residuals, "
        "[docs/accuracy.md](../../docs/accuracy.md) all of them.",
        "", "| entry | kind | values | predicted | machine | median error | not predicted because |",
        "|---|---|---:|---:|---|---:|---|",
    ]  # fmt: skip
    for entry in record["entries"]:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in entry["reasons"].items())
        error = "" if entry["median_error"] is None else f"{100 * entry['median_error']:.1f} %"
        lines.append(
            f"| {entry['id']} | {entry['kind']} | {entry['values']} | {entry['predicted']} | "
            f"{', '.join(entry['machines'])} | {error} | {reasons} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = kept.options(__doc__, "llm-paths")
    parser.add_argument("list", type=Path, metavar="LIST.json")
    options = parser.parse_args()
    record = kept.begin(options)
    score = lanewise.accuracy()
    sources = {machine.name: machine.source for machine in score.machines}
    by_machine: dict[str, list[PredictedRow]] = defaultdict(list)
    for row in score.rows:
        by_machine[row.machine].append(row)
    entries = [
        entry_record(entry, [row for name in machines_of(entry, sources) for row in by_machine[name]])
        for entry in json.loads(options.list.read_text(encoding="utf-8"))
    ]
    record |= {
        "entries": entries, "values": sum(entry["values"] for entry in entries),
        "predicted": sum(entry["predicted"] for entry in entries),
    }  # fmt: skip
    kept.keep(record, page, options.out)


def machines_of(entry: kept.Record, sources: dict[str, str]) -> list[str]:
    """The machines of the entry's source: of the very same one, else of one that names the same documents."""
    if entry["id"] in MACHINES:
        return [MACHINES[entry["id"]]]
    same = [name for name, source in sources.items() if source == entry["source"]]
    return same or [name for name, source in sources.items() if words(entry["source"]) & words(source)]


def entry_record(entry: kept.Record, rows: list[PredictedRow]) -> kept.Record:
    """What is predicted of an entry of the list."""
    states = [status(value, rows) for value in entry["values"]]
    predicted = [row for _, row in states if row is not None]
    errors = sorted(abs(row.error) for row in predicted if row.error is not None)
    return {
        "id": entry["id"], "kind": entry["kind"], "values": len(states), "predicted": len(predicted),
        "machines": sorted({row.machine for row in predicted}),
        "median_error": errors[len(errors) // 2] if errors else None,
        "reasons": dict(Counter(reason for reason, row in states if row is None)),
    }  # fmt: skip


if __name__ == "__main__":
    main()
