"""LoadGen's detail log: one JSON object a line behind `:::MLLOG`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.errors import FormatError, Location

MARK = ":::MLLOG "
NAME = "mlperf_log_detail.txt"
ENDED_EARLY = "Lanewise ended the run early"  # native/loadgen/run.cpp
PERCENTILES = {"p50": "50.00", "p90": "90.00", "p99": "99.00", "p99.9": "99.90"}
_RATES = (
    "result_completed_samples_per_sec",  # Server
    "result_samples_per_second",  # Offline
    "result_qps_with_loadgen_overhead",  # SingleStream
)


@dataclass(frozen=True, slots=True)
class DetailLog:
    """What a run wrote: the last of the `values` of each key, `errors`, `warnings`; `cut`: its last line is not whole.

    Times as LoadGen writes them, in ns; `latency` gives s. `settings` are those in effect.
    """

    values: Mapping[str, object]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cut: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        """Whether LoadGen came to a verdict: performance runs that were not ended early."""
        return "result_validity" in self.values

    def has_end(self, accuracy: bool) -> bool:
        """Whether the log was written to its end: that of an accuracy run, of a verdict, or of a run ended early."""
        if self.cut:
            return False
        return ("power_end" if accuracy else "num_errors") in self.values or any(
            error.startswith(ENDED_EARLY) for error in self.errors
        )

    @property
    def valid(self) -> bool:
        """LoadGen's verdict, early stopping included."""
        return self.values.get("result_validity") == "VALID"

    @property
    def rate(self) -> float | None:
        """Completed queries a second (samples in Offline); None where LoadGen gives none, as in MultiStream."""
        return next((self.number(key) for key in _RATES if key in self.values), None)

    @property
    def queries(self) -> int:
        """Queries that were issued."""
        return int(self.number("result_query_count") or 0)

    @property
    def late(self) -> int:
        """Queries above the bound; LoadGen counts them in Server alone."""
        return int(self.number("result_overlatency_query_count") or 0)

    @property
    def latency(self) -> dict[str, float]:
        """p50, p90, p99, p99.9, mean and max in s; of whole queries in MultiStream."""
        whole = "_query" if "result_mean_query_latency_ns" in self.values else ""
        infix = "_per_query" if whole else ""
        keys = {name: f"result_{percent}_percentile{infix}_latency_ns" for name, percent in PERCENTILES.items()}
        keys |= {name: f"result_{name}{whole}_latency_ns" for name in ("mean", "max")}
        values = {name: self.number(key) for name, key in keys.items()}
        return {name: value / 1e9 for name, value in values.items() if value is not None}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the run is not valid, in LoadGen's words, and its errors."""
        words = [] if self.valid else [self.values.get("result_invalid_reason")]
        if self.values.get("early_stopping_met") is False:
            words.append(self.values.get("early_stopping_result"))
        texts = (" ".join(str(word).replace("*", " ").split()) for word in words if word)
        return tuple(dict.fromkeys([*(text for text in texts if text), *self.errors]))

    def number(self, key: str) -> float | None:
        """A value as a number; None if it was not written or is not finite."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:  # nor NaN
            return None
        return float(value)


def parse(text: str, file: str = NAME) -> DetailLog:
    """The log in `text`; FormatError names the line of `file` that is none of LoadGen's."""
    values: dict[str, object] = {}
    errors, warnings = [], []
    lines = text.splitlines()
    cut = bool(lines) and not text.endswith("\n")
    for number, line in enumerate(lines[:-1] if cut else lines, 1):
        if not line.strip():
            continue
        key, value, meta = _entry(line, Location(file, number))
        values[key] = value
        if meta.get("is_error"):
            errors.append(str(value))
        elif meta.get("is_warning"):
            warnings.append(str(value))
    start = "effective_"
    settings = {key.removeprefix(start): value for key, value in values.items() if key.startswith(start)}
    for key in ("loadgen_version", "sut_name", "requested_server_coalesce_queries"):
        if key in values:
            settings[key.removeprefix("requested_")] = values[key]
    return DetailLog(values, tuple(errors), tuple(warnings), cut, settings)


def _entry(line: str, location: Location) -> tuple[str, object, Mapping[str, object]]:
    hint = "give LoadGen's mlperf_log_detail.txt"
    if not line.startswith(MARK):
        raise FormatError("no line of a LoadGen detail log", location=location, hint=hint)
    try:
        entry = json.loads(line[len(MARK) :])
        key, value, metadata = str(entry["key"]), entry["value"], entry["metadata"]
    except (ValueError, KeyError, TypeError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise FormatError("not a JSON object with key, value and metadata", location=location, hint=hint)
    return key, value, metadata
