"""Load tests as text: a search for a peak, the generator's own ceilings, a sweep, a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanewise import units
from lanewise.report.dispatch import connections_table
from lanewise.report.screen import PLAIN, Screen
from lanewise.report.table import Column, Table, TableCell, number_columns, render_table

_EXTRAPOLATED = "extrapolated"
_SLOW = 1.5  # times the mean latency of the fastest node, above which the slowest is named
_NODE_COLUMNS = ("fabric mean", "queue mean", "infer mean", "node p99", "total p99")
_OF_NODE = ("queue", "copy", "infer", "answer")  # stages of the time that a query is at its node


def render_peak(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """A search for a peak: the answer, what it is based on, the runs, where time went."""
    run = "the run at the peak" if data["valid"] else "the last run"
    return "\n\n".join(filter(None, [
        _peak(data, screen), _runs(data["runs"], screen), render_stages(data, run, screen),
        render_connections(data, run, screen),
        render_notes(data["notes"], [data["folder"]], screen),
    ]))  # fmt: skip


def render_divisions(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """Network as a share of Closed: the answer, then both searches."""
    facts = [(name, _peak_in_short(data[name.lower()])) for name in ("Closed", "Network")]
    if data["share"] is not None:
        ends = " to ".join(f"{100 * end:.1f}" for end in data["interval"] or ())
        facts += [
            ("share", _measured_share(data["share"])),
            ("interval", f"{ends} % ({data['chance']})" if ends else "unknown: no rate was refused"),
            ("software", _software(data)),
            ("ingress", f"{units.readable(data['ingress'], 'B/s')}, queries/s times the bytes of a query"),
        ]  # fmt: skip
    if data["predicted"]:
        off = _off(data["predicted"] / data["share"]) if data["share"] else ""
        facts.append(("predicted", f"{100 * data['predicted']:.1f} % of Closed{off}"))
    facts.append(("note", data["note"]))
    parts = [screen.facts(facts, 0, 10)]
    for name in ("Closed", "Network"):
        parts += [screen.style(f"{name} division", "bold"), render_peak(data[name.lower()], screen)]
    return "\n\n".join(parts)


def _measured_share(share: float) -> str:
    why = "; above 100 %, as each peak is known to its interval only" if share > 1.0 else ""
    return f"{100 * share:.1f} % of Closed{why}"


def _off(ratio: float) -> str:
    """', 30.1 % too low' of a prediction of 0.699 times the measured value; nothing where they agree."""
    if abs(ratio - 1) < 5e-4:
        return ""
    return f", {100 * abs(ratio - 1):.1f} % too {'high' if ratio > 1 else 'low'}"


def _software(data: Mapping[str, Any]) -> str:
    if not data["software"]:
        return "no cost of a query to be seen: Network is no slower"
    doubt = "; not told apart from none" if data["interval"] and data["interval"][1] >= 1.0 else ""
    return f"{units.readable(data['software'], 's', 2)} a query on the hosts{doubt}"


def _peak_in_short(data: Mapping[str, Any]) -> str:
    if not data["valid"]:
        return f"no rate was VALID: {data.get('reason', '')}"
    low, high = (f"{value:,.0f}" if value else "unknown" for value in data["interval"])
    return f"{data['qps']:,.0f} queries/s, {low} to {high} (90 %)"


def _peak(data: Mapping[str, Any], screen: Screen) -> str:
    bound = f"p{100 * data['percentile']:g} within {units.readable(data['bound'], 's')}"
    facts = []
    if data["valid"]:
        low, high = (f"{value:,.0f}" if value else "unknown" for value in data["interval"])
        facts = [
            ("peak", f"{data['qps']:,.0f} queries/s, {data['goodput']:.3g} GB/s, {bound}: VALID"),
            ("interval", f"{low} to {high} queries/s (90 %)"),
            ("latency", percentiles(data["latency"])),
            ("issue lag", percentiles(data["lag"])),
        ]
    if data["predicted"]:
        residual = _off(1 + data["residual_pct"] / 100) if data["residual_pct"] is not None else ""
        facts.append(("predicted", f"{data['predicted']:,.0f} queries/s{residual}"))
    facts += [("Offline", f"{data['offline']:,.0f} samples/s"), ("limit", data["limit"]),
              *_system(data["about"])]  # fmt: skip
    text = screen.facts(facts, 0, 10)
    failure = screen.wrap(f"no rate was VALID with {bound}: {data.get('reason', '')}", indent=2)
    return text if data["valid"] else f"{failure}\n{text}"


def _system(about: Mapping[str, object]) -> list[tuple[str, str]]:
    """The system under test, nodes on a line each."""
    nodes = [text for text in str(about.get("nodes", "")).split(", ") if text]
    rest = {name: value for name, value in about.items() if name != "nodes"}
    return [*(("" if number else "nodes", text) for number, text in enumerate(nodes)), ("system", system_facts(rest))]


def system_facts(about: Mapping[str, object]) -> str:
    """The system under test in one line: engine, model, dataset, batches; what is empty is left out."""
    facts = {name.replace("_", " "): value for name, value in about.items() if value not in ("", None, [], ())}
    return "; ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in facts.items()
    )


def percentiles(values: Mapping[str, float]) -> str:
    """Percentiles in one line; of those unknown nothing."""
    return ", ".join(
        f"{name} {units.readable(values[name], 's', 3)}" for name in ("p50", "p99", "p99.9", "max") if name in values
    )


def _runs(runs: Sequence[Mapping[str, Any]], screen: Screen) -> str:
    columns = [Column("run"), *number_columns("target/s", "seconds"), *number_columns("seed", drop_order=1),
               Column("verdict"), Column("p99"), *number_columns("late", drop_order=2)]  # fmt: skip
    table = Table(columns)
    for run in runs:
        verdict = "VALID" if run["valid"] else "ended early" if run["ended early"] else "INVALID"
        cell = TableCell(verdict, "good" if run["valid"] else "") if run["kind"] == "search" else ""
        p99 = units.readable(run["p99"], "s", 3) if run["p99"] else ""
        table.add(run["kind"], f"{run['qps']:,.0f}", f"{run['seconds']:.1f}", str(run["seed"]), cell, p99,
                  f"{run['late']:,}")  # fmt: skip
    return render_table(table, screen)


def render_stages(data: Mapping[str, Any], run: str = "this run", screen: Screen = PLAIN) -> str:
    """Where the queries of a run spent their time; nothing where that was not recorded."""
    if not data["mean_batch"]:
        return ""
    over_nodes = "connections" in data
    means = number_columns("mean") + number_columns("share", unit="%") if over_nodes else []
    table = Table([Column("stage"), *means, Column("p50"), Column("p99"), Column("max")])
    total = data["stages"].get("total", {}).get("mean")
    for name, values in data["stages"].items():
        mean = values.get("mean")
        share = f"{100 * mean / total:.0f}" if mean is not None and total else ""
        of_node = "  " if over_nodes and name in _OF_NODE else ""
        cells = [units.readable(mean, "s", 3), share] if over_nodes else []
        cells += [units.readable(values.get(key), "s", 3) for key in ("p50", "p99", "max")]
        table.add(f"{of_node}{name}", *cells)
    text = f"of {run}, batches of {data['mean_batch']:.1f} on average\n{render_table(table, screen)}"
    if len(data["nodes"]) > 1:
        rule = "means are over all queries; p50, p99 and max of queue, copy, infer and answer are the slowest node's"
        text = f"{text}\n{screen.wrap(rule)}"
    return f"{text}\n\n{_nodes(data['nodes'], screen)}" if len(data["nodes"]) > 1 else text


def _nodes(nodes: Sequence[Mapping[str, Any]], screen: Screen) -> str:
    """Each node's share of the queries and the time that they took there; nodes that were lost, and the slowest."""
    lost = [node for node in nodes if node["lost"]]
    table = Table([
        Column("node"), *number_columns("answered", "share"), *number_columns(*(["unanswered"] if lost else [])),
        *map(Column, _NODE_COLUMNS),
    ])  # fmt: skip
    answered = sum(node["answered"] for node in nodes) or 1

    def time(node: Mapping[str, Any], stage: str, key: str = "mean") -> float:
        return float(node["stages"].get(stage, {}).get(key, 0.0))

    for node in nodes:
        times = [time(node, stage) for stage in ("fabric", "queue", "infer")]
        times += [time(node, stage, "p99") for stage in ("node", "total")]
        unanswered = [f"{node['unanswered']:,}"] if lost else []
        table.add(node["name"], f"{node['answered']:,}", f"{node['answered'] / answered:.0%}", *unanswered,
                  *(units.readable(seconds, "s", 3) if seconds else "" for seconds in times))  # fmt: skip
    text = "\n".join([render_table(table, screen), *(screen.wrap(node["lost"]) for node in lost)])
    nodes = [node for node in nodes if node["answered"] and not node["lost"]]
    if len(nodes) < 2:
        return text
    slow, fast = (choose(nodes, key=lambda node: time(node, "total")) for choose in (max, min))
    if time(slow, "total") < _SLOW * time(fast, "total"):
        return text
    stage = max(("fabric", "queue", "copy", "infer"), key=lambda name: time(slow, name) - time(fast, name))
    each = (units.readable(time(node, stage), "s", 3) for node in (slow, fast))
    note = f"node {slow['name']} is slow: its {stage} takes {{}} on average, that of {fast['name']} {{}}".format(*each)
    return f"{text}\n{screen.wrap(note)}"


