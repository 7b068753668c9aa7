"""Collectives of several GPUs, predicted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.loading import as_system
from lanewise.topology.model import Kind, System

if TYPE_CHECKING:
    from lanewise.collectives.model import CollectiveCurve
    from lanewise.results.observation import Observation


def nccl_topology(system: System | str | Path, host: str | None = None, rates: str = "described") -> str:
    """A host of a system as the XML of an NCCL topology file (NCCL_TOPO_FILE).

    `rates` "predicted": links of GPUs and network cards carry no more than a copy over them is predicted to reach,
    else what is described. Raises InputError where the system has several hosts and `host` names none, Contradiction
    for a GPU or network card without a PCI address among its os_names, UnknownName for other words.

    >>> text = lanewise.nccl_topology("machine.yaml", rates="predicted")  # as discover writes it  # doctest: +SKIP
    """
    from lanewise.collectives.topology_file import LinkRates, topology_file
    from lanewise.errors import unknown_name

    if rates not in [word.value for word in LinkRates]:
        raise unknown_name("rates", rates, [word.value for word in LinkRates])
    return topology_file(as_system(system), host, LinkRates(rates))


def predict_collective(
    system: System | str | Path,
    collective: str = "all_reduce",
    ranks: str | Sequence[str] | None = None,
    sizes: str | Sequence[float] = "8B:8GiB",
    version: str = "",
    launch: str = "nccl-tests",
    algorithm: str | None = None,
    p2p: bool | None = None,
) -> CollectiveCurve:
    """Time (s) and bus bandwidth (B/s) of a collective at every size, with what NCCL or RCCL chooses and the limit.

    `ranks` names GPUs (all by default), `sizes` (B) are message sizes or a text such as '1MiB:8GiB'. `version` is that
    of NCCL ("2.27.7"), `launch` who issues the call ("graph", "nccl-tests", "nccl-tests -g", "torch"), `algorithm` what
    NCCL_ALGO forces. `p2p` False is NCCL_P2P_DISABLE=1, True NCCL_P2P_LEVEL=SYS.

    Raises UnknownName for a name that does not exist, FormatError for text that is no size or version, InputError for
    ranks that make no collective and for a version or algorithm without effect, Unreachable where nothing joins them.

    >>> curve = lanewise.predict_collective("h200-pair", "all_reduce", sizes="1GiB")
    >>> str(curve.points[0].algorithm), round(curve.points[0].bus_bandwidth / 1e9)
    ('Ring', 320)
    """
    from lanewise.collectives.constants import check_version
    from lanewise.collectives.curve import predict_collective as predict
    from lanewise.collectives.model import Algorithm, CollectiveSettings, Launch, collective_named
    from lanewise.collectives.sizes import sizes_of
    from lanewise.errors import unknown_name

    loaded = as_system(system)
    check_version(version)
    for word, kind, known in ((launch, "launch", Launch), (algorithm, "algorithm", Algorithm)):
        if word is not None and word not in [member.value for member in known]:
            raise unknown_name(kind, word, [member.value for member in known])
    settings = CollectiveSettings(version, Launch(launch), Algorithm(algorithm) if algorithm else None, p2p)
    names = loaded.of_kind(Kind.GPU) if ranks is None else ranks
    counted = sizes_of(sizes) if isinstance(sizes, str) else sizes
    curve = predict(loaded, collective_named(collective), names, counted, settings)
    _refuse_without_effect(curve)
    return curve


def collective_rows(curve: CollectiveCurve) -> tuple[Observation, ...]:
    """The bus bandwidth (B/s) and the time (s) of each size as predicted rows, of the identity of measured ones.

    >>> rows = lanewise.collective_rows(lanewise.predict_collective("h200-pair", "all_reduce", sizes="1GiB"))
    >>> [(row.scenario, row.metric) for row in rows]
    [('all_reduce', 'bus_bandwidth'), ('all_reduce', 'time')]
    """
    from lanewise.results.collective_rows import predicted_collective_rows

    return predicted_collective_rows(curve)


def _refuse_without_effect(curve: CollectiveCurve) -> None:
    """InputError for a version or an algorithm that decided nothing."""
    from lanewise.errors import InputError

    settings = curve.settings
    if settings.version and not curve.library.startswith("NCCL"):
        cause = f"--nccl has no effect: AMD's GPUs run {curve.library}"
        raise InputError(cause, hint="leave it out")
    taken = dict.fromkeys(point.algorithm for point in curve.points)
    if settings.algorithm is not None and settings.algorithm not in taken:
        others = " or ".join(map(str, taken))
        count = len(curve.ranks)
        cause = f"--algorithm {settings.algorithm} has no effect: {curve.collective} of these {count} ranks is {others}"
        raise InputError(cause, hint="leave it out")
