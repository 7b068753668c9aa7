"""Files of lanewise.run/1, whose rows stated every value in the unit of their table, as lanewise.run/2 states them."""

from __future__ import annotations

from typing import Any

from lanewise import units
from lanewise.errors import FormatError


def run_2(run: Any) -> Any:
    """The JSON data of a run/1 file as run/2 has it; what is not as it should be is left for the decoder to name."""
    if not isinstance(run, dict):
        return run
    parts = {"rows": row_2, "services": _service, "studies": run_2}
    return run | {
        key: [part(item) for item in run[key]] for key, part in parts.items() if isinstance(run.get(key), list)
    }


def row_2(row: Any) -> Any:
    """A row or sample in SI: `unit` becomes `display_unit`, `beside` becomes `comparisons`."""
    if not isinstance(row, dict) or "display_unit" in row or not isinstance(row.get("unit"), str):
        return row
    unit = row["unit"]

    def si(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: si(item) for key, item in value.items()}
        if isinstance(value, list):
            return [si(item) for item in value]
        try:
            return units.to_si(value, unit) if isinstance(value, float | int) and not isinstance(value, bool) else value
        except (FormatError, OverflowError):
            return value

    names = {"unit": "display_unit", "beside": "comparisons"}
    values = ("value", "low", "high", "published", "samples", "beside")
    data = _renamed({key: si(item) if key in values else item for key, item in row.items()}, names)
    if isinstance(measured := row.get("measured"), dict):
        same = {key: row.get(key) for key in ("scenario", "flow", "metric")}
        ends = {key: si(measured.get(key)) for key in ("value", "low", "high")}
        data["measured"] = {
            **same, **ends, "display_unit": unit, "source": "measured", "note": measured.get("which", "")
        }  # fmt: skip
    return data


def _service(service: Any) -> Any:
    if not isinstance(service, dict):
        return service
    data = _renamed(service, {"tried": "search_runs", "busy": "utilization"})
    runs = service.get("tried")
    if isinstance(runs, list):
        data["search_runs"] = [_renamed(run, {"qps": "rate"}) for run in runs]
    return data


def _renamed(data: Any, names: dict[str, str]) -> Any:
    return {names.get(key, key): item for key, item in data.items()} if isinstance(data, dict) else data