def render_connections(data: Mapping[str, Any], run: str = "this run", screen: Screen = PLAIN) -> str:
    """Of a run over nodes what each connection did, and the sums by NIC where there are several."""
    if "connections" not in data:
        return ""
    seconds = data.get("run_seconds")
    lines = [f"connections in {run}", render_table(connections_table(data["connections"], seconds), screen)]
    if len(data["nics"]) > 1:
        totals = [{**total, "node": "all", "connection": ""} for total in data["nics"].values()]
        lines += ["by NIC", render_table(connections_table(totals, seconds), screen)]
    return "\n".join(lines)


def render_notes(notes: Sequence[str], logs: Sequence[str], screen: Screen = PLAIN) -> str:
    """Notes, and the folders of LoadGen's logs."""
    lines = [screen.wrap(f"note: {note}", indent=6) for note in notes]
    return "\n".join([*lines, *(f"logs: {folder}" for folder in logs)])


def render_ceilings(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """The load generator's own limits, one line a mode."""
    table = Table([
        Column("mode"), *number_columns("largest VALID", "INVALID", unit="queries/s"),
        *number_columns("p50", drop_order=2),
        *number_columns("p99"), *number_columns("lag p99", drop_order=1), *number_columns("runs", drop_order=3),
        Column("note", wrap=True),
    ])  # fmt: skip
    for mode in data["modes"]:
        failed = f"{mode['failed']:,.0f}" if mode["failed"] is not None else ""
        times = (mode["latency"].get("p50"), mode["latency"].get("p99"), mode["lag"].get("p99"))
        table.add(mode["mode"], f"{mode['qps']:,.0f}", failed, *(units.readable(time, "s", 3) for time in times),
                  str(mode["runs"]), mode["note"])  # fmt: skip
    note = screen.wrap("A load test at more than half of this rate also measures the generator.")
    return f"{render_table(table, screen)}\n\n{note}"


def render_training(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """The data rate of a training by epoch, in the median, and over the whole run."""
    table = Table([Column("epochs"), *number_columns("seconds", "s/epoch", "GB/s")])
    for span in data["spans"]:
        last = span["first"] + span["epochs"] - 1
        table.add(
            str(last) if span["epochs"] == 1 else f"{span['first']} to {last}", f"{span['seconds']:,.3f}",
            f"{span['seconds'] / span['epochs']:,.3f}", f"{span['rate'] / 1e9:.4g}",
        )  # fmt: skip
    epoch = f"{data['samples']:,} samples of {data['sample_bytes']:,.6g} B an epoch"
    facts = [("median", f"{units.readable(data['median'], 'B/s')}; {epoch}")]
    if data["run_seconds"] is not None:
        rate = units.readable(data["run_rate"], "B/s")
        facts.append(("whole run", f"{rate} in {data['run_seconds']:,.1f} s, evaluation and everything else included"))
    notes = [screen.wrap(f"note: {note}", indent=6) for note in data["notes"]]
    return "\n".join([render_table(table, screen), "", screen.facts(facts, 0, 10), *notes])


def render_sweep(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """The peak at each point of a sweep, and what a reader of the table has to know."""
    columns = [
        Column(str(data["sweep"]), wrap=data["sweep"] == "path"), *number_columns("QPS", "predicted"),
        *number_columns("off, %", drop_order=1), *number_columns("GB/s"), *number_columns("of the link", drop_order=2),
        *number_columns("p99", drop_order=3), *number_columns("speed-up"), Column("limit", drop_order=4, wrap=True),
        Column("note", wrap=True),
    ]  # fmt: skip
    notes = []
    if not any(row["speedup"] for row in data["rows"]):
        notes.append(f"no speed-ups, as the baseline {data['baseline']} has no rate")
    notes += [
        f"{row['point']} is above the rate of the link, {units.readable(data['link'], 'B/s')}"
        for row in data["rows"]
        if row["share"] is not None and row["share"] > 1.0
    ]
    table = render_table(Table(columns, [_point(row) for row in data["rows"]]), screen)
    return "\n".join([table, *(screen.wrap(f"note: {note}", indent=6) for note in [*notes, *data["notes"]])])


def _point(row: Mapping[str, Any]) -> tuple[str, ...]:
    def text(name: str, form: str, scale: float = 1.0) -> str:
        return "" if row[name] is None else format(row[name] * scale, form)

    p99 = "" if row["p99"] is None else units.readable(row["p99"], "s", 3)
    note = f"{_EXTRAPOLATED}: {row['note']}" if row["source"] == _EXTRAPOLATED else row["note"]
    return (
        row["point"], text("qps", ",.0f"), text("predicted", ",.0f"), text("residual_pct", "+.1f"),
        text("goodput", ".4g", 1e-9), text("share", ".1%"), p99, text("speedup", ".2f"),
        row["limit"].partition(":")[0], note,
    )  # fmt: skip


def render_run(data: Mapping[str, Any], screen: Screen = PLAIN) -> str:
    """The verdict, Top-1 or the audit, latencies, where time went."""
    logs = [data["logs"] or data["folder"]]
    logs += [f"{data['same_sample']['logs']} (one sample)"] if data["same_sample"] else []
    return "\n\n".join(filter(None, [
        _answer(data, screen), render_stages(data, screen=screen), render_connections(data, screen=screen),
        render_notes(data["notes"], logs, screen),
    ]))  # fmt: skip


def _answer(data: Mapping[str, Any], screen: Screen) -> str:
    bound = f", p{100 * data['percentile']:g} within {units.readable(data['bound'], 's')}" if data["bound"] else ""
    target = f" at {data['target']:,.0f}/s" if data["target"] else ""
    facts = [("reason", reason) for reason in data["reasons"]]
    if top1 := data["accuracy"]:
        facts.append(("Top-1", f"{100 * top1['top1']:.2f} %: {top1['correct']} of {top1['counted']} labelled images"))
    if audit := data["audit"]:
        facts.append(("audit", f"{audit['name']} {'passed' if audit['passed'] else 'FAILED'}: {audit['cause']}"))
    facts += [
        ("completed", f"{data['queries']:,} in {data['seconds']:.1f} s, {data['qps']:,.0f}/s"),
        ("latency", percentiles(data["latency"])),
        ("issue lag", percentiles(data["lag"])),
        *_system(data["about"]),
    ]
    head = screen.wrap(f"{data['scenario']}{target}{bound}: {data['verdict']}", indent=2)
    return f"{head}\n{screen.facts(facts, 0, 10)}"
