"""A service under load on the page and on the terminal: verdict first, units on everything, whole or in parts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.report_samples import sample_run
from report.service_pages import CHARTS, served
from report.service_samples import at_peak, bare, too_fast
from report.test_html import Outliner, text_of

from lanewise.report import service_plots as plots
from lanewise.report import services
from lanewise.report.html import MOST_SERVICES, report_html
from lanewise.report.screen import Screen
from lanewise.report.shapes import text_width
from lanewise.report.table import Table, cell_text
from lanewise.report.text.run import render_run
from lanewise.report.text.service import WIDEST, render_service
from lanewise.results.run import Run
from lanewise.results.service_result import Advice, ResourceUtilization, SearchRun, ServiceResult, Stage


@cache
def peak_page() -> str:
    return served(at_peak())


def terminal(loaded: ServiceResult, width: int = 100) -> str:
    return render_service(loaded, Screen(width))


@pytest.mark.parametrize(
    ("loaded", "text"),
    [
        (at_peak(), "136,000 QPS: VALID, p99 14.1 ms of 15 ms; limit: read window of hop4"),
        (
            too_fast(),
            "180,000 QPS: INVALID, p99 96.5 ms of 15 ms (61 % of queries late, 1 % allowed); "
            "limit: gpu0 (inference rate)",
        ),
        (bare(), "12.5 QPS: no bound, p99 81 us"),
        (replace(at_peak(), percentile=0.9999, bound=20.0, latency=3.25), "p99.99 3.25 s of 20 s"),
    ],
)
def test_the_headline_says_rate_verdict_latency_and_limit(loaded: ServiceResult, text: str) -> None:
    assert text in services.headline(loaded)
    assert text in " ".join(terminal(loaded, 200).split())
    assert text.replace("&", "&amp;").replace(": VALID", ": VALID") in text_of(served(loaded)).replace(" , ", ", ")


def test_the_page_is_well_nested_with_an_anchor_a_service() -> None:
    reader = Outliner()
    reader.feed(served(at_peak(), at_peak(), too_fast(), bare()))
    assert reader.open == []
    assert set(reader.targets) <= set(reader.ids)
    own = [name for name in reader.ids if name.startswith("service-service")]
    assert len(own) == len(set(own)) == 4


def test_the_parts_of_a_service_stand_in_the_order_of_the_questions() -> None:
    html = peak_page()
    marks = [
        "Largest valid rate 136,000 to 136,250 QPS, found in 11 runs",
        "Latency by percentile",
        "Where a query’s time goes",
        "Busiest links",
        "Search for the largest valid rate",
        "What would raise it",
        "Arrivals are a Poisson process.",
        "fitted to 5 rows of this table",
    ]
    places = [html.index(mark) for mark in marks]
    assert places == sorted(places)


def test_stages_of_a_study_stand_before_its_rows_and_after_its_charts() -> None:
    run = sample_run()
    study = replace(run.studies[0], services=(at_peak(),))
    html = report_html(replace(run, studies=(study, run.studies[1])))
    places = [html.index(f'id="composable-server-{part}"') for part in ("charts", "services", "rows")]
    assert places == sorted(places)
    assert "1 service under load: VALID." in html


def test_every_chart_states_its_units() -> None:
    for text in ("latency, ms", "time of a query, ms", "time, s", "rate, thousand QPS", "97 %", "bound 15 ms at 99 %"):
        assert text in peak_page(), text
    assert "latency, s<" in plots.percentile_chart(replace(at_peak(), bound=2.0), "x")


def texts_of(table: Table) -> list[tuple[str, ...]]:
    return [tuple(map(cell_text, row)) for row in table.rows]


def test_the_stage_table_adds_up_and_names_the_slowest() -> None:
    rows = texts_of(services.stage_table(at_peak()))
    assert rows[0] == ("queue", "0.90", "25", "2.50", "18")
    assert rows[-1] == ("sum", "3.57", "100", "14.14", "100")
    assert "slowest 1 %" in peak_page()
    assert services.slowest(replace(at_peak(), percentile=0.999)) == "slowest 0.1 %"


def test_the_ten_busiest_come_first_and_the_rest_is_counted() -> None:
    names = [one.name for one in services.busiest(at_peak())]
    assert names[:3] == ["read window of hop4", "GPUs gpu[0-3]", "link host0--fabric, from the host"]
    chart = plots.use_chart(at_peak(), "x")
    assert "memory of host0" in chart
    assert "core0" not in chart
    assert "1 more, none busier than 5 % on average" in peak_page()


def gpus(*means: float) -> ServiceResult:
    links = [ResourceUtilization(f"link {i}", 0.5 - 0.01 * i) for i in range(12)]
    found = [ResourceUtilization(f"GPU gpu{i}", mean, (0.0, 2 * mean), "GPU") for i, mean in enumerate(means)]
    return replace(at_peak(), utilization=(*found, *links))


def test_gpus_that_are_alike_busy_are_one_row_with_their_range_and_leave_room_for_links() -> None:
    loaded = gpus(*(0.76 + 0.002 * i for i in range(8)))
    first = services.shown_busy(loaded)[0]
    assert (first.name, first.count, first.spread) == ("GPUs gpu[0-7]", 8, "76 to 77 %")
    assert first.mean == pytest.approx(0.767)
    assert first.series == pytest.approx((0.0, 1.534))
    assert len(services.shown_busy(loaded)) == services.BUSIEST
    assert "GPUs gpu[0-7], least to most 76 to 77 %" in " ".join(terminal(loaded).split())
    assert "link 8" in terminal(loaded)
    assert "3 more" in terminal(loaded)
    assert "GPUs gpu[0-7] (76 to 77 %)" in plots.use_chart(loaded, "x")
    assert "GPUs that are alike busy as one, their mean, least and most in brackets" in served(loaded)


def test_gpus_that_differ_stay_apart_and_a_lone_one_keeps_its_name() -> None:
    assert [one.name for one in services.shown_busy(gpus(0.9, 0.3, 0.88, 0.6))][:3] == [
        "GPUs gpu[0,2]", "GPU gpu3", "link 0",
    ]  # fmt: skip
    assert "GPUs that are alike" not in served(gpus(0.9, 0.3))
    assert services.shown_busy(gpus(0.8, 0.8))[0].spread == ""
    assert "their mean, least" not in served(gpus(0.8, 0.8))


def test_what_is_left_over_counts_every_gpu_of_a_row() -> None:
    assert services.left_over(gpus(0.2, 0.2, 0.2)).startswith("5 more")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["gpu3", "gpu0", "gpu1"], "gpu[0-1,3]"), (["gpu2"], "gpu2"), (["a0", "b0", "b1"], "a0, b[0-1]"),
        (["gpu", "7", "gpu01", "gpu1"], "gpu1, 7, gpu, gpu01"), (["box1.gpu0", "box1.gpu1"], "box1.gpu[0-1]"),
    ],
)  # fmt: skip
def test_names_are_folded_into_ranges(names: list[str], said: str) -> None:
    assert services.ranges(names) == said


def test_advice_that_brings_most_comes_first_and_unknown_gain_last() -> None:
    found = services.advice(at_peak())
    assert [gain for _, gain in found] == ["+12 %", "+2 %", ""]
    lossy = replace(at_peak(), advice=(Advice("a", 0.9), Advice("b", None), Advice("c", 1.0)))
    assert [gain for _, gain in services.advice(lossy)] == ["0 %", "−10 %", ""]


def test_both_verdicts_of_a_search_and_its_interval_are_shown() -> None:
    chart = plots.search_chart(at_peak(), "x")
    for text in (">VALID<", ">INVALID<", "ends in 136,000 to 136,250 QPS", "without a bound 150,300 QPS (above"):
        assert text in chart
    assert "p99 512.0 ms &gt; 15 ms" in peak_page()


def test_names_cannot_become_markup_or_formulas() -> None:
    name = '<script>alert("1")</script> & $\\frac$'
    bad = replace(
        at_peak(), name=name, limit=name, system=name, note=name, reason=name, workload=name, assumptions=(name,),
        rests_on=(name,), advice=(Advice(name, 2.0),), stages=(Stage(name, 1e-3, 2e-3),),
        utilization=(ResourceUtilization(name, 0.5, (0.4, 0.6)),),
        search_runs=tuple(replace(one, reason=name) for one in at_peak().search_runs),
    )  # fmt: skip
    html = served(bad)
    assert "<script" not in html
    assert "$\\frac$" in html
    for chart in CHARTS:
        ElementTree.fromstring(chart(bad, "x"))
    assert "[red]" in terminal(replace(at_peak(), limit="[red]x[/red]"))


@pytest.mark.parametrize(
    "part", ["percentiles", "stages", "utilization", "search_runs", "advice", "assumptions", "rests_on"]
)
def test_a_part_that_is_missing_leaves_no_empty_frame(part: str) -> None:
    heads = {
        "percentiles": "Latency by percentile", "stages": "Where a query’s time goes", "utilization": "Busiest links",
        "search_runs": "Search for the largest", "advice": "What would raise it", "assumptions": "Assumed",
        "rests_on": "Based on",
    }  # fmt: skip
    assert heads[part] in peak_page()
    without: dict[str, Any] = {part: ()}
    less = replace(at_peak(), **without)
    assert heads[part] not in served(less)
    assert terminal(less)


def test_a_scenario_without_a_bound_shows_none() -> None:
    offline = replace(at_peak(), scenario="offline", latency=4.9, percentile=0.99)
    assert services.headline(offline) == "136,000 QPS: no bound, p99 4.9 s; limit: read window of hop4"
    assert "bound 15 ms" not in served(offline)


def test_a_search_that_found_no_valid_rate_says_so() -> None:
    none = replace(at_peak(), valid=False, peak=(0.0, 40_000.0), search_runs=at_peak().search_runs[2:3], steady=None)
    assert services.peak_text(none) == "no valid rate, in 1 run"
    assert services.peak_interval(none) == "none"
    assert "ends in" not in plots.search_chart(none, "x")
    assert ">VALID<" not in plots.search_chart(none, "x")


def test_a_bound_that_takes_nothing_is_said_to_cost_nothing() -> None:
    assert "the bound costs nothing" in services.peak_text(replace(at_peak(), steady=136_125.0))
    assert "the bound leaves 90 %" in services.peak_text(at_peak())


def test_idle_resources_get_no_line_unless_all_are_idle() -> None:
    one = replace(
        at_peak(),
        utilization=(ResourceUtilization("a", 0.6), ResourceUtilization("b", 0.0), ResourceUtilization("c", 0.001)),
    )
    assert [each.name for each in services.shown_busy(one)] == ["a"]
    assert services.left_over(one) == "2 more, idle or below 1 % on average"
    assert len(services.shown_busy(replace(one, utilization=one.utilization[1:]))) == 1


def test_times_far_below_the_unit_stay_plain_numbers() -> None:
    stages = (Stage("GPU wait", 5e-8, 0.0), Stage("GPU", 1e-3, 1e-3))
    rows = texts_of(services.stage_table(replace(at_peak(), stages=stages)))
    assert rows[0] == ("GPU wait", "0.00", "0", "0.00", "0")


def searched(*rates: float, peak: tuple[float, float] | None = None, steady: float | None = None) -> ServiceResult:
    runs = tuple(SearchRun(rate, i, rate < 1e5, 1e-3, 1000) for i, rate in enumerate(rates))
    return replace(at_peak(), search_runs=runs, peak=peak, steady=steady)


def test_the_axis_of_a_search_is_cut_to_its_runs_and_says_so() -> None:
    near = searched(135_131, 136_157, peak=(136_157, 136_157), steady=136_310)
    low, high = plots.window(near)
    assert 134_000 < low < 135_131
    assert 136_310 < high < 137_000
    assert "axis cut: not from 0" in plots.search_chart(near, "x")
    assert "beyond the chart" not in plots.search_chart(near, "x")
    assert ">without a bound 136,310 QPS<" in plots.search_chart(near, "x")
    wide = searched(10_000, 90_000, 60_000, 80_000)
    assert plots.window(wide)[0] == 0
    assert "axis cut" not in plots.search_chart(wide, "x")


def test_the_last_steps_of_a_search_can_be_told_apart_and_no_run_is_lost() -> None:
    low, high = plots.window(at_peak())
    assert 250 / (high - low) > 0.02
    chart = plots.search_chart(at_peak(), "x")
    assert "beyond the chart" in chart
    for outside in (">40<", ">80<", ">120<", ">160<"):
        assert outside in chart


def test_the_verdicts_of_a_search_are_written_whole_inside_the_picture() -> None:
    chart = plots.search_chart(at_peak(), "x")
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', chart)[0])
    for word in ("VALID", "INVALID", "beyond the chart"):
        place = re.search(rf'<text[^>]*?(?:x="([\d.]+)"|translate\(([\d.]+))[^>]*>{word}<', chart)
        assert place is not None
        # The widest font that may stand in for the page's own: two thirds of the size a letter.
        assert float(place[1] or place[2]) + len(word) * 8.2 * 0.72 < width


def test_one_run_or_runs_of_one_rate_make_a_chart() -> None:
    for one in (searched(5.0), searched(7e6, 7e6, peak=(7e6, 7e6), steady=7e6), searched(3.0, peak=(0.0, 0.0))):
        low, high = plots.window(one)
        assert low < one.search_runs[0].rate < high
        ElementTree.fromstring(plots.search_chart(one, "x"))


def test_what_figures_share_is_said_once_on_page_and_terminal() -> None:
    text = "hop window.tags = 256, thought so (us); hop window.payload = 128 B, thought so (us)"
    loaded = replace(at_peak(), rests_on=(text,))
    said = "hop window.tags = 256 and window.payload = 128 B, thought so (us)"
    assert said in " ".join(terminal(loaded).split())
    assert said in served(loaded)


def test_the_styles_of_a_service_leave_drawings_alone() -> None:
    used = set(re.findall(r'class="([^"]+)"', peak_page()))
    drawn = set(re.findall(r"[.]lw [.]?([a-z]+)", peak_page()))
    assert not drawn & {name for names in used for name in names.split()}


def test_use_without_a_series_is_drawn_as_means() -> None:
    chart = plots.use_chart(too_fast(), "x")
    assert "mean use, %" in chart
    assert "62 %" in chart
    mixed = replace(at_peak(), utilization=(ResourceUtilization("a", 0.5, (0.2, 0.8)), ResourceUtilization("b", 0.3)))
    assert "time, ms" in plots.use_chart(mixed, "x")


@pytest.mark.parametrize("loaded", [at_peak(), too_fast(), bare()], ids=["peak", "too fast", "bare"])
def test_charts_are_well_formed_small_and_the_same_each_time(loaded: ServiceResult) -> None:
    for chart in CHARTS:
        svg = chart(loaded, "x")
        assert svg == chart(loaded, "x")
        assert len(svg) < 80_000
        if svg:
            ElementTree.fromstring(svg)


def test_labels_of_segments_never_touch() -> None:
    many = tuple(Stage(f"stage {i}", 10.0 ** (-3 - i / 4), 10.0 ** (-3 - i / 3)) for i in range(12))
    svg = plots.stage_chart(replace(at_peak(), stages=many, bound=0.1), "x")
    found = re.findall(r'font-size="8\.2px"[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([\d.]+)<', svg)
    spans = sorted((y, float(x) - text_width(s, 8.2) / 2, float(x) + text_width(s, 8.2) / 2) for x, y, s in found)
    assert 4 < len(spans) < 24
    assert all(one[0] != two[0] or one[2] <= two[1] for one, two in pairwise(spans))
    assert len(set(plots.stage_colours(many))) == len(plots.COLOURS)


def test_the_maximum_stands_at_the_share_of_the_last_query() -> None:
    svg = plots.percentile_chart(at_peak(), "x")
    for text in ("50 %", "99.99 %", ">max<"):
        assert text in svg
    assert "99.99 %" not in plots.percentile_chart(too_fast(), "x")


@given(st.lists(st.floats(0, 1), max_size=900), st.integers(1, 200))
def test_averaging_keeps_the_mean_and_the_limit_of_points(series: list[float], most: int) -> None:
    points = plots.averaged(series, most)
    assert len(points) <= most
    if series and len(series) % max(1, math.ceil(len(series) / most)) == 0:
        mean = math.fsum(y for _, y in points) / len(points)
        assert mean == pytest.approx(math.fsum(series) / len(series))


@given(st.integers(1, 900), st.integers(2, 200))
def test_thinning_keeps_the_ends(count: int, most: int) -> None:
    points = [(float(i), 1.0) for i in range(count)]
    found = plots.thinned(points, most)
    assert len(found) <= most
    assert found == sorted(set(found))
    assert (found[0], found[-1]) == (points[0], points[-1])


@settings(max_examples=8, deadline=None)
@given(
    st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(0.5, 0.99999), st.floats(0.1, 1e7),
    st.lists(st.floats(1e-7, 1e3), min_size=2, max_size=5),
)  # fmt: skip
def test_any_figures_can_be_drawn(bound: float, latency: float, share: float, qps: float, times: list[float]) -> None:
    shares = [0.5, 0.9, 0.99, 0.999, 1.0]
    one = replace(
        at_peak(), bound=bound, latency=latency, percentile=share, qps=qps, peak=(qps, 1.01 * qps), steady=qps / 2,
        percentiles=tuple(zip(shares, sorted(times), strict=False)),
        stages=tuple(Stage(str(i), time, 2 * time) for i, time in enumerate(times)), series_step=latency,
    )  # fmt: skip
    for chart in CHARTS:
        ElementTree.fromstring(chart(one, "x"))
    assert terminal(one).startswith(services.rate(qps))


def test_many_services_stay_under_the_budget_and_say_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # All are as large as the first, so its charts stand for those of the others.
    pictures = plots.charts(at_peak(), "service")
    monkeypatch.setattr(plots, "charts", lambda result, name: pictures)
    found = [replace(at_peak(), name=f"service {i}") for i in range(MOST_SERVICES + 8)]
    html = report_html(Run((), "now", "1", services=tuple(found)))
    assert len(html.encode()) < 1_500_000
    assert html.count("Charts are left out here") == 8
    assert "service 19" in html


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("loaded", [at_peak(), too_fast(), bare()], ids=["peak", "too fast", "bare"])
def test_no_line_on_the_terminal_is_wider_than_it_or_than_its_widest(loaded: ServiceResult, width: int) -> None:
    assert max(len(line) for line in terminal(loaded, width).splitlines()) <= min(width, WIDEST)


def test_the_terminal_says_the_same_in_order() -> None:
    text = terminal(at_peak())
    marks = ["136,000 QPS: VALID", "found in 11 runs", "read window of hop4; fitted to published values", "p99.9",
             "slowest 1 %", "link wait", "busiest", "97 %", "what would raise it", "+12 %"]  # fmt: skip
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_without_colour_there_are_no_codes_at_all() -> None:
    assert "\x1b[1;32mVALID" in render_service(at_peak(), Screen(99, colour=True))
    assert "\x1b" not in render_service(at_peak(), Screen(99))


def test_a_run_of_services_alone_is_shown_without_studies() -> None:
    text = render_run(Run((), "now", "1", services=(at_peak(),)), screen=Screen(100))
    assert text.startswith("1 service under load: VALID.")
    assert "rms" not in text
    assert "<title>Services under load</title>" in peak_page()
