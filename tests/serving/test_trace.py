"""The timeline of a run: well-formed Trace Event JSON whose spans nest, of a size that is bounded."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from lanewise.api import load_catalog, load_system
from lanewise.catalog import Figure
from lanewise.serving.load import ServiceLoad
from lanewise.serving.simulation import Simulation, SimulationInput
from lanewise.serving.trace import perfetto
from lanewise.serving.workload import workload

RESNET = workload("resnet50")
KNOWN = {"X", "b", "e", "M"}


def made(name: str, rates: list[float], loads: list[ServiceLoad], trace: int = 3000, **settings: int):
    catalog = load_catalog()
    figure = Figure(43_684.0, "1/s", "docs/accuracy.md", basis="fitted")
    catalog = catalog.with_part(catalog.get("l40s").with_figure("service.resnet50.server", figure))
    simulation = Simulation(load_system(name, settings, catalog), loads)
    outcome = simulation.run(rates, SimulationInput(0.2, trace=trace))
    return outcome, perfetto(simulation, outcome)


def cable(**more) -> tuple[str, list[float], list[ServiceLoad]]:
    return "composable-server-gen4", [120_000.0], [ServiceLoad(RESNET, qps=1.0, **more)]


CASES = {
    "gathered": cable(),
    "a call each": cable(copies="each"),
    "per query": cable(copies="per-query"),
    "lone queries": ("composable-server-gen4", [0.0], [ServiceLoad(RESNET, scenario="single-stream")]),
    "multi-stream": ("composable-server-gen4", [0.0], [ServiceLoad(RESNET, scenario="multi-stream")]),
    "offline": ("composable-server-gen4", [0.0], [ServiceLoad(RESNET, scenario="offline", batch=32)]),
    "two services of one GPU": ("composable-server-gen4", [20_000.0, 10_000.0],
                                [ServiceLoad(RESNET, qps=1.0, gpus=("gpu0", "gpu1")),
                                 ServiceLoad(RESNET, qps=1.0, gpus=("gpu1",))]),
    "network": ("dgx-a100-network", [100_000.0],
                [ServiceLoad(RESNET, qps=1.0, host="accelerator", frontend="frontend")]),
}  # fmt: skip


@pytest.fixture(params=CASES, scope="module")
def run(request):
    """(outcome, text, events, how many services)"""
    outcome, text = made(*CASES[request.param])
    return outcome, text, json.loads(text)["traceEvents"], len(CASES[request.param][1])


def test_it_is_json_of_known_events_with_what_each_needs(run) -> None:
    _, text, events, _ = run
    assert json.loads(text)["displayTimeUnit"] == "ns"
    assert {event["ph"] for event in events} == KNOWN
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert event["cat"]
        if event["ph"] == "X":
            assert event["dur"] > 0
        if event["ph"] in "be":
            assert int(event["id"], 16) >= 0


def test_times_ascend(run) -> None:
    times = [event["ts"] for event in run[2] if event["ph"] != "M"]
    assert times == sorted(times)


def test_spans_of_a_thread_do_not_cross(run) -> None:
    tracks = defaultdict(list)
    for event in run[2]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((round(event["ts"] * 1e3), round(event["dur"] * 1e3)))
    assert tracks
    for spans in tracks.values():
        open_: list[int] = []
        for start, length in spans:
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or start + length <= open_[-1]
            open_.append(start + length)
            assert len(open_) == 1  # nothing is drawn inside another


def test_queries_open_and_close_in_order(run) -> None:
    outcome, _, events, _ = run
    open_ = defaultdict(list)
    closed = 0
    for event in events:
        if event["ph"] == "b":
            open_[event["cat"], event["id"]].append(event["name"])
        if event["ph"] == "e":
            assert open_[event["cat"], event["id"]].pop() == event["name"]
            closed += event["name"] == "query"
    assert not any(open_.values())
    assert closed == len(open_) == sum(len(batch.scheduled) for batch in outcome.trace)


def test_a_query_lasts_as_long_as_its_latency(run) -> None:
    outcome, _, events, _ = run
    began = {event["id"]: event["ts"] for event in events if event["ph"] == "b" and event["name"] == "query"}
    ended = {event["id"]: event["ts"] for event in events if event["ph"] == "e" and event["name"] == "query"}
    drawn = sorted(ended[each] - began[each] for each in began)
    latencies = sorted((batch.done - time) * 1e6 for batch in outcome.trace for time in batch.scheduled)
    assert drawn == pytest.approx(latencies, abs=2e-3)


def test_every_process_and_thread_has_a_name(run) -> None:
    _, _, events, services = run
    named = {(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    for event in events:
        assert ("process_name", event["pid"], 0) in named
        assert event["ph"] == "M" or ("thread_name", event["pid"], event["tid"]) in named
    assert all((event["pid"] <= services) == (event["ph"] != "X") for event in events if event["ph"] != "M")


def test_gpu_time_is_that_of_the_batches(run) -> None:
    outcome, _, events, _ = run
    drawn = sum(event["dur"] for event in events if event["ph"] == "X" and event["cat"] == "GPU")
    assert drawn == pytest.approx(sum(batch.served - batch.started for batch in outcome.trace) * 1e6, rel=1e-6)


def test_the_size_is_bounded_by_the_samples_kept(run) -> None:
    outcome, text, _, _ = run
    samples = sum(len(batch.scheduled) for batch in outcome.trace)
    assert len(text) < 2000 + 300 * 100 + 900 * samples + 600 * len(outcome.trace)


def test_copies_that_overlap_are_on_tracks_of_their_own() -> None:
    name, _, loads = cable(slots=3)
    _, text = made(name, [160_000.0], loads, path=4)  # more than the cable carries
    names = {event["args"]["name"] for event in json.loads(text)["traceEvents"] if event["name"] == "thread_name"}
    assert {"gpu0", "gpu0 copy 1", "gpu0 copy 2", "gpu0 copy 3", "gpu0 return 1"} <= names


def test_a_run_without_a_trace_is_an_empty_timeline() -> None:
    _, text = made(*cable(), 0)
    assert {event["ph"] for event in json.loads(text)["traceEvents"]} == {"M"}
