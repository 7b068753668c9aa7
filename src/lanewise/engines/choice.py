"""The engine that --on names: local processes, a Ray of this machine, or a Ray elsewhere."""

from __future__ import annotations

import os

from lanewise.engines.work import WorkEngine
from lanewise.errors import FormatError

_HINT = "write local:4 (processes), ray:4 (a Ray of this machine) or ray://HOST:10001"
_MOST = 4096


def open_engine(on: str | None) -> WorkEngine:
    """The engine of 'local:4', 'ray:4' or 'ray://HOST:10001'; without the number one worker a CPU; None: this process.

    FormatError for anything else, MissingDependency without Ray, EngineFailure where it cannot be started or reached.
    """
    kind, workers, address = parse_engine(on)
    if kind == "ray":
        from lanewise.engines.ray_engine import RayEngine

        return RayEngine(address, workers)
    from lanewise.engines.local import InlineEngine, LocalEngine

    return InlineEngine() if kind == "" else LocalEngine(workers)


def parse_engine(on: str | None) -> tuple[str, int, str]:
    """Kind, number of workers and address of what --on names; FormatError for what is none."""
    if on is None:
        return "", 1, ""
    if on.startswith("ray://"):
        host, _, port = on.removeprefix("ray://").rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise FormatError(f"'{on}' is no address of Ray", hint="write ray://HOST:10001, the port of Ray's client")
        return "ray", 0, on
    kind, colon, count = on.partition(":")
    number = int(count) if count.isdigit() else 0
    if kind not in ("local", "ray") or (colon and not 1 <= number <= _MOST):
        raise FormatError(f"--on: '{on}' is no engine", hint=_HINT)
    return kind, number or len(os.sched_getaffinity(0)), ""
