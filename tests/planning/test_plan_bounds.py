"""Plans under latency bounds: simulated, made with a margin where queues need it, refused where nothing holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from planning.plan_systems import asked, box, two_paths

import lanewise
from lanewise.errors import FormatError, InputError
from lanewise.perf.flow import parse_flows
from lanewise.planning import confirm
from lanewise.planning.confirm import SEED, Confirmation, TenantLatency, by_simulation
from lanewise.planning.place import MARGINS, Placement, place, place_within_bounds
from lanewise.planning.work import TenantGpus, Work, parse_service
from lanewise.serving.load import on, parse_load
from lanewise.serving.peak import simulate

# Fits path 4 in steady state (136,310) and leaves its read window no room for queues.
TIGHT = "resnet50 136300 QPS"


@pytest.fixture
def short_runs(monkeypatch):
    """A tenth of the queries: enough where runs are compared with each other, or no verdict is near its bound."""
    monkeypatch.setattr(confirm, "SECONDS", confirm.SECONDS / 10)
    monkeypatch.setattr(confirm, "MOST_QUERIES", confirm.MOST_QUERIES / 10)


def work_of(system, *services: tuple[str, str]) -> Work:
    """Services with the GPUs of each as one text."""
    found = [(parse_service(text), on(parse_load("resnet50"), gpus).gpus) for text, gpus in services]
    return Work((), tuple(TenantGpus(tenant, gpus) for tenant, gpus in found))


def late(system, work) -> Confirmation:
    """Every tenant twice as late as its bound."""
    return Confirmation(tuple(
        TenantLatency(each.tenant.name, each.tenant.qps, 2.0 * each.tenant.workload.bound, 0.99,
                  each.tenant.workload.bound, False, "late", "a wish", False)
        for each in work.services
    ), 1.0)  # fmt: skip


def test_a_demand_without_room_for_queues_is_planned_with_a_margin():
    question = asked(two_paths(4), TIGHT)
    assert not place(question).best.moves
    found = place_within_bounds(question)
    assert found.margin == MARGINS[0]
    assert [move.show() for move in found.best.moves] == ["attach gpu3 to host1"]
    assert not found.late
    assert found.served
    line = found.best.score.lines[0]
    assert line.demand == 136_300
    assert line.rate == pytest.approx(136_300)
    assert found.steady is not None
    assert found.steady.confirmed is not None
    (before,) = found.steady.confirmed.late
    assert before.latency > 0.015
    assert "INVALID" in before.show()


def test_where_nothing_holds_the_latency_and_the_limit_are_named():
    found = place_within_bounds(asked(two_paths(4), f"{TIGHT} on host0"))
    assert found.served
    (tenant,) = found.late
    assert not found.margin
    error = found.error
    assert error is not None
    assert error.cause.startswith("no placement found keeps the 15 ms of resnet50 at 136,300 QPS: p99 is ")
    assert error.cause.endswith("limited by read window of a_hop1 (256 reads x 128 B)")
    assert f"{1e3 * tenant.latency:.3g} ms" in error.cause


def test_the_margin_grows_until_it_holds_and_ends_where_none_does():
    seen = []

    def never(system, work):
        seen.append(work)
        return late(system, work)

    question = asked(box([16, 8, 4], [0] * 4), "resnet50 80000 as a", "resnet50 40000 offline each 30000 as b")
    found = place_within_bounds(question, confirm=never)
    assert found.late
    assert not found.margin
    # Whatever was proposed is judged at what was asked.
    assert all([each.tenant.qps for each in work.services] == [80_000, 40_000] for work in seen)

    def second(system, work):
        return late(system, work) if next(calls) == 0 else Confirmation(tuple(
            replace(each, valid=True, latency=0.01) for each in late(system, work).tenants), 1.0)  # fmt: skip

    calls = count()
    assert place_within_bounds(asked(two_paths(4), TIGHT), confirm=second).margin in MARGINS


@pytest.mark.usefixtures("short_runs")
def test_each_tenant_is_simulated_at_its_own_stated_rate():
    question = asked(
        lanewise.load_system("composable-server-two-hosts"),
        "resnet50 150000 QPS as shop", "resnet50 60000 QPS each 30000 on host1 as search",
    )  # fmt: skip
    found = place_within_bounds(question)
    assert found.best.confirmed is not None
    shop, search = (found.best.confirmed.latency_of(name) for name in ("shop", "search"))
    assert shop is not None
    assert search is not None
    assert (shop.valid, search.valid) == (True, True)
    assert search.limit == "GPU service rate (l40s for search, resnet50)"
    assert "l40s for search" not in question.system.catalog


@pytest.mark.usefixtures("short_runs")
def test_a_stated_rate_counts_as_the_catalogue_s():
    system = two_paths(2)
    by_part, stated = (
        by_simulation(system, work_of(system, (f"resnet50 160000 QPS {each}", "gpu[0-3]")))
        for each in ("", "each 43845.7")
    )
    assert by_part.tenants[0].latency == stated.tenants[0].latency


@pytest.mark.usefixtures("short_runs")
def test_it_is_the_simulation_of_predict_with_all_tenants_at_once():
    system = two_paths(3)
    work = work_of(system, ("resnet50 60000 QPS as a", "gpu[0-1]"), ("resnet50 70000 QPS as b", "gpu[2-3]"))
    found = by_simulation(system, work)
    loads = [parse_load("resnet50 60000 QPS on gpu[0-1]"), parse_load("resnet50 70000 QPS on gpu[2-3]")]
    expected = simulate(system, loads, (), found.seconds, SEED)[0]
    assert [each.latency for each in found.tenants] == [each.latency for each in expected]
    assert by_simulation(system, work) == found


@pytest.mark.usefixtures("short_runs")
def test_flows_beside_tenants_run_in_the_simulation_too():
    system = two_paths(4)
    work = work_of(system, ("resnet50 100000 QPS", "gpu[0-2]"))
    beside = replace(work, flows=parse_flows("host0->gpu3 cap 8 GB/s"))
    alone, together = by_simulation(system, work).tenants[0], by_simulation(system, beside).tenants[0]
    assert together.latency > 1.2 * alone.latency


@pytest.mark.usefixtures("short_runs")
def test_offline_tenants_take_their_share_and_have_no_bound():
    system = lanewise.load_system("composable-server-gen4")
    heavy, none = (
        by_simulation(system, work_of(system, ("resnet50 60000 QPS", "gpu[0-1]"), *others))
        for others in ([("resnet50 70000 QPS offline each 43000 as nightly", "gpu[2-3]")], [])
    )
    nightly = heavy.latency_of("nightly")
    assert nightly is not None
    assert (nightly.show(), nightly.late) == ("offline, no bound", False)
    assert heavy.tenants[0].latency > none.tenants[0].latency
    alone = by_simulation(system, work_of(system, ("resnet50 400000 QPS offline each 43000", "gpu0")))
    assert (alone.bounds_kept, alone.seconds) == (True, 0.0)


def test_what_cannot_be_simulated_is_said_and_the_plan_stands():
    question = asked(two_paths(4), TIGHT)
    found = place_within_bounds(question, confirm=lambda system, work: Confirmation(reason="no reason at all"))
    assert not found.margin
    assert not found.late
    assert found.best.confirmed == Confirmation(reason="no reason at all")
    assert found.bounds_kept is False
    assert place(question).bounds_kept is None


@pytest.mark.usefixtures("short_runs")
def test_few_queries_neither_break_a_bound_nor_show_that_it_holds():
    system = two_paths(1)
    work = work_of(system, ("resnet50 100000 QPS as a", "gpu[0-2]"), ("resnet50 2 QPS as b", "gpu3"))
    rare = by_simulation(system, work).latency_of("b")
    assert rare is not None
    assert not rare.valid
    assert not rare.late
    assert rare.show().endswith("of 15 ms, too few queries to tell")


@pytest.mark.parametrize("calls", [0, 1])
def test_ctrl_c_keeps_what_is_there(calls):
    left = [calls]

    def confirm(system, work):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return late(system, work)

    found = place_within_bounds(asked(two_paths(4), TIGHT), confirm=confirm)
    assert found.interrupted
    assert (found.best.confirmed is not None) == (calls > 0)
    assert not found.margin


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("resnet50 170000 QPS", "resnet50 170000 QPS"),
        (
            "resnet50 170000QPS on host0 from frontend each 43367 QPS as shop",
            "resnet50 170000 QPS on host0 from frontend",
        ),
        ("bert-99 on gpu[4-7] 2e3 server as b each 1e3", "bert-99 2000 QPS on gpu[4-7]"),
    ],
)
def test_a_tenant_is_a_load_with_words_of_its_own(text, load):
    assert parse_service(text).load == parse_load(load)


@pytest.mark.usefixtures("short_runs")
def test_a_tenant_may_ask_for_certain_gpus():
    found = place_within_bounds(asked(two_paths(1), "resnet50 40000 QPS on gpu[2-3]"))
    assert set(found.best.serving["resnet50"]) <= {"gpu2", "gpu3"}


@pytest.mark.parametrize("text", ["resnet50 1e300 QPS", "resnet50 1e13 QPS", "resnet50 10 QPS each 1e300 QPS"])
def test_a_demand_beyond_any_system_is_refused(text):
    with pytest.raises(FormatError, match=r"is 1e\+\d+ QPS") as caught:
        lanewise.plan("composable-server-two-hosts", services=[text])
    assert "at most 1e+12" in caught.value.hint


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("each", ["", " each 1e-12 QPS", " each 1e12 QPS"])
def test_the_largest_demand_there_may_be_is_planned_and_not_met(each):
    found = lanewise.plan("composable-server-two-hosts", services=[f"resnet50 1e12 QPS{each}"])
    assert isinstance(found, Placement)
    assert not found.served


def test_no_gpu_serves_the_host_that_sends_to_it_over_the_network():
    found = lanewise.plan("dgx-a100-network", services=["resnet50 1000 QPS from frontend"])
    assert isinstance(found, Placement)
    assert found.served
    with pytest.raises(InputError, match="none crosses the network"):
        lanewise.plan("dgx-a100-network", services=["resnet50 1000 QPS from accelerator"])
