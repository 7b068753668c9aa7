"""Studies and calibration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import package_data
from lanewise.api.arguments import one_or_more
from lanewise.api.loading import load_run, load_study, ready_studies, relative_reader
from lanewise.api.provenance import new_run
from lanewise.catalog import builtin
from lanewise.errors import InputError, Location

if TYPE_CHECKING:
    from lanewise.api.scenarios import ScenarioProgress
    from lanewise.catalog import Catalog
    from lanewise.options.workers import WorkerOptions
    from lanewise.results.plan import StudyProbe
    from lanewise.results.run import LeftOut, Run, StudyRun
    from lanewise.studies.calibrate import CalibrationFit
    from lanewise.studies.measured import MeasuredRun

Progress = Callable[[str], None]


def run_studies(
    refs: str | Path | Sequence[str | Path] = (),
    say: Progress = lambda _: None,
    catalog: Catalog | None = None,
    probe: StudyProbe | None = None,
    measured: str | Path | Sequence[str | Path | MeasuredRun] = (),
    workers: WorkerOptions | None = None,
    progress: Callable[[ScenarioProgress], None] = lambda _: None,
) -> Run:
    """A run of studies (all built-in ones if `refs` is empty): each row predicted and compared with its published
    value, and each conclusion tested.

    `refs` are names or files, one or several; `measured` adds runs of `lanewise measure` or `loadtest` to compare with:
    "run.json", or "xeon=run.json" where a study has several systems. `say` is called with the progress as text; `probe`
    answers rows in place of the model. `workers` says on which engine the rows are predicted, and which folder keeps
    the finished ones of each study; `progress` is called as they finish.

    Raises UnknownName for a study that does not exist, FormatError with file and line for a wrong one, and InputError
    for a run without measured rows.

    >>> study = lanewise.run_studies(["gpu-server-routes"]).studies[0]
    >>> sum(conclusion.holds is True for conclusion in study.conclusions), len(study.conclusions)
    (8, 9)
    """
    parts = catalog if catalog is not None else builtin()
    chosen = one_or_more(refs) or ready_studies()
    results = each_study(chosen, say, parts, probe, load_measured(measured), workers, progress)
    return new_run(studies=tuple(results))


def each_study(
    refs: Sequence[str | Path], say: Progress, catalog: Catalog, probe: StudyProbe | None,
    measured: Sequence[MeasuredRun], workers: WorkerOptions | None, progress: Callable[[ScenarioProgress], None],
) -> Iterator[StudyRun]:  # fmt: skip
    """The result of each study as it ends, all on one engine; arguments and errors are those of run_studies."""
    from lanewise.api.study_rows import open_study_rows
    from lanewise.probes.model import ModelProbe
    from lanewise.studies.runner import run_study

    with open_study_rows(workers, progress) as rows_of:
        for ref in refs:
            say(str(ref))
            form, reader, tell = load_study(ref), relative_reader(ref), _prefixed(say, f"{ref}: ")
            yield run_study(form, probe or ModelProbe(), catalog, reader, tell, measured, rows_of(ref))


def load_measured(refs: str | Path | Sequence[str | Path | MeasuredRun]) -> tuple[MeasuredRun, ...]:
    """The measured rows of runs, each 'RUN.json' or 'SYSTEM=RUN.json'; InputError for a run that has none."""
    from lanewise.results.compare import rows_of
    from lanewise.results.observation import Source
    from lanewise.studies.measured import MeasuredRun

    runs = []
    for ref in one_or_more(refs):
        if isinstance(ref, MeasuredRun):
            runs.append(ref)
            continue
        system, equals, path = str(ref).partition("=")
        if not equals or Path(ref).exists():
            system, path = "", str(ref)
        rows = rows_of(load_run(path), Source.MEASURED)
        if not rows:
            raise InputError(
                "holds no measured rows", location=Location(path), hint="give a run of lanewise measure or loadtest"
            )
        runs.append(MeasuredRun(Path(path).name, rows, system))
    return tuple(runs)


def calibrate(
    refs: str | Path | Sequence[str | Path],
    unknowns: str | Sequence[str],
    tables: str | Sequence[str] = (),
    say: Progress = lambda _: None,
    catalog: Catalog | None = None,
) -> tuple[CalibrationFit, tuple[LeftOut, ...]]:
    """Unknown figures of parts fitted by least squares to the published rows of studies, and leave-one-group-out
    residuals.

    `unknowns` name part, figure and range with its unit: "l40s service.resnet50.server 10000..100000 QPS". `tables`
    selects tables of the studies (empty: all). `say` is called with the progress as text.

    Raises FormatError for text that is not an unknown, UnknownName for a part, figure or study that does not exist, and
    InputError if the rows are fewer than the unknowns or none has a published value.

    >>> unknown = "l40s service.resnet50.server 10000..100000 QPS"
    >>> fit, left_out = lanewise.calibrate(["composable-server"], [unknown], tables=["gen4"])
    >>> round(fit.values[0].value, -2), round(fit.rms_pct, 1)  # queries/s, %
    (43400.0, 2.4)
    """
    from lanewise.probes.model import ModelProbe
    from lanewise.studies.fitting import calibrate_to_studies, parse_unknown

    parts = catalog if catalog is not None else builtin()
    forms = [(load_study(ref), relative_reader(ref)) for ref in one_or_more(refs)]
    fits = [parse_unknown(text) for text in one_or_more(unknowns)]
    return calibrate_to_studies(forms, fits, one_or_more(tables), parts, ModelProbe(), say)


def new_study(name: str) -> tuple[str, str]:
    """The texts of a commented study and of its system, to save as NAME.yaml and NAME-system.yaml and edit.

    Raises InputError for a name with characters other than letters, digits, '-' and '_'.

    >>> study, system = lanewise.new_study("nvlink")
    >>> study.splitlines()[0]
    '# A study: questions about systems, compared with published or measured numbers.'
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise InputError(f"'{name}' cannot name a study", hint="use letters, digits, '-' and '_', a letter first")
    study, system = (package_data.text("starter", kind, "template")[0] for kind in ("study", "system"))
    return study.replace("NAME", name), system.replace("NAME", name)


def _prefixed(say: Progress, prefix: str) -> Progress:
    return lambda text: say(prefix + text)
