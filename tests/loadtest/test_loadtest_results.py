"""What a search and a run tell: the data agree with the runs, and the tables line up."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lanewise.loadtest import result
from lanewise.loadtest.audits import Accuracy, Audit
from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult, LoadSpec
from lanewise.loadtest.peak import PeakResult
from lanewise.loadtest.single_run import SingleRun
from lanewise.loadtest.system import NO_STATISTICS, NodeTimes, SystemStatistics
from lanewise.options.loadtest import PeakOptions
from lanewise.report.text import loadtest
from lanewise.results.observation import Basis, Source

ABOUT: dict[str, object] = {"engine": "synthetic", "devices": "cpu, cpu", "weights": "none", "sample bytes": 1000}
TIMES = {"p50": 0.002, "p90": 0.004, "p99": 0.012, "p99.9": 0.0144, "max": 0.02}


def run(qps: float, valid: bool = True, seed: int = 1, **more: Any) -> LoadGenResult:
    load = LoadSpec(SERVER, qps, 8.0, seed=seed)
    return replace(LoadGenResult(load, valid, (), 8000, 8.0, 0.99 * qps, TIMES, 12, {"p99": 1e-4}), **more)


def statistics(copy: float = 1e-5, infer: float = 1e-3) -> SystemStatistics:
    stages = {name: {"p50": mean, "p99": 2 * mean, "max": 3 * mean, "mean": mean}
              for name, mean in (("queue", 5e-4), ("copy", copy), ("infer", infer))}  # fmt: skip
    return SystemStatistics(stages, {1: 100, 4: 50}, 10**6, 300, 0, 0.0, ())


def peak(
    *search_runs: LoadGenResult, prediction: float | None = None, offline: float = 1000.0,
    setup: dict[str, object] = ABOUT, tally: SystemStatistics | None = None,
) -> PeakResult:  # fmt: skip
    best = max((run for run in search_runs if run.valid), key=lambda run: run.load.qps, default=None)
    runs = (run(offline, load=LoadSpec(OFFLINE, offline, 8.0), role="offline"), *search_runs)
    qps = best.load.qps if best else 0.0
    interval = (0.9 * qps, 1.1 * qps)
    return PeakResult(
        PeakOptions(), prediction, qps, best, best is not None, interval, (500.0, 900.0), offline, runs, "best known",
        (), statistics() if tally is None else tally, setup, Path("kept"),
    )  # fmt: skip


rates = st.floats(1.0, 1e7)


@given(st.lists(st.tuples(rates, st.booleans()), max_size=6), st.none() | rates, st.integers(1, 10**9))
def test_the_answer_is_the_target_of_the_best_run_in_si_units(tried, prediction, size):
    runs = (run(qps, valid, seed) for seed, (qps, valid) in enumerate(tried, 1))
    data = result.peak_data(peak(*runs, prediction=prediction, setup={**ABOUT, "sample bytes": size}))
    json.dumps(data, allow_nan=False)
    assert [row["seed"] for row in data["runs"]] == [1, *range(1, len(tried) + 1)]
    best = max((qps for qps, valid in tried if valid), default=None)
    assert data["qps"] == best
    assert data["valid"] is (best is not None)
    if best is None:
        assert data["residual_pct"] is None
        assert data["goodput"] is None
        return
    assert data["goodput"] == pytest.approx(0.99 * best * size / 1e9)
    if prediction is not None:
        assert best * (1 + data["residual_pct"] / 100) == pytest.approx(prediction)


@given(rates, st.integers(1, 10**9))
def test_samples_of_a_peak_are_its_data_in_the_units_of_a_run_file(qps, size):
    samples = result.peak_samples(peak(run(qps), setup={**ABOUT, "sample bytes": size}))
    rows = {row.metric: row for row in samples}
    assert rows["qps"].value == qps
    assert rows["goodput"].value == pytest.approx(rows["completed"].value * size)
    assert [rows[name].value for name in ("p50", "p99", "p99.9")] == pytest.approx([2.0e-3, 12.0e-3, 14.4e-3])
    assert rows["lag_p99"].value == pytest.approx(0.1e-3)
    assert {row.flow for row in rows.values()} == {"host0->cpu, host0->cpu"}
    assert all("no MLPerf submission" in row.note for row in rows.values())


def test_a_search_without_a_valid_rate_is_one_row_without_a_value():
    (row,) = result.peak_samples(peak(run(900.0, valid=False)))
    assert (row.metric, row.value) == ("qps", None)


def test_what_was_predicted_is_a_row_of_its_own_beside_the_measured_peak():
    measured = peak(run(900.0), setup={**ABOUT, "prediction": "from batches of 1"})
    sample = next(result.peak_samples(measured))
    row = result.prediction_of(sample, 930.0)
    assert (row.source, row.basis, row.rests_on) == (Source.PREDICTED, Basis.CALIBRATED, ("from batches of 1",))
    assert (row.scenario, row.flow, row.metric, row.settings) == (sample.scenario, sample.flow, "qps", sample.settings)
    assert row.measured_residual_pct == pytest.approx(100 * 30 / 900)
    none = next(iter(result.peak_samples(peak(run(900.0, valid=False)))))
    assert result.prediction_of(none, 930.0).measured is None


def test_unknown_ends_of_the_interval_are_none():
    data = result.peak_data(replace(peak(run(900.0)), interval=(800.0, math.inf)))
    assert data["interval"] == [800.0, None]
    assert "interval   800 to unknown queries/s" in loadtest.render_peak(data)


@pytest.mark.parametrize(
    ("lag", "copy", "infer", "word"),
    [
        (0.002, 1e-5, 1e-3, "the load generator"),
        (1e-5, 2e-3, 1e-3, "copies to the device"),
        (1e-5, 1e-5, 1e-3, "the engine"),
    ],
)
def test_the_limit_is_the_slowest_of_generator_copy_and_engine(lag: float, copy: float, infer: float, word: str):
    assert result.limit(peak(run(900.0, lag={"p99": lag}), tally=statistics(copy, infer))).startswith(word)


def test_the_limit_says_how_many_batches_are_in_flight_what_is_moved_and_does_without_an_account():
    about = {**ABOUT, "streams": 4, "sample bytes": 10**6}
    copies = result.limit(peak(run(900.0), setup=about, tally=statistics(2e-3, 1e-3)))
    assert "0.891 GB/s; a batch's copy takes 2 ms, with up to 4 in flight" in copies
    assert "with up to 4 in flight" in result.limit(peak(run(900.0), setup=about))
    assert "in flight" not in result.limit(peak(run(900.0), setup={**about, "streams": 1}))
    none = peak(run(900.0), setup=about, tally=NO_STATISTICS)
    assert result.limit(none) == "the system under test: 90 % of the Offline rate"


def test_what_a_search_alone_knows_stands_in_the_row_of_its_peak():
    about = {**ABOUT, "copy": "batch", "copies tried, gpu0": "batch 1 us", "prediction": "from batches of 1"}
    first, *others = result.peak_samples(peak(run(900.0), setup=about))
    assert {"copies tried, gpu0", "prediction", "seeds", "limit", "copy"} <= set(first.how)
    assert all(row.how == {"engine": "synthetic", "weights": "none", "sample bytes": "1000", "copy": "batch"}
               for row in others)  # fmt: skip


@pytest.mark.parametrize(("still", "word"), [([0.0, 0.0, 0.1], "the engine"), ([0.0, 0.1, 0.1], "what else this")])
def test_where_most_refused_runs_were_disturbed_the_machine_is_the_limit(still: list[float], word: str):
    refused = [run(990.0 + seed, False, seed, still=each) for seed, each in enumerate(still, 2)]
    assert result.limit(peak(run(900.0), *refused)).startswith(word)


def search_text() -> str:
    runs = (
        run(12_345_678.0, False, 9, late=1_234_567, latency={"p99": 123.0}, ended_early=True),
        run(700.0, True, 10, seconds=1234.5),
        run(900.0, False, 11, latency={}, late=0),
    )
    return loadtest.render_peak(result.peak_data(peak(*runs, prediction=735.0)))


def test_a_search_is_told_with_columns_that_line_up():
    assert search_text() == snapshot("""\
