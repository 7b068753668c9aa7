"""Runs: saved, rendered, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.api.loading import run_of
from lanewise.api.provenance import new_run
from lanewise.errors import unknown_name
from lanewise.files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from lanewise.results.compare import Comparison
    from lanewise.results.observation import Observation
    from lanewise.results.run import Run
    from lanewise.results.sample import Sample
    from lanewise.results.service_result import ServiceResult


def as_run(services: Sequence[ServiceResult]) -> Run:
    """Simulated services as a run, to be saved, compared or rendered."""
    return new_run(services=tuple(services))


def as_measured_run(
    samples: Iterable[Sample], machine_facts: Mapping[str, str] | None = None, rows: Iterable[Observation] = ()
) -> Run:
    """Samples as a run of measured rows; a probe's `machine_facts` (driver, GPUs) go with what this machine is.

    `rows` follow, such as what was predicted of them.
    """
    from lanewise.results.sample import summarise

    return new_run(rows=(*summarise(samples), *rows), machine_facts=machine_facts)


def save_run(run: Run, path: str | Path) -> None:
    """Write a run as JSON, whole or not at all."""
    from lanewise.results.codec import run_to_json

    write_file(path, run_to_json(run))


def render_report(run: Run | str | Path) -> str:
    """One offline HTML page of a run."""
    from lanewise.report.html import report_html

    return report_html(run_of(run))


def compare(run_a: Run | str | Path, run_b: Run | str | Path, names: tuple[str, str] = ("left", "right")) -> Comparison:
    """Two runs side by side, called by those names: what both answer, and what only one does."""
    from lanewise.results.compare import compare_runs

    return compare_runs(run_of(run_a), run_of(run_b), names)


def compare_sources(run: Run | str | Path, left: str = "published", right: str = "predicted") -> Comparison:
    """Two sources of one run side by side: published, predicted, measured, extrapolated; UnknownName for another."""
    from lanewise.results import compare as lay
    from lanewise.results.observation import Source

    for name in (left, right):
        if name not in list(Source):
            raise unknown_name("source", name, [str(source) for source in Source])
    return lay.compare_sources(run_of(run), Source(left), Source(right))


def compare_systems(run: Run | str | Path, left: str, right: str) -> Comparison:
    """Two systems of one run that answer the same rows, side by side; UnknownName for one that is not in the run.

    Where rows are called after their systems, the rows of a table and metric are matched in their order.
    """
    from lanewise.results import compare as lay

    loaded = run_of(run)
    names = {row.system for study in loaded.studies for row in study.rows}
    for name in (left, right):
        if name not in names:
            raise unknown_name("system of this run", name, names)
    return lay.compare_systems(loaded, left, right)


def accuracy(run: Run | str | Path) -> str:
    """The residuals of a run as a Markdown page."""
    from lanewise.report.accuracy import accuracy_page

    return accuracy_page(run_of(run))
