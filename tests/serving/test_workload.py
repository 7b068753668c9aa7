"""Workload files: what they say is what is read, and every mistake is shown with its line and a way out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.errors import Contradiction, FormatError, InputError, UnknownName
from lanewise.serving.workload import MAX_BATCH, one_workload, read_workloads, workload, workloads

GOOD = {
    "bytes_in": "1 MB",
    "bytes_out": "4 kB",
    "bound": "20 ms",
    "percentile": "0.99",
    "source": "our own trace of May",
}


def text(name: str = "ours", **changes: str) -> str:
    lines = {**GOOD, **changes}
    return "\n".join([f"{name}:", *(f"  {key}: {value}" for key, value in lines.items() if value)]) + "\n"


def test_a_file_of_ones_own_reads_as_it_says() -> None:
    found = read_workloads(text(batch="16", timeout="1.5 ms", samples="8", software="3 us"), "my.yaml")["ours"]
    assert (found.bytes_in, found.bytes_out, found.bound, found.percentile) == (1e6, 4e3, 0.02, 0.99)
    assert (found.batch, found.timeout, found.samples) == (16, 0.0015, 8)
    assert found.software == pytest.approx(3e-6)
    assert found.title == "ours"


def test_what_is_left_out_means_no_batching_and_no_software_time() -> None:
    found = read_workloads(text(), "my.yaml")["ours"]
    assert (found.batch, found.timeout, found.samples, found.software) == (1, 0.0, 1, None)


def test_a_value_may_have_a_source_of_its_own() -> None:
    found = read_workloads(text(batch="{value: 4, source: chosen by hand}"), "my.yaml")["ours"]
    assert found.batch == 4
    assert found.source_of("batch") == "chosen by hand"
    assert found.source_of("bound") == "our own trace of May"


@settings(deadline=None)
@given(batch=st.integers(1, MAX_BATCH), wait=st.integers(0, 19), percentile=st.floats(0.001, 0.999))
def test_numbers_come_back_as_written(batch: int, wait: int, percentile: float) -> None:
    made = text(batch=str(batch), timeout=f"{wait} ms", percentile=f"{percentile:f}")
    found = read_workloads(made, "my.yaml")["ours"]
    assert found.batch == batch
    assert found.timeout == pytest.approx(wait / 1e3)
    assert found.percentile == pytest.approx(float(f"{percentile:f}"))


@pytest.mark.parametrize(
    ("changes", "cause", "hint"),
    [
        ({"bytes_in": "-1 B"}, "above 0", "bytes_in"),
        ({"bytes_in": "0 B"}, "above 0", "bytes_in"),
        ({"bytes_in": "1e400 B"}, "finite", "bytes_in"),
        ({"bytes_in": ".inf"}, "not a size", "number and a unit"),
        ({"bytes_in": "3 ms"}, "not in B", "256 B"),
        ({"bytes_in": "150528"}, "no unit", "150528 B"),
        ({"bytes_out": "0"}, "above 0", "bytes_out"),
        ({"bound": "15"}, "no unit", "15 ms"),
        ({"bound": "-15 ms"}, "above 0", "bound"),
        ({"bound": "nan s"}, "not a time", "number and a unit"),
        ({"percentile": "99"}, "between 0 and 1", "0.99"),
        ({"percentile": "1"}, "between 0 and 1", "0.99"),
        ({"percentile": "0"}, "between 0 and 1", "0.99"),
        ({"variation": "1.5"}, "between 0 and 1", "0.05"),
        ({"length_variation": "-0.1"}, "between 0 and 1", "0.05"),
        ({"percentile": "most"}, "not a number", ""),
        ({"batch": "0"}, "whole number", "batch: 64"),
        ({"batch": "2.5"}, "whole number", "batch: 64"),
        ({"batch": "-3"}, "whole number", "batch: 64"),
        ({"batch": "1000000"}, "whole number", "batch: 64"),
        ({"batch": "many"}, "whole number", "batch: 64"),
        ({"samples": "0"}, "whole number", "samples: 64"),
        ({"timeout": "-1 ms"}, "not negative", "timeout"),
        ({"timeout": "2"}, "no unit", "15 ms"),
        ({"timeout": "20 ms"}, "every lone query would be late", "lower"),
        ({"timeout": "1 s"}, "every lone query would be late", "lower"),
        ({"batch": "{source: x}"}, "no value", "value"),
        ({"batch": "{value: 3, sauce: x}"}, "unknown key", "source"),
        ({"batch": "[3]"}, "whole numbers from 1 to 999999, not a list", "batch: 64"),
        ({"source": ""}, "no source", "source"),
        ({"bound": "", "percentile": ""}, "no bound and no percentile", "bound"),
        ({"bond": "3 ms"}, "unknown key", "did you mean bound"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_a_hint(changes: dict[str, str], cause: str, hint: str) -> None:
    made = text(**changes)
    with pytest.raises(InputError, match=cause) as caught:
        read_workloads(made, "my.yaml")
    assert hint in caught.value.hint
    location = caught.value.location
    assert location is not None
    assert location.file == "my.yaml"
    given_lines = [n for n, line in enumerate(made.splitlines(), 1) if any(key in line for key in changes)]
    assert location.line in (given_lines or [2])


@pytest.mark.parametrize("empty", ["", "# nothing\n", "{}\n"])
def test_a_file_without_workloads_is_refused(empty: str) -> None:
    with pytest.raises(FormatError, match="no workloads"):
        read_workloads(empty, "my.yaml")


@pytest.mark.parametrize("name", ["'two words'", "a/b", "-x", "'{x}'"])
def test_a_name_that_no_figure_key_can_carry_is_refused(name: str) -> None:
    with pytest.raises(FormatError, match="cannot be a workload's name"):
        read_workloads(text(name), "my.yaml")


def test_a_workload_that_stands_twice_is_refused() -> None:
    with pytest.raises(Contradiction, match="is given twice"):
        read_workloads(text() + text(), "my.yaml")


@pytest.mark.parametrize("broken", ["ours: [", "- a\n- b\n", "ours\n", "ours: 3\n", "ours:\n  bound: *x\n"])
def test_what_is_no_workload_file_is_an_input_error_with_a_place(broken: str) -> None:
    with pytest.raises(InputError) as caught:
        read_workloads(broken, "my.yaml")
    assert caught.value.location is not None


def test_the_only_workload_of_a_file_needs_no_name() -> None:
    one = read_workloads(text(), "my.yaml")
    assert one_workload(one, "my.yaml").name == "ours"
    two = one | read_workloads(text("theirs"), "my.yaml")
    assert one_workload(two, "my.yaml", "theirs").name == "theirs"
    with pytest.raises(FormatError, match="holds 2 workloads") as caught:
        one_workload(two, "my.yaml")
    assert "ours, theirs" in caught.value.hint
    with pytest.raises(UnknownName) as unknown:
        one_workload(two, "my.yaml", "their")
    assert "theirs" in unknown.value.hint


def test_a_workload_is_found_by_name_among_those_given_and_stands_for_itself() -> None:
    ours = read_workloads(text(), "my.yaml")
    assert workload("ours", ours) is ours["ours"]
    assert workload(ours["ours"]) is ours["ours"]
    with pytest.raises(UnknownName):
        workload("resnet50", ours)


def test_every_ready_workload_says_where_batch_and_timeout_come_from_and_keeps_its_bound() -> None:
    for each in workloads().values():
        assert each.batch > 1
        assert each.source_of("batch") != each.source
        assert each.timeout < each.bound / 2
        if each.timeout:
            assert each.source_of("timeout") != each.source


def test_resnet50_is_what_mlperf_says() -> None:
    found = workload("resnet50")
    assert (found.bytes_in, found.bound, found.percentile) == (224 * 224 * 3, 0.015, 0.99)
    assert (found.batch, found.timeout, found.samples) == (64, 0.002, 8)
