"""Telemetry: for each composed system the predicted rate of every path, and the measured one where there is one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lanewise.director.redfish import uris
from lanewise.director.redfish.composition_forms import ReferenceForm
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.offers import gigabytes, rate_json
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, WriteMethod
from lanewise.director.redfish.resources.common import collection, status
from lanewise.director.redfish.uris import ROOT, TELEMETRY, link, not_there
from lanewise.units import to_si

_REPORTS, _DEFINITIONS = f"{TELEMETRY}/MetricReports", f"{TELEMETRY}/MetricDefinitions"
RATE_TYPE = "#LanewiseOem.v1_0_0.RateNote"
_SUBMIT = "LanewiseOem.SubmitMeasuredRates"
_METRICS = {
    "PredictedGBps": "Predicted rate of a path with every composition active",
    "AloneGBps": "Predicted rate of a path with only its composition active",
    "MeasuredGBps": "Measured rate of a path",
}


def _service(call: Call) -> Json:
    return {
        "Id": "TelemetryService",
        "Name": "Rates of data paths",
        "Status": status(),
        "ServiceEnabled": True,
        "MaxReports": 2 * max(1, len(call.inventory.servers)),
        "MetricDefinitions": link(_DEFINITIONS),
        "MetricReports": link(_REPORTS),
        "Actions": {"Oem": {f"#{_SUBMIT}": {"target": f"{TELEMETRY}/Actions/Oem/{_SUBMIT}"}}},
    }


class MeasuredForm(RequestForm):
    """One measured rate."""

    Device: Annotated[str, Field(max_length=200)]
    RateGBps: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False, strict=False)]


class MeasuredRatesForm(RequestForm):
    """Rates that somebody measured of a composed system's paths."""

    ComputerSystem: ReferenceForm
    Rates: Annotated[list[MeasuredForm], Field(min_length=1, max_length=1024)]


def _submit(call: Call) -> Reply:
    """Keep measured rates, for the report beside the predicted ones."""
    body: MeasuredRatesForm = call.body
    name = uris.name_below(body.ComputerSystem.uri, f"{ROOT}/Systems", "ComputerSystem")
    composition = call.inventory.composed.get(name)
    if composition is None:
        raise refusal(400, "Base.ActionParameterValueError", "ComputerSystem", _SUBMIT, prop="ComputerSystem")
    rates = {one.Device: to_si(one.RateGBps, "GB/s") for one in body.Rates}
    if not rates.keys() <= set(composition.blocks):
        raise refusal(400, "Base.ActionParameterValueError", "Rates", _SUBMIT, prop="Rates")
    call.service.add_measured(call.view, name, rates)
    return Reply(204)


def _definition(call: Call) -> Json:
    name = call.names["metric"]
    if name not in _METRICS:
        raise not_there(call.path)
    return {
        "Id": name,
        "Name": _METRICS[name],
        "MetricType": "Gauge" if name == "MeasuredGBps" else "Numeric",
        "MetricDataType": "Decimal",
        "Units": "GBy/s",
        "Implementation": "PhysicalSensor" if name == "MeasuredGBps" else "Synthesized",
        "Calculable": "NonSummable",
        "IsLinear": True,
    }


def _reports(call: Call) -> list[str]:
    measured = [name for name in call.inventory.composed if call.service.measured(call.view, name)]
    names = [f"Predicted-{name}" for name in call.inventory.composed] + [f"Measured-{name}" for name in measured]
    return [f"{_REPORTS}/{name}" for name in names]


def _report(call: Call) -> Json:
    kind, _, name = call.names["report"].partition("-")
    composition = call.inventory.composed.get(name)
    if composition is None or kind not in ("Predicted", "Measured"):
        raise not_there(call.path)
    return _predicted(call, name) if kind == "Predicted" else _measured(call, name)


def _predicted(call: Call, name: str) -> Json:
    record = call.view.compositions.get(name)
    when = moment(record.changed if record else call.service.started)
    values = []
    for rate in call.service.rates(call.view, name):
        target = f"{uris.block(rate.device)}#/Oem/Lanewise"
        oem = {"Lanewise": {"@odata.type": RATE_TYPE, **rate_json(rate)}}
        values.append(_value("PredictedGBps", rate.rate, when, target) | {"Oem": oem})
        values.append(_value("AloneGBps", rate.alone, when, target))
    return _body(call, f"Predicted rates of {name}", when, values)


def _measured(call: Call, name: str) -> Json:
    measured = call.service.measured(call.view, name)
    if not measured:
        raise not_there(call.path)
    newest = moment(max(one.time for one in measured))
    values = [
        _value("MeasuredGBps", one.rate, moment(one.time), f"{uris.block(one.device)}#/Oem/Lanewise")
        for one in measured
    ]
    return _body(call, f"Measured rates of {name}", newest, values)


def _value(metric: str, rate: float, when: str, target: str) -> Json:
    return {
        "MetricId": metric,
        "MetricValue": str(gigabytes(rate)),
        "Timestamp": when,
        "MetricProperty": target,
    }


def _body(call: Call, title: str, when: str, values: list[Json]) -> Json:
    return {
        "Id": call.names["report"],
        "Name": title,
        "Timestamp": when,
        "MetricValues": values,
        "MetricValues@odata.count": len(values),
    }


TYPES = (
    ResourceType(TELEMETRY, "TelemetryService.v1_4_1", _service),
    collection(
        _DEFINITIONS,
        "MetricDefinitionCollection",
        "Metrics",
        lambda call: [f"{_DEFINITIONS}/{name}" for name in _METRICS],
    ),
    ResourceType(f"{_DEFINITIONS}/{{metric}}", "MetricDefinition.v1_3_5", _definition),
    collection(_REPORTS, "MetricReportCollection", "Metric reports", _reports, live=True),
    ResourceType(f"{_REPORTS}/{{report}}", "MetricReport.v1_5_2", _report, slow=True, live=True),
    ResourceType(
        f"{TELEMETRY}/Actions/Oem/{_SUBMIT}",
        writes={"POST": WriteMethod(_submit, MeasuredRatesForm, action=_SUBMIT, alone=False)},
    ),
)
