"""What the probe says of a driver whose rates are known."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from gpu.stand_in import GIB, Cuda, Flow, fair
from hypothesis import given, settings
from hypothesis import strategies as st
from in_display_units import shown

import lanewise
from lanewise.errors import CannotMeasure, InputError, LanewiseError, UnknownName
from lanewise.options.measure_gpu import SWEEP, MeasureGpuOptions
from lanewise.options.sampling import SamplingRule
from lanewise.perf.flow import parse_flows
from lanewise.probes.gpu.probe import GpuProbe
from lanewise.probes.gpu.schedule import tuned_schedule
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample, summarise

QUICK = SamplingRule(least=2, most=2)


def samples(cuda: Cuda, flows: str = "", tmp: str = "/nowhere", **ask: Any) -> Generator[Sample, None, None]:
    probe = GpuProbe(cuda, Path(tmp))  # type: ignore[arg-type]
    options = MeasureGpuOptions(flows, **{"rule": QUICK, **ask})
    return cast("Generator[Sample, None, None]", probe.run(options))


def rows(cuda: Cuda, flows: str = "", **ask: Any) -> list[Observation]:
    return list(summarise(samples(cuda, flows, **ask)))


def values(found: list[Observation], metric: str = "goodput") -> dict[str, float | None]:
    return {row.flow: shown(row) for row in found if row.metric == metric}


def test_the_default_set_has_hosts_pairs_and_latencies_each_direction_with_a_row() -> None:
    found = rows(Cuda())
    by_case: dict[str, list[Observation]] = {}
    for row in found:
        by_case.setdefault(row.scenario, []).append(row)
    assert list(by_case) == [
        "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "host_to_device_bidirectional_memcpy_ce",
        "device_to_device_memcpy_write_ce", "device_to_device_bidirectional_memcpy_write_ce", "host_device_latency_sm",
        "device_to_device_latency_sm", "device_to_device_memcpy_no_p2p", "device_to_device_bidirectional_memcpy_no_p2p",
        "device_to_device_launch_latency", "device_to_device_launch_latency_no_p2p",
    ]  # fmt: skip
    assert values(by_case["device_to_device_memcpy_write_ce"]) == pytest.approx({"gpu0->gpu1": 400, "gpu1->gpu0": 400})
    both = by_case["device_to_device_bidirectional_memcpy_no_p2p"]
    assert values(both) == pytest.approx({"gpu0->gpu1": 15, "gpu1->gpu0": 15})
    assert values(both, "total") == pytest.approx({"gpu0->gpu1, gpu1->gpu0": 30})
    assert {row.how["p2p"] for row in both} == {"off"}
    assert values(by_case["host_device_latency_sm"], "chase_latency") == pytest.approx(
        {"host0->gpu0": 1150, "host0->gpu1": 1150}
    )
    assert values(by_case["device_to_device_launch_latency"], "latency")["gpu0->gpu1"] == pytest.approx(2.2)


@settings(max_examples=40)
@given(st.data())
def test_flows_at_once_get_the_rates_that_max_min_sharing_gives_them(data: st.DataObject) -> None:
    ends = ["host0", "gpu0", "gpu1", "gpu2"]
    pairs = [(a, b) for a in ends for b in ends if a != b]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=5, unique=True))
    cuda = Cuda(
        gpus=3, link=data.draw(st.floats(10e9, 60e9)), peer=data.draw(st.floats(20e9, 500e9)),
        duplex=data.draw(st.floats(15e9, 120e9)),
    )  # fmt: skip
    text = ", ".join(f"{a}->{b}" for a, b in chosen)
    numbers = {"host0": -1, "gpu0": 0, "gpu1": 1, "gpu2": 2}
    expected = fair(cuda, [Flow(numbers[a], numbers[b], 1, 1) for a, b in chosen])
    found = rows(cuda, text)
    assert values(found) == pytest.approx(
        {f"{a}->{b}": rate / 1e9 for (a, b), rate in zip(chosen, expected, strict=True)}, rel=1e-6
    )
    if len(chosen) > 1:
        assert values(found, "total")[text] == pytest.approx(sum(expected) / 1e9, rel=1e-6)


def test_flows_of_an_engine_that_serves_queue_after_queue_leave_others_their_rate() -> None:
    # Four H200: gpu2->gpu0 had the count of copies, and so the rate, of each of gpu0's two flows.
    found = rows(Cuda(gpus=3, serves_queues=True), "gpu0->gpu1, gpu0->gpu2, gpu2->gpu0, host->gpu2")
    assert values(found) == pytest.approx(
        {"gpu0->gpu1": 200, "gpu0->gpu2": 200, "gpu2->gpu0": 400, "host0->gpu2": 50}, rel=0.05
    )
    notes = {row.flow: row.note for row in found if row.metric == "goodput"}
    assert all("took turns" in notes[flow] for flow in ("gpu0->gpu1", "gpu0->gpu2"))
    assert notes["gpu2->gpu0"] == notes["host0->gpu2"] == ""


def test_flows_tuned_by_a_pilot_end_together() -> None:
    run = Cuda(gpus=2, link=50e9, peer=400e9).prepare([Flow(-1, 0, GIB, 2), Flow(0, 1, GIB, 2), Flow(1, -1, GIB, 2)])
    schedule = tuned_schedule(run, run.flows, [None] * 3)  # type: ignore[arg-type]
    times = [copies * GIB / rate for copies, rate in zip(schedule.copies, (50e9, 400e9, 50e9), strict=True)]
    assert max(times) / min(times) < 1.1
    assert schedule.run_once(run).makespan == pytest.approx(max(times))  # type: ignore[arg-type]


def test_a_flow_with_a_size_moves_that_much_and_those_without_last_as_long() -> None:
    found = rows(Cuda(), "gpu0->gpu1 8 GiB, host->gpu0")
    (makespan,) = [row for row in found if row.metric == "makespan"]
    moved = dict(part.rsplit(" ", 2)[:2] for part in makespan.how["moved"].split(", "))
    assert int(moved["gpu0->gpu1"]) == 8 * GIB
    assert {row.note for row in found} == {""}
    assert int(moved["host0->gpu0"]) / 50e9 == pytest.approx(8 * GIB / 400e9, rel=0.5)
    assert found[0].scenario == "gpu0->gpu1 8 GiB, host0->gpu0"
    assert shown(makespan) == pytest.approx(8 * GIB / 400e9, rel=0.5)


def test_only_a_size_that_the_user_gave_has_a_makespan() -> None:
    # Else it would be of as many copies as the probe chose, which differ from run to run.
    assert {row.metric for row in rows(Cuda(), "host->gpu0, gpu0->gpu1")} == {"goodput", "total"}
    assert {row.metric for row in rows(Cuda(), "host->gpu0 1 GiB, gpu0->gpu1")} == {"goodput", "total", "makespan"}


@pytest.mark.parametrize("typed", ["host->gpu0", "host0->gpu0"])
def test_however_the_host_is_typed_its_rows_are_the_same_rows(typed: str) -> None:
    row = rows(Cuda(), typed)[0]
    assert (row.scenario, row.flow) == ("host0->gpu0", "host0->gpu0")
    far = rows(Cuda(), typed, node=1)[0]
    assert far.scenario == rows(Cuda(), "host:1->gpu0")[0].scenario == "host0:1->gpu0"


def test_two_flows_between_the_same_ends_have_a_row_each() -> None:
    found = rows(Cuda(), "gpu0->gpu1, gpu0->gpu1 sm")
    goodput = [row for row in found if row.metric == "goodput"]
    assert [row.settings["flow"] for row in goodput] == [1, 2]
    assert [row.how["engine"] for row in goodput] == ["copy engine", "SM"]
    assert [shown(row) for row in goodput] == pytest.approx([200, 200])


@pytest.mark.parametrize("case", ["host_to_device_bidirectional_memcpy_ce", "all_to_one_read_sm"])
def test_rows_say_what_ran_together_in_words_that_predict_reads(case: str) -> None:
    for row in rows(Cuda(), cases=(case,)):
        flows = parse_flows(row.how["flows"], row.how.get("p2p") != "off")
        assert lanewise.predict("h200-pair", flows).total > 0
        assert row.flow in [flow.name for flow in flows] or row.metric == "total"
        assert row.how["data"] == "verified"


@given(st.floats(1e-6, 20e-6), st.floats(5e9, 60e9))
@settings(max_examples=20)
def test_a_sweep_fits_the_latency_and_bandwidth_that_made_its_times(setup: float, link: float) -> None:
    found = rows(Cuda(gpus=1, setup=setup, link=link), "host->gpu0", sizes=SWEEP)
    assert values(found, "fit_latency")["host0->gpu0"] == pytest.approx(setup * 1e6, rel=1e-3)
    assert values(found, "fit_bandwidth")["host0->gpu0"] == pytest.approx(link / 1e9, rel=1e-3)
    assert [row.settings["bytes"] for row in found if row.metric == "goodput"] == list(SWEEP)
    assert found[0].settings["bytes"] == 4096
    assert SWEEP[-1] == GIB


def test_host_memory_is_the_gpus_child_node_unless_asked_otherwise() -> None:
    (near,) = rows(Cuda(), cases=("host_to_device_memcpy_ce",), devices="0")
    assert (near.flow, near.how["NUMA node"], near.note) == ("host0->gpu0", "0", "")
    (far,) = rows(Cuda(), cases=("host_to_device_memcpy_ce",), devices="0", node=1)
    assert (far.flow, far.how["NUMA node"]) == ("host0:1->gpu0", "0 (asked 1)")
    assert far.note == "host buffer on NUMA node 0, not on 1 as asked"
    typed = rows(Cuda(nodes={1: 64}), "host:1->gpu0")[0]
    assert (typed.flow, typed.how["NUMA node"], typed.how["flows"]) == ("host0:1->gpu0", "1", "host0:1->gpu0")


def test_a_pair_without_peer_access_has_no_value_and_a_reason_and_the_rest_is_measured() -> None:
    found = rows(Cuda(peers=False))
    (row, *_) = [row for row in found if row.scenario == "device_to_device_memcpy_write_ce"]
    assert (shown(row), row.note) == (None, "gpu0 has no peer access to gpu1")
    (lat, *_) = [row for row in found if row.scenario == "device_to_device_launch_latency"]
    assert (shown(lat), lat.note) == (None, "gpu0 has no peer access to gpu1")
    assert values([r for r in found if r.scenario == "device_to_device_memcpy_no_p2p"])["gpu1->gpu0"] is not None


def test_without_p2p_every_pair_is_staged_and_says_so() -> None:
    found = rows(Cuda(), "gpu0->gpu1", no_p2p=True)
    assert values(found) == pytest.approx({"gpu0->gpu1": 30})
    assert (found[0].how["p2p"], found[0].path) == ("off", "peer, staged")


def test_a_kernel_s_copy_between_gpus_needs_p2p() -> None:
    found = rows(Cuda(), cases=("device_to_device_memcpy_write_*",), no_p2p=True)
    by_engine = {row.how["engine"]: row for row in found if row.flow == "gpu0->gpu1"}
    assert shown(by_engine["copy engine"]) == pytest.approx(30)
    assert shown(by_engine["SM"]) is None
    assert "only with P2P" in by_engine["SM"].note


def test_a_hold_that_times_out_leaves_its_cell_empty_with_the_reason_and_measuring_goes_on() -> None:
    found = rows(Cuda(gpus=1, held=(1,)), cases=("host_to_device_memcpy_ce", "device_to_host_memcpy_ce"))
    assert (shown(found[0]), found[0].note) == (None, "the copies were held too long")
    assert shown(found[1]) == pytest.approx(50)


def test_a_hold_that_times_out_later_keeps_the_samples_before_it() -> None:
    taken = list(samples(Cuda(gpus=1, held=(4,)), cases=("host_to_device_memcpy_ce",)))
    assert [shown(sample) for sample in taken] == [pytest.approx(50), None]


@pytest.mark.parametrize(
    "flows",
    ["host0->gpu0", "host:1->gpu0", "host0->gpu0 sm, gpu0->host0 sm", "host0->gpu0, host0->gpu0 sm", "gpu0->gpu1"],
)
def test_a_failure_after_some_samples_is_one_row_with_them(flows: str) -> None:
    taken = list(samples(Cuda(held=(4,)), flows))
    assert [sample.value is None for sample in taken if sample.metric == "goodput"].count(True) == flows.count(",") + 1
    goodput = [row for row in summarise(taken) if row.metric == "goodput"]
    assert len(goodput) == flows.count(",") + 1
    for row in goodput:
        assert shown(row) is not None
        assert row.note.endswith("the copies were held too long")
        assert row.how["data"] == "verified"


def test_queries_that_fail_after_some_samples_are_one_row_with_them() -> None:
    found = rows(Cuda(gpus=1, held=(7,)), cases=("queries_by_kernel",))
    keys = [(row.scenario, row.metric, row.settings.get("batch")) for row in found]
    assert len(keys) == len(set(keys))
    assert any("held too long" in row.note for row in found if row.scenario.startswith("queries"))


def test_where_the_driver_queues_few_copies_samples_get_shorter() -> None:
    # The stand-in holds more than three copies too long.
    (found,) = rows(Cuda(queue=3), "gpu0->gpu1", no_p2p=True)
    assert (shown(found), found.note) == (pytest.approx(30), "")
    assert rows(Cuda(queue=1), "gpu0->gpu1")[0].note == "the copies were held too long"


def test_wrong_data_is_a_row_without_a_value() -> None:
    cuda = Cuda(gpus=1, wrong="host0->gpu0: byte 4096 is wrong")
    (row,) = rows(cuda, cases=("host_to_device_memcpy_ce",))
    assert (shown(row), row.note) == (None, "host0->gpu0: byte 4096 is wrong")
    assert "data" not in row.how


def test_too_little_gpu_memory_is_told_before_anything_is_measured() -> None:
    cuda = Cuda(free=600 * 2**20)
    with pytest.raises(CannotMeasure, match=r"needs 1 GiB of gpu0's memory, and 0\.59 GiB are free") as caught:
        list(samples(cuda))
    assert "--bytes" in caught.value.hint
    assert cuda.runs == 0


def test_queries_have_goodput_and_their_share_of_one_large_copy() -> None:
    found = rows(Cuda(gpus=1, setup=2.8e-6), cases=("queries_*",))
    one = [r for r in found if r.scenario == "queries_one_by_one" and r.metric == "goodput"]
    gathered = [r for r in found if r.scenario == "queries_in_one_call" and r.metric == "goodput"]
    assert [row.settings["batch"] for row in one] == [1, 8, 32, 128]
    alone = 150528 / (2.8e-6 + 150528 / 50e9) / 1e9
    assert [shown(row) for row in one] == pytest.approx([alone] * 4)
    assert shown(gathered[-1]) == pytest.approx(128 * 150528 / (2.8e-6 + 128 * 150528 / 50e9) / 1e9)
    share = [r for r in found if r.metric == "share" and r.scenario == "queries_in_one_call"][-1]
    peak = shown(found[0])
    assert found[0].scenario == "host_to_device_memcpy_ce"
    assert shown(share) == pytest.approx(100 * (shown(gathered[-1]) or 0) / (peak or 1))


def test_a_driver_without_batched_copies_leaves_those_rows_empty() -> None:
    found = rows(Cuda(gpus=1, driver=12040), cases=("queries_in_one_call",))
    assert {shown(row) for row in found if row.scenario == "queries_in_one_call"} == {None}
    assert found[-1].note == "cuMemcpyBatchAsync is not in this driver"


def test_stopping_early_frees_what_was_held() -> None:
    cuda = Cuda()
    with closing(samples(cuda)) as taken:
        next(taken)
        assert cuda.open == 1
    assert cuda.open == 0


def test_a_chase_reads_from_the_destination_through_the_sources_memory() -> None:
    cuda = Cuda()
    list(samples(cuda, cases=("device_to_device_latency_sm",), devices="gpu[0-1]"))
    assert set(cuda.chased) == {(0, 1, -1), (1, 0, -1)}


@pytest.mark.parametrize(
    ("flows", "ask", "error", "says"),
    [
        ("gpu0->gpu9", {}, UnknownName, "unknown GPU 'gpu9'"),
        ("", {"devices": "0,7"}, UnknownName, "unknown GPU 'gpu7'"),
        ("host:0->host:1", {}, InputError, "touches no GPU"),
        ("host:x->gpu0", {}, InputError, "names no NUMA node"),
        ("gpu0->gpu1 cap 5 GB/s", {}, InputError, "has a cap"),
        ("gpu0->gpu1 @1 ms", {}, InputError, "has a start"),
        ("gpu0->gpu1 0 B", {}, InputError, "no bytes"),
        ("gpu0->gpu1 1 GiB", {"sizes": SWEEP}, InputError, "a sweep takes many"),
        ("", {"cases": ("device_to_device_memcpy_read_ce",), "devices": "1"}, CannotMeasure, "no two GPUs among gpu1"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    flows: str, ask: dict[str, Any], error: type[LanewiseError], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        list(samples(Cuda(), flows, **ask))
    assert caught.value.hint


def test_python_gets_samples_of_typed_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = GpuProbe(Cuda(), Path("/nowhere"))  # type: ignore[arg-type]
    monkeypatch.setattr("lanewise.api.measure.gpu_probe", lambda: probe)
    run = lanewise.as_measured_run(lanewise.measure_gpu("gpu0->gpu1, host->gpu0"), probe.machine_facts())
    assert values(list(run.rows)) == pytest.approx({"gpu0->gpu1": 400, "host0->gpu0": 50})
    assert run.machine_facts["CUDA driver"] == "13.0"


def test_the_trace_of_a_sample_in_the_architecture_is_that_of_the_kept_run() -> None:
    """ARCHITECTURE, 'How a row gets its verdict': every value of the table, from the run and its check."""
    repository = Path(__file__).parents[2]
    page = (repository / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.split("## How a row gets its verdict")[1].split("Not in the table")[0]
    kept = repository / "benchmarks" / "runs" / "2026-11-22-h200-1gpu"
    results = lanewise.check([kept / "check.run.json"], kept / "machine.yaml").results
    (result,) = [each for each in results if each.row.scenario == "host_to_device_memcpy_ce"]
    row, expected, tolerance = result.row, result.expected, result.tolerance
    size, first = row.settings["bytes"], row.samples[0]
    flows = [Flow(-1, 0, size, 2)]
    run = Cuda(gpus=1, link=first).prepare(flows)
    schedule = tuned_schedule(run, flows, [None])  # type: ignore[arg-type]
    assert tolerance is not None
    assert schedule.copies_per_timestamp == [1]
    (copies,) = schedule.copies

    def gb(value: float | None, digits: int = 2) -> str:
        assert value is not None
        return f"{value / 1e9:.{digits}f}"

    samples = [gb(value, 3) for value in row.samples]
    for text in (
        f"{size:,} B", f"{copies} timestamps, the last {1e3 * copies * size / first:.2f} ms",
        f"{first / size:.1f} copies/s", f"{samples[0]}e9", f"{samples[0]}, {samples[1]} and {samples[2]} GB/s",
        f"median {gb(row.value, 3)} GB/s, `low` {gb(row.low, 3)}, `high` {gb(row.high, 3)}",
        f"{gb(expected.value)} GB/s from `low` {gb(expected.low)} to `high` {gb(expected.high)}",
        f'"{expected.limit}", tolerance `{tolerance.basis}`, {100 * tolerance.relative:.0f} %',
        f"from {gb(result.fine_low)} to {gb(result.fine_high)} GB/s, so `Verdict.{result.verdict.name}`",
    ):  # fmt: skip
        assert text in table
