"""Measured runs on the command line: compared, rendered, laid beside a study, by the real binary."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from report.measured_samples import measured_run

from lanewise.results.codec import run_to_json

STUDY = """
lanewise: 1
study: pair
systems: {pair: h200-pair}
tables:
  - name: copies
    metric: goodput
    unit: GB/s
    system: pair
    rows: [{label: in, scenario: {flows: "host0->gpu0"}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    before = measured_run()
    slow = tuple(
        replace(row, value=row.value and row.value / 2, samples=tuple(value / 2 for value in row.samples))
        if row.flow.endswith("->gpu1") and row.unit == "B/s"
        else row
        for row in before.rows
    )
    after = replace(before, rows=slow, machine_facts={**before.machine_facts, "driver": "999.50 (made up)"})
    for name, run in (("before.json", before), ("after.json", after)):
        (tmp_path / name).write_text(run_to_json(run), encoding="utf-8")
    (tmp_path / "pair.yaml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def test_compare_names_what_became_slower_and_what_changed_about_the_machine(lanewise, folder):
    done = lanewise("compare", "before.json", "after.json")
    assert done.returncode == 0
    slower = [line for line in done.stdout.splitlines() if " slower" in line and "over all pairs" not in line]
    halved = [row for row in measured_run().rows if row.flow.endswith("->gpu1") and row.unit == "B/s"]
    assert len(slower) == len([row for row in halved if len(row.samples) > 1])
    assert "after.json runs at" in done.stdout
    assert "driver: 999.00 (made up) / 999.50 (made up)" in done.stdout


def test_compare_says_the_same_to_programs(lanewise, folder):
    found = json.loads(lanewise("compare", "before.json", "after.json", "--json").stdout)
    verdicts = [pair.get("verdict") for pair in found["pairs"]]
    assert found["verdicts"] == {word: verdicts.count(word) for word in ("same", "faster", "slower")}
    assert found["verdicts"]["slower"] > 0
    slower = [pair for pair in found["pairs"] if pair.get("verdict") == "slower"]
    assert all(pair["flow"].endswith("->gpu1") for pair in slower)
    assert found["verdicts"]["faster"] == 0
    assert 0 < found["speed"] < 1
    assert found["conditions"] == {"driver": ["999.00 (made up)", "999.50 (made up)"]}
    assert found["pairs"][0]["left_interval"][0] <= found["pairs"][0]["left"] <= found["pairs"][0]["left_interval"][1]


def test_a_study_stands_beside_a_measured_run(lanewise, folder):
    done = lanewise("study", "run", "pair.yaml", "--measured", "before.json", "--json", "out.json")
    assert done.returncode == 0
    assert "1 row has a measured value: predicted rms" in done.stdout
    assert "1 of 1 rows have a measured value in before.json" in done.stderr
    (row,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))["studies"][0]["rows"]
    assert row["measured"]["value"] == pytest.approx(55.5e9, rel=0.01)
    assert row["measured_residual_pct"] is not None


def test_a_run_that_does_not_say_what_it_measured_leaves_nothing_behind(lanewise, folder):
    done = lanewise("study", "run", "expansion-chassis", "--measured", "before.json", "--json", "out.json")
    assert done.returncode == 2
    assert "error: before.json does not say on which system of expansion-chassis it was measured" in done.stderr
    assert "hint:  --measured xeon=before.json" in done.stderr
    assert not (folder / "out.json").exists()


def test_a_measured_run_becomes_a_page(lanewise, folder):
    assert lanewise("report", "before.json", "-o", "page.html").returncode == 0
    assert "<h1>Measured data paths</h1>" in (folder / "page.html").read_text(encoding="utf-8")


def test_predict_takes_what_was_measured_on_the_machine(lanewise, tmp_path):
    rows = tmp_path / "rows.yaml"
    rows.write_text('lanewise-rows: 1\nrows:\n  - {flows: "host0->gpu0", value: 24.5 GB/s}\n')
    done = lanewise("predict", "rack-16gpu", "--flows", "host0->gpu9", "--measured", str(rows), "--json")
    assert json.loads(done.stdout)["flows"][0]["goodput"] == pytest.approx(24.5e9, rel=0.01)
    assert "host0->gpu0: 24.5 GB/s measured, 25.86 GB/s predicted: " in done.stderr
    refused = lanewise("predict", "rack-16gpu", "--service", "resnet50", "--measured", str(rows))
    assert "--measured has no effect with --service" in refused.stderr
