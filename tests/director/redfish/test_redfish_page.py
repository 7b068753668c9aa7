"""The documents of the web page: drawing, what-if, history; and that its files come with a strict policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from director.directors import Running, simulated
from director.redfish.services import SYSTEMS, Client, serving, system

from lanewise.director import redfish

OEM = "/redfish/v1/Oem/Lanewise"
PAGE = Path(redfish.__file__).parents[1] / "web"


@pytest.fixture
def page(start: Callable[..., Running], tmp_path: Path) -> Iterator[Client]:
    """A service with the page and with drawings that list hosts and flows."""
    with serving(start(simulated()), tmp_path, static=PAGE) as client:
        client.service.draw = lambda system, flows: f"<svg>{' '.join(flow.name for flow in flows)}</svg>"
        yield client


def test_the_drawing_has_the_flows_of_all_compositions_and_is_made_once_a_version(page: Client) -> None:
    assert page.get(f"{OEM}/Drawing").headers["content-type"].startswith("image/svg+xml")
    assert page.service.drawn(page.service.view) == "<svg></svg>"
    page.post(SYSTEMS, system("train", "host0", "gpu0"))
    assert page.service.drawn(page.service.view) == "<svg>host0->gpu0</svg>"
    page.service.draw = lambda *_: "another"
    assert page.service.drawn(page.service.view) == "<svg>host0->gpu0</svg>"


def test_a_service_without_drawings_has_none(client: Client) -> None:
    assert client.get(f"{OEM}/Drawing").status == 404
    assert client.post(f"{OEM}/WhatIf", {"Changes": []}).status == 404


def test_what_if_shows_rates_of_then_and_today_and_changes_nothing(page: Client) -> None:
    page.post(SYSTEMS, system("train", "host0", "gpu0"))
    version = page.service.view.version
    change = {"Action": "attach", "Composition": "train", "Blocks": ["gpu1"]}
    found = page.post(f"{OEM}/WhatIf", {"Changes": [change]}, user="reader")
    assert found.status == 200
    assert found.body["Svg"] == "<svg>host0->gpu0 host0->gpu1</svg>"
    (train,) = found.body["Compositions"]
    assert train["Blocks"] == ["gpu0", "gpu1"]
    today = [rate["TodayGBps"] for rate in train["Rates"]]
    assert today[0] > 20
    assert today[1] is None
    assert train["Rates"][0]["PredictedGBps"] < today[0]
    assert page.service.view.version == version


@pytest.mark.parametrize(
    ("change", "status", "key"),
    [
        ({"Action": "attach", "Composition": "train", "Blocks": ["gpu9"]}, 400, "ResourceBlockNotFound"),
        ({"Action": "attach", "Composition": "none", "Blocks": ["gpu1"]}, 404, "OperationFailed"),
        ({"Action": "detach", "Composition": "train", "Blocks": ["gpu1"]}, 409, "OperationFailed"),
        ({"Action": "burn", "Composition": "train"}, 400, "ActionParameterValueNotInList"),
    ],
)
def test_an_impossible_what_if_is_refused_with_the_reason(
    page: Client, change: dict[str, object], status: int, key: str
) -> None:
    page.post(SYSTEMS, system("train", "host0", "gpu0"))
    answer = page.post(f"{OEM}/WhatIf", {"Changes": [change]})
    assert (answer.status, answer.keys[:1]) == (status, [key])


def test_the_history_has_what_an_undo_needs_newest_first(page: Client) -> None:
    page.post(SYSTEMS, system("train", "host0", "gpu0", "gpu1"))
    page.running.clock.now += 1
    page.call("DELETE", f"{SYSTEMS}/train")
    release, compose = page.get(f"{OEM}/History").body["Changes"]
    assert (release["Action"], release["Composition"], release["Exists"]) == ("release", "train", False)
    assert (compose["Action"], compose["Client"], compose["State"]) == ("compose", "admin", "Completed")
    assert release["Server"] == "host0"
    assert sorted(release["Blocks"]) == ["gpu0", "gpu1"]


def test_every_file_that_the_page_loads_is_there_and_nothing_comes_from_elsewhere(page: Client) -> None:
    answer = page.get("/", user=None)
    assert answer.status == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for file in PAGE.iterdir():
        text = file.read_text()
        assert "http://" not in text.replace("http://www.w3.org", ""), file
        assert "https://" not in text, file
        assert page.get(f"/{file.name}", user=None).status == 200
    assert page.get(f"{OEM}/Drawing", user=None).status == 401


def test_what_ended_a_month_ago_is_forgotten_and_what_is_composed_stays(page: Client) -> None:
    page.post(SYSTEMS, system("old", "host0", "gpu0"))
    page.call("DELETE", f"{SYSTEMS}/old")
    page.post(SYSTEMS, system("train", "host0", "gpu0"))
    page.service.forget()
    assert len(page.get(f"{OEM}/History").body["Changes"]) == 3
    page.running.clock.now += 31 * 86_400
    page.tokens.clear()  # the session has ended as well
    page.service.forget()
    assert page.get(f"{OEM}/History").body["Changes"] == []
    assert page.get(f"{SYSTEMS}/train").status == 200
