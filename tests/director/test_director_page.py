"""The web page in Chromium: compose, look at a what-if, move, undo, by keyboard, in the dark, 400 pixels wide."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Debian's chromium", allow_module_level=True)

pytestmark = pytest.mark.guest
LANEWISE = Path(sys.executable).with_name("lanewise")
PATIENCE = 120_000  # ms, only to fail a test that hangs


@dataclass(frozen=True)
class Service:
    """A director that runs as a user starts it."""

    url: str
    password: str

    def blocks(self, name: str) -> list[str]:
        """The blocks of a composed system."""
        login = json.dumps({"UserName": "admin", "Password": self.password}).encode()
        kind = {"Content-Type": "application/json"}
        sessions = urllib.request.Request(f"{self.url}/redfish/v1/SessionService/Sessions", login, kind)
        with urllib.request.urlopen(sessions) as answer:
            token = {"X-Auth-Token": answer.headers["X-Auth-Token"]}
        system = urllib.request.Request(f"{self.url}/redfish/v1/Systems/{name}", headers=token)
        with urllib.request.urlopen(system) as answer:
            found = [one["@odata.id"].rpartition("/")[2] for one in json.load(answer)["Links"]["ResourceBlocks"]]
        return sorted(block for block in found if block.startswith("gpu"))


@pytest.fixture
def service() -> Iterator[Service]:
    """Two servers and eight free GPUs."""
    command = [str(LANEWISE), "director", "serve", "--demo", "--no-tls", "--listen", "127.0.0.1:0"]
    words = ["--system", "composable-server-two-hosts", "--set", "bound=0"]
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        url = next((line.split()[-1] for line in lines if "listening at" in line), "")
        assert url, "it ended"
        yield Service(url, process.stdout.readline().strip())
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # Everything here is ours, and root in a container cannot have the sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(service: Service, chromium: Any) -> Iterator[Any]:
    """The page after login; anything that its scripts or its policy complain about fails the test."""
    context = chromium.new_context(viewport={"width": 400, "height": 900}, color_scheme="dark")
    shown = context.new_page()
    shown.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    shown.goto(service.url)
    shown.get_by_label("Password").fill(service.password)
    shown.get_by_role("button", name="Log in").press("Enter")
    shown.locator("#drawing svg").wait_for()
    yield shown
    context.close()
    # The first question whether somebody is logged in, offers that cannot be had, and rates of a system that is being
    # released are answered with an error.
    expected = ("401", "404", "409")
    assert [text for text in complaints if not any(status in text for status in expected)] == []


def composed(page: Any, count: int, rate: float, name: str) -> None:
    """Ask for GPUs and take the best offer."""
    page.get_by_label("Number").fill(str(count))
    page.get_by_label("At least, each").fill(str(rate))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Show offers").click()
    page.get_by_role("button", name="Compose this").first.click()
    page.get_by_text("Done: gave").wait_for()
    page.get_by_role("heading", name=f"{name} on ").wait_for()


def test_compose_then_add_in_what_if_then_really_then_undo(page: Any, service: Service) -> None:
    composed(page, 3, 6, "train")
    before = service.blocks("train")
    assert len(before) == 3
    card = page.locator(".tenant")
    assert card.locator("tbody tr").count() == 3

    page.get_by_role("button", name="Try changes (what if)").click()
    page.get_by_role("button", name="Add the chosen device to train").click()
    card.locator("tbody tr").nth(3).wait_for()
    assert "→" in card.inner_text()  # four share the cable: less for each
    assert service.blocks("train") == before
    page.get_by_role("button", name="Leave what-if").click()
    card.locator("tbody tr").nth(3).wait_for(state="detached")

    page.get_by_role("button", name="Add the chosen device to train").click()
    page.get_by_text("Done: added").wait_for()
    assert len(service.blocks("train")) == 4
    page.get_by_role("button", name="Undo: add").click()
    page.get_by_text("Done: took").wait_for()
    assert service.blocks("train") == before
    assert page.locator("#events li").count() > 0
    page.get_by_role("button", name="Release train").click()
    page.get_by_text("Done: released").wait_for()
    page.get_by_role("button", name="Undo: release").wait_for()
    assert page.locator("#history button").count() == 1  # nothing older than the release can be undone


def test_what_cannot_be_had_is_refused_with_the_limit_and_the_nearest_offer(page: Any) -> None:
    page.get_by_label("Number").fill("4")
    page.get_by_label("At least, each").fill("20")
    page.get_by_role("button", name="Show offers").click()
    page.get_by_role("heading", name="The nearest that can be had").wait_for()
    said = page.locator("#offers").inner_text()
    assert "20 GB/s" in said
    assert "limit" in said


def test_a_device_is_chosen_in_the_drawing_by_keyboard(page: Any, service: Service) -> None:
    composed(page, 1, 10, "one")
    composed(page, 1, 10, "two")
    (name,) = service.blocks("one")
    device = page.locator(f"#drawing [data-device={name}]")
    assert "given to one" in device.get_attribute("aria-label")
    device.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_text("GB/s").first.wait_for()
    page.get_by_role("button", name="Move to two").press("Enter")
    page.get_by_text(f"Done: took {name} back from one; added {name} to two").wait_for()
    page.get_by_text("two gets less").wait_for(state="detached")
    assert name in service.blocks("two")
    page.locator(f"#drawing [data-device={name}]").press("Enter")
    page.get_by_role("button", name="Take back from two").press("Enter")
    page.get_by_text("Done: took").first.wait_for()
    page.get_by_text("added").wait_for(state="detached")
    assert service.blocks("one") == []
    assert name not in service.blocks("two")


def test_a_device_that_cannot_be_moved_stays(page: Any, service: Service) -> None:
    composed(page, 1, 10, "one")
    composed(page, 3, 8, "full")
    (name,) = service.blocks("one")
    page.locator(f"#drawing [data-device={name}]").press("Enter")
    page.get_by_role("button", name="Move to full").click()
    page.get_by_text(f"{name} stays with one.").wait_for()
    assert service.blocks("one") == [name]


def test_nothing_is_wider_than_a_phone_and_everything_has_a_name(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter(e => e.checkVisibility() && "
        "!e.textContent.trim() && !e.labels?.length && !e.ariaLabel && !e.title).map(e => e.outerHTML)"
    )
    assert nameless == []
