"""Services on described systems: what more GPUs, longer paths and other traffic do, and that parts add up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from threading import Thread

import pytest

import lanewise
from lanewise._native import Outcome
from lanewise.api import load_catalog, load_system
from lanewise.catalog import Figure
from lanewise.errors import InputError
from lanewise.options.predict import ServiceOptions
from lanewise.perf.flow import Flow
from lanewise.perf.latency import latency
from lanewise.results.plan import Service
from lanewise.results.service_result import ServiceResult
from lanewise.serving import peak as peak_module
from lanewise.serving.ceiling import ceiling
from lanewise.serving.load import BatchPolicy, ServiceLoad, check
from lanewise.serving.peak import SearchOptions, at_peak, search, under_load
from lanewise.serving.simulation import COPY_SETUP, Simulation, SimulationInput, alone_rate
from lanewise.serving.times import KEPT_SHARE, QUEUED_SHARE
from lanewise.serving.workload import workload

RESNET = workload("resnet50")
MARGIN = 1.005  # chance moves a peak by less than this
COARSE = SearchOptions(precision=0.005)


def simulation(name: str, loads=None, background=(), **settings: int) -> Simulation:
    """ResNet-50 on all GPUs of a ready system, each of which serves what a study has fitted."""
    catalog = load_catalog()
    for part, rate in (("l40s", 43_684.0), ("h100-nvl", 63_132.0)):
        figure = Figure(rate, "1/s", "docs/accuracy.md", basis="fitted")
        catalog = catalog.with_part(catalog.get(part).with_figure("service.resnet50.server", figure))
    return Simulation(load_system(name, settings, catalog), loads or [ServiceLoad(RESNET, qps=1.0)], background)


@cache
def peak(name: str, background=(), gpus_served=(), **settings: int) -> float:
    asked = simulation(name, [ServiceLoad(RESNET, qps=1.0, gpus=gpus_served)], background, **settings)
    estimate = search(asked, 0, [1.0], COARSE)[0]
    assert estimate.rate
    return estimate.rate


def test_more_gpus_on_links_of_their_own_never_lower_the_peak() -> None:
    peaks = [peak("tx2550-m7-l40s", gpus=count) for count in (1, 2, 3, 4)]
    assert all(more > less for less, more in itertools.pairwise(peaks))
    assert peaks[3] == pytest.approx(4 * peaks[0], rel=0.02)


@pytest.mark.parametrize(("name", "gpus", "paths"), [
    ("composable-server-gen4", 2, (1, 2, 3, 4)), ("composable-server-gen4", 4, (1, 2, 3, 4)),
    ("composable-server-gen5", 6, (3, 4)),
])  # fmt: skip
def test_a_longer_path_never_raises_the_peak(name: str, gpus: int, paths: tuple[int, ...]) -> None:
    peaks = [peak(name, path=path, gpus=gpus) for path in paths]
    assert all(longer <= shorter * MARGIN for shorter, longer in itertools.pairwise(peaks))


def test_the_published_fall_at_four_gpus_is_there_and_at_two_is_not() -> None:
    near, far = (peak("composable-server-gen4", path=path, gpus=4) for path in (1, 4))
    assert far < 0.85 * near
    assert peak("composable-server-gen4", path=4, gpus=2) > 0.99 * peak("composable-server-gen4", path=1, gpus=2)


def test_traffic_beside_the_service_never_raises_the_peak() -> None:
    mine = ("gpu0", "gpu1", "gpu2")
    alone = peak("composable-server-gen4", gpus_served=mine, path=4, gpus=4)
    light = peak("composable-server-gen4", (Flow("host0", "gpu3", cap=2e9),), mine, path=4, gpus=4)
    heavy = peak("composable-server-gen4", (Flow("host0", "gpu3"),), mine, path=4, gpus=4)
    assert light <= alone * MARGIN
    assert heavy < 0.95 * alone


def test_a_higher_rate_never_lowers_p99() -> None:
    # Without a time-out: with one, batches that fill sooner make a middling rate faster than a low one.
    whole = simulation("composable-server-gen4", [ServiceLoad(RESNET, qps=1.0, timeout=0.0)], path=4, gpus=4)
    p99 = [
        whole.run([rate], SimulationInput(1.0, seed=5)).services[0].percentile(0.99)
        for rate in range(20_000, 150_000, 20_000)
    ]
    assert all(more > 0.99 * less for less, more in itertools.pairwise(p99))
    assert p99[-1] > 10 * p99[0]


def test_two_services_of_one_cable_get_no_more_than_it_has() -> None:
    loads = [
        ServiceLoad(RESNET, qps=90_000.0, gpus=("gpu0", "gpu1")),
        ServiceLoad(RESNET, qps=90_000.0, gpus=("gpu2", "gpu3")),
    ]
    both = simulation("composable-server-gen4", loads, path=4, gpus=4)
    outcome = both.run([90_000.0, 90_000.0], SimulationInput(0.5, steps=10))
    for resource, users in zip(both.resources, both.amounts(), strict=True):
        for moved in outcome.steps:
            taken = sum(moved[k] * amount for k, amount in users)
            assert taken <= resource.capacity * 0.05 * (1 + 1e-9), resource.name
    rates = [each.answered / each.last_answer for each in outcome.services]
    assert rates[0] == pytest.approx(rates[1], rel=0.02)
    alone = simulation("composable-server-gen4", path=4, gpus=4).run([180_000.0], SimulationInput(0.5)).services[0]
    assert sum(rates) == pytest.approx(alone.answered / alone.last_answer, rel=0.02)


@pytest.mark.parametrize("copies", ["gathered", "each", "per-query"])
def test_single_stream_is_the_sum_of_its_unloaded_parts(copies: str) -> None:
    load = ServiceLoad(RESNET, scenario="single-stream", gpus=("gpu0",), copies=copies)
    one = simulation("composable-server-gen4", [load], path=3, gpus=1)
    (served,) = one.deployments
    moves = [(served.inward[0], RESNET.bytes_in), (served.outward[0], RESNET.bytes_out)]
    wires = [latency(one.system, item.flow.src, item.flow.dst).wire for item, _ in moves]
    parts = sum(COPY_SETUP + size / alone_rate(item) + wire for (item, size), wire in zip(moves, wires, strict=True))
    out = one.run([0.0], SimulationInput(0.1)).services[0]
    assert out.counted > 100
    assert out.sum / out.counted == pytest.approx(parts + served.times[0].at(1), rel=1e-9)


def test_offline_runs_at_the_gpus_rate_or_at_the_cables() -> None:
    for gpus in (1, 8):
        whole = simulation(
            "composable-server-gen4", [ServiceLoad(RESNET, scenario="offline", batch=64)], path=4, gpus=gpus
        )
        most = ceiling(whole, 0, [0.0]).qps
        outcome = whole.run([0.0], SimulationInput(5.0, samples=round(2 * most)))
        assert outcome.services[0].answered / outcome.end == pytest.approx(most, rel=0.01)


def test_the_network_division_brings_each_query_on_its_own() -> None:
    load = ServiceLoad(RESNET, qps=100_000.0, host="accelerator", frontend="frontend")
    whole = simulation("dgx-a100-network", [load])
    outcome = whole.run([100_000.0], SimulationInput(0.3, trace=10**7))
    out = outcome.services[0]
    assert out.answered == out.issued
    inward = {whole._class[place] for place in range(8)}
    assert sum(outcome.moved[k] for k in inward) == pytest.approx(out.samples * RESNET.bytes_in, rel=1e-9)
    assert len({batch.worker for batch in outcome.trace}) == 8
    assert all(landed > due for b in outcome.trace for due, landed in zip(b.scheduled, b.landed, strict=True))
    assert all(batch.copied == batch.formed for batch in outcome.trace)


def test_a_run_is_the_same_after_another_one() -> None:
    whole = simulation("composable-server-gen4", path=4, gpus=4)
    first = whole.run([50_000.0], SimulationInput(0.2, seed=9)).services[0].sum
    whole.run([130_000.0], SimulationInput(0.2, seed=10))
    assert whole.run([50_000.0], SimulationInput(0.2, seed=9)).services[0].sum == first


def test_a_peak_reports_the_run_that_decided_as_it_was_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[SimulationInput] = []
    native = Simulation.run

    def counted(self: Simulation, rates: Sequence[float], run: SimulationInput) -> Outcome:
        runs.append(run)
        return native(self, rates, run)

    monkeypatch.setattr(Simulation, "run", counted)
    kept, _ = at_peak(simulation("composable-server-gen4", path=4, gpus=2), 0, [1.0], COARSE)
    assert len(runs) == len(kept[0].search_runs)
    runs.clear()
    repeated, _ = at_peak(simulation("composable-server-gen4", path=4, gpus=2), 0, [1.0], COARSE, trace=1)
    assert len(runs) == len(repeated[0].search_runs) + 1
    assert kept == repeated


def test_a_service_of_a_study_is_simulated_once_also_where_two_threads_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    system = load_system("dgx-a100", {}, load_catalog())
    asked: list[str] = []
    found: list[ServiceResult] = []
    simulate, offline = peak_module.simulate, Service("resnet50", "offline")
    other = Thread(target=lambda: found.append(under_load(system, replace(offline, name="again"))))

    def counted(*arguments, **more):
        asked.append("simulated")
        if len(asked) == 1:
            other.start()
            other.join(0.05)  # time enough to begin a simulation of its own, if it does
        return simulate(*arguments, **more)

    monkeypatch.setattr(peak_module, "simulate", counted)
    first = under_load(system, offline)
    other.join()
    assert found == [first]
    assert under_load(system, replace(offline, method="simulation")) is first
    assert asked == ["simulated"]
    assert under_load(load_system("dgx-a100", {}, load_catalog()), offline) == first
    assert len(asked) == 2


def test_options_say_how_batches_are_formed_and_a_gpu_runs_several_at_its_offline_rate() -> None:
    system = load_system("dgx-a100", {}, load_catalog())

    def predicted(**more) -> ServiceResult:
        options = ServiceOptions(**{"qps": 1200.0, "gpus": "gpu[0-1]", "seconds": 20.0, **more})
        return lanewise.predict_service(system, "retinanet", options).results[0]

    part = system.part("gpu0")
    assert part is not None
    offline = 2 * (part.number("service.retinanet.offline") or 0.0)
    one, two = predicted(in_flight=4), predicted(streams=2)
    # Of the fixed time of a batch, in which another one may use the GPU, a part stays, half of which Offline had.
    assert two.steady == pytest.approx(offline / (1 + KEPT_SHARE * 1.29 * (1 - 8 / 16) / (8 * 1.379)), rel=0.005)
    # So does another one of it on one stream, where the next batch is queued; without a queue all of it.
    assert one.steady == pytest.approx(offline / (1 + QUEUED_SHARE * 1.29 * (1 - 8 / 16) / (8 * 1.379)), rel=0.005)
    alone = predicted(in_flight=1)
    assert (alone.steady or 0.0) / offline == pytest.approx(1 / (1 + 1.29 / (8 * 1.379)), rel=0.02)
    partial = [predicted(streams=2, timeout=1e-3, batch=4, full_batches=full).latency for full in (False, True)]
    assert partial[1] > 1.1 * partial[0]
    # Whose batcher gets a full batch is chance, no longer a matter of turns.
    assert predicted(streams=2, own_batcher=True).latency > 1.2 * two.latency
    assert "0.6 to 2.3 times" in two.note
    stalled = ServiceOptions(qps=110e3, seconds=0.2, in_flight=4)
    note = lanewise.predict_service(system, "resnet50", stalled).results[0].note
    assert "hosts stall: with stalls as on published hosts 99 %" in note
    # What of a batch passes beside the GPU its queries wait for all the same.
    rare = [predicted(in_flight=count, batch=1, timeout=0.0, qps=1.0).latency for count in (1, 4)]
    assert rare[1] == pytest.approx(rare[0], rel=0.02)
    with pytest.raises(InputError, match="without streams"):
        predicted(streams=0)
    with pytest.raises(InputError, match="over the network"):
        check(ServiceLoad(RESNET, qps=1.0, frontend="frontend", policy=BatchPolicy()))
