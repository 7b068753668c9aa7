"""Which rows are the same row: what was measured counts, what was observed meanwhile does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.results.match import METHOD, group, identity, join
from lanewise.results.observation import Observation, Source
from lanewise.results.sample import Sample, summarise

COPY = Sample("copy", "gpu0->gpu1", "goodput", 50.0, "GB/s", {"bytes": 4096}, {"p2p": "on"}, "peer")


def test_samples_with_and_without_p2p_make_two_rows_each_with_its_own_median() -> None:
    staged = [replace(COPY, value=value, how={"p2p": "off"}) for value in (9.0, 10.0, 11.0)]
    direct = [replace(COPY, value=value) for value in (49.0, 50.0, 51.0)]
    rows = summarise([sample for pair in zip(direct, staged, strict=True) for sample in pair])
    assert [(row.how["p2p"], row.value, len(row.samples)) for row in rows] == [("on", 50.0, 3), ("off", 10.0, 3)]


@pytest.mark.parametrize("key", [key for key in METHOD if key != "flows"])
def test_each_part_of_the_method_tells_rows_apart(key: str) -> None:
    rows = [replace(COPY, how={**COPY.how, key: text}) for text in ("a", "b", "a")]
    assert [len(members) for members in group(rows).values()] == [2, 1]
    assert len(group(rows, ignore={key})) == len(group(rows, ignore={"method"})) == 1


@pytest.mark.parametrize("key", ["clocks", "link under load", "data", "drives", "moved", "in cache before"])
def test_what_was_observed_meanwhile_does_not(key: str) -> None:
    assert len(group(replace(COPY, how={**COPY.how, key: text}) for text in ("a", "b"))) == 1


def test_settings_count_in_any_order_and_a_flow_alone_may_say_so() -> None:
    row = replace(COPY, settings={"bytes": 1, "threads": 2})
    same = replace(COPY, settings={"threads": 2, "bytes": 1}, how={"p2p": "on", "flows": COPY.flow}, note="x")
    assert identity(row) == identity(same)
    assert identity(row) != identity(replace(same, settings={"bytes": 1}))
    assert identity(row) != identity(replace(same, how={"p2p": "on", "flows": f"{COPY.flow}, gpu1->gpu0"}))


def test_pages_on_the_same_nodes_are_the_same_memory_whatever_their_shares() -> None:
    shares = [replace(COPY, how={"NUMA node": text}) for text in ("0 (75 %), 1 (25 %)", "0 (70 %), 1 (30 %)", "0")]
    assert [len(members) for members in group(shares).values()] == [2, 1]


def test_a_sample_and_its_observation_are_the_same_row_and_source_and_unit_do_not_count() -> None:
    (row,) = summarise([COPY])
    assert identity(COPY) == identity(row) == identity(replace(row, source=Source.PREDICTED, value=None))


def row(scenario: str, path: str = "", table: str = "", **how: str) -> Observation:
    return Observation(scenario, "a->b", "goodput", 1.0, "GB/s", Source.MEASURED, table=table, path=path, how=how)


def test_a_join_pairs_repeated_rows_in_order_and_keeps_what_only_one_side_has() -> None:
    left = [replace(row("x"), value=1.0), replace(row("x"), value=2.0), row("y")]
    right = [row("z"), replace(row("x"), value=3.0), replace(row("x"), value=4.0), replace(row("x"), value=5.0)]
    found = join(left, right)
    assert [(a.value, b.value) for a, b in found.pairs] == [(1.0, 3.0), (2.0, 4.0)]
    assert (found.only_left, [r.value for r in found.only_right]) == ((left[2],), [1.0, 5.0])


def test_relaxed_fields_join_only_what_is_left_over() -> None:
    left = [row("x", "peer", p2p="on"), row("x", "staged", p2p="off")]
    right = [row("x", "staged", p2p="off"), row("x", "staged", p2p="on")]
    assert [(a.how["p2p"], b.how["p2p"]) for a, b in join(left, right).pairs] == [("off", "off")]
    found = join(left, right, relax=("path",))
    assert [(a.how["p2p"], b.how["p2p"]) for a, b in found.pairs] == [("on", "on"), ("off", "off")]
    assert not join(left, right, relax=("path",)).only_left
    assert not join([row("x", table="t")], [row("x")]).pairs
    assert join([row("x", table="t")], [row("x")], ignore={"table"}).pairs


def test_a_reduced_field_is_compared_by_what_the_function_returns() -> None:
    rows = [replace(COPY, flow=f"gpu{i}->host0") for i in (1, 2)]
    assert len(group(rows)) == 2
    assert len(group(rows, reduce={"flow": lambda sample: sample.flow.rstrip("0123456789")[0]})) == 1
