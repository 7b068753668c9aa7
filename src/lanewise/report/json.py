"""The JSON of every verb: an object whose first key, `schema`, names its layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from lanewise.report.words import link_speed
from lanewise.results.codec import encode
from lanewise.results.compare import interval
from lanewise.results.service_result import ServiceResult

if TYPE_CHECKING:  # types of all verbs: each has imported its own
    from lanewise.blocks.transfer import BlockPrediction
    from lanewise.catalog import Figure, Part
    from lanewise.collectives.model import CollectiveCurve
    from lanewise.installed import Dependency
    from lanewise.perf.matrix import RateMatrix
    from lanewise.perf.overview import PathOverview
    from lanewise.perf.predict import FlowRate, Prediction
    from lanewise.perf.transfers import FinishedTransfer
    from lanewise.results.compare import Comparison, RowPair
    from lanewise.results.observation import Observation
    from lanewise.results.run import LeftOut
    from lanewise.routes.matrix import ClassMatrix, Peers
    from lanewise.routes.model import Route
    from lanewise.serving.steady import ServiceRate
    from lanewise.studies.calibrate import CalibrationFit
    from lanewise.studies.form import StudyForm
    from lanewise.topology.model import System
    from lanewise.weights.prediction import ModelLoadPrediction

P = ParamSpec("P")


def document(verb: str, answer: object, key: str = "") -> dict[str, Any]:
    """What --json prints: the schema's name, then the answer; a list is named by `key`."""
    data = encode(answer, verb)
    return {"schema": f"lanewise.{verb}/1", **(data if isinstance(data, dict) else {key: data})}


