"""The answer of a load test for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanewise import units
from lanewise.report.table import text_table


def as_text(data: Mapping[str, Any]) -> str:
    """A search for a peak: the answer, what it rests on, the runs, where time went."""
    run = "the run at the peak" if data["valid"] else "the last run"
    return "\n".join([*_answer(data), "", *_runs(data["runs"]), "", *stages(data, run), "", *_doubts(data)])


def _answer(data: Mapping[str, Any]) -> Iterator[str]:
    about = data["about"]
    keeping = f"p{100 * data['percentile']:g} within {units.readable(data['bound'], 's')}"
    if not data["valid"]:
        yield f"no rate was VALID with {keeping}: {data['reason']}"
    else:
        yield f"peak       {data['qps']:,.0f} queries/s, {data['goodput']:.3g} GB/s, {keeping}: VALID"
        low, high = (f"{value:,.0f}" if value else "unknown" for value in data["interval"])
        yield f"interval   {low} to {high} queries/s (90 %)"
        yield f"latency    {times(data['latency'])}"
        yield f"issue lag  {times(data['lag'])}"
    if data["predicted"]:
        off = f", {data['residual_pct']:+.1f} % off" if data["residual_pct"] is not None else ""
        yield f"predicted  {data['predicted']:,.0f} queries/s{off}"
    yield f"Offline    {data['offline']:,.0f} samples/s"
    yield f"limit      {data['limit']}"
    yield f"tested     {tested(about)}"


def tested(about: Mapping[str, object]) -> str:
    """What ran, in one line."""
    return "; ".join(f"{name} {value}" for name, value in about.items() if value not in ("", None))


def times(values: Mapping[str, float]) -> str:
    """Percentiles in one line; of those unknown nothing."""
    return ", ".join(
        f"{name} {units.readable(values[name], 's', 3)}" for name in ("p50", "p99", "p99.9", "max") if name in values
    )


def _runs(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    def row(run: Mapping[str, Any]) -> tuple[str, ...]:
        verdict = "VALID" if run["valid"] else "ended early" if run["ended early"] else "not valid"
        p99 = units.readable(run["p99"], "s", 3) if run["p99"] else ""
        numbers = f"{run['qps']:,.0f}", f"{run['seconds']:.1f}", str(run["seed"])
        return run["kind"], *numbers, verdict if run["kind"] == "search" else "", p99, f"{run['late']:,}"

    heads = ("run", "target/s", "seconds", "seed", "verdict", "p99", "late")
    return _table(heads, [row(run) for run in runs], right=("target/s", "seconds", "seed", "late"))


def stages(data: Mapping[str, Any], run: str = "this run") -> Iterator[str]:
    """Where the queries of a run spent their time; nothing where that was not kept."""
    if not data["mean_batch"]:
        return
    yield f"of {run}, batches of {data['mean_batch']:.1f} on average"
    rows = [
        (name, *(units.readable(values.get(key), "s", 3) for key in ("p50", "p99", "max")))
        for name, values in data["stages"].items()
    ]
    yield from _table(("stage", "p50", "p99", "max"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> Iterator[str]:
    """Columns as wide as their widest cell, two blanks apart; those in `right` flush right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for line in (heads, *rows):
        cells = zip(heads, line, widths, strict=True)
        yield "  ".join(cell.rjust(wide) if head in right else cell.ljust(wide) for head, cell, wide in cells).rstrip()


def _doubts(data: Mapping[str, Any]) -> Iterator[str]:
    for note in data["notes"]:
        yield f"note: {note}"
    yield f"logs: {data['folder']}"


def render_ceilings(ceilings: Sequence[Mapping[str, Any]]) -> str:
    """The load generator's own limits, one line a mode."""
    heads = ("mode", "largest valid", "not valid", "p50", "p99", "lag p99", "runs", "note")
    rows = [
        (
            c["mode"], f"{c['qps']:,.0f}/s", f"{c['failed']:,.0f}/s" if c["failed"] is not None else "",
            *(units.readable(value, "s", 3)
              for value in (c["latency"].get("p50"), c["latency"].get("p99"), c["lag"].get("p99"))),
            str(c["runs"]), c["note"],
        )
        for c in ceilings
    ]  # fmt: skip
    note = "A load test at more than half of this rate measures the generator too."
    return f"{text_table(heads, rows, right=heads[1:7])}\n\n{note}"


def render_training(data: Mapping[str, Any]) -> str:
    """The data rate of a training by epoch, in the median, and over the whole run."""
    heads = ("epochs", "seconds", "s/epoch", "GB/s")
    rows = [
        (
            str(s["first"]) if s["epochs"] == 1 else f"{s['first']} to {s['first'] + s['epochs'] - 1}",
            f"{s['seconds']:,.3f}", f"{s['seconds'] / s['epochs']:,.3f}", f"{s['rate'] / 1e9:.4g}",
        )
        for s in data["spans"]
    ]  # fmt: skip
    epoch = f"{data['samples']:,} samples of {data['sample_bytes']:,.6g} B an epoch"
    lines = [
        text_table(heads, rows, right=heads[1:]),
        "",
        f"median     {units.readable(data['median'], 'B/s')}; {epoch}",
    ]
    if data["run_seconds"] is not None:
        rate = units.readable(data["run_rate"], "B/s")
        lines.append(f"whole run  {rate} in {data['run_seconds']:,.1f} s, with evaluation and all else")
    return "\n".join([*lines, *(f"note: {note}" for note in data["notes"])])
