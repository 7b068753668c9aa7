"""The page: the finding first, every row in it, readable offline, and the same each time."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from report.report_samples import GEN4, composable, sample_run

from lanewise.api.loading import load_system, ready_systems
from lanewise.report import page, study_rows, words
from lanewise.report.html import report_html
from lanewise.report.plots import plot
from lanewise.results.observation import Observation, Source
from lanewise.results.outline import outline
from lanewise.results.run import Chart, Drawing, Run, Series

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outliner(HTMLParser):
    """Checks nesting and collects ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id" and value:
                self.ids.append(value)
            if key == "href" and value and value.startswith("#"):
                self.targets.append(value[1:])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def html() -> str:
    return report_html(sample_run())


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.split("</style>")[-1]))


def test_the_page_is_well_nested_and_every_anchor_leads_somewhere(html: str) -> None:
    reader = Outliner()
    reader.feed(html)
    assert reader.open == []
    assert set(reader.targets) <= set(reader.ids)
    own = [name for name in reader.ids if name.startswith(("composable", "expansion"))]
    assert len(own) == len(set(own))


def test_the_finding_comes_first_then_the_studies_then_their_rows(html: str) -> None:
    marks = [
        "41 rows in 2 studies",
        'sum">all<',
        'id="composable-server"',
        "-conclusions",
        "-charts",
        "-rows",
        "-fits",
        "-hypotheses",
        "-assumptions",
        "-sources",
        "-method",
        'id="expansion-chassis"',
        'id="machine"',
    ]
    places = [
        html.index(mark) if mark.startswith(("4", "sum", "id")) else html.index(f'id="composable-server{mark}"')
        for mark in marks
    ]
    assert places == sorted(places)


def test_the_page_asks_nothing_of_the_network_and_runs_no_script(html: str) -> None:
    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?!#)', html)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_every_published_figure_of_a_table_is_printed_as_it_was_published(html: str) -> None:
    text = text_of(html)
    for values in GEN4.values():
        for value in values:
            assert f" {value:.2f} " in text
    assert " 511,458 " in text


def test_residuals_are_coloured_only_beyond_five_and_ten_percent(html: str) -> None:
    assert words.grade(5.0) == words.grade(-5.0) == words.grade(None) == ""
    assert words.grade(-7.4) == words.grade(10.0) == "off"
    assert words.grade(12.5) == "far"
    assert '<td class="num far"><span>+12.5</span>' in html
    assert '<td class="num off"><span>−7.4</span>' in html


def test_an_unknown_value_says_so_with_its_reason(html: str) -> None:
    assert "unknown" in text_of(html)
    assert "kept, not predicted" in html


def test_a_missing_reason_is_not_passed_over() -> None:
    study = composable()
    bare = replace(study, rows=tuple(replace(row, note="") for row in study.rows))
    assert "no reason given" in report_html(Run((bare,), "now", "1"))


def test_text_of_a_run_cannot_become_markup(run: Run) -> None:
    study = replace(run.studies[0], title="<script>alert(1)</script>", finding="a < b & c")
    html = report_html(replace(run, studies=(study,)))
    assert "<script" not in html
    assert "a &lt; b &amp; c" in html


def test_the_page_is_the_same_each_time(run: Run) -> None:
    assert report_html(run) == report_html(run)


def test_all_ready_systems_together_stay_under_the_budget() -> None:
    drawings = [Drawing(name, outline(load_system(name))) for name in ready_systems()]
    assert len(report_html(sample_run(*drawings)).encode()) < 1_500_000


def test_an_empty_run_still_makes_a_page() -> None:
    assert "0 rows in 0 studies" in report_html(Run((), "now", "1"))


