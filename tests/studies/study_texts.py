"""A small study as data, and its text with one thing changed."""

from __future__ import annotations

import copy
from typing import Any

import yaml

BASE: dict[str, Any] = {
    "lanewise": 1,
    "study": "small",
    "systems": {"dgx": "dgx-a100-network"},
    "tables": [
        {
            "name": "rates",
            "metric": "goodput",
            "unit": "GB/s",
            "system": "dgx",
            "rows": [{"label": "one", "scenario": {"flows": "gpu0->gpu1"}, "published": 200}],
        },
        {
            "name": "swept",
            "metric": "qps",
            "unit": "QPS",
            "system": "dgx",
            "scenario": {"service": "resnet50", "division": "network", "host": "accelerator"},
            "sweep": {"nics": [1, 2]},
            "rows": [{"label": "net", "published": [1, None]}],
        },
    ],
}


def changed(*path: str | int, value: Any) -> str:
    """The text of the small study with `value` at `path`; a list grows by one if the last step is its length."""
    data = copy.deepcopy(BASE)
    here: Any = data
    for step in path[:-1]:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    if isinstance(here, list) and path[-1] == len(here):
        here.append(value)
    else:
        here[path[-1]] = value
    return str(yaml.safe_dump(data, sort_keys=False))
