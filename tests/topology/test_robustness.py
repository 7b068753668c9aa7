"""Any text is read or refused with a place: damaged descriptions, noise, the examples of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanewise import package_data
from lanewise.api.loading import ready_systems
from lanewise.errors import LanewiseError
from lanewise.topology.model import System
from lanewise.topology.read import read_system

DOCS = Path(__file__).parents[2] / "docs"
TEXTS = st.sampled_from([package_data.text("systems", name, "ready system")[0] for name in ready_systems()])
WORDS = [
    "[",
    "]",
    "{",
    "}",
    ":",
    "- ",
    "'",
    '"',
    "null",
    "0",
    "-1",
    "gpu0",
    "cpu0",
    "true",
    "1e9",
    "\t",
    "&a",
    "*a",
    "{gpus}",
]


def read_or_refuse(text: str) -> System | None:
    """The system, or None where the text is refused as it should be: with a place and a cause."""
    try:
        return read_system(text, "s.yaml")
    except LanewiseError as error:
        refusal = error
    assert refusal.location is not None
    assert refusal.location.file == "s.yaml"
    assert refusal.cause
    return None


@given(TEXTS, st.floats(0, 1))
def test_a_description_cut_off_anywhere(text: str, share: float) -> None:
    read_or_refuse(text[: int(len(text) * share)])


@given(TEXTS, st.data())
def test_a_description_that_lacks_a_line(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    read_or_refuse("\n".join(lines))


@given(TEXTS, st.data())
def test_a_description_with_a_word_in_the_wrong_place(text: str, data: st.DataObject) -> None:
    words = re.split(r"(\W+)", text)
    for _ in range(data.draw(st.integers(1, 3))):
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from([*WORDS, *words]))
    read_or_refuse("".join(words))


@given(st.text(max_size=80))
@example("\x00")
@example("lanewise: 1\nsystem: x\ndevices: {cpu0: {cpu: \ud800}}")
@example("%YAML 9.9\n---\n")
@example("--- a\n--- b")
@example("lanewise: 1\nsystem: x\ndevices: !!python/object:os.system {}")
@example("lanewise: 1\nsystem: x\ndevices: {<<: {cpu0: {cpu: null}}}")
def test_noise(text: str) -> None:
    assert read_or_refuse(text) is None


def test_the_example_of_the_reference_reads() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / "reference/system-format.md").read_text(), re.S)
    for block in blocks:
        settings = {"gpus": 2} if "parameters:" in block else {}
        assert read_system(block, "system-format.md", settings).links


def test_the_description_of_the_guide_reads() -> None:
    text = (DOCS / "guides/describe-a-system.md").read_text()
    descriptions = re.findall(r"<<'EOF'\n(lanewise: 1\n.*?)EOF\n", text, re.DOTALL)
    assert [len(read_system(description, "guide.md").links) for description in descriptions] == [10, 6, 29, 13]


@pytest.mark.parametrize("name", ready_systems())
def test_every_ready_system_reads_back_from_windows_line_ends(name: str) -> None:
    assert read_or_refuse(package_data.text("systems", name, "ready system")[0].replace("\n", "\r\n")) is not None
