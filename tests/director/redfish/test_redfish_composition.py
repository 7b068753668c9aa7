"""Composing over Redfish with least rates: offers, refusals with the reason, reservations, tasks, metric reports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from director.directors import Running, small_pool
from director.redfish.services import BLOCKS, COMPOSE, SYSTEMS, Answer, Client, link, serving, system

from lanewise.director.drivers.base import DeviceHolder, HolderKind
from lanewise.director.drivers.sim import SimDriver

RESERVATIONS = "/redfish/v1/CompositionService/CompositionReservations"
METRICS = "/redfish/v1/TelemetryService/MetricReports"


def paths(count: int, least: float | None = None, **more: Any) -> dict[str, Any]:
    """Oem of a request for GPUs with a least rate in GB/s."""
    need: dict[str, Any] = {"DeviceType": "GPU", "Count": count} | ({"MinimumGBps": least} if least else {})
    return {"Lanewise": {"Paths": [need], **more}}


def compose(client: Client, kind: str, request: dict[str, Any] | None, **more: Any) -> Answer:
    """The Compose action."""
    body: dict[str, Any] = {"RequestFormat": "Manifest", "RequestType": kind, **more}
    if request is not None:
        body["Manifest"] = {"Stanzas": [{"StanzaType": "ComposeSystem", "StanzaId": "s1", "Request": request}]}
    return client.post(COMPOSE, body)


def offers(answer: Answer) -> list[dict[str, Any]]:
    """The offers in an answer of Compose."""
    found: list[dict[str, Any]] = answer.body["Manifest"]["Stanzas"][0]["Response"]["Oem"]["Lanewise"]["Offers"]
    return found


def test_a_preview_ranks_offers_and_touches_nothing(client: Client) -> None:
    before = client.running.director.view()
    answer = compose(client, "Preview", {"Oem": paths(2, 10)})
    assert answer.status == 200
    best = offers(answer)[0]
    assert len(best["Blocks"]) == 2
    for rate in best["Paths"]:
        assert rate["RequiredGBps"] == 10
        assert rate["LowGBps"] <= rate["PredictedGBps"] <= rate["HighGBps"]
        assert rate["Limit"]
        assert rate["Sources"]
    response = answer.body["Manifest"]["Stanzas"][0]["Response"]
    assert response["Links"]["ResourceBlocks"] == link(best["Server"], *best["Blocks"])
    assert client.running.director.view() is before


def test_a_rate_that_no_path_gives_is_refused_with_limit_and_nearest_offer(client: Client) -> None:
    answer = client.post(SYSTEMS, {"Name": "job", "Oem": paths(4, 20)})
    assert (answer.status, answer.keys) == (409, ["NoResourceMatch"])
    message = answer.body["error"]["@Message.ExtendedInfo"][0]
    note = message["Oem"]["Lanewise"]
    assert "20" in message["Message"]
    assert "root port" in note["Limit"]
    assert 0 < note["PredictedGBps"] < 20
    nearest = note["Nearest"]
    assert nearest["Blocks"]
    assert message["Resolution"] not in ("", "None.")
    assert client.get(f"{SYSTEMS}/job").status == 404
    needs = [row["RequiredGBps"] for row in nearest["Paths"]]
    again = {"Name": "job", "Links": {"ResourceBlocks": link(nearest["Server"], *nearest["Blocks"])}}
    assert client.post(SYSTEMS, again).status == 201, "the nearest offer can be had"
    assert all(row["PredictedGBps"] >= (need or 0) - 1e-6 for row, need in zip(nearest["Paths"], needs, strict=True))


def test_named_blocks_with_a_least_rate_are_refused_too(client: Client) -> None:
    many = ("host0", "gpu0", "gpu1", "gpu2", "gpu3")
    need = {"Lanewise": {"Paths": [{"DeviceType": "GPU", "MinimumGBps": 20}]}}
    answer = client.post(SYSTEMS, system("job", *many, Oem=need))
    assert (answer.status, answer.keys) == (409, ["NoResourceMatch"])
    few = client.post(SYSTEMS, system("job", "host0", "gpu0", Oem=need))
    assert few.status == 201
    assert few.body["Oem"]["Lanewise"]["Paths"][0] == {
        "DeviceType": "GPU",
        "Count": 1,
        "MinimumGBps": 20,
        "Model": None,
        "NetworkCards": 0,
    }


def test_a_constrained_composition_counts_devices(client: Client) -> None:
    wanted = {"@Redfish.RequestedCount": 3, "ProcessorType": "GPU", "Model": "l40s"}
    made = client.post(SYSTEMS, {"Name": "job", "Processors": {"Members": [wanted]}})
    assert made.status == 201
    assert len(made.body["Links"]["ResourceBlocks"]) == 4
    unknown = client.post(SYSTEMS, {"Processors": {"Members": [wanted | {"Model": "none-such"}]}})
    assert unknown.keys == ["PropertyValueNotInList"]
    both = {"Processors": {"Members": [wanted]}, "Oem": paths(2)}
    assert client.post(SYSTEMS, both).keys == ["PropertyValueConflict"]


def test_a_reservation_keeps_blocks_until_it_is_applied_or_cancelled(client: Client) -> None:
    answer = compose(client, "PreviewReserve", {"Oem": paths(2, 10, Server="host1")})
    assert answer.status == 200
    name = answer.body["ReservationId"]
    kept = client.get(answer.headers["location"]).body
    assert kept["Client"] == "admin"
    blocks = [one["@odata.id"].rpartition("/")[2] for one in kept["ReservedResourceBlocks"]]
    assert client.get(f"{BLOCKS}/{blocks[1]}").body["CompositionStatus"]["Reserved"] is True
    taken = client.post(SYSTEMS, system("other", "host0", blocks[1]), user="operator")
    assert (taken.status, taken.keys) == (409, ["ResourceBlockInUse"])
    stolen = client.post(
        COMPOSE, {"RequestFormat": "Manifest", "RequestType": "Apply", "ReservationId": name}, user="operator"
    )
    assert stolen.status == 403
    applied = compose(client, "Apply", None, ReservationId=name)
    assert applied.status == 200
    made = client.get(applied.headers["location"]).body
    assert {one["@odata.id"] for one in made["Links"]["ResourceBlocks"]} == {f"{BLOCKS}/{one}" for one in blocks}
    assert compose(client, "Apply", None, ReservationId=name).status in (404, 409, 410)
    second = compose(client, "PreviewReserve", {"Oem": paths(1)})
    assert client.call("DELETE", second.headers["location"]).status == 204
    assert client.get(RESERVATIONS).body["Members"] == []


def test_a_reservation_ends_by_itself(client: Client) -> None:
    name = compose(client, "PreviewReserve", {"Oem": paths(1)}).body["ReservationId"]
    client.running.clock.now += 301
    assert client.get(f"{RESERVATIONS}/{name}").status == 404
    assert compose(client, "Apply", None, ReservationId=name).status == 410
    assert client.post(SYSTEMS, {"Oem": paths(8)}).status == 201, "all blocks are free again"


def test_a_manifest_says_which_stanza_failed(client: Client) -> None:
    assert compose(client, "Apply", None, Manifest={"Stanzas": []}).keys == ["EmptyManifest"]
    answer = compose(client, "Apply", {"Oem": paths(99)})
    assert (answer.status, answer.keys) == (409, ["NoResourceMatch", "UnableToProcessStanzaRequest"])
    assert compose(client, "Apply", {"Bogus": 1}).keys == ["PropertyUnknown", "UnableToProcessStanzaRequest"]
    made = compose(client, "Apply", system("job", "host0", "gpu1"))
    assert made.status == 200
    stanza = {"StanzaType": "DecomposeSystem", "StanzaId": "d"}
    stanza["Request"] = {"Links": {"ComputerSystems": [{"@odata.id": f"{SYSTEMS}/job"}]}}  # type: ignore[assignment]
    assert compose(client, "Apply", None, Manifest={"Stanzas": [stanza]}).status == 200
    assert client.get(f"{SYSTEMS}/job").status == 404


def test_metric_reports_have_the_rates_that_were_predicted(client: Client) -> None:
    predicted = {
        row["Device"]: row["PredictedGBps"] for row in offers(compose(client, "Preview", {"Oem": paths(2)}))[0]["Paths"]
    }
    client.post(SYSTEMS, {"Name": "job", "Oem": paths(2)})
    assert client.get(METRICS).body["Members"] == [{"@odata.id": f"{METRICS}/Predicted-job"}]
    values = client.get(f"{METRICS}/Predicted-job").body["MetricValues"]
    found = {
        row["MetricProperty"].partition("#")[0].rpartition("/")[2]: float(row["MetricValue"])
        for row in values
        if row["MetricId"] == "PredictedGBps"
    }
    assert found == pytest.approx(predicted)
    assert client.get(f"{METRICS}/Measured-job").status == 404


def test_a_device_in_use_is_not_taken_away(client: Client) -> None:
    client.post(SYSTEMS, system("job", "host0", "gpu1", "gpu2"))
    client.running.driver.hold("gpu1", DeviceHolder(HolderKind.PROCESS, "train.py", 4711))
    remove = f"{SYSTEMS}/job/Actions/ComputerSystem.RemoveResourceBlock"
    answer = client.post(remove, {"ResourceBlock": link("gpu1")[0]})
    assert (answer.status, answer.keys) == (409, ["ResourceInUse"])
    assert "train.py (pid 4711)" in str(answer.body)
    assert client.call("DELETE", f"{SYSTEMS}/job").status == 409
    assert client.running.driver.observe("host0") == {"gpu1", "gpu2"}


def test_what_takes_long_is_a_task_with_a_monitor(start: Callable[..., Running], tmp_path: Path) -> None:
    gate = threading.Event()

    def wait(point: str) -> None:
        assert gate.wait(60)

    with serving(start(SimDriver(small_pool(), crash=wait)), tmp_path) as client:
        headers = {"Prefer": "respond-async"}
        begun = client.post(SYSTEMS, system("job", "host0", "gpu1"), headers=headers)
        assert (begun.status, begun.body["TaskState"]) == (202, "Running")
        monitor = begun.headers["location"]
        assert client.get(monitor).status == 202
        assert client.get(f"{SYSTEMS}/job").body["Status"]["State"] == "Starting"
        busy = client.post(f"{SYSTEMS}/job/Actions/ComputerSystem.AddResourceBlock", {"ResourceBlock": link("gpu2")[0]})
        assert (busy.status, busy.keys) == (409, ["ResourceInUse"])
        gate.set()
        client.running.director.wait(begun.body["Id"], 60)
        ended = client.get(monitor)
        assert (ended.status, ended.headers["location"]) == (200, f"{SYSTEMS}/job")
        assert client.get(begun.body["@odata.id"]).body["TaskState"] == "Completed"


def test_measured_rates_are_reported_beside_the_predicted_ones(client: Client) -> None:
    action = client.get("/redfish/v1/TelemetryService").body["Actions"]["Oem"]
    submit = action["#LanewiseOem.SubmitMeasuredRates"]["target"]
    client.post(SYSTEMS, system("job", "host0", "gpu1"))
    body: dict[str, Any] = {
        "ComputerSystem": {"@odata.id": f"{SYSTEMS}/job"},
        "Rates": [{"Device": "gpu1", "RateGBps": 21.5}],
    }
    assert client.post(submit, body, user="reader").status == 403
    assert client.post(submit, body).status == 204
    assert {"@odata.id": f"{METRICS}/Measured-job"} in client.get(METRICS).body["Members"]
    values = client.get(f"{METRICS}/Measured-job").body["MetricValues"]
    assert [(row["MetricId"], row["MetricValue"]) for row in values] == [("MeasuredGBps", "21.5")]
    body["Rates"] = [{"Device": "gpu2", "RateGBps": 1}]
    assert client.post(submit, body).keys == ["ActionParameterValueError"]
    client.call("DELETE", f"{SYSTEMS}/job")
    assert client.get(f"{METRICS}/Measured-job").status == 404


def test_a_zone_takes_and_gives_back_endpoints(client: Client) -> None:
    zone = "/redfish/v1/Fabrics/PCIe/Zones/host1"

    def change(action: str, name: str, **more: Any) -> Answer:
        endpoint = {"@odata.id": f"/redfish/v1/Fabrics/PCIe/Endpoints/{name}"}
        return client.post(f"{zone}/Actions/Zone.{action}", {"Endpoint": endpoint, **more})

    first = client.get(zone)
    assert change("AddEndpoint", "gpu1", ZoneETag=first.headers["etag"]).status == 204
    assert change("AddEndpoint", "gpu2", ZoneETag=first.headers["etag"]).status == 412
    assert change("AddEndpoint", "gpu2").status == 204
    assert client.running.driver.observe("host1") == {"gpu1", "gpu2"}
    assert client.get(f"{SYSTEMS}/zone-host1").status == 200
    assert change("RemoveEndpoint", "gpu3").status == 409
    assert change("AddEndpoint", "host0").status == 400
    assert change("RemoveEndpoint", "gpu1").status == 204
    assert change("RemoveEndpoint", "gpu2").status == 204
    assert client.running.driver.observe("host1") == frozenset()
    assert client.get(f"{SYSTEMS}/zone-host1").status == 404


def test_a_device_that_left_is_unavailable_until_it_is_back(client: Client) -> None:
    client.running.driver.lose("gpu1")
    client.running.director.poll()
    body = client.get(f"{BLOCKS}/gpu1").body
    assert (body["CompositionStatus"]["CompositionState"], body["Pool"]) == ("Unavailable", "Unassigned")
    assert body["Status"]["Health"] == "Critical"
    assert body["Oem"]["Lanewise"]["Notes"]
    assert client.post(SYSTEMS, system("job", "host0", "gpu1")).status == 409
    assert client.get("/redfish/v1/Managers/Director").body["Status"]["Health"] == "Critical"
    client.running.driver.find("gpu1")
    client.running.director.poll()
    repair = body["Actions"]["Oem"]["#LanewiseOem.RepairResourceBlock"]["target"]
    assert client.post(repair, {}).status == 204
    assert client.get(f"{BLOCKS}/gpu1").body["CompositionStatus"]["CompositionState"] == "Unused"
