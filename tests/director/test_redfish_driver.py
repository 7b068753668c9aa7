"""The driver of a chassis over Redfish: its fabric as a System, zones that others change too, its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from director.stand_in import ROOT, StandInChassis, error

from lanewise.director.client.session import RedfishClient, ServiceAddress
from lanewise.director.drivers.base import Busy, DriverError, FabricEventKind, Gone, LinkStatus, Retryable, Unknown
from lanewise.director.drivers.redfish import RedfishDriver
from lanewise.director.drivers.redfish_fabric import port_speed
from lanewise.errors import UnknownName
from lanewise.topology.model import LinkKind

RUNNING = {"Lanewise": {"Task": "/redfish/v1/TaskService/Tasks/1"}}
Answer = Callable[[httpx.Request], httpx.Response | None]


@pytest.fixture
def chassis() -> StandInChassis:
    return StandInChassis()


@pytest.fixture
def driver(chassis: StandInChassis) -> Iterator[RedfishDriver]:
    address = ServiceAddress("https://chassis.test")
    with RedfishClient(address, transport=chassis.transport()) as client:
        yield RedfishDriver(client)


def test_the_fabric_becomes_a_system_with_parts_and_speeds(driver: RedfishDriver, chassis: StandInChassis) -> None:
    chassis.put_zone("host1", "host1", "gpu0")
    system = driver.discover()
    assert system.hosts == ("host0", "host1")
    assert {name: (str(one.kind), one.part, one.host) for name, one in system.devices.items()} == {
        "sw0": ("switch", None, None), "host0-cpu": ("cpu", None, "host0"), "host1-cpu": ("cpu", None, "host1"),
        "host0-adapter": ("switch", None, "host0"), "host1-adapter": ("switch", None, "host1"),
        "gpu0": ("gpu", "l40s", "host1"), "gpu1": ("gpu", None, None), "ssd0": ("ssd", None, None),
    }  # fmt: skip
    links = {one.name: (one.kind, one.gen, one.lanes) for one in system.links}
    assert links["host0-adapter--sw0"] == (LinkKind.FABRIC, 4, 16)
    assert links["sw0--ssd0"] == (LinkKind.PCIE, 1, 4)


def test_devices_are_given_and_taken_by_patches_of_zones(driver: RedfishDriver, chassis: StandInChassis) -> None:
    driver.bind("a", "host0", "gpu0")
    driver.bind("a", "host0", "gpu0")  # the same operation again changes nothing
    assert chassis.members("host0") == ["host0", "gpu0"]
    assert driver.observe("host0") == {"gpu0"}
    with pytest.raises(Busy, match="gpu0 is attached to host0"):
        driver.bind("b", "host1", "gpu0")
    driver.unbind("c", "host0", "gpu0")
    driver.unbind("c", "host0", "gpu0")
    assert chassis.members("host0") == ["host0"]
    assert sum(request.method == "PATCH" for request in chassis.requests) == 2


def test_a_zone_that_changes_meanwhile_is_read_again(driver: RedfishDriver, chassis: StandInChassis) -> None:
    zones = chassis.handle
    changes = iter(["gpu1"])

    def overtaking(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PATCH" and (other := next(changes, None)):
            chassis.put_zone("host0", "host0", other)
        return zones(request)

    chassis.handle = overtaking
    driver.bind("a", "host0", "gpu0")
    assert chassis.members("host0") == ["host0", "gpu1", "gpu0"]
    kinds = [(event.kind, event.device, event.text) for event in driver.events()]
    attached = FabricEventKind.ATTACHED
    assert kinds == [(attached, "gpu0", ""), (attached, "gpu1", "by somebody else")]
    assert list(driver.events()) == []


def test_links_are_those_of_the_ports(driver: RedfishDriver) -> None:
    assert driver.link("gpu0") == LinkStatus(4, 16, 4, 16)
    down = driver.link("ssd0")
    assert down == LinkStatus(1, 4, 4, 16)
    assert down.trained_down


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (error(409, "Base.1.0.ResourceInUse", "It is in use."), Busy, "gpu0 on host0: It is in use"),
        (error(409, "Base.1.0.ResourceInUse", "A task runs.", Oem=RUNNING), Retryable, "gpu0 on host0: A task runs"),
        (error(503, "Base.1.0.ServiceTemporarilyUnavailable", "Later."), Retryable, "Later"),
        (error(404, "Base.1.0.ResourceMissingAtURI", "No such zone."), Gone, "No such zone"),
        (error(403, "Base.1.0.InsufficientPrivilege", "You may not."), DriverError, "You may not"),
        (error(412, "Base.1.0.PreconditionFailed", "Stale."), Retryable, "changed 5 times meanwhile"),
        (httpx.ReadError("reset"), Unknown, "reset"),
        (httpx.ConnectError("refused"), Retryable, "refused"),
    ],
)
def test_refusals_are_errors_of_a_driver(
    driver: RedfishDriver, chassis: StandInChassis, answer: object, kind: type[Exception], message: str
) -> None:
    zones = chassis.handle

    def refusing(request: httpx.Request) -> httpx.Response | None:
        if request.method != "PATCH":
            return zones(request)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, httpx.Response)
        return answer

    chassis.handle = refusing
    with pytest.raises(kind, match=message):
        driver.bind("a", "host0", "gpu0")
    assert chassis.members("host0") == ["host0"]


def test_a_zone_with_actions_is_changed_by_them(driver: RedfishDriver, chassis: StandInChassis) -> None:
    zone = f"{chassis.fabric}/Zones/host0"
    targets = {f"#Zone.{verb}": {"target": f"{zone}/{verb}"} for verb in ("AddEndpoint", "RemoveEndpoint")}
    chassis.resources[zone]["Actions"] = targets
    zones = chassis.handle

    def acting(request: httpx.Request) -> httpx.Response | None:
        if request.method != "POST":
            return zones(request)
        chassis.put_zone("host0", "host0", *(["gpu1"] if request.url.path.endswith("AddEndpoint") else []))
        chassis.resources[zone]["Actions"] = targets
        return httpx.Response(204)

    chassis.handle = acting
    driver.bind("a", "host0", "gpu1")
    assert driver.observe("host0") == {"gpu1"}
    driver.unbind("b", "host0", "gpu1")
    assert driver.observe("host0") == frozenset()
    assert not any(request.method == "PATCH" for request in chassis.requests)


def test_what_the_chassis_lacks_is_named(driver: RedfishDriver, chassis: StandInChassis) -> None:
    with pytest.raises(UnknownName, match="unknown device of the chassis 'gpu7'"):
        driver.bind("a", "host0", "gpu7")
    with pytest.raises(UnknownName, match="unknown server of the chassis 'host7'"):
        driver.observe("host7")
    with pytest.raises(DriverError, match="peer-to-peer of a chassis cannot be set"):
        driver.set_p2p("a", "host0", True)
    assert (driver.holders("gpu0"), driver.room("host0").slots) == ((), None)
    del chassis.resources[f"{chassis.fabric}/Zones/host1"]
    with pytest.raises(Gone, match="host1 is in no zone of the chassis"):
        driver.observe("host1")
    assert driver.health().ok
    del chassis.resources[chassis.fabric]
    assert not driver.health().ok


def test_a_service_without_the_fabric_is_refused(chassis: StandInChassis) -> None:
    with RedfishClient(ServiceAddress("https://chassis.test"), transport=chassis.transport()) as client:
        with pytest.raises(DriverError, match="has no fabric G with zones") as refusal:
            RedfishDriver(client, "G")
        assert refusal.value.hint == "its fabrics: F"
        chassis.put(f"{ROOT}/")
        client.root = client.get(f"{ROOT}/")
        with pytest.raises(DriverError, match="has no PCIe fabric with zones"):
            RedfishDriver(client)


@pytest.mark.parametrize(
    ("speed", "lanes", "gen"),
    [
        (32.0, 16, 1),
        (252.03, 16, 4),
        (512, 16, 5),
        (8, 2, 2),
        (4, 2, 1),
        (7.88, 1, 3),
        (100, 16, None),
        (None, 16, None),
    ],
)
def test_speeds_are_generations_with_or_without_line_encoding(speed: float | None, lanes: int, gen: int | None) -> None:
    assert port_speed({"CurrentSpeedGbps": speed, "ActiveWidth": lanes}) == (gen, lanes)
