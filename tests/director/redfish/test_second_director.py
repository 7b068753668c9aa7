"""A director whose fabric is another director's service: zones take endpoints, and both say the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from director.redfish.in_process import redfish_client
from director.redfish.services import Client

from lanewise.director.drivers.base import Busy, FabricEventKind
from lanewise.director.drivers.redfish import RedfishDriver
from lanewise.director.engine import Director
from lanewise.director.store.database import Store
from lanewise.pool.model import CompositionRequest, PathRequirement
from lanewise.topology.model import Kind


@pytest.fixture
def driver(client: Client) -> Iterator[RedfishDriver]:
    with redfish_client(client) as opened:
        yield RedfishDriver(opened)


def attached(client: Client, server: str) -> set[str]:
    """What the first director has attached to a server."""
    devices = client.running.director.view().pool.system.devices.values()
    return {device.name for device in devices if device.host == server and device.kind is Kind.GPU}


def test_the_fabric_is_described_by_the_service(driver: RedfishDriver, client: Client) -> None:
    ours, theirs = client.running.director.view().pool.system, driver.discover()
    assert theirs.hosts == ours.hosts
    gpus = {name: device.part for name, device in ours.devices.items() if device.kind is Kind.GPU}
    assert {name: device.part for name, device in theirs.devices.items() if device.kind is Kind.GPU} == gpus
    speeds = {frozenset((link.a, link.b)): (link.gen, link.lanes) for link in theirs.links}
    for link in ours.links:
        if {ours.devices[link.a].kind, ours.devices[link.b].kind} <= {Kind.SWITCH, Kind.GPU}:
            assert speeds[frozenset((link.a, link.b))] == (link.gen, link.lanes)


def test_a_second_director_composes_over_the_first(driver: RedfishDriver, client: Client, tmp_path: Path) -> None:
    store = Store(tmp_path / "second.sqlite")
    director = Director(store, driver)
    director.start()
    request = CompositionRequest((PathRequirement(Kind.GPU, 2, 5e9),), server="host1", name="train")
    task = director.compose(request)
    assert task.problem is None
    assert attached(client, "host1") == set(task.blocks)
    assert director.attach("train", "gpu7" if "gpu7" not in task.blocks else "gpu0").problem is None
    assert len(attached(client, "host1")) == 3
    director.close()
    store.close()  # and the next director finds what is attached
    store = Store(tmp_path / "third.sqlite")
    director = Director(store, driver)
    (name,) = director.start().adopted
    assert set(director.view().pool.compositions[name].blocks) == attached(client, "host1")
    assert director.release(name).problem is None
    assert attached(client, "host1") == set()
    director.close()
    store.close()


def test_what_the_first_director_does_itself_is_noticed(driver: RedfishDriver, client: Client) -> None:
    driver.bind("a", "host0", "gpu0")
    first = client.running.director
    first.compose(CompositionRequest(blocks=("gpu1",), server="host1", name="other"))
    assert driver.observe("host1") == {"gpu1"}
    events = [(event.kind, event.device, event.server, event.text) for event in driver.events()]
    assert events == [
        (FabricEventKind.ATTACHED, "gpu0", "host0", ""),
        (FabricEventKind.ATTACHED, "gpu1", "host1", "by somebody else"),
    ]
    with pytest.raises(Busy, match="gpu1 is attached to host1"):
        driver.bind("b", "host0", "gpu1")
    link = driver.link("gpu0")
    assert link is not None
    assert (link.gen, link.lanes, link.trained_down) == (4, 16, False)
