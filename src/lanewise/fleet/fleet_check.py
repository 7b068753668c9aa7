"""The result of a fleet check: verdicts, with what was measured to reach them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanewise.fleet.judgement import FleetVerdicts
from lanewise.fleet.node import NodeReport


@dataclass(frozen=True, slots=True)
class FleetCheck:
    """Verdicts on all nodes; the `phases` that were done, the rounds of the network, how many `seconds` it took.

    `reports` has the rows of each node. `interrupted`: the phases that are missing were not reached.
    """

    verdicts: FleetVerdicts
    reports: Mapping[str, NodeReport]
    phases: tuple[str, ...]
    rounds: int
    seconds: float
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """That of the verdicts: 0 all well, 1 findings, 3 not judged."""
        return self.verdicts.exit_code
