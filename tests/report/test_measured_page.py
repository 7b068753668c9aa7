"""Measured rows on the page and the terminal: every cell with its spread, what is common said once."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from in_display_units import observation, sample
from report.measured_samples import SIZES, measured_run, rows
from report.report_samples import sample_run
from report.test_html import Outliner, text_of

from lanewise.report import measured, measured_plots, words
from lanewise.report.html import report_html
from lanewise.report.screen import Screen
from lanewise.report.table import Table, TableCell, cell_text
from lanewise.report.text.run import render_run
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run
from lanewise.results.sample import summarise


@pytest.fixture(scope="module")
def html() -> str:
    return report_html(measured_run())


def row(flow: str = "gpu0->gpu1", value: float | None = 10.0, **more: object) -> Observation:
    fields = {"scenario": "s", "metric": "goodput", "unit": "GB/s", "source": Source.MEASURED, **more}
    return observation(flow=flow, value=value, **fields)  # type: ignore[arg-type]


def column(table: Table, title: str) -> list[str]:
    index = [one.title for one in table.columns].index(title)
    return [cell_text(row[index]) for row in table.rows]


def part(name: str) -> measured.MeasuredScenario:
    return next(one for one in measured.parts(rows()) if one.name == name)


def test_the_page_of_a_measured_run_is_well_nested_offline_and_within_its_budget(html: str) -> None:
    reader = Outliner()
    reader.feed(html)
    assert reader.open == []
    own = [name for name in reader.ids if name.startswith("measured")]
    assert len(own) == len(set(own))
    assert set(reader.targets) <= set(reader.ids)
    assert len(html.encode()) < 1.5e6
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", html)


def test_every_scenario_and_every_condition_stands_on_the_page(html: str) -> None:
    text = text_of(html)
    for name in dict.fromkeys(one.scenario for one in rows()):
        assert name.replace("->", "-&gt;") in text
    assert "999.00 (made up)" in text
    assert "gpu0 has no NVLink" in text
    assert "1 cell could not be measured" in text


def test_a_large_machine_stays_within_the_budget_and_the_page_says_what_it_leaves_out() -> None:
    """Sixteen GPUs, all pairs, 35 cases and a short one, seven samples each."""
    pairs = [f"gpu{a}->gpu{b}" for a in range(16) for b in range(16) if a != b]
    seven = tuple(300.0 + i for i in range(7))
    cells = [
        row(flow, 303.0, scenario=f"case {case}", samples=seven, how={"flows": flow})
        for case in range(35)
        for flow in pairs
    ]
    whole = Run((), "", "", rows=(*cells, row("host0->gpu0", scenario="short")))
    page = report_html(whole)
    assert len(page.encode()) < 1.5e6
    tables = [table for part in measured.parts(whole.rows) for table in part.tables]
    assert sum(len(table.table.rows) + table.left_out for table in tables) == len(whole.rows)
    assert sum(len(table.table.rows) for table in tables) <= measured.MOST_ROWS
    assert (len(tables[-1].table.rows), tables[-1].left_out) == (1, 0)
    assert "more rows are in the run's file" in page


def test_what_a_model_expects_stands_beside_with_the_ratio() -> None:
    table = part("host_to_device_memcpy_ce").tables[0].table
    titles = [one.title for one in table.columns]
    at = titles.index("predicted")
    slow = next(cells for cells in table.rows if cells[0] == "host0:0->gpu3")
    assert (titles[at + 1], table.columns[at + 1].unit, slow[at]) == ("measured", "/ predicted", "55.50")
    assert isinstance(ratio := slow[at + 1], TableCell)
    assert float(ratio.text) == pytest.approx(0.464, abs=0.002)
    assert ratio.grade == "far"


def test_what_is_common_is_said_once_and_what_differs_in_the_rows() -> None:
    one = part("host_to_device_memcpy_ce")
    assert "engine: copy engine" in one.common
    assert "flows measured one after another" in one.common
    how = column(one.tables[0].table, "how")
    assert all("engine" not in text for text in how)
    assert {text.split("load ")[1] for text in how} == {"Gen5 x16", "Gen5 x8"}


def test_flows_that_ran_together_are_never_shown_as_a_matrix() -> None:
    together = part("gpu0->gpu1, gpu2->gpu3, host0:1->gpu0")
    assert together.matrices == []
    assert "all flows at once" in together.common


def test_a_matrix_has_sources_as_rows_and_destinations_as_columns_in_natural_order() -> None:
    flows = [f"gpu{a}->gpu{b}" for a in (10, 2, 1) for b in (2, 10, 1) if a != b]
    matrix = measured.matrices([row(flow, float(i)) for i, flow in enumerate(flows)])[0]
    assert [one.name for one in matrix.series] == ["gpu1", "gpu2", "gpu10"]
    assert [x for x, _ in matrix.series[0].points] == ["gpu1", "gpu2", "gpu10"]
    assert dict(matrix.series[2].points) == {"gpu1": 1.0, "gpu2": 0.0, "gpu10": None}


def test_a_sweep_is_one_line_a_flow_with_its_fit_and_no_matrix_of_each_size() -> None:
    sizes = part("sizes")
    assert sizes.matrices == []
    (sweep,) = measured_plots.sweeps(sizes.rows)
    assert [line.name for line in sweep.lines] == ["host0->gpu0", "gpu0->host0", "gpu0->gpu1"]
    assert [point[0] for point in sweep.lines[0].points] == SIZES
    assert sweep.lines[0].formula == "host0->gpu0: 4.2 us + bytes / 55.6 GB/s"


def test_the_cells_that_scatter_most_are_drawn_widest_first() -> None:
    widest = measured_plots.widest(rows())
    shares = [measured.relative_range(one) or 0.0 for one in widest]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == max(measured.relative_range(one) or 0.0 for one in rows())
    assert len(widest) == measured_plots.WIDEST


def test_a_cell_without_a_value_keeps_its_reason_and_one_without_samples_no_spread() -> None:
    (table,) = measured.parts([row(value=None, note="no room"), row("gpu1->gpu0", 5.0)])[0].tables
    assert column(table.table, "median") == ["–", "5.000"]
    assert column(table.table, "note") == ["no room", ""]
    assert column(table.table, "range") == ["", ""]


def test_small_numbers_keep_four_digits() -> None:
    (table,) = measured.parts([row(value=0.021314, unit="s", metric="makespan")])[0].tables
    assert column(table.table, "median") == ["0.02131"]


def test_scenarios_whose_names_fold_into_one_anchor_stay_apart() -> None:
    made = measured.parts([row(scenario="a b"), row(scenario="a-b"), row(scenario="a.b")])
    assert len({one.anchor for one in made}) == 3


def test_the_terminal_shows_matrices_and_cells() -> None:
    text = render_run(measured_run(), screen=Screen(160))
    assert "121 cells of 12 scenarios measured" in text
    assert "host0:0   55.42  55.41" in text
    assert "measured" in text


def test_a_study_shows_measured_beside_predicted_and_how_far_the_prediction_lies_off() -> None:
    run = sample_run()
    first = run.studies[0].rows[0]
    seen = replace(first, value=(first.value or 0.0) / 1.02, note="run.json: made up", source=Source.MEASURED)
    study = replace(run.studies[0], rows=(replace(first, measured=seen), *run.studies[0].rows[1:]))
    text = text_of(report_html(replace(run, studies=(study, *run.studies[1:]))))
    assert "Predicted against published and measured" in text
    assert "1 row has a measured value: predicted rms 2.0 %, worst +2.0 %" in text
    assert "off measured" in text
    assert "measured: run.json: made up" in text


def test_what_was_predicted_stands_beside_what_was_measured_and_is_no_measured_cell() -> None:
    told = [sample("Server", "a->b", name, value, "1/s", {"gpus": 1}, {"engine": "x"}, "service", "no submission")
            for name, value in (("qps", 90.0), ("offline", 100.0))]  # fmt: skip
    peak = summarise(told)
    expected = replace(peak[0], value=99.0, source=Source.PREDICTED, samples=(), how={}, note="")
    alone = replace(expected, scenario="Server, not measured")
    rows = (*peak, expected)
    assert measured.overview(rows).startswith("2 cells of 1 scenario measured, 2 samples")
    (part,) = measured.parts(rows)
    (table,) = part.tables
    assert not table.plain
    assert column(table.table, "predicted") == ["99.00", ""]
    assert [cells[9] for cells in table.table.rows] == [TableCell("0.909", words.grade(-9.1)), TableCell("")]
    assert "engine: x" in part.common  # a prediction was not measured, so it has no say
    assert part.common.count("no submission") == 1
    assert column(table.table, "note") == ["", ""]
    assert [part.name for part in measured.parts((*peak, alone))] == ["Server", "Server, not measured"]
    assert measured.overview((*peak, alone)).startswith("2 cells of 1 scenario measured, 2 samples")


def test_a_page_of_predictions_alone_is_not_called_measured() -> None:
    predicted = row(source=Source.PREDICTED, low=9.0, high=11.0)
    page = report_html(replace(measured_run(), rows=(predicted,)))
    assert "<h1>Predicted data paths</h1>" in page
    assert "Measured" not in text_of(page)
    assert "<h1>Measured data paths</h1>" in report_html(replace(measured_run(), rows=(predicted, row())))


def test_the_label_of_a_million_fits_beside_a_chart() -> None:
    assert measured_plots._left(1e6) - measured_plots._left(9.9e5) > 0.1
    assert measured_plots._left(100.0) == measured_plots._left(0.01)


def test_the_parts_of_notes_that_all_rows_share_are_said_once() -> None:
    notes = {"qps": "known badly; no submission; random", "p50": "no submission; random"}
    told = [sample("Server", "a->b", name, 1.0, "1/s", {}, {}, "service", note) for name, note in notes.items()]
    (part,) = measured.parts(summarise(told))
    assert part.common.endswith("no submission; random")
    assert [note for table in part.tables for note in column(table.table, "note")] == ["known badly", ""]
