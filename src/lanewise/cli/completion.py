"""What the shell completes: systems, studies, workloads, parts and the GPUs of the system already typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def _systems(incomplete: str) -> list[str]:
    from lanewise import api

    return _starting(incomplete, api.ready_systems())


def _studies(incomplete: str) -> list[str]:
    from lanewise import api

    return _starting(incomplete, [*api.ready_studies(), "all"])


def _workloads(incomplete: str) -> list[str]:
    from lanewise import api

    return _starting(incomplete, api.ready_workloads())


def _parts(incomplete: str) -> list[str]:
    from lanewise import api

    return _starting(incomplete, api.load_catalog().names(None))


def _gpus(ctx: Any, incomplete: str) -> list[str]:
    """The GPUs of the system on the line, else gpu0 to gpu15; after a comma the next one."""
    from lanewise import api
    from lanewise.errors import LanewiseError
    from lanewise.topology.model import Kind

    before, comma, name = incomplete.rpartition(",")
    try:
        gpus = api.load_system(ctx.params["system"]).of_kind(Kind.GPU)
    except (KeyError, LanewiseError):
        gpus = [f"gpu{number}" for number in range(16)]
    return [f"{before}{comma}{gpu}" for gpu in _starting(name, gpus)]


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


KINDS = {"systems": _systems, "studies": _studies, "workloads": _workloads, "parts": _parts, "gpus": _gpus}
