"""Surfaces: every value in its cell, legible, on one scale, and the outline around exactly what it says."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from example_counts import examples
from hypothesis import given
from hypothesis import strategies as st
from report.report_samples import composable

from lanewise.report import surfaces
from lanewise.report.figure import EVEN, even, on
from lanewise.report.html import report_html
from lanewise.report.plots import plot
from lanewise.report.shapes import text_width
from lanewise.results.run import Chart, Run, Series

SVG = "{http://www.w3.org/2000/svg}"


def row(name: str, *values: float | None, panel: str = "") -> Series:
    return Series(name, "predicted", tuple((float(x), y) for x, y in enumerate(values)), (), panel)


def chart(*series: Series, within: float | None = None) -> Chart:
    return Chart("Reach", "surface", "hops", "goodput (GB/s)", series, "", "GPUs", within)


TWO = chart(row("1", 7.07, 7.07, panel="gen3"), row("8", 56.6, 12.4, panel="gen3"), row("8", 56.6, 42.2, panel="gen4"))


def rects(svg: str) -> list[tuple[float, float, str]]:
    """Left, top and colour of each cell."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [
        (float(r.attrib["x"]), float(r.attrib["y"]), r.attrib["fill"]) for r in found if "url" not in r.attrib["fill"]
    ]


def outline(svg: str) -> list[tuple[float, float, float, float]]:
    """The straight lines of the outlines of cells: x, y, dx, dy."""
    paths = [
        p.attrib["d"] for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.attrib.get("stroke-width") == "2"
    ]
    lines = re.findall(r"M([\d.]+) ([\d.]+)(h|v)([\d.]+)", "".join(path for path in paths if not path.endswith("z")))
    return [(float(x), float(y), float(d) * (way == "h"), float(d) * (way == "v")) for x, y, way, d in lines]


def test_values_settings_panels_and_unit_are_written() -> None:
    svg = plot(TWO)
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    for text in ("7.1", "56.6", "12.4", "42.2", "gen3", "gen4", "GPUs", "hops", "goodput (GB/s)", "8"):
        assert text in words, text
    assert words.count("56.6") == 2
    assert "Reach: goodput (GB/s) by hops and GPUs" in svg


def test_equal_values_have_one_colour_in_all_panels_and_larger_ones_are_lighter() -> None:
    fills = [fill for _, _, fill in rects(plot(TWO))]
    assert len(fills) == 6
    assert fills[0] == fills[1]
    assert fills[2] == fills[4] == EVEN[-1]
    assert len(set(fills)) == 4


def test_the_scale_starts_at_zero_unless_values_lie_below() -> None:
    assert surfaces.scale_of(TWO).low == 0
    assert surfaces.scale_of(chart(row("1", -3.0, 4.0))).low == -3
    assert surfaces.scale_of(chart(row("1", 0.0))).share(0.0) == 0


def test_the_scale_is_even_and_all_text_on_it_legible() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    steps = [116 * luminance(even(i / 40)) ** (1 / 3) - 16 for i in range(41)]
    rises = [b - a for a, b in pairwise(steps)]
    assert min(rises) > 0.5 * (steps[-1] - steps[0]) / 40
    assert max(rises) < 1.7 * (steps[-1] - steps[0]) / 40
    for i in range(41):
        ground = luminance(even(i / 40)) + 0.05
        contrast = max(1.05 / ground, ground / 0.05)
        assert contrast >= 4.5
        assert (on(even(i / 40)) == "#ffffff") == (1.05 / ground > ground / 0.05)


def test_the_outline_is_the_border_of_what_lies_within_the_share_of_its_rows_largest() -> None:
    one = chart(row("1", 7.0, 7.0, 6.7), row("2", 14.0, 13.3, 13.29), within=0.05)
    assert surfaces.near_best(one.series[0], 0.05) == [True, True, True]
    assert surfaces.near_best(one.series[1], 0.05) == [True, True, False]
    cells = rects(plot(one))
    left, top = cells[0][0] - 0.5, cells[0][1] - 0.5
    wide, high = cells[1][0] - cells[0][0], cells[3][1] - cells[0][1]
    near = pytest.approx
    wanted = [
        (left, top, 3 * wide, 0), (left + 2 * wide, top + high, wide, 0), (left, top + 2 * high, 2 * wide, 0),
        (left, top, 0, 2 * high), (left + 2 * wide, top + high, 0, high), (left + 3 * wide, top, 0, high),
    ]  # fmt: skip
    assert sorted(outline(plot(one))) == [near(line, abs=0.3) for line in sorted(wanted)]
    assert "outlined: at most 5 % below the largest value of its row" in plot(one)


def test_without_a_share_nothing_is_outlined() -> None:
    assert outline(plot(TWO)) == []
    assert "outlined" not in plot(TWO)


def test_a_gap_is_a_dash_and_a_cell_that_was_not_asked_is_empty() -> None:
    short = replace(row("2", 5.0), points=((1.0, 5.0),))
    svg = plot(chart(row("1", 7.0, None), short, within=0.1))
    assert len(rects(svg)) == 3
    assert svg.count("\N{EN DASH}") == 1


@pytest.mark.parametrize("columns", [2, 9, 15, 30, 40])
@pytest.mark.parametrize("value", [56.6, 376_011.0])
def test_every_value_fits_into_its_cell(columns: int, value: float) -> None:
    svg = plot(chart(*(row("8", *[value] * columns, panel=name) for name in ("a", "b", "c"))))
    tree = ElementTree.fromstring(svg)
    starts = sorted({x for x, _, _ in rects(svg)})
    step = min(b - a for a, b in pairwise(starts))
    text = surfaces.ColourScale(0, 1, 1 if value < 100 else 0).text(value)
    sizes = [float(g.attrib["font-size"]) for g in tree.iter(f"{SVG}g") if any(t.text == text for t in g)]
    assert sizes
    assert min(sizes) >= 8
    assert text_width(text, sizes[0]) < step
    right = max(x for x, _, _ in rects(svg)) + step
    assert right <= float(tree.attrib["width"])


def test_a_value_is_never_rounded_to_nothing() -> None:
    scale = surfaces.scale_of(chart(row("1", 250.0, 0.004, 0.5)))
    assert [scale.text(value) for value in (250.0, 0.004, 0.5, 0.0)] == ["250", "0.004", "0.5", "0"]


def test_a_scale_of_three_steps_has_marks_though_a_third_of_it_is_rounded_down() -> None:
    words = [text.text for text in ElementTree.fromstring(plot(chart(row("1", 0.3)))).iter(f"{SVG}text")]
    assert {"0.1", "0.2", "0.3"} <= set(words)


@examples(60)
@given(st.lists(st.lists(st.none() | st.floats(-1e12, 1e12), max_size=5), max_size=4), st.none() | st.floats(0, 0.99))
def test_any_surface_is_well_formed_and_the_same_each_time(
    values: list[list[float | None]], share: float | None
) -> None:
    one = chart(*(row(f"<{i}>", *found, panel="&" * (i % 2)) for i, found in enumerate(values)), within=share)
    ElementTree.fromstring(plot(one, "a&b"))
    assert plot(one) == plot(one)


def test_a_chart_of_several_panels_takes_the_whole_width_of_the_page() -> None:
    assert surfaces.is_wide(TWO)
    assert not surfaces.is_wide(chart(row("1", 7.0)))
    page = report_html(Run((replace(composable(), charts=(TWO, chart(row("1", 7.0)))),), "now", "1"))
    assert page.count('<figure class="wide">') == 1
    assert len(set(re.findall(r'<linearGradient id="([^"]+)"', page))) == 2
