"""Predicted rows of flows and of pairs."""

from __future__ import annotations

import math

import pytest

from lanewise import api
from lanewise.perf.flow import parse_flows
from lanewise.probes.gpu.cases import GpuTest
from lanewise.probes.gpu.flows import typed_text
from lanewise.results.compare import compare
from lanewise.results.flow_rows import predicted_flow_rows, predicted_pair_rows
from lanewise.results.match import CONTEXT
from lanewise.results.sample import summarise

FLOWS = "gpu0->gpu4, host0->gpu2"


def test_flows_are_rows_with_their_sum():
    prediction = api.predict("rack-16gpu", FLOWS)
    rows = predicted_flow_rows(prediction)
    assert [(row.flow, row.metric) for row in rows] == [
        ("gpu0->gpu4", "goodput"), ("host0->gpu2", "goodput"), (FLOWS, "total")
    ]  # fmt: skip
    assert rows[2].value == pytest.approx(math.fsum(row.value or 0.0 for row in rows[:2]))
    assert all((row.low or 0.0) <= (row.value or 0.0) <= (row.high or 0.0) for row in rows)


def test_a_lone_flow_has_no_sum():
    assert len(predicted_flow_rows(api.predict("rack-16gpu", "gpu0->gpu4"))) == 1


def test_rows_join_those_that_measure_gpu_writes_of_the_same_flows():
    flows = tuple(parse_flows(FLOWS))
    test = GpuTest((typed_text(flows),), flows)
    how = {"engine": "copy engine"}
    samples = [test.sample("goodput", 20e9, display_unit="GB/s", how=how, flow=flow) for flow in flows]
    samples.append(test.sample("total", 40e9, display_unit="GB/s", how=how))
    predicted = predicted_flow_rows(api.predict("rack-16gpu", FLOWS))
    joined = compare(summarise(samples), predicted, ignore=frozenset(CONTEXT))
    assert [pair.right for pair in joined.pairs] == list(predicted)


@pytest.mark.parametrize(("metric", "both_ways", "kind"), [
    ("goodput", False, "goodput"), ("goodput", True, "total"), ("latency", False, "latency"),
])  # fmt: skip
def test_each_pair_of_a_matrix_is_a_row_of_its_own(metric, both_ways, kind):
    matrix = api.matrix("dgx-a100", ["gpu0", "gpu1", "gpu2"], metric, both_ways)
    rows = predicted_pair_rows(matrix, "dgx-a100", both_ways=both_ways)
    assert {row.metric for row in rows} == {kind}
    assert len({row.flow for row in rows}) == len(rows) == (3 if both_ways else 6)
    assert rows[0].value == matrix.cells[0][1]
