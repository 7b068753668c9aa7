"""The context that a study runs in: its systems, and the plans and calibration targets of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lanewise.errors import LanewiseError, error_location
from lanewise.perf.flow import parse_flows
from lanewise.results.plan import STEADY, Copies, Metric, Plan, Service
from lanewise.studies.calibrate import CalibrationTarget
from lanewise.studies.sections import check_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.plan import StudyProbe
    from lanewise.studies.form import RowForm, ScenarioForm, StudyForm
    from lanewise.studies.measured import MeasuredRun
    from lanewise.topology.model import System

    # Reads a system by reference (a ready name or a file), settings and catalogue.
    Systems = Callable[[str, Mapping[str, int], Catalog], System]


@dataclass
class StudyContext:
    """What a running study needs: its form, the probe, the catalogue, the systems read so far, and measured runs."""

    form: StudyForm
    probe: StudyProbe
    catalog: Catalog
    read_system: Systems
    systems: dict[tuple[Any, ...], System] = field(default_factory=dict)
    measured: Sequence[MeasuredRun] = ()

    def system(self, name: str, settings: Mapping[str, int]) -> System:
        """The system of that short name with those settings, on the catalogue of the study."""
        ref = self.form.systems[name]
        chosen = {**ref.settings, **settings}
        key = (ref.system, tuple(sorted(chosen.items())), id(self.catalog))
        if key not in self.systems:
            try:
                self.systems[key] = self.read_system(ref.system, chosen, self.catalog)
            except LanewiseError as error:
                if error.location is not None and not error.location.line:  # the file as a whole, which the study names
                    error.cause, error.location = str(error), ref.location
                raise
        return self.systems[key]

    def plan(self, row: RowForm) -> Plan:
        """The plan that predicts a row."""
        with error_location(row.location):
            system = self.system(row.system, row.settings)
            return Plan(system, scenario(row.scenario, row.label), (Metric(row.metric, row.unit),))


def scenario(form: ScenarioForm, name: str) -> Copies | Service:
    """The scenario that a form describes; FormatError where its flows cannot be read."""
    if form.service:
        return Service(form.service, form.mode, form.division, form.host, name, form.method)
    flows = parse_flows(form.flows, form.p2p)
    if form.demand is not None:
        share = form.demand / len(flows)
        flows = tuple(
            replace(f, cap=share, cap_name="the work itself", cap_rests_on="the published data rate") for f in flows
        )
    return Copies(flows, name)


def fit_rows(form: StudyForm) -> list[RowForm]:
    """The rows that the study fits to: those of its fit tables that can be fitted to."""
    return [row for row in form.rows if row.table in form.fit_tables and fittable(row)]


def fittable(row: RowForm) -> bool:
    """Whether a row is a prediction of its own with a published value that the source did not extrapolate."""
    own = row.role == "prediction" and not row.derive and not row.extrapolated
    return own and row.published is not None


def targets(context: StudyContext, rows: Sequence[RowForm]) -> list[CalibrationTarget]:
    """Fit targets of rows, grouped by the rows' group; FormatError for a row that was published as 0."""
    chosen = []
    for row in rows:
        check_target(row)
        settings = " ".join(f"{key}={value}" for key, value in row.settings.items() if key not in row.label)
        where = (context.form.name, row.table, f"{row.label} {settings}".strip())
        # A fit predicts thousands of times, so it always predicts the steady state.
        plain = replace(row, scenario=replace(row.scenario, method=STEADY))
        chosen.append(CalibrationTarget(context.plan(plain), row.published or 0.0, row.group, where))
    return chosen
