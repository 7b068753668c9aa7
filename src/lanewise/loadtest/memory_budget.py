"""Memory for a run, checked before it: LoadGen makes all queries before it issues the first."""

from __future__ import annotations

import math
import re
from pathlib import Path

from lanewise.errors import CannotMeasure
from lanewise.loadtest.load_run import MULTI_STREAM, OFFLINE, SERVER, LoadSpec

# B at the peak with LoadGen 6.0.17: 323 and 169 measured (benchmarks/loadgen_memory.py), and room for a log that lags.
PER_QUERY = 510
PER_SAMPLE = 250  # of each sample in a query of many
_SHARE = 0.9  # of what is free, so that others can still breathe


def needed(load: LoadSpec) -> int:
    """Bytes that LoadGen will take at the peak of a run, its queries and their log; not the system's own."""
    due = load.qps * load.seconds
    if load.scenario == SERVER:
        return PER_QUERY * math.ceil(max(load.queries, due))
    if load.scenario == OFFLINE:
        return PER_SAMPLE * math.ceil(max(load.queries, 1.1 * due))
    per_query = PER_QUERY + (PER_SAMPLE * load.samples if load.scenario == MULTI_STREAM else 0)
    return per_query * math.ceil(max(load.queries, 2.0 * due))


def available(root: Path = Path("/")) -> int | None:
    """Bytes to be had without swapping, of the machine or of this control group if that is less; None if unknown."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", _text(root / "proc/meminfo"))
    limits = [int(free[1]) * 1024] if free else []
    most, used = (_text(root / f"sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


def check(load: LoadSpec, free: int | None) -> None:
    """CannotMeasure with what is needed and what is `free` where a run does not fit."""
    need = needed(load)
    if free is None or need <= _SHARE * free:
        return
    seconds = math.floor(_SHARE * free / need * load.seconds)
    shorter = (
        f"a run of {seconds} s fits" if seconds >= 1 and load.qps * seconds >= load.queries else "ask for a lower rate"
    )
    raise CannotMeasure(
        f"LoadGen makes its queries beforehand: this run needs {_gb(need)} of memory, {_gb(free)} are free",
        hint=f"{shorter}, or free memory",
    )


def _gb(count: int) -> str:
    return f"{count / 1e9:.3g} GB"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
