"""The study hop-budget: its predictions against closed forms, and its answers against a count of their own."""

from __future__ import annotations

import cProfile
import itertools
import pstats
from functools import cache

import pytest

import lanewise
from lanewise.errors import InputError
from lanewise.report.html import report_html
from lanewise.report.surfaces import near_best
from lanewise.results.observation import Observation
from lanewise.results.run import Run, StudyRun

QUERY = 150_528
GPU_QPS = 47_001.39
MEMORY_READ = 547e-9
CUT_THROUGH = {3: 150e-9, 4: 105e-9, 5: 115e-9, 6: 115e-9}
WINDOWS = {"shared": 256 * 128, "wide": 768 * 128}


@cache
def profiled() -> tuple[Run, int]:
    """The run, and how many Python functions it called."""
    profile = cProfile.Profile()
    run = profile.runcall(lanewise.run_studies, ["hop-budget"])
    return run, pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def study() -> StudyRun:
    return profiled()[0].studies[0]


def value(row: Observation) -> float:
    assert row.value is not None
    return row.value


def surface(kind: str) -> dict[tuple[int, int, int], Observation]:
    """The asked rows of one kind of window, by generation, GPUs and hops."""
    return {
        (row.settings["gen"], row.settings["gpus"], row.settings["hops"]): row
        for row in study().rows
        if row.table.endswith(f" {kind}") and row.metric == "goodput"
    }


def ceiling(kind: str, gen: int, gpus: int, hops: int) -> float:
    """What GPUs and window let through; the cable, which they do not know, may be lower."""
    asked = gpus * GPU_QPS * QUERY
    if hops == 0 or kind not in WINDOWS:
        return asked
    return min(asked, WINDOWS[kind] / (MEMORY_READ + 2 * hops * CUT_THROUGH[gen]))


def test_it_comes_ready_after_the_five_and_every_conclusion_holds() -> None:
    assert "hop-budget" in lanewise.ready_studies()[5:]
    assert study().conclusions
    for conclusion in study().conclusions:
        assert conclusion.holds is True, conclusion.says


def test_no_row_claims_a_published_value_and_each_says_what_limits_it() -> None:
    for row in study().rows:
        assert row.published is None
        assert value(row) >= 0
        if row.role == "prediction":
            assert row.limit
            assert row.rests_on


@pytest.mark.parametrize("kind", ["shared", "wide", "own"])
def test_every_rate_is_that_of_gpus_window_or_cable_whichever_is_least(kind: str) -> None:
    found = surface(kind)
    assert found
    for (gen, gpus, hops), row in found.items():
        expected = ceiling(kind, gen, gpus, hops)
        if "root port" in row.limit or "link" in row.limit:
            assert value(row) < expected
        else:
            assert value(row) == pytest.approx(expected, rel=1e-6)
            assert ("window" in row.limit) == (expected < gpus * GPU_QPS * QUERY * (1 - 1e-9))


def test_what_rests_on_the_window_calls_itself_fitted() -> None:
    for kind in WINDOWS:
        for row in surface(kind).values():
            assert (str(row.basis) == "fitted") == ("window" in row.limit)


@pytest.mark.parametrize("kind", ["shared", "wide", "own"])
def test_a_hop_never_helps_and_a_gpu_never_harms(kind: str) -> None:
    found = surface(kind)
    for key in (1, 2):
        other = 3 - key
        groups: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for place, row in found.items():
            groups.setdefault((place[0], place[other]), []).append((place[key], value(row)))
        for points in groups.values():
            values = [rate for _, rate in sorted(points)]
            for a, b in itertools.pairwise(values):
                assert b >= a * (1 - 1e-9) if key == 1 else b <= a * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["shared", "own", "wide"])
def test_the_hops_affordable_are_those_that_keep_95_percent_of_gpus_on_ports_of_their_own(kind: str) -> None:
    found = surface(kind)
    answers = [row for row in study().rows if row.table == f"affordable, {kind}"]
    assert answers
    for row in answers:
        gen, gpus = row.settings["gen"], row.settings["gpus"]
        good = [
            hops
            for (g, n, hops), seen in found.items()
            if (g, n) == (gen, gpus) and value(seen) >= 0.95 * value(found[g, n, 0])
        ]
        assert row.value == max(good)


def test_the_answers_are_the_known_ones() -> None:
    answers = {
        (row.table.split(", ")[1], row.settings["gen"], row.settings["gpus"]): row.value
        for row in study().rows
        if row.table.startswith("affordable")
    }
    assert [answers["shared", 4, gpus] for gpus in (1, 2, 3, 4, 6)] == [8, 8, 5, 3, 0]
    assert [answers["shared", 5, gpus] for gpus in (1, 2, 3, 4, 6, 8)] == [8, 8, 4, 2, 1, 0]
    assert [answers["own", 5, gpus] for gpus in (1, 2, 3, 4, 6, 8)] == [8] * 6
    assert [answers["wide", 5, gpus] for gpus in (4, 6, 8)] == [8, 8, 5]


def test_queries_are_goodput_by_the_size_of_one() -> None:
    asked = surface("shared")
    rows = [row for row in study().rows if row.metric == "qps"]
    assert len(rows) == 80
    for row in rows:
        seen = asked[row.settings["gen"], row.settings["gpus"], row.settings["hops"]]
        assert value(row) == pytest.approx(value(seen) / QUERY)


def test_its_surfaces_show_every_row_and_outline_what_is_affordable() -> None:
    kinds = {"256 reads of 128 B shared by all GPUs": "shared", "768 reads of each GPU's own": "own",
             "768 reads of 128 B shared by all GPUs": "wide"}  # fmt: skip
    charts = {chart.title: chart for chart in study().charts}
    assert {chart.kind for chart in study().charts} == {"surface"}
    for title, kind in kinds.items():
        shown = {(int(one.group[3]), int(one.name), int(x)): y for one in charts[title].series for x, y in one.points}
        assert shown == {place: row.display(row.value) for place, row in surface(kind).items()}
        assert charts[title].within == 0.05
        most = {
            (int(one.group[3]), int(one.name)): max(
                x for (x, _), near in zip(one.points, near_best(one, 0.05), strict=True) if near
            )
            for one in charts[title].series
        }
        answers = [row for row in study().rows if row.table == f"affordable, {kind}"]
        assert most == {(row.settings["gen"], row.settings["gpus"]): row.value for row in answers}


def test_nothing_is_said_of_published_values_and_the_page_stays_small() -> None:
    run, _ = profiled()
    assert all("published" not in conclusion.shown for conclusion in run.studies[0].conclusions)
    page = report_html(run)
    assert len(page.encode()) < 300_000
    assert ">published<" not in page.split('id="hop-budget-charts"')[1].split('id="hop-budget-drawings"')[0]


def test_a_row_costs_a_bounded_number_of_calls() -> None:
    # 12,000 today, 4 ms: what a clock would say depends on the machine.
    run, calls = profiled()
    assert calls < 25_000 * len(run.studies[0].rows)


@pytest.mark.parametrize("wrong", [{"hops": 9}, {"gpus": 0}, {"gpus": 9}, {"gen": 2}, {"gen": 7}, {"window": 512}])
def test_the_ladder_refuses_settings_that_it_does_not_have(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        lanewise.load_system("hop-ladder", wrong)