peak       700 queries/s, 0.000693 GB/s, p99 within 15 ms: VALID
interval   630 to 770 queries/s (90 %)
latency    p50 2 ms, p99 12 ms, p99.9 14.4 ms, max 20 ms
issue lag  p99 100 us
predicted  735 queries/s, 5.0 % too high
Offline    1,000 samples/s
limit      the engine: a batch of 2.0 takes 1 ms; 70 % of the Offline rate, the bound leaves the rest
system     engine synthetic; devices cpu, cpu; weights none; sample bytes 1,000

run        target/s  seconds  seed  verdict      p99         late
offline       1,000      8.0     1               12 ms         12
search   12,345,678      8.0     9  ended early  123 s  1,234,567
search          700   1234.5    10  VALID        12 ms         12
search          900      8.0    11  INVALID                     0

of the run at the peak, batches of 2.0 on average
stage  p50     p99    max
queue  500 us  1 ms   1.5 ms
copy   10 us   20 us  30 us
infer  1 ms    2 ms   3 ms

note: made by MLPerf's rules, but no MLPerf submission: runs are shorter than 600 s and nobody reviewed them
note: weights: none
logs: kept\
""")


@given(st.lists(st.tuples(st.floats(0.1, 1e8), st.integers(1, 10**6), st.integers(0, 10**7), st.floats(1e-7, 1e4)),
                min_size=1, max_size=5))  # fmt: skip
def test_no_column_runs_into_the_next_however_large_the_numbers(rows):
    runs = [run(qps, True, seed, late=late, latency={"p99": p99}) for qps, seed, late, p99 in rows]
    lines = loadtest.render_peak(result.peak_data(peak(*runs))).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("run "))
    table = list(itertools.takewhile(bool, lines[start:]))
    heads = ["run", "target/s", "seconds", "seed", "verdict", "p99", "late"]
    assert table[0].split() == heads
    assert len({len(line) for line in table}) == 1  # `late` is the last column, flush right
    for line, (qps, seed, late, _) in zip(table[2:], rows, strict=True):
        words = line.split()
        assert words[1] == f"{qps:,.0f}"
        assert words[3] == str(seed)
        assert words[-1] == f"{late:,}"


def single(load: LoadSpec, **more: Any) -> SingleRun:
    lag = {"p50": 1e-5, "p99": 1e-4}
    log = {"target_latency_ns": 2e7} if load.scenario == SERVER else {}
    result = LoadGenResult(load, True, (), 100, 2.0, 50.0, TIMES, 0, lag, folder=Path("logs/0001"), settings=log)
    return SingleRun(result, statistics(), ABOUT, Path("kept"), **more)


def test_the_bound_is_that_which_loadgen_used():
    assert result.run_data(single(LoadSpec(qps=50.0)))["bound"] == 0.02
    assert result.run_data(single(LoadSpec(OFFLINE, 50.0)))["bound"] is None


def test_rows_of_a_single_run_are_its_rates_and_of_accuracy_top1_alone():
    rows = {row.metric: row.value for row in result.run_samples(single(LoadSpec(OFFLINE, 60.0)), 10**9)}
    assert rows["completed"] == 50.0
    assert rows["goodput"] == 50e9
    (row,) = result.run_samples(single(LoadSpec(OFFLINE, 50.0, accuracy=True), accuracy=Accuracy(3, 4, 5)), 1000)
    assert (row.metric, row.value, row.unit) == ("top1", 0.75, "1")


def test_an_audit_in_which_a_node_is_lost_has_not_passed():
    audit = Audit("same-sample", True, "one sample repeated: 50 queries/s, all samples: 50", {})
    whole = single(LoadSpec(OFFLINE, 50.0), audit=audit)
    lost = replace(whole.run, losses=("node b was lost",))
    assert replace(whole, same_sample=whole.run).passed
    assert not replace(whole, run=lost, same_sample=whole.run).passed
    assert not replace(whole, same_sample=lost).passed


def test_a_single_run_is_told_with_its_audit():
    audit = Audit("payload", False, "1 of 9 samples arrived changed: 3", {"checked": 9.0, "wrong": 1.0})
    data = result.run_data(single(LoadSpec(OFFLINE, 50.0, accuracy=True), audit=audit))
    json.dumps(data, allow_nan=False)
    assert loadtest.render_run(data) == snapshot("""\
