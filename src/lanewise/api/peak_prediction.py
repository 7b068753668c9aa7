"""What a peak is predicted from before it is searched for, kept in the folder of its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.errors import InputError

if TYPE_CHECKING:
    from lanewise.loadtest.session import LoadTestSession, LocalSession
    from lanewise.options.loadtest import PeakOptions

PREDICTION, CLOSED, PARTS = "prediction.json", "closed.json", "service-times.yaml"


def predicted_peak(
    folder: Path, session: LoadTestSession, options: PeakOptions, say: Callable[[str], object]
) -> dict[str, Any]:
    """The peak predicted before the search, or what an earlier search in this folder predicted.

    On this machine's devices it is predicted from batches just timed; the engine's own times are written as a part
    file, for `--parts` and later predictions. Over nodes it is predicted if the folder holds what the same devices did
    in the Closed division (`closed_basis`).
    """
    from lanewise import files
    from lanewise.loadtest.session import LocalSession

    path = folder / PREDICTION
    if path.exists():
        return dict(json.loads(files.read_file(path)))
    if isinstance(session, LocalSession):
        data = _of_devices(folder, session, options, say)
    elif (basis := folder / CLOSED).exists():
        data = _of_nodes(json.loads(files.read_file(basis)), session, say)
    else:
        return {"qps": None, "note": "none: nodes answer; the search begins at their Offline rate"}
    files.write_file(path, json.dumps(data, indent=1) + "\n")
    return data


def closed_basis(closed: Path, network: Path) -> None:
    """Copy what a search on this machine's devices was predicted from to the folder of one over nodes of the same."""
    from lanewise import files

    data = json.loads(files.read_file(closed / PREDICTION))
    files.write_file(network / CLOSED, json.dumps({key: data[key] for key in ("qps", "busy", "model")}) + "\n")


def _of_devices(
    folder: Path, session: LocalSession, options: PeakOptions, say: Callable[[str], object]
) -> dict[str, Any]:
    from lanewise import files
    from lanewise.loadtest import prediction

    say("timing batches")
    times, intervals = session.service_times(), session.batch_intervals()
    model = prediction.DeviceModel(
        options.bound, options.percentile, len(options.devices), options.timeout, options.streams, session.steps
    )
    try:
        peak = prediction.predict_peak(intervals, model)
        sizes = ", ".join(map(str, intervals))
        note = f"from batches of {sizes}, timed in the system at work before the search"
        data: dict[str, Any] = {"qps": peak.rate, "interval": peak.interval, "ceiling": peak.ceiling, "note": note}
    except InputError as error:
        data = {"qps": None, "note": f"none: {error.cause}"}
    data |= {"busy": intervals, "engine": times, "model": asdict(model)}
    if session.engines:
        files.write_file(folder / PARTS, prediction.part_file(times, source()))
    return data


def _of_nodes(closed: dict[str, Any], session: LoadTestSession, say: Callable[[str], object]) -> dict[str, Any]:
    """The Closed prediction with the software cost of a query, which the rates at full load tell."""
    from lanewise import units
    from lanewise.loadtest import prediction

    say("timing the nodes at full load")
    intervals = {int(size): float(seconds) for size, seconds in closed["busy"].items()}
    model = prediction.DeviceModel(**closed["model"])
    try:
        cost = prediction.full_load_cost(intervals, model, session.offline_rate())
        peak = prediction.predict_peak({size: time + size * cost for size, time in intervals.items()}, model)
    except InputError as error:
        return {"qps": None, "note": f"none: {error.cause}"}
    note = f"from the Closed prediction and {units.readable(cost, 's')} of software a query, timed at full load"
    return {
        "qps": peak.rate, "interval": peak.interval, "ceiling": peak.ceiling, "note": note, "software": cost,
        "share": peak.rate / closed["qps"] if closed["qps"] else None,
    }  # fmt: skip


def source() -> str:
    """Where and when the figures of a part file were measured."""
    return f"measured on this machine, {datetime.now().astimezone():%Y-%m-%d %H:%M}"
