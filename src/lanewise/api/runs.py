"""Runs: saved, rendered, compared."""

from __future__ import annotations

import re
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
    """Simulated services as a run, to save, compare or render.

    >>> run = lanewise.as_run(lanewise.simulate("composable-server-gen4", "resnet50 150000 QPS", seconds=0.5))
    >>> run.services[0].qps
    150000.0
    """
    return new_run(services=tuple(services))


def as_measured_run(
    samples: Iterable[Sample], machine_facts: Mapping[str, str] | None = None, rows: Iterable[Observation] = ()
) -> Run:
    """Samples as a run of measured rows: repeated samples become one row with their median and range.

    `machine_facts` of a probe (driver, GPUs) are added to those of this machine; `rows` are added to the measured ones,
    such as predictions of them.

    >>> samples = lanewise.measure_host(["copy"])  # measures  # doctest: +SKIP
    >>> lanewise.save_run(lanewise.as_measured_run(samples), "memory.json")  # doctest: +SKIP
    """
    from lanewise.results.sample import summarise

    return new_run(rows=(*summarise(samples), *rows), machine_facts=machine_facts)


def save_run(run: Run, path: str | Path) -> None:
    """Writes a run as JSON (docs/reference/results-schema.md); the file is replaced as a whole or not at all.

    Raises InputError for a path that cannot be written.

    >>> lanewise.save_run(lanewise.run_studies(["gpu-server-routes"]), "routes.json")
    >>> lanewise.load_run("routes.json").studies[0].name
    'gpu-server-routes'
    """
    from lanewise.results.codec import run_to_json

    write_file(path, run_to_json(run))


def render_report(run: Run | str | Path) -> str:
    """A run as one HTML page that needs no network.

    Raises InputError for a file that cannot be read, FormatError for one that is not a run, and MissingDependency
    without matplotlib.

    >>> lanewise.render_report("run.json")[:15]
    '<!DOCTYPE html>'
    """
    from lanewise.report.html import report_html

    return report_html(run_of(run))


def compare(
    run_a: Run | str | Path,
    run_b: Run | str | Path,
    names: tuple[str, str] = ("left", "right"),
    devices: Mapping[str, str] | None = None,
) -> Comparison:
    """Two runs compared row by row: the pairs, and what only one of them has; measured pairs say whether they differ.

    `names` head the columns, `devices` maps words of the flows to those of the other run. Raises InputError for a file
    that cannot be read or a word that no flow has, and FormatError for a file that is not a run.

    >>> pair = lanewise.compare("run.json", lanewise.run_studies(["gpu-server-routes"])).pairs[0]
    >>> pair.left.value / 1e9, pair.difference_pct  # GB/s, %
    (10.288, 0.0)
    """
    from lanewise.errors import InputError
    from lanewise.results.compare import compare_runs, with_devices

    runs = run_of(run_a), run_of(run_b)
    words = set(re.split(r"->|, | ", ", ".join(row.flow for run in runs for row in run.rows)))
    for word, device in (devices or {}).items():
        if word not in words:
            cause = f"--as {word}={device} has no effect: no flow of the runs names {word}"
            raise InputError(cause, hint="leave it out")
    left, right = (with_devices(run, devices or {}) for run in runs)
    return compare_runs(left, right, names)


def compare_sources(run: Run | str | Path, left: str = "published", right: str = "predicted") -> Comparison:
    """Two sources of one run compared row by row: published, predicted, measured or extrapolated.

    Raises UnknownName for another source, InputError for a file that cannot be read and FormatError for one that is not
    a run.

    >>> pair = lanewise.compare_sources("run.json").pairs[0]
    >>> round(pair.left.value / 1e9, 1), round(pair.right.value / 1e9, 1)  # published, predicted, GB/s
    (10.6, 10.3)
    """
    from lanewise.results import compare as lay
    from lanewise.results.observation import Source

    for name in (left, right):
        if name not in list(Source):
            raise unknown_name("source", name, [str(source) for source in Source])
    return lay.compare_sources(run_of(run), Source(left), Source(right))


def compare_systems(run: Run | str | Path, left: str, right: str) -> Comparison:
    """Two systems of one run compared row by row.

    Where rows are named after their systems, rows of one table and metric are matched in their order.

    Raises UnknownName for a system that the run does not have, InputError for a file that cannot be read and
    FormatError for one that is not a run.

    >>> run = lanewise.run_studies(["expansion-chassis"])
    >>> pair = lanewise.compare_systems(run, "falcon-4010-epyc", "falcon-4010-xeon").pairs[0]
    >>> round(pair.left.value / 1e9, 1), round(pair.right.value / 1e9, 1)  # host to device, GB/s
    (26.2, 12.4)
    """
    from lanewise.results import compare as lay

    loaded = run_of(run)
    names = {row.system for study in loaded.studies for row in study.rows}
    for name in (left, right):
        if name not in names:
            raise unknown_name("system of this run", name, names)
    return lay.compare_systems(loaded, left, right)


def study_accuracy(run: Run | str | Path) -> str:
    """The residuals of a run, predicted against published values, as a Markdown page: by study, then row by row.

    Raises InputError for a file that cannot be read and FormatError for one that is not a run.

    >>> lanewise.study_accuracy("run.json").splitlines()[0]
    '# Accuracy'
    """
    from lanewise.report.accuracy import accuracy_page

    return accuracy_page(run_of(run))
