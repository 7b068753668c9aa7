"""What several probes read of this machine: texts of /sys and /proc, CPUs of a NUMA node, links, free memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lanewise.control.sysfs import cpus as cpus
from lanewise.control.sysfs import cpus_of as cpus_of
from lanewise.control.sysfs import text as text
from lanewise.errors import CannotMeasure, MissingDependency
from lanewise.topology.speeds import generation

ROOT = Path("/")
SYS = ROOT / "sys"
UNKNOWN = "unknown"
_STRAY = 0.01  # of the pages of a buffer; fewer on another NUMA node do not show in its rate


def needs_linux(subject: str) -> None:
    """MissingDependency on any other system: the native parts that measure are not built there."""
    import sys

    if sys.platform != "linux":
        raise MissingDependency(
            f"{subject} can be measured on Linux only", hint="run lanewise measure on a Linux machine"
        )


@contextmanager
def native_errors() -> Iterator[None]:
    """Turns errors of the native core, and a lack of threads or memory, into CannotMeasure."""
    from lanewise._native import ProbeFailure

    try:
        yield
    except ProbeFailure as failure:
        cause, hint = failure.args
        raise CannotMeasure(cause, hint=hint) from None
    except (RuntimeError, MemoryError) as error:
        hint = "ask for fewer threads, connections or bytes"
        raise CannotMeasure(f"this machine cannot go on: {error}", hint=hint) from None


def link(folder: Path, state: str = "current") -> str:
    """'Gen5 x16' from a PCI device's folder, `state` current or max; '' where the kernel does not say."""
    gen, width = generation(text(folder / f"{state}_link_speed")), text(folder / f"{state}_link_width")
    return f"Gen{gen} x{width}" if gen is not None and width.isdigit() and width != "0" else ""


def available(root: Path = ROOT) -> int | None:
    """Free memory in bytes, of the machine or of this control group if that is less; None if unknown."""
    free = re.search(r"MemAvailable:\s*(\d+) kB", text(root / "proc/meminfo"))
    limits = [int(free[1]) * 1024] if free else []
    most, used = (text(root / f"sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if most.isdigit() and used.isdigit():
        limits.append(max(0, int(most) - int(used)))
    return min(limits, default=None)


def numa_nodes(pages: Mapping[int, int]) -> str:
    """The NUMA node of a buffer, from its pages by node (-1: unknown): '1', '0 (75 %), 1 (25 %)' or unknown."""
    total = sum(pages.values())
    counts = {
        str(node) if node >= 0 else UNKNOWN: count
        for node, count in sorted(pages.items())
        if count >= _STRAY * total and count
    }
    if len(counts) < 2:
        return next(iter(counts), UNKNOWN)
    return ", ".join(f"{name} ({100 * count / total:.0f} %)" for name, count in counts.items())
