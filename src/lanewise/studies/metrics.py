"""The SI unit of each metric, which the units of a study are checked against."""

from __future__ import annotations

from lanewise import units
from lanewise.errors import FormatError, unknown_name

METRIC_UNITS = {
    "goodput": "B/s", "flow_goodput": "B/s", "slowest": "B/s", "raw": "B/s", "root_ports": "B/s",
    "latency": "s", "wire_latency": "s", "qps": "1/s",
    "share": "1", "link_share": "1", "raw_ratio": "1", "ratio": "1",
}  # fmt: skip
_EXAMPLES = {"B/s": "GB/s", "s": "us", "1/s": "QPS", "1": "'%' or '1'"}


def check_metric(metric: str, unit: str, computed: bool) -> None:
    """UnknownName or FormatError unless `metric` can be given in `unit`; a `computed` row may call its metric anything.

    The unit must exist either way.
    """
    dimension = units.dimension(unit)
    if computed:
        return
    if metric not in METRIC_UNITS:
        raise unknown_name("metric", metric, METRIC_UNITS)
    expected = METRIC_UNITS[metric]
    if dimension != expected:
        raise FormatError(f"'{metric}' cannot be in '{unit}'", hint=f"for example unit: {_EXAMPLES[expected]}")