def test_a_chart_is_small_static_and_the_same_each_time(run: Run) -> None:
    for chart in run.studies[0].charts + run.studies[1].charts:
        svg = plot(chart)
        assert svg == plot(chart)
        assert len(svg) < 60_000
        assert "<metadata" not in svg
        assert not re.search(r"var\(|style=", svg), "colours are attributes, which any viewer reads"
        assert chart.y_label in svg


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_a_legend_names_no_source_without_a_value(kind: str) -> None:
    guess = Series("a", "predicted", (("x", 2.0), ("y", 1.0)), (), "a")
    none = Series("a", "published", (("x", None), ("y", None)), (), "a")
    chart = Chart("t", kind, "x", "GB/s", (guess, none))
    assert ">predicted<" in plot(chart)
    assert "published" not in plot(chart)
    assert plot(chart) == plot(replace(chart, series=(guess,)))
    some = replace(none, points=(("x", None), ("y", 1.0)))
    assert ">published<" in plot(replace(chart, series=(guess, some)))


@pytest.mark.parametrize("kind", ["line", "bar", "surface"])
def test_gaps_and_empty_series_do_not_stop_a_chart(kind: str) -> None:
    series = (Series("a", "published", (("x", None), ("y", 1.0))), Series("b", "predicted", ()))
    assert plot(Chart("t", kind, "x", "GB/s", series)).startswith("<svg")
    assert plot(Chart("t", kind, "x", "GB/s", ())).startswith("<svg")


def test_every_head_of_a_table_says_what_it_is_the_head_of(html: str) -> None:
    heads = re.findall(r"<th\b[^>]*>", html)
    assert len(heads) > 50
    assert all('scope="col"' in head or 'scope="row"' in head for head in heads)
    assert all("<th scope=" in row for row in re.findall(r"<tr><t[hd]\b[^>]*", html))


def test_the_contents_lead_to_every_study_and_each_study_to_its_parts(html: str) -> None:
    contents, *parts = re.findall(r"<nav.*?</nav>", html, re.DOTALL)
    targets = ["finding", "composable-server", "expansion-chassis", "machine"]
    assert re.findall(r'href="#([^"]+)"', contents) == targets
    assert len(parts) == 2
    assert 'href="#composable-server-hypotheses">hypotheses</a>' in parts[0]
    assert "hypotheses" not in parts[1]


def test_long_tables_are_folded_and_short_ones_are_not(html: str) -> None:
    tables = html.split('id="composable-server-rows"')[1].split('id="composable-server-fits"')[0].split("<h4")[1:]
    rows = [(part.count("<tr>") - 1, "<details>" in part) for part in tables]
    assert {folded for _, folded in rows} == {True, False}
    assert all(folded is (count > study_rows.LONG) for count, folded in rows)


def test_what_may_be_wider_than_a_phone_scrolls_in_its_own_box(html: str) -> None:
    for wide in ("<table>", "<svg"):
        assert html.count(wide) == len(re.findall(rf'<div class="scroll"[^>]*>\s*{wide}', html)) > 0


def test_no_class_of_a_block_is_also_one_of_a_cell(html: str) -> None:
    names = {tag: set(" ".join(re.findall(rf'<{tag}[^>]* class="([^"]+)"', html)).split()) for tag in ("div", "td")}
    assert names["td"]
    assert not names["div"] & names["td"]


def test_the_headline_counts_published_conclusions_apart_and_calls_an_rms_an_rms(run: Run) -> None:
    first, second = run.studies
    own = replace(second, rows=tuple(replace(row, published=None) for row in second.rows))
    text = page.headline(replace(run, studies=(first, own)))
    assert f"Of {len(first.conclusions)} published conclusions, 1 holds in these rows" in text
    assert "Of 1 unpublished conclusion (expansion-chassis), 1 holds in these rows." in text
    assert re.search(r"the worst off by \+12\.5 %; the rms error is \d\.\d %", text)
    assert "(rms)" not in text


def test_counts_have_no_decimals_and_notes_no_expressions() -> None:
    row = Observation("far", "", "hops", 4.0, "hops", Source.PREDICTED, table="t", note="computed from other rows")
    study = replace(composable(), rows=(row, replace(row, scenario="near", value=2.0)))
    (table,) = page.study_page(study).tables
    value = [column.title for column in table.table.columns].index("predicted")
    assert [cells[value] for cells in table.table.rows] == ["4", "2"]
