"""Options of a dataclass: Typer has one for each field, and the verb gets the dataclass with values, not texts."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import pytest

from lanewise.cli.command import GivenFlags, option_group
from lanewise.errors import FormatError, InputError
from lanewise.options.loadtest import PeakOptions, service_time
from lanewise.options.option import Options, option, words


@dataclass(frozen=True, slots=True)
class Sizes(Options):
    count: int = option(3, "How many.", minimum=1, maximum=500_000)
    bound: float = option(0.015, "The bound.", unit="s")


@dataclass(frozen=True, slots=True)
class AllOptions(Sizes):
    rate: float | None = option(None, "The rate.", "--qps", unit="1/s")
    names: tuple[str, ...] = option((), "The names.", parse=words)
    files: tuple[Path, ...] = option((), "The files.", repeat=True)
    on: bool = option(False, "Whether.")


def run(**texts: object) -> tuple[AllOptions, GivenFlags]:
    """The options that a verb gets for the texts of a command line."""
    results: list[tuple[AllOptions, GivenFlags]] = []

    @option_group
    def verb(options: AllOptions, typed: GivenFlags, json: str | None = None) -> None:
        """What it does."""
        results.append((options, typed))

    parameters = inspect.signature(verb).parameters
    assert list(parameters) == ["count", "bound", "rate", "names", "files", "on", "json"]
    assert inspect.getdoc(verb) == "What it does."
    verb(**{name: entry.default if name == "on" else None for name, entry in parameters.items()} | texts)
    return results[0]


def test_what_is_not_typed_has_its_default():
    assert run() == (AllOptions(), frozenset())


def test_texts_become_values_in_si_units():
    options, typed = run(count="300k", bound="2 ms", rate="1.5M", names="a, b", files=["x", "y"], on=True)
    assert options == AllOptions(300_000, 0.002, 1.5e6, ("a", "b"), (Path("x"), Path("y")), True)
    assert typed == {"count", "bound", "rate", "names", "files", "on"}


@pytest.mark.parametrize(
    ("texts", "cause", "hint"),
    [
        ({"count": "many"}, "--count: 'many' is not a whole number", "write digits, such as 8 or 300k"),
        ({"count": "2.5"}, "--count: '2.5' is not a whole number", "write digits, such as 8 or 300k"),
        ({"rate": "quick"}, "--qps: 'quick' is not a number of queries/s", "write 300000, 300k or '300,000 QPS'"),
        ({"bound": "quick"}, "--bound: 'quick' is not a time", "write a number and a unit, such as '105 ns'"),
    ],
)
def test_a_text_that_is_no_value_names_its_option_and_what_to_type(texts, cause, hint):
    with pytest.raises(FormatError) as raised:
        run(**texts)
    assert (raised.value.cause, raised.value.hint) == (cause, hint)


def test_a_range_holds_for_python_as_for_the_command_line():
    for refused in (lambda: run(count="0"), lambda: AllOptions(0)):
        with pytest.raises(InputError, match="--count is 0") as raised:
            refused()
        assert raised.value.hint == "give 1 to 500000"
    with pytest.raises(InputError, match="--within is 2"):
        PeakOptions(within=2.0)
    with pytest.raises(InputError, match="unknown --copy 'slow'"):
        PeakOptions(copy="slow")


def test_two_options_of_one_name_are_refused():
    def verb(sizes: Sizes, count: int = 1) -> None: ...

    with pytest.raises(ValueError, match="count"):
        option_group(verb)


def test_a_service_time_is_of_a_batch_and_a_query():
    assert service_time("1 ms + 20 us") == pytest.approx((0.001, 2e-5))
    assert service_time("20 us") == pytest.approx((0.0, 2e-5))
    with pytest.raises(FormatError, match="more than two times"):
        service_time("1 ms + 1 ms + 1 ms")