Offline at 50/s: accuracy mode: LoadGen gives no verdict
audit      payload FAILED: 1 of 9 samples arrived changed: 3
completed  100 in 2.0 s, 50/s
latency    p50 2 ms, p99 12 ms, p99.9 14.4 ms, max 20 ms
issue lag  p50 10 us, p99 100 us
system     engine synthetic; devices cpu, cpu; weights none; sample bytes 1,000

of this run, batches of 2.0 on average
stage  p50     p99    max
queue  500 us  1 ms   1.5 ms
copy   10 us   20 us  30 us
infer  1 ms    2 ms   3 ms

note: made by MLPerf's rules, but no MLPerf submission: runs are shorter than 600 s and nobody reviewed them
note: weights: none
logs: logs/0001\
""")


def test_of_several_nodes_the_tables_say_their_rules_and_nodes_have_lines_of_their_own():
    times = {"mean": 1e-3, "p50": 1e-3, "p99": 2e-3, "max": 3e-3}
    stages = dict.fromkeys(("dispatch", "fabric", "node", "queue", "infer", "total"), times)
    nodes = [asdict(NodeTimes(name, f"{name}:7000", 5, stages)) for name in "ab"]
    data = {**result.peak_data(peak(run(700.0))), "stages": stages, "nodes": nodes, "connections": [], "nics": {}}
    text = loadtest.render_peak({**data, "about": {"nodes": "a:7000 (a), b:7000 (b)", "engine": "torch"}})
    assert "nodes      a:7000 (a)\n           b:7000 (b)\nsystem     engine torch\n" in text
    assert "means are over all queries; p50, p99 and max of queue, copy, infer and answer are the slowest" in text
    assert "fabric mean  queue mean  infer mean  node p99  total p99" in text


def test_a_lost_node_stays_in_the_table_with_its_reason_and_is_not_called_slow():
    times = {"mean": 1e-3, "p50": 1e-3, "p99": 2e-3, "max": 3e-3}
    stages = dict.fromkeys(("dispatch", "fabric", "node", "queue", "infer", "total"), times)
    of_lost = {name: {**times, "mean": 1.0} for name in ("dispatch", "fabric", "node", "total")}
    lost = NodeTimes("b", "b:7000", 25, of_lost, unanswered=3, lost="node b:7000 was lost: it was silent for 5 s")
    nodes = [asdict(NodeTimes("a", "a:7000", 75, stages)), asdict(lost)]
    text = loadtest.render_stages({"mean_batch": 1.0, "stages": stages, "nodes": nodes, "connections": []})
    table = text.partition("\n\n")[2].splitlines()
    assert table[0].split()[:4] == ["node", "answered", "share", "unanswered"]
    assert table[1].split()[:4] == ["a", "75", "75%", "0"]
    assert table[2].split()[:4] == ["b", "25", "25%", "3"]
    assert table[3:] == ["node b:7000 was lost: it was silent for 5 s"]
