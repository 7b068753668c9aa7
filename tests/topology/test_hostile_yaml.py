"""YAML that a hostile author wrote: an error with line and limit, and honest files of any shape are read."""

from __future__ import annotations

import pytest
from bounded import outcome

from lanewise import units, yaml_loader
from lanewise.catalog import read_parts
from lanewise.errors import FormatError, LanewiseError
from lanewise.perf.flow import parse_flows
from lanewise.topology.ranges import expand
from lanewise.topology.read import read_system

SYSTEM = "lanewise: 1\nsystem: x\ndevices:\n  cpu[0-1]: {cpu: null}\n  gpu[0-1]: {gpu: null}\nlinks:\n"


def test_an_honest_file_of_many_values_is_no_bomb(monkeypatch):
    monkeypatch.setattr(yaml_loader, "MAX_REPEATED", 20_000)
    rows = yaml_loader.MAX_REPEATED // 10
    text = "rows:\n" + f"- [{'1, ' * 10}1]\n" * rows  # more values than aliases may repeat
    assert len(yaml_loader.load(text, "f").data["rows"]) == rows


def test_a_file_of_more_values_than_are_read_says_the_limit():
    text = "".join(f"- [{'0,' * 999}0]\n" for _ in range(1100))
    error = outcome(lambda: yaml_loader.load(text, "f"), mebibytes=2048)
    assert error.startswith("FormatError: f:1000: more than 1,000,000 values")
    assert "split" in error


def test_aliases_that_unfold_are_named_as_what_they_are():
    text = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    error = outcome(lambda: yaml_loader.load(text, "f"))
    assert "unfolds to more than 200,000 values by its aliases" in error


@pytest.mark.parametrize("value", ["null", "{}", "[]", "true", "1e999", "-1", ".inf", "'²'", "9" * 400, "x", "'1\n2'"])
@pytest.mark.parametrize("key", ["nvlink", "socket", "pcie", "max_payload", "port", "bridge", "from", "to"])
def test_a_link_with_a_value_of_another_kind_is_refused_with_its_line(key, value):
    link = {"from": "gpu0", "to": "cpu0", "pcie": "gen4 x16"}
    link |= {key: value} if key in ("from", "to", "pcie", "max_payload", "port", "bridge") else {"to": "gpu1"}
    link = {k: v for k, v in link.items() if k != "pcie"} | {key: value} if key in ("nvlink", "socket") else link
    text = SYSTEM + "  - {" + ", ".join(f"{name}: {word}" for name, word in link.items()) + "}\n"
    refusal: LanewiseError | None = None
    try:
        read_system(text, "f")
    except LanewiseError as error:
        refusal = error
    if refusal is not None:
        assert refusal.location is not None
        assert refusal.location.file == "f"
        assert refusal.location.line > 0


def test_ranges_are_counted_before_they_are_written_out():
    assert "names" in outcome(lambda: expand("gpu" + "[0-65535]" * 100_000))
    assert "names" in outcome(lambda: expand("gpu[" + "0-65535," * 20_000 + "0]"))


def test_a_quantity_of_many_digits_is_refused_at_once():
    assert "is not a" in outcome(lambda: units.parse("1" * 200_000 + "!", "B/s"))
    with pytest.raises(FormatError) as caught:
        units.parse("1" * 200_000 + "!", "B/s")
    assert len(str(caught.value)) < 200


def test_a_text_of_flows_is_read_in_time_that_grows_with_its_length():
    outcome(lambda: parse_flows("a," * 1_000_000))
    outcome(lambda: parse_flows("a->b" + " " * 1_000_000 + "x\n\ny"))


def test_a_part_of_infinite_or_missing_figures_is_refused_with_its_line():
    for value in ("1e999 GB/s", "-1 GB/s", "null", "[]", "{}", "'²'"):
        text = f"lanewise: 1\nparts:\n  g: {{kind: gpu, figures: {{hbm.bandwidth: {value}}}}}\n"
        with pytest.raises(LanewiseError) as caught:
            read_parts(text, "f")
        assert caught.value.location is not None