def json_document(verb: str, key: str = "") -> Callable[[Callable[P, object]], Callable[P, dict[str, Any]]]:
    """The function's answer as a document of that verb."""

    def decorate(answer: Callable[P, object]) -> Callable[P, dict[str, Any]]:
        @wraps(answer)
        def answer_with_schema(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
            return document(verb, answer(*args, **kwargs), key)

        return answer_with_schema

    return decorate


def system_head(system: System) -> dict[str, Any]:
    return {"system": system.name, "settings": system.settings}


@json_document("predict")
def flow_rates(prediction: Prediction) -> dict[str, Any]:
    """Flows together: goodput, interval, limit and basis."""
    flows = [_flow_rate(rate) for rate in prediction.rates]
    total = None if prediction.why_unknown else prediction.total
    totals = {"total": total, "total_low": prediction.total_low, "total_high": prediction.total_high}
    head = {**system_head(prediction.system), "schedule": prediction.schedule.name}
    ties = [[a.flow.name, b.flow.name] for a, b in prediction.ties]
    translated = [
        {"flow": case.flow.name, "goodput": case.rate, "low": case.low, "high": case.high, "limit": case.limit}
        for case in prediction.if_translated
    ]
    return {
        **head, **totals, "unit": "B/s", "flows": flows, "ties": ties, "if_iommu_translates": translated,
        "parts_taken": prediction.system.readings,
    }  # fmt: skip


def _flow_rate(flow: FlowRate) -> dict[str, Any]:
    return {
        "flow": flow.flow.name, "goodput": None if flow.why_unknown else flow.rate, "low": flow.low, "high": flow.high,
        "raw": None if flow.why_unknown else flow.raw, "why_unknown": flow.why_unknown or None, "limit": flow.limit,
        "basis": flow.basis, "rests_on": flow.rests_on, "doubt": flow.doubt or None,
        "routes": [_route(route) for route in flow.routes],
    }  # fmt: skip


@json_document("predict")
def collective_curve(curve: CollectiveCurve) -> dict[str, Any]:
    """A collective at every size: time, bus bandwidth with its interval, what was chosen, and the limit."""
    settings = curve.settings
    return {
        **system_head(curve.system), "collective": curve.collective, "ranks": curve.ranks, "library": curve.library,
        "launch": settings.launch, "forced": settings.algorithm, "order": curve.order, "sources": curve.sources,
        "peaks": [
            {"algorithm": peak.algorithm, "bus_bandwidth": peak.bus_bandwidth, "low": peak.low, "high": peak.high,
             "limit": peak.limit, "basis": peak.basis, "rests_on": peak.rests_on} for peak in curve.peaks
        ],
        "points": [
            {"size": point.size, "time": point.time, "bus_bandwidth": point.bus_bandwidth, "low": point.low,
             "high": point.high, "algorithm": point.algorithm, "protocol": point.protocol,
             "channels": point.channels, "limit": point.limit, "rests_on": point.rests_on} for point in curve.points
        ],
        "compared": [
            {"algorithm": each.algorithm, "protocol": each.protocol, "planned_time": each.planned,
             "bus_bandwidth": each.bus_bandwidth} for each in curve.compared
        ],
        "chosen_by": curve.chosen_by or "planned time",
        "transports": [
            {"transport": each.transport, "bus_bandwidth": each.bus_bandwidth, "low": each.low, "high": each.high}
            for each in curve.transports
        ],
    }  # fmt: skip


@json_document("predict")
def block_transfers(prediction: BlockPrediction) -> dict[str, Any]:
    """Pieces over each flow: time with its interval, rate, limit, and what path and software take."""
    return {
        **system_head(prediction.system), "posters": prediction.posters,
        "transfers": [
            {"flow": each.flow.name, "pieces": each.pieces.count, "size": each.pieces.size, "time": each.time,
             "low": each.low, "high": each.high, "goodput": each.rate, "limit": each.limit,
             "path_time": each.on_path, "path_rate": each.path_rate, "software_time": each.on_software,
             "start": each.start, "piece_time": each.piece, "software": each.software.name,
             "version": each.software.version, "source": each.software.source,
             "pieces_source": each.pieces.source or None, "path": _flow_rate(each.path)}
            for each in prediction.transfers
        ],
        "first_token": None if (first := prediction.first_token) is None else {
            "time": first.time, "prefill": first.prefill, "transfer": first.transfer, "transfer_share": first.share,
            "transfer_share_interval": first.share_interval, "prefill_workers": first.prefill_workers,
        },
    }  # fmt: skip


@json_document("predict")
def model_load(prediction: ModelLoadPrediction) -> dict[str, Any]:
    """A model loaded by each loader: time with its interval, limit, and what each stage passes of the model."""
    plan = prediction.plan
    return {
        **system_head(plan.system), "size": plan.size, "from": plan.source.name or None,
        "storage_rate": plan.source.rate, "targets": plan.targets, "replicated": plan.replicated,
        "spread": plan.spread,
        "loads": [
            {"loader": load.loader.name, "version": load.loader.version, "warm": load.warm, "readers": load.readers,
             "time": load.time, "low": load.low, "high": load.high, "goodput": load.rate, "limit": load.limit,
             "source": load.loader.source,
             "stages": [
                 {"stage": name, "goodput": stage.rate.value, "low": stage.rate.low, "high": stage.rate.high,
                  "detail": stage.detail, "rests_on": stage.rests_on, "doubt": stage.doubt or None}
                 for name, stage in load.stages.items()
             ]} for load in prediction.loads
        ],
    }  # fmt: skip


@json_document("predict")
def paths(overview: PathOverview) -> dict[str, Any]:
    """Every kind of path, each path alone, and all GPUs of a host together."""
    groups = [
        {
            "from": group.source, "to": group.target, "class": group.example.cls, "via": str(group.example.via),
            "paths": group.count, "flow": group.flow.name,
            "why_unknown": group.reason or None,
            **(_flow_rate(group.rate) if group.rate is not None else {}),
        }
        for group in overview.groups
    ]  # fmt: skip
    together = [flow_rates(prediction) for prediction in overview.together]
    head = {**system_head(overview.system), "unit": "B/s", "complete": overview.complete, "missing": overview.missing}
    return {**head, "paths": groups, "together": together}


@json_document("predict")
def transfers(system: System, finished: Sequence[FinishedTransfer]) -> dict[str, Any]:
    """Finite transfers: when each starts and ends, and its mean rate."""
    units = {"size": "B", "start": "s", "latency": "s", "finish": "s", "goodput": "B/s"}
    data = [
        {
            "flow": f.flow.name, "size": f.flow.size, "start": f.start, "latency": f.delay, "finish": f.finish,
            "goodput": f.rate, "why_unknown": f.why_unknown or None, "limit": f.limit, "basis": f.basis,
            "rests_on": f.rests_on, "ways": [route.nodes for route in f.routes],
        }
        for f in finished
    ]  # fmt: skip
    return {**system_head(system), "units": units, "transfers": data}


@json_document("predict")
def pairs(system: System, matrix: RateMatrix) -> dict[str, Any]:
    """A rate or a latency for each pair of devices."""
    return {
        **system_head(system), "title": matrix.title, "unit": matrix.unit, "names": matrix.names,
        "cells": matrix.cells, "limits": matrix.limits,
    }  # fmt: skip


@json_document("predict")
def steady_service(system: System, service: ServiceRate, mode: str, division: str) -> dict[str, Any]:
    """A service in steady state."""
    return {
        **system_head(system), "workload": service.workload.name, "mode": mode, "division": division,
        "gpus": len(service.prediction.rates), **_service_rate(service),
    }  # fmt: skip


@json_document("predict-scenarios")
def scenarios(answers: Sequence[tuple[Mapping[str, int], Sequence[Observation]]]) -> dict[str, Any]:
    """What is predicted for every combination of parameters, each with its rows."""
    points = [{"settings": settings, "rows": rows} for settings, rows in answers]
    return {"parameters": list(answers[0][0]), "scenarios": points}


def _service_rate(rate: ServiceRate) -> dict[str, Any]:
    return {
        "qps": rate.qps, "goodput": rate.goodput, "unit": "B/s", "limit": rate.limit, "basis": rate.basis,
        "rests_on": rate.rests_on, "network": rate.network, "note": rate.note or None,
    }  # fmt: skip


@json_document("route")
def routes(system: System, alternatives: Sequence[Route]) -> dict[str, Any]:
    """Routes between two devices."""
    return {**system_head(system), "routes": [_route(route) for route in alternatives]}


def _route(route: Route) -> dict[str, Any]:
    return {
        "from": route.src, "to": route.dst, "class": route.cls, "via": str(route.via), "way": route.nodes,
        "allowed": route.allowed, "why_not": route.reason or None, "stages": [_route(stage) for stage in route.stages],
        "hops": [{"from": hop.start, "to": hop.end, "link": link_speed(hop.link)} for hop in route.hops],
    }  # fmt: skip


@json_document("route")
def classes(system: System, matrix: ClassMatrix, peers: Sequence[Peers]) -> dict[str, Any]:
    """The class of the route between all pairs, and who can be peers."""
    return {
        **system_head(system), "names": matrix.names, "numa": matrix.numa,
        "classes": matrix.cells, "notes": matrix.notes,
        "peers": [{"pair": [p.a, p.b], "allowed": p.allowed, "why_not": p.reason or None} for p in peers],
    }  # fmt: skip


@json_document("compare")
def comparison(result: Comparison) -> dict[str, Any]:
    """Pairs with their difference, and rows of one side only."""
    pairs = [
        {
            "source": p.left.source, "study": p.left.study, "table": p.left.table, "row": p.left.scenario,
            "flow": p.left.flow, "settings": p.left.settings, "metric": p.left.metric, "unit": p.left.display_unit,
            "left": p.left.display(p.left.value), "right": p.left.display(p.right_value),
            "difference_pct": p.difference_pct, **(_measured(p) if p.measured else {}), "left_limit": p.left.limit,
            "right_limit": p.right.limit, "note": p.note,
            **({} if p.in_predicted_interval is None else {"in_predicted_interval": p.in_predicted_interval}),
        }
        for p in result.pairs
    ]  # fmt: skip
    conditions = {name: sides for name, *sides in result.conditions}
    whole = {"speed": result.speed, "verdicts": result.verdicts, "conditions": conditions}
    return {
        "left": result.left_name, "right": result.right_name, "pairs": pairs, "only_left": result.only_left,
        "only_right": result.only_right, **(whole if result.verdicts else {}),
        **({"share": result.share.share, "share_interval": result.share.interval} if result.share else {}),
    }  # fmt: skip


def _measured(pair: RowPair) -> dict[str, Any]:
    """What is said of measured pairs only; intervals in each side's display unit."""
    ends = (interval(pair.left), interval(pair.right))
    left, right = (
        known and [row.display(end) for end in known] for row, known in zip((pair.left, pair.right), ends, strict=True)
    )
    return {
        "verdict": pair.verdict or None, "left_interval": left, "right_interval": right,
        "measured_otherwise": pair.differs,
    }  # fmt: skip


@json_document("calibrate")
def calibration(fit: CalibrationFit, left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Fitted figures, and the residuals of the rows."""
    rows = []
    for target, residual in zip(fit.targets, fit.residuals, strict=True):
        study, table, row = target.where
        residual_pct = 100 * residual if math.isfinite(residual) else None
        rows.append({"study": study, "table": table, "row": row, "residual_pct": residual_pct})
    rms_pct = fit.rms_pct if math.isfinite(fit.rms_pct) else None
    return {"fitted": fit.values, "rms_pct": rms_pct, "used": rows, "left_out": left_out}


@json_document("system-list", "systems")
def systems(described: Sequence[System]) -> list[dict[str, Any]]:
    """The ready systems."""
    return [{"name": s.name, "title": s.title, "parameters": _parameters(s)} for s in described]


@json_document("system")
def system(system: System) -> dict[str, Any]:
    """A system: devices, links, domains, volumes, assumptions."""
    return {
        "system": system.name, "title": system.title, "source": system.source, "hosts": system.hosts,
        "settings": system.settings, "parameters": _parameters(system),
        "devices": [
            {"name": d.name, "kind": d.kind, "part": d.part, "host": d.host, "numa": d.numa,
             "numa_nodes": d.numa_nodes, "shared": d.shared, "os_names": d.os_names}
            for d in system.devices.values()
        ],
        "links": [
            {"from": link.a, "to": link.b, "kind": link.kind, "speed": link_speed(link), "port": link.port or None,
             "bridge": link.bridge or None}
            for link in system.links
        ],
        "domains": [{"name": d.name, "root": d.root, "devices": sorted(d.devices)} for d in system.domains],
        "volumes": [{"name": v.name, "raid": v.raid, "drives": v.drives} for v in system.volumes.values()],
        "parts_taken": system.readings, "assumptions": system.assumptions,
    }  # fmt: skip


def _parameters(system: System) -> dict[str, Any]:
    return {
        name: {"default": p.default, "values": p.values or None, "min": p.minimum, "max": p.maximum, "help": p.help}
        for name, p in system.parameters.items()
    }


@json_document("discover")
def discovery(system: System, machine: Any) -> dict[str, Any]:
    """A machine as read from dumps."""
    devices = [
        {
            "name": d.name, "kind": d.kind, "part": d.part, "numa": d.numa, "called": machine.dump_names[d.name],
            "facts": [{"key": f.key, "value": f.value, "source": str(f.source)} for f in machine.facts[d.name]],
        }
        for d in system.devices.values()
    ]  # fmt: skip
    links = [
        {
            "from": link.a, "to": link.b, "kind": link.kind, "gen": link.gen, "lanes": link.lanes, "count": link.count,
            "port": link.port, "bridge": link.bridge, "max_payload": link.max_payload,
        }
        for link in system.links
    ]  # fmt: skip
    volumes = [{"name": v.name, "raid": v.raid, "drives": v.drives, "chunk": v.chunk} for v in system.volumes.values()]
    return {
        "system": system.name, "source": system.source, "devices": devices, "links": links, "volumes": volumes,
        "conditions": machine.conditions, "iommu": system.policies.iommu,
        "acs_redirect": sorted(system.policies.acs_redirect), "assumptions": system.assumptions,
        "contradictions": machine.contradictions, "faults": machine.faults,
    }  # fmt: skip


@json_document("doctor")
def doctor(versions: Mapping[str, str], pieces: Sequence[Dependency]) -> dict[str, Any]:
    """Versions, and which optional dependencies are installed."""
    return {"versions": versions, "pieces": pieces}


@json_document("parts-list", "parts")
def parts(catalog: Sequence[Part]) -> list[dict[str, Any]]:
    """The parts of the catalogue."""
    return [{"name": p.name, "kind": p.kind, "title": p.title, "aliases": p.aliases} for p in catalog]


@json_document("parts")
def part(entry: Part) -> dict[str, Any]:
    """Every figure of a part."""
    return {"name": entry.name, "kind": entry.kind, "title": entry.title, "aliases": entry.aliases,
            "figures": {key: _figure(figure) for key, figure in entry.figures.items()}}  # fmt: skip


def _figure(figure: Figure) -> dict[str, Any]:
    """What a figure states itself."""
    return {name: value for name, value in encode(figure, "parts").items() if name != "inherited"}


@json_document("study-list", "studies")
def studies(forms: Sequence[tuple[str, StudyForm]]) -> list[dict[str, Any]]:
    """The ready studies."""
    return [{"name": n, "title": f.title, "rows": len(f.rows), "source": f.source} for n, f in forms]


@json_document("measure", "rows")
def measured_rows(rows: Sequence[Observation]) -> Sequence[Observation]:
    """What was measured, a row an observation."""
    return rows


def services(results: Sequence[ServiceResult]) -> dict[str, Any]:
    """Services under load; a single one is the document itself."""
    return document("predict-service", results[0] if len(results) == 1 else list(results), "services")
