"""Lanewise's own results: a run's measured rows, and samples as they were taken (one JSON object a line)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lanewise.errors import FormatError, Location
from lanewise.readers.tool_results import ImportedResults
from lanewise.results.observation import Source
from lanewise.results.posted import PostedFacts


def is_run(text: str) -> bool:
    """Whether a text is a saved run, whole or not."""
    return text.lstrip("\ufeff \r\n\t").startswith("{") and '"schema": "lanewise.run/' in text[:400]


def read_run(text: str, file: str) -> ImportedResults:
    """The measured rows of a run, those of its studies too; FormatError if it has none."""
    from lanewise.results.codec import run_from_json  # here, as below: pasted texts do not need it

    run = run_from_json(text, file)
    every = [*run.rows, *(row for study in run.studies for row in study.rows)]
    rows = [row for row in every if row.source is Source.MEASURED]
    if not rows:
        hint = "lanewise measure ... -o run.json writes one that has"
        raise FormatError("the run has no measured rows", location=Location(file), hint=hint)
    return ImportedResults(f"lanewise {run.version}", tuple(rows), own=True, posted=_names(run.machine_facts))


def _names(machine: Mapping[str, str]) -> PostedFacts:
    """The GPUs of the machine that a run was measured on, by the names that their driver gives them."""
    gpus = {key: text.partition(",")[0] for key, text in machine.items() if re.fullmatch(r"gpu\d+", key)}
    return PostedFacts(gpus)


def is_samples(lines: Sequence[str]) -> bool:
    """Whether the lines are samples, by the first of them."""
    first = next((line for line in lines if line.strip()), "")
    return first.startswith("{") and all(f'"{key}":' in first for key in ("scenario", "flow", "metric", "value"))


def read_samples(lines: Sequence[str], file: str) -> ImportedResults:
    """Observations of the samples, joined by identity; a last line that a crash cut off is left out and noted."""
    from lanewise.results.codec import decode
    from lanewise.results.run_1 import row_2
    from lanewise.results.sample import Sample, summarise

    samples: list[Sample] = []
    notes: tuple[str, ...] = ()
    filled = [number for number, line in enumerate(lines, 1) if line.strip()]
    for number in filled:
        try:
            data: Any = json.loads(lines[number - 1], parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError) as error:
            if number == filled[-1] and samples and isinstance(error, json.JSONDecodeError):
                notes = (f"{file}:{number}: the last sample is cut off and left out",)
                break
            words = getattr(error, "msg", "nested too deeply" if isinstance(error, RecursionError) else str(error))
            cause = f"not a sample: {words}"
            raise FormatError(cause, location=Location(file, number), hint="one JSON object a line") from None
        samples.append(decode(Sample, row_2(data), f"line {number}", file))
    return ImportedResults("lanewise", summarise(samples), notes=notes, own=True)


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(f"{literal} is no finite number")
    return value
