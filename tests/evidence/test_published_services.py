"""Published services: how they are read, what is predicted of them, and how errors are summed up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.catalog import builtin
from lanewise.errors import InputError
from lanewise.evidence.services import (
    PublishedHarness,
    ServedRate,
    predict_service,
    published_services,
    read_services,
    served_p99,
    summary,
)
from lanewise.report.service_accuracy import service_sections, services_json
from lanewise.serving.server_share import server_share
from lanewise.serving.workload import workloads

TEXT = """lanewise-services: 1
source: this test
systems:
  - system: s
    gpu: l4
    gpus: 2
    slot: gen4 x16
    rows:
      - {workload: retinanet, batch: 2, timeout: 30 ms, offline: 360 QPS, server: {qps: 300 QPS, p99: 90 ms}, lower: []}
"""


def test_the_ready_services_are_of_known_gpus_and_workloads() -> None:
    services = published_services()
    assert len(services) >= 15
    assert {service.workload for service in services} <= set(workloads())
    for service in services:
        assert service.gpu in builtin()
        assert all(lower.qps < service.server.qps for lower in service.lower)
        assert service.round
        assert service.harness is not None
        # BERT's harness takes what is there and gathers it; LWIS copies each query of a batch with a call of its own.
        assert (service.timeout == 0) == service.workload.startswith("bert")
        assert (service.harness.copies == "gathered") == service.workload.startswith("bert")
        assert service.server.p99 <= workloads()[service.workload].bound
        # Of submitters other than NVIDIA.
        assert service.held_out == ("/" in service.system)


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.evidence.services.SIMULATED", 10_000.0)


@pytest.mark.usefixtures("few_queries")
def test_a_service_is_predicted_from_offline_and_simulated_at_its_rate() -> None:
    (service,) = read_services(TEXT, "mine.yaml")
    row = predict_service(service, builtin())
    assert row.score == pytest.approx(360.0 * server_share("retinanet").median)
    assert row.score_error == pytest.approx(row.score / 300.0 - 1.0)
    assert row.covered
    assert not replace(row, service=replace(service, server=ServedRate(361.0, 0.09))).covered
    # A batch of two takes 2/150 s where 150 queries/s are the score of a GPU, and hardly any is answered sooner.
    assert row.p99 > 2 / 150
    page = "\n".join(service_sections([replace(row, service=replace(service, lower=(ServedRate(288.0, 0.06),)))]))
    assert "-33 % (median" in page
    assert services_json([row])[0]["error"] == row.score_error
    assert service_sections([]) == []


@pytest.mark.usefixtures("few_queries")
def test_a_harness_is_simulated_as_its_settings_say() -> None:
    (service,) = read_services(TEXT.replace("lower: []", "lower: [], harness: {streams: 2, in_flight: 3}"), "mine.yaml")
    row = predict_service(service, builtin())
    # GPUs of 180 queries/s each answer 150, and those 5 % slower or faster too.
    assert 2 / 180 < row.p99_interval[0] < row.p99 <= row.p99_interval[1] <= 0.1
    assert row.p99_covered == (row.p99_interval[0] <= 0.09 <= row.p99_interval[1])
    # As a graph of 2 queries takes as long with 1, and its queries are in the GPU's memory already.
    assert service.harness is not None
    policy = replace(service.harness.policy, whole=True, own_batcher=True)
    padded = replace(service, timeout=0.0, harness=PublishedHarness(policy, on_device=True))
    partial = replace(padded, harness=PublishedHarness(replace(policy, whole=False), on_device=True))
    assert served_p99(padded, builtin()) > 1.05 * served_p99(partial, builtin())
    # A call for each query of a batch takes longer than one for all.
    plain = replace(service.harness.policy, whole=False, own_batcher=False)
    rated = replace(service, workload="resnet50", batch=64, offline=40_000.0, server=ServedRate(20_000.0, 0.01))
    many = replace(rated, timeout=2e-3, harness=PublishedHarness(plain, on_device=True))
    calls = replace(many, harness=PublishedHarness(plain, on_device=True, copies="each"))
    assert served_p99(calls, builtin()) > served_p99(many, builtin()) + 50e-6
    # Offline at twice the power of Server was faster, by 2^0.40 for RetinaNet (serving/power.py).
    powered = TEXT.replace("lower: []", "lower: [], power: 100 W, offline_power: 200 W")
    (limited,) = read_services(powered, "mine.yaml")
    part = limited.described(builtin(), "offline").part("gpu0")
    assert part is not None
    assert part.number("service.retinanet.offline") == pytest.approx(180 / 2**0.40)
    # What waits for no time-out has small batches, so that their fixed time counts and is not known.
    unhurried = predict_service(replace(service, timeout=0.0), builtin())
    assert unhurried.p99_interval[1] / unhurried.p99_interval[0] > row.p99_interval[1] / row.p99_interval[0]
    # A host of so many queries a second stalls, so that only the bound is known.
    rated = replace(service, workload="resnet50", offline=2e5, batch=64, server=ServedRate(1.2e5, 0.01), timeout=2e-3)
    assert predict_service(rated, builtin()).p99_interval[1] == 0.015


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("lanewise-services: 1", "lanewise-services: 2", "format 1"),
        ("qps: 300 QPS", "qps: 300", "qps"),
        ("batch: 2", "batch: 0", "batch"),
        ("slot: gen4 x16", "slots: 1", "slots"),
        ("lower: []", "lower: [], harness: {streams: 2}", "in_flight"),
        ("lower: []", "lower: [], harness: {streams: 0, in_flight: 4}", "streams"),
        ("lower: []", "lower: [], harness: {streams: 1, in_flight: 4, copies: some}", "copies of 'some'"),
    ],
)
def test_what_cannot_be_used_is_an_error_with_its_line(old: str, new: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        read_services(TEXT.replace(old, new), "mine.yaml")
    assert "mine.yaml:" in str(caught.value)


def test_errors_count_without_sign_and_none_is_left_out() -> None:
    found = summary([0.1, -0.3, None], 0.2)
    assert (found.rows, found.median, found.within) == (2, pytest.approx(0.2), 0.5)
    with pytest.raises(InputError):
        summary([None], 0.2)
