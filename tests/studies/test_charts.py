"""What a study file makes of its charts, and what is said where nothing is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from studies.study_texts import BASE

import lanewise
from lanewise.errors import Location
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Chart
from lanewise.studies.conclusions import conclude
from lanewise.studies.form import ConclusionForm

SCENARIO = {"service": "resnet50", "division": "network", "host": "accelerator"}
SURFACE: dict[str, Any] = {"title": "c", "kind": "surface", "x": "nics", "by": "label"}


def charted(folder: Path, chart: dict[str, Any], *tables: dict[str, Any]) -> Chart:
    path = folder / "own.yaml"
    shared = {"metric": "qps", "unit": "QPS", "system": "dgx", "scenario": SCENARIO}
    made = [shared | {"sweep": {"nics": [8, 1, 2]}, "rows": [{"label": "net"}]} | table for table in tables]
    path.write_text(yaml.safe_dump(BASE | {"tables": made, "charts": [chart]}), encoding="utf-8")
    return lanewise.run_studies([path]).studies[0].charts[0]


def test_a_surface_has_a_panel_a_table_and_its_settings_ascend(tmp_path: Path) -> None:
    made = charted(tmp_path, SURFACE | {"tables": ["b", "a"], "within": 0.1}, {"name": "a"}, {"name": "b"})
    assert [(one.group, one.name) for one in made.series] == [("b", "net"), ("a", "net")]
    assert [x for x, _ in made.series[0].points] == [1, 2, 8]
    assert all(y is not None and y > 0 for one in made.series for _, y in one.points)
    assert (made.kind, made.within, made.by_label, made.x_label, made.y_label) == (
        "surface", 0.1, "", "nics", "qps (QPS)"
    )  # fmt: skip


def test_its_rows_ascend_by_number_and_not_as_words(tmp_path: Path) -> None:
    swept = {"name": "a", "sweep": {"nics": [8, 1, 2]}}
    made = charted(tmp_path, SURFACE | {"table": "a", "x": "label", "by": "nics", "by_label": "cards"}, swept)
    assert [(one.name, one.group) for one in made.series] == [("1", ""), ("2", ""), ("8", "")]
    assert (made.by_label, made.x_label) == ("cards", "")


def test_tables_may_be_the_rows_of_one_panel(tmp_path: Path) -> None:
    made = charted(tmp_path, SURFACE | {"tables": ["b", "a"], "by": "table"}, {"name": "a"}, {"name": "b"})
    assert [(one.name, one.group) for one in made.series] == [("a", ""), ("b", "")]


def row(label: str, value: float, published: float | None) -> Observation:
    return Observation(label, "", "r", value, "1", Source.PREDICTED, table="t", published=published)


@pytest.mark.parametrize(("shows", "said"), [("", ""), ("v('t', 'a')", "predicted 1.00")])
def test_a_conclusion_of_a_study_without_published_values_says_nothing_of_them(shows: str, said: str) -> None:
    entry = ConclusionForm("it is so", "v('t', 'a') == 1", shows, Location("s.yaml", 7))
    alone = conclude(entry, [row("a", 1, None), row("b", 2, None)])
    assert (alone.holds, alone.shown) == (True, said)
    beside = conclude(entry, [row("a", 1, None), row("b", 2, 3)])
    assert "published values: not stated" in beside.shown
