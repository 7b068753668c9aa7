"""Logs that LoadGen 6.0.17 wrote of a server of 1 ms (M/D/1): see logs/."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import FormatError
from lanewise.loadtest.detail_log import parse

LOGS = Path(__file__).parent / "logs"


def test_a_valid_server_run_has_its_rate_its_latencies_and_no_reasons(captured):
    log = parse(captured("server-valid"))
    assert (log.judged, log.valid, log.reasons, log.cut) == (True, True, (), False)
    assert (log.queries, log.late, log.rate) == (760, 0, 378.421)
    assert log.latency["p50"] == 1.11571e-3
    assert list(log.latency) == ["p50", "p90", "p99", "p99.9", "mean", "max"]
    assert log.latency["p50"] <= log.latency["p90"] <= log.latency["p99"] <= log.latency["max"]


def test_settings_are_those_in_effect(captured):
    settings = parse(captured("server-valid")).settings
    assert settings["target_qps"] == 400
    assert settings["target_latency_ns"] == 15_000_000
    assert settings["server_coalesce_queries"] is False
    assert str(settings["loadgen_version"]).startswith("6.0.17")


def test_a_run_above_the_peak_says_why_it_is_not_valid(captured):
    log = parse(captured("server-invalid"))
    assert log.judged
    assert not log.valid
    assert log.late == 422
    assert log.reasons[0] == "Reduce target QPS to improve latency."
    assert "44425 more queries" in log.reasons[1]


def test_too_few_queries_are_early_stopping_s_reason(captured):
    log = parse(captured("server-too-few"))
    assert not log.valid
    assert log.late == 0
    assert log.reasons == (
        "Run unsuccessful. Processed 92 queries. Would need to run at least 367 more queries, with the run being "
        "successful if every additional query were under latency.",
    )


def test_a_run_that_was_ended_early_has_no_verdict_and_says_so(captured):
    log = parse(captured("server-ended-early"))
    assert (log.judged, log.valid, log.rate) == (False, False, None)
    assert "Lanewise ended the run early: more queries are late than a valid run can have" in log.reasons


@pytest.mark.parametrize(("name", "rate"), [("offline", 999.949), ("single-stream", 940.803), ("multi-stream", None)])
def test_each_scenario_has_its_own_rate(captured, name, rate):
    log = parse(captured(name))
    assert log.valid
    assert log.rate == rate


def test_multistream_latency_is_that_of_whole_queries(captured):
    log = parse(captured("multi-stream"))
    assert log.latency["p50"] == pytest.approx(4e-3, rel=0.05)  # four samples of 1 ms
    median = log.number("result_50.00_percentile_latency_ns")  # of single samples
    assert median is not None
    assert median < 3.1e6


def test_an_accuracy_run_has_no_verdict(captured):
    log = parse(captured("accuracy"))
    assert not log.judged
    assert log.settings["test_mode"] == "AccuracyOnly"


@given(st.integers(0, 31_000))
def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(keep):
    text = (LOGS / "server-valid.txt").read_text()
    whole, part = parse(text), parse(text[:keep])
    assert set(part.values) <= set(whole.values)
    assert not part.valid or part.judged


def test_what_is_no_log_is_named_with_its_line(captured):
    broken = captured("server-valid").replace(":::MLLOG", "MLLOG", 3).split("\n", 2)[2]
    with pytest.raises(FormatError) as said:
        parse(broken, "detail.txt")
    assert str(said.value) == "detail.txt:1: no line of a LoadGen detail log"
    with pytest.raises(FormatError, match=r"log:2: not a JSON object"):
        parse(':::MLLOG {"key": "a", "value": 1, "metadata": {}}\n:::MLLOG {"key": 1\n', "log")
