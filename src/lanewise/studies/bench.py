"""The bench a study runs on: its systems, and the questions and fit targets that its rows are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lanewise.errors import LanewiseError, error_location
from lanewise.perf.flow import parse_flows
from lanewise.results.plan import STEADY, Copies, Metric, Plan, Service
from lanewise.studies.calibrate import Target
from lanewise.studies.claims import check_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.catalog import Catalog
    from lanewise.results.plan import Probe
    from lanewise.studies.form import RowForm, ScenarioForm, StudyForm
    from lanewise.studies.measured import MeasuredRun
    from lanewise.topology.model import System

    # Gives a system by reference (a ready name or a file), settings and catalogue.
    Systems = Callable[[str, Mapping[str, int], Catalog], System]


@dataclass
class Bench:
    """What a running study needs: its form, the probe, the parts, the systems already read, and measured runs."""

    form: StudyForm
    probe: Probe
    catalog: Catalog
    read_system: Systems
    known: dict[tuple[Any, ...], System] = field(default_factory=dict)
    measured: Sequence[MeasuredRun] = ()

    def system(self, name: str, settings: Mapping[str, int]) -> System:
        """The system of that short name with those settings, resting on the bench's catalogue."""
        ref = self.form.systems[name]
        chosen = {**ref.settings, **settings}
        key = (ref.system, tuple(sorted(chosen.items())), id(self.catalog))
        if key not in self.known:
            try:
                self.known[key] = self.read_system(ref.system, chosen, self.catalog)
            except LanewiseError as error:
                if error.location is not None and not error.location.line:  # the file as a whole, which the study names
                    error.cause, error.location = str(error), ref.location
                raise
        return self.known[key]

    def plan(self, row: RowForm) -> Plan:
        """The question that a row asks."""
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
    """Whether a row is a prediction of its own beside a published value that the source did not extrapolate."""
    own = row.role == "prediction" and not row.derive and not row.extrapolated
    return own and row.published is not None


def targets(bench: Bench, rows: Sequence[RowForm]) -> list[Target]:
    """Fit targets of rows, grouped by the rows' group; FormatError for a row that was published as 0."""
    made = []
    for row in rows:
        check_target(row)
        settings = " ".join(f"{key}={value}" for key, value in row.settings.items() if key not in row.label)
        where = (bench.form.name, row.table, f"{row.label} {settings}".strip())
        # A fit asks thousands of times, so it always asks the steady state.
        plain = replace(row, scenario=replace(row.scenario, method=STEADY))
        made.append(Target(bench.plan(plain), row.published or 0.0, row.group, where))
    return made
