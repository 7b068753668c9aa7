"""How far predictions of each basis lie from published values, from the run that `make accuracy` made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from lanewise import units
from lanewise.results import statistics
from lanewise.results.run import Run

_FILE = "accuracy.json"


def basis_summary(run: Run) -> dict[str, Any]:
    """The rms residual in % and the number of compared rows, by basis, of rates: what data/accuracy.json holds."""
    rows = [row for study in run.studies for row in study.rows if units.dimension(row.unit) != "s"]
    groups = statistics.by_basis(rows)
    return {
        name: {"rms_pct": round(group.rms_pct, 2), "rows": group.compared}
        for name, group in groups.items()
        if group.rms_pct is not None
    }


def basis_note(bases: Iterable[str]) -> str:
    """'calibrated: rms error 6.9 % over 12 published rates; ...' for the bases of a prediction, '' if none is known."""
    known = _summary()
    return "; ".join(
        f"{basis}: rms error {known[basis]['rms_pct']:.1f} % over {known[basis]['rows']} published rates"
        for basis in dict.fromkeys(bases)
        if basis in known
    )


@cache
def _summary() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(files("lanewise.data").joinpath(_FILE).read_text(encoding="utf-8"))
    return data
