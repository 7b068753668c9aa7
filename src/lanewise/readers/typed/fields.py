"""Values, metrics, counts and sizes of a row typed in, with its line in every error."""

from __future__ import annotations

import math
from dataclasses import replace

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import LanewiseError
from lanewise.readers.typed import values
from lanewise.readers.words import spellings
from lanewise.readers.words.plain_values import is_above
from lanewise.yaml_positions import YamlNode

# What a rate and a time of all GPUs of a ring are of: a collective, each by its rank's share.
BY_ALGORITHM = "algorithm_bandwidth"
OF_COLLECTIVES = ("bus_bandwidth", BY_ALGORITHM, "time")
_METRICS = ("goodput", "total", "latency", "bus_bandwidth", BY_ALGORITHM, "time", "iops")
_TIMES = ("latency", "time")
# More than 900 GB/s is more than what is rated at 900.
_ABOVE = 1 + 1e-9
_MOST_COUNTED = 2**30  # threads of a GPU


def quantity(node: YamlNode, *, bits: bool) -> tuple[float, str, str, str]:
    """Value in SI, the unit it was written in, the metric that this unit means, and how it was taken."""
    text, note = spellings.rate_or_time(values.of_what(node.as_written())[0], bits)
    unit = re.sub(r"[\s\d.,_+-]*(?:[eE][+-]?\d+)?\s*", "", text, count=1) if not text.endswith("1/s") else "1/s"
    unit = "IOPS" if re.fullmatch(r"[kM]? ?IOPS", unit) else unit
    metric = {"B/s": "goodput", "s": "latency", "1/s": "iops"}.get(units.si_unit(unit), "")
    if not metric:
        raise node.error(f"'{node.as_written()}' is no rate and no time", "write 12.3 GB/s, 100 Gb/s or 2.1 us")
    value = _parsed(node, text, units.si_unit(unit))
    if not 0 <= value < math.inf:
        raise node.error(f"'value' must be finite and not negative, not {node.as_written()}", "write 12.3 GB/s")
    above = node.key == "value" and is_above(node.as_written())
    return (value * _ABOVE if above else value), unit, metric, note


def metric_of(row: YamlNode, otherwise: str) -> str:
    """The metric that a row names, `otherwise` if none; UnknownName for other words, FormatError for a time as a rate.

    `otherwise` is the metric of the unit of the row's value, empty where it is not asked for.
    """
    word = values.metric(row["metric"].text(otherwise))
    if word == otherwise:
        return word
    named = replace(row["metric"], value=word).choice(_METRICS)
    if otherwise and (named in _TIMES) != (otherwise in _TIMES):
        raise row["metric"].error(f"'{row['value'].as_written()}' is no {named}", "the unit and the metric of one kind")
    return named


def count(node: YamlNode) -> int:
    """A number of requests, threads, ranks or hosts, with or without the word; FormatError if it is none."""
    number = spellings.count(node.as_written())
    return number if number is not None and 1 <= number <= _MOST_COUNTED else node.integer(1, _MOST_COUNTED)


def size(node: YamlNode) -> int:
    """The size of a request or copy in B; FormatError if it is none or not above 0."""
    value = _parsed(node, spellings.size(node.as_written()), "B")
    if not 1 <= value < math.inf:
        raise node.error(f"'bytes' must be finite and above 0, not {node.as_written()}", "for example bytes: 64 MiB")
    return int(value)


def is_counted(row: YamlNode) -> bool:
    """Whether a row's value counts tokens, requests or the like."""
    unit = spellings.rate_or_time(row["value"].as_written(), bits=False)[0].rpartition(" ")[2]
    return unit != "IOPS" and units.si_unit(unit) == "1/s"


def _parsed(node: YamlNode, text: str, unit: str) -> float:
    """A quantity of that SI unit; FormatError at the node otherwise."""
    try:
        return units.parse(text, unit)
    except LanewiseError as error:
        error.cause, error.location = f"{node.name}: {error.cause}", node.location
        raise
