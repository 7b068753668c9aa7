"""A measured machine: its wiring as a system description, and rows of what was measured on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lanewise.catalog.reading import parts_of
from lanewise.errors import Location
from lanewise.perf.flow import Flow
from lanewise.results.traffic import CollectiveMessage, Traffic
from lanewise.topology.read import read_document

if TYPE_CHECKING:
    from lanewise.catalog import Catalog
    from lanewise.topology.model import System
    from lanewise.yaml_positions import YamlDocument, YamlNode

# What a value is of several flows: their sum, their mean, or that of the first one.
TOTAL, EACH, FIRST = "total", "each", "first"


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A measured value, in B/s or, with `latency`, in s: the flows, and how the value counts them.

    `low` and `high` are the range that the source gives over equal paths, `schedule` the order in which the tool ran
    the copies. `skip` says why nothing can predict the row, which then may have no flows. A row of `traffic` (a
    collective, blocks, a model's load) has a rate or, with `latency`, a time as `value`; `algorithm` is the one that
    the source says a collective ran by default, or ''. A figure comes from this very row if it is `learned`.
    """

    path: str
    text: str
    flows: tuple[Flow, ...]
    value: float
    unit: str
    of: str = TOTAL
    latency: bool = False
    schedule: str = "together"
    skip: str = ""
    low: float | None = None
    high: float | None = None
    quality: str = ""
    note: str = ""
    location: Location | None = None
    traffic: Traffic | None = None
    algorithm: str = ""
    learned: bool = False

    @property
    def collective(self) -> CollectiveMessage | None:
        """The collective of the row, if it is one."""
        return self.traffic if isinstance(self.traffic, CollectiveMessage) else None


@dataclass(frozen=True, slots=True)
class EvidenceMachine:
    """A machine, its rows, and where both come from; with `held_out` no figure of the catalogue may rest on it.

    `same_as` is the machine of which these rows are another setting, such as another driver.
    `parts` revises parts of the catalogue where this machine differs, such as a driver that was patched.
    """

    name: str
    title: str
    source: str
    rows: tuple[EvidenceRow, ...]
    description: YamlDocument = field(repr=False, compare=False)
    parts: YamlNode = field(repr=False, compare=False)
    tool: str = ""
    wiring: str = ""
    held_out: bool = False
    same_as: str = ""
    same_as_location: Location | None = field(default=None, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """The names under which figures of the catalogue may rest on it."""
        return frozenset({self.name, self.same_as or self.name})

    def left_out_of(self, catalog: Catalog) -> Catalog:
        """The catalogue without the figures that this machine gave."""
        for name in self.names:
            catalog = catalog.without_machine(name)
        return catalog

    def system(self, catalog: Catalog) -> System:
        """The machine on the parts of `catalog`; InputError with file and line if its description is wrong."""
        own = catalog.merge(parts_of(self.parts, catalog)) if self.parts.given else catalog
        return read_document(self.description, catalog=own)
