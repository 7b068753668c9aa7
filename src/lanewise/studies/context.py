"""The context that a study runs in: its systems, and the plans of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lanewise.catalog import Catalog
from lanewise.errors import LanewiseError, error_location
from lanewise.results.plan import Plan, StudyProbe
from lanewise.studies.form import RowForm, StudyForm
from lanewise.studies.measured import MeasuredRun
from lanewise.topology.model import System

# Reads a system by reference (a ready name or a file), settings and catalogue.
Systems: TypeAlias = Callable[[str, Mapping[str, int], Catalog], System]


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
        # The settings of a measured machine's rows say what was measured, not what the machine is.
        chosen = {} if ref.machine is not None else {**ref.settings, **settings}
        key = (ref.system, tuple(sorted(chosen.items())), id(self.catalog))
        if ref.machine is not None and key not in self.systems:
            self.systems[key] = ref.machine.system(ref.machine.left_out_of(self.catalog))
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
            return Plan(system, row.scenario, row.metric, row.unit)
