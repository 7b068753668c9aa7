"""The Redfish client: sessions, ETags, tasks, the stream, refusals; and pools of services that are not ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from director.stand_in import BLOCKS, ROOT, StandInService, error, link, sent

from lanewise.director.client.errors import RefusedByService, ServiceUnreachable
from lanewise.director.client.pool import RemotePool
from lanewise.director.client.session import RedfishClient, ServiceAddress
from lanewise.errors import InputError, UnknownName
from lanewise.pool.model import CompositionRequest, NoOffer, PathRequirement
from lanewise.topology.model import Kind

ADDRESS = ServiceAddress("https://director.test", "admin", "secret")
TASK = f"{ROOT}/TaskService/Tasks/1"


@pytest.fixture
def service() -> StandInService:
    return StandInService()


@pytest.fixture
def client(service: StandInService) -> Iterator[RedfishClient]:
    with RedfishClient(ADDRESS, transport=service.transport()) as opened:
        yield opened
        service.handle = lambda request: None


def test_a_session_begins_with_the_password_and_ends_with_the_client(service: StandInService) -> None:
    with RedfishClient(ADDRESS, transport=service.transport()) as client:
        client.get(f"{ROOT}/Systems")
    root, login, read, logout = service.requests
    assert root.url == "https://director.test/redfish/v1/"
    assert sent(login) == {"UserName": "admin", "Password": "secret"}
    assert read.headers["X-Auth-Token"] == "token"
    assert (logout.method, logout.url.path) == ("DELETE", f"{ROOT}/SessionService/Sessions/1")


def test_without_an_account_nobody_logs_in(service: StandInService) -> None:
    with RedfishClient(ServiceAddress("http://director.test"), transport=service.transport()):
        pass
    assert [request.method for request in service.requests] == ["GET"]


def test_a_refused_login_says_how_to_name_the_account(service: StandInService) -> None:
    service.handle = lambda request: error(401, "Base.1.0.NoValidSession", "Go away.") if request.content else None
    with pytest.raises(RefusedByService, match=r"^the service refuses the login as \w+: Go away$") as refusal:
        RedfishClient(ADDRESS, transport=service.transport())
    assert (refusal.value.status, refusal.value.keys) == (401, ("NoValidSession",))
    assert "LANEWISE_DIRECTOR_PASSWORD" in refusal.value.hint


def test_members_come_one_by_one_or_expanded_over_pages(service: StandInService, client: RedfishClient) -> None:
    assert [block.name for block in client.members(BLOCKS)] == ["host0", "gpu0", "gpu1"]
    service.put(f"{ROOT}/", ProtocolFeaturesSupported={"ExpandQuery": {"NoLinks": True}})

    def paged(request: httpx.Request) -> httpx.Response | None:
        if request.url.path != BLOCKS:
            return None
        if "page" in request.url.params:
            return httpx.Response(200, json={"Members": [{**link("/b"), "Id": "b", "@odata.etag": '"7"'}]})
        assert request.url.params["$expand"] == "."
        return httpx.Response(
            200, json={"Members": [{**link("/a"), "Id": "a"}], "Members@odata.nextLink": f"{BLOCKS}?page=2"}
        )

    service.handle = paged
    with RedfishClient(ServiceAddress("https://director.test"), transport=service.transport()) as expanding:
        members = expanding.members(BLOCKS)
    assert [(member.name, member.etag) for member in members] == [("a", ""), ("b", '"7"')]


def task(state: str, status: int, **more: object) -> httpx.Response:
    headers = {"Location": TASK, "Retry-After": "0"}
    return httpx.Response(status, headers=headers, json={"TaskState": state, "Messages": [], **more})


def test_a_task_is_followed_to_what_it_made(service: StandInService, client: RedfishClient) -> None:
    service.compose("train", ["host0", "gpu0"])
    made = {"CreatedResources": [link(f"{ROOT}/Systems/train")]}
    replies = [task("Running", 202), task("Running", 202), task("Completed", 200, Links=made)]
    service.handle = lambda request: replies.pop(0) if request.url.path == TASK or request.content else None
    system = RemotePool(client).compose(CompositionRequest(blocks=("gpu0",), server="host0", name="train"))
    assert (system.name, system.server, system.blocks) == ("train", "host0", ("gpu0",))
    post = next(request for request in service.requests if request.method == "POST" and "Systems" in request.url.path)
    blocks = [link(f"{BLOCKS}/host0"), link(f"{BLOCKS}/gpu0")]
    assert sent(post) == {"Name": "train", "Links": {"ResourceBlocks": blocks}}


def test_a_task_that_failed_is_an_error_with_its_last_message(service: StandInService, client: RedfishClient) -> None:
    messages = [
        {"Message": "gpu0 is attached.", "MessageSeverity": "OK", "MessageId": "TaskEvent.1.0.TaskProgressChanged"},
        {"Message": "gpu1 is gone.", "MessageSeverity": "Critical", "MessageId": "Base.1.0.OperationFailed"},
    ]
    replies = [task("Running", 202), task("Exception", 200, Messages=messages)]
    service.handle = lambda request: replies.pop(0)
    with pytest.raises(RefusedByService, match=r"^gpu1 is gone$") as refusal:
        client.post(f"{ROOT}/Systems", {})
    assert refusal.value.keys == ("OperationFailed",)


def test_a_change_names_the_versions_that_it_is_meant_for(service: StandInService, client: RedfishClient) -> None:
    service.compose("train", ["host0", "gpu0"])
    stale = error(412, "Base.1.0.PreconditionFailed", "It changed.", Resolution="Read it again.")
    service.handle = lambda request: stale if request.method == "POST" else None
    pool = RemotePool(client)
    etags = [service.resources[uri]["@odata.etag"] for uri in (f"{BLOCKS}/gpu1", f"{ROOT}/Systems/train")]
    with pytest.raises(RefusedByService, match=r"^It changed$") as refusal:
        pool.attach("train", "gpu1")
    assert (refusal.value.status, refusal.value.hint) == (412, "Read it again")
    post = service.requests[-1]
    assert post.url.path == f"{ROOT}/Systems/train/Actions/ComputerSystem.AddResourceBlock"
    body = {"ResourceBlock": link(f"{BLOCKS}/gpu1"), "ResourceBlockETag": etags[0], "ComputerSystemETag": etags[1]}
    assert sent(post) == body
    service.handle = lambda request: None
    pool.release("train")
    assert service.requests[-1].headers["If-Match"] == etags[1]


def test_a_request_with_a_key_is_repeated_when_the_connection_breaks(
    service: StandInService, client: RedfishClient
) -> None:
    posts: list[str | None] = []

    def broken(request: httpx.Request) -> httpx.Response | None:
        if request.method != "POST":
            return None
        posts.append(request.headers.get("Idempotency-Key"))
        if len(posts) != 2:
            raise httpx.ReadError("connection reset")
        return httpx.Response(201, headers={"Location": "/made"}, json={})

    service.handle = broken
    assert client.post(f"{ROOT}/Systems", {}, key="k").uri == "/made"
    with pytest.raises(ServiceUnreachable, match="connection reset"):
        client.post(f"{ROOT}/Systems", {})
    assert posts == ["k", "k", None]


def test_the_stream_is_taken_up_after_the_last_event(service: StandInService, client: RedfishClient) -> None:
    def event(name: int, text: str) -> str:
        lines = ": alive", f"id: {name}", 'data: {"Events": [{"Message": ', f'data: "{text}"}}]}}', "", ""
        return "\n".join(lines)

    bodies = [event(4, "one") + event(5, "two") + "id: 6\ndata: {", event(6, "three")]
    service.handle = lambda request: (
        httpx.Response(200, text=bodies.pop(0)) if request.url.path.endswith("SSE") else None
    )
    events = RemotePool(client).events("3")
    assert [(event.id, event.text) for event in (next(events), next(events), next(events))] == [
        ("4", "one"), ("5", "two"), ("6", "three"),
    ]  # fmt: skip
    streams = [one.headers["Last-Event-ID"] for one in service.requests if one.url.path.endswith("SSE")]
    assert streams == ["3", "5"]


def test_no_offer_brings_the_limit_and_the_nearest(service: StandInService, client: RedfishClient) -> None:
    nearest = {"Server": "host0", "Blocks": ["gpu0"], "TotalGBps": 12.5, "Losses": [], "Paths": []}
    note = {"Lanewise": {"Limit": "link box--host0", "PredictedGBps": 12.5, "Nearest": nearest}}
    key, resolution = "Composition.1.1.NoResourceMatch", "Ask for less."
    service.handle = lambda request: (
        error(409, key, "Nothing fits.", Oem=note, Resolution=resolution) if request.method == "POST" else None
    )
    with pytest.raises(NoOffer, match=r"^Nothing fits$") as refusal:
        RemotePool(client).offers(CompositionRequest((PathRequirement(Kind.GPU, 4),)))
    error_, offer = refusal.value, refusal.value.nearest
    assert (error_.limit, error_.rate, error_.hint) == ("link box--host0", 12.5e9, "Ask for less")
    assert offer is not None
    assert (offer.blocks, offer.total) == (("gpu0",), 12.5e9)


def test_rates_are_not_asked_of_a_service_that_would_not_heed_them(client: RedfishClient) -> None:
    with pytest.raises(InputError, match="predicts no rates and would not heed them"):
        RemotePool(client).offers(CompositionRequest((PathRequirement(Kind.GPU, 4, 20e9),)))


def test_counts_become_a_constrained_composition(service: StandInService, client: RedfishClient) -> None:
    response = {"Response": {"Links": {"ResourceBlocks": [link(f"{BLOCKS}/host0"), link(f"{BLOCKS}/gpu1")]}}}
    service.handle = lambda request: (
        httpx.Response(200, json={"Manifest": {"Stanzas": [response]}})
        if request.url.path.endswith("Compose")
        else None
    )
    offer = RemotePool(client).offers(CompositionRequest((PathRequirement(Kind.GPU, 1, part="l40s"),)))[0]
    assert (offer.server, offer.blocks, offer.rates) == ("host0", ("gpu1",), ())
    stanza = next(sent(one) for one in service.requests if one.url.path.endswith("Compose"))["Manifest"]["Stanzas"][0]
    wanted = [{"@Redfish.RequestedCount": 1, "Model": "l40s"}]
    assert stanza["Request"] == {"Links": {"ResourceBlocks": []}, "Processors": {"Members": wanted}}


def test_a_listing_has_servers_blocks_and_systems(service: StandInService, client: RedfishClient) -> None:
    service.compose("train", ["host0", "gpu1"])
    service.put(f"{BLOCKS}/gpu10", Id="gpu10", ResourceBlockType=["Processor"])
    service.put(f"{BLOCKS}/gpu2", Id="gpu2", ResourceBlockType=["Processor"])
    listing = RemotePool(client).listing()
    assert [block.name for block in listing.servers] == ["host0"]
    assert [block.name for block in listing.blocks] == ["gpu0", "gpu1", "gpu2", "gpu10"]
    assert [(block.name, block.type, block.state) for block in listing.blocks[:2]] == [
        ("gpu0", "Processor", "Unused"), ("gpu1", "Processor", "Unused"),
    ]  # fmt: skip
    assert [(system.name, system.server, system.blocks) for system in listing.systems] == [
        ("train", "host0", ("gpu1",))
    ]


def test_names_that_the_service_lacks_are_named(client: RedfishClient) -> None:
    pool = RemotePool(client)
    with pytest.raises(UnknownName, match="unknown block of the service 'gpu9'"):
        pool.compose(CompositionRequest(blocks=("gpu9",)))
    with pytest.raises(UnknownName, match="unknown server 'host9'") as error:
        pool.compose(CompositionRequest(blocks=("gpu0",), server="host9"))
    assert "gpu0" not in error.value.hint
    with pytest.raises(UnknownName, match="unknown composed system 'train'"):
        pool.attach("train", "gpu0")
    with pytest.raises(UnknownName, match="unknown composed system 'train'"):
        pool.release("train")


@pytest.mark.parametrize(
    ("url", "message"),
    [("director.test", "is no address of a service"), ("https://127.0.0.1:1", "no Redfish service at .*refused")],
)
def test_an_address_where_nothing_answers_is_an_error(url: str, message: str) -> None:
    with pytest.raises((InputError, ServiceUnreachable), match=message):
        RedfishClient(ServiceAddress(url))


def test_what_is_no_certificate_and_no_json_is_refused(service: StandInService, tmp_path: Path) -> None:
    path = tmp_path / "certificate.pem"
    path.write_text("no certificate")
    with pytest.raises(InputError, match="is no certificate"):
        RedfishClient(ServiceAddress("https://127.0.0.1:1", certificate=path))
    service.handle = lambda request: httpx.Response(200, text="<html>")
    with pytest.raises(ServiceUnreachable, match="no JSON object"):
        RedfishClient(ADDRESS, transport=service.transport())
