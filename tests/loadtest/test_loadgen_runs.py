"""Real runs of LoadGen on systems of known law."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lanewise import _native
from lanewise.errors import CannotMeasure, InputError
from lanewise.loadtest import detail_log, load_run
from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
from lanewise.loadtest.loadgen import CARRIED, LoadGenRunner, RunnerSetup, outcome

SMALL = RunnerSetup(samples=16, resident=16)
NEVER = 600.0  # s; no query is as late as this, on any machine
# LoadGen issues its whole schedule and finds it VALID on any machine: none is late, and for 99 % it wants 459 queries.
SOUND = LoadSpec(qps=800.0, seconds=0.1, queries=480, bound=NEVER)


@pytest.fixture
def server(loadgen, tmp_path):
    """A runner on one server of constant service."""
    return lambda service=0.001, setup=SMALL, **law: LoadGenRunner(
        _native.LawSystem(service, **law), tmp_path / "logs", setup
    )


def logged(run: LoadGenResult, key: str) -> float:
    """A number of a run's detail log."""
    assert run.folder is not None
    number = detail_log.parse((run.folder / detail_log.NAME).read_text()).number(key)
    assert number is not None
    return number


def schedule(run: LoadGenResult) -> tuple[float, float]:
    """Number of queries and length (ns) of the schedule that LoadGen made before the run."""
    return logged(run, "generated_query_count"), logged(run, "generated_query_duration")


def test_the_mean_latency_of_md1_is_that_of_pollaczek_and_khinchine(server):
    service, rate = 2e-3, 250.0
    use = service * rate
    wait = use * service / (2.0 * (1.0 - use))  # mean wait in the queue of M/D/1
    run = server(service).run(LoadSpec(qps=rate, seconds=2.0, queries=600, bound=NEVER, seed=7))
    assert run.valid, run.reasons
    # No machine answers this schedule sooner; one that stood still now and then answers as much later at most.
    assert service + 0.9 * wait < run.latency["mean"]
    assert run.latency["mean"] - run.lag["mean"] < 5.0 * (service + wait) + run.still


def test_exponential_service_varies_and_waits_longer_than_constant_service(server):
    service = 2e-3
    load = LoadSpec(qps=250.0, seconds=2.0, queries=500, bound=NEVER, seed=7)
    constant, exponential = (server(service, exponential=law).run(load) for law in (False, True))
    # Bounds from below, of these seeds: a busy machine only adds to them. Some query finds it less busy.
    assert logged(constant, "result_min_latency_ns") >= service * 1e9 > logged(exponential, "result_min_latency_ns")
    assert exponential.latency["max"] > 5.0 * service
    assert exponential.latency["mean"] > 3.5e-3  # M/D/1 has 3 ms, M/M/1 has 4 ms


@pytest.mark.parametrize("accuracy", [False, True])
def test_a_run_without_a_verdict_is_an_error_and_no_evidence(tmp_path, accuracy):
    counts: Any = SimpleNamespace(hopeless=False, late=0, issued=3, answered=0, seconds=0.0)
    log = detail_log.DetailLog({}, (f"{detail_log.ENDED_EARLY}: the system under test failed",))
    with pytest.raises(CannotMeasure, match=r"no verdict after 0 queries: .*the system under test failed"):
        outcome(replace(SOUND, accuracy=accuracy), log, counts, tmp_path)


def test_the_outcome_is_loadgen_s_own_and_its_logs_stay(server, tmp_path):
    load = replace(SOUND, qps=500.0, seed=3)
    run = server().run(load)
    assert run.valid
    assert run.load is load
    assert run.folder == tmp_path / "logs/0001-server-500-seed3"
    assert {path.name for path in run.folder.iterdir()} >= {"mlperf_log_detail.txt", "mlperf_log_summary.txt"}
    assert "VALID" in (run.folder / "mlperf_log_summary.txt").read_text()
    assert run.settings["target_qps"] == 500
    assert run.queries == logged(run, "generated_query_count") == 480
    assert run.latency["p50"] > 1e-3
    assert 0.0 <= run.lag["p50"] <= run.lag["max"]


def test_seeds_decide_over_the_queries(server):
    # LoadGen issues its whole schedule, however late, as no query can break this bound and end the run as hopeless.
    runner = server()
    loads = [LoadSpec(qps=400.0, seconds=0.5, queries=1, bound=NEVER, seed=seed) for seed in (1, 1, 2, 3, 4)]
    runs = [runner.run(load) for load in loads]
    schedules = [schedule(run) for run in runs]
    assert [run.queries for run in runs] == [count for count, _ in schedules]
    assert schedules[0] == schedules[1]
    assert len(set(schedules)) == 4


def test_a_hopeless_run_ends_at_once_and_the_next_one_is_sound(server):
    runner = server()
    # Four times what the server does: it is hopeless at the 240th late query of 240,000, in a quarter of a second.
    hopeless = LoadSpec(qps=4000.0, seconds=60.0, queries=100, bound=0.005, percentile=0.999)
    for _ in range(5):
        run = runner.run(hopeless)
        assert run.ended_early
        assert not run.valid
        assert run.late > 0
        assert run.queries < logged(run, "generated_query_count") / 2
        assert "ended early" in run.reasons[0]
        assert "Lanewise ended the run early" in (run.folder / "mlperf_log_detail.txt").read_text()
        assert runner.run(SOUND).valid


def test_what_could_still_be_valid_is_not_ended(server):
    found = server(setup=replace(SMALL, end_hopeless=False)).run(
        LoadSpec(qps=1500.0, seconds=0.5, queries=10, bound=0.005)
    )
    assert not found.ended_early
    assert not found.valid
    assert found.late > 10


@pytest.mark.parametrize(("scenario", "rate"), [("Offline", 1000.0), ("SingleStream", 1000.0), ("MultiStream", 250.0)])
def test_the_other_scenarios_run(server, scenario, rate):
    # For 90 % LoadGen wants some 60 queries.
    run = server().run(LoadSpec(scenario, qps=rate, seconds=0.5, queries=100, samples=4, percentile=0.9))
    assert run.valid, run.reasons
    assert run.settings["scenario"] == scenario
    assert run.qps <= 1010.0  # samples/s of a server of 1 ms
    assert run.qps * run.seconds == pytest.approx(run.queries, rel=0.5)  # LoadGen's rate, our clock and count


def test_accuracy_mode_sends_every_sample_once_and_logs_the_answers(server):
    found = server().run(LoadSpec(qps=1000.0, seconds=1.0, accuracy=True))
    assert found.valid
    logged = json.loads((found.folder / "mlperf_log_accuracy.json").read_text())
    assert sorted(entry["qsl_idx"] for entry in logged) == list(range(16))


@pytest.mark.parametrize("direct", [True, False])
def test_coalesced_queries_are_all_answered(loadgen, tmp_path, direct):
    runner = LoadGenRunner(_native.NullSystem(), tmp_path, RunnerSetup(direct=direct))
    found = runner.run(LoadSpec(qps=100_000.0, seconds=0.5, queries=1, bound=NEVER, coalesce=True))
    assert found.valid
    assert found.queries == logged(found, "generated_query_count")
    assert 45_000 < found.queries < 55_000
    assert found.settings["server_coalesce_queries"] is True
    assert any("coalesced" in note for note in found.notes)


def test_a_configuration_file_holds_below_rate_and_seed(server, tmp_path):
    conf = tmp_path / "user.conf"
    conf.write_text("*.Server.target_latency = 500\n*.Server.target_qps = 1\nother.Server.min_duration = 9\n")
    found = server(setup=replace(SMALL, configs=(str(conf),))).run(LoadSpec(qps=400.0, seconds=0.13, queries=10))
    assert found.settings["target_latency_ns"] == 500_000_000
    assert found.settings["target_qps"] == 400
    assert found.settings["min_duration_ms"] == 130


def test_the_seeds_of_mlperf_conf_hold_where_none_is_given(server):
    setup = replace(SMALL, configs=(CARRIED,), model="resnet50", end_hopeless=False)
    accuracy = server(setup=setup).run(LoadSpec(qps=500.0, accuracy=True, seed=0))
    assert accuracy.settings["qsl_rng_seed"] > 0
    assert accuracy.settings["target_latency_ns"] == 15_000_000
    own = server(setup=setup).run(LoadSpec(qps=500.0, accuracy=True, seed=1))
    assert own.settings["qsl_rng_seed"] != accuracy.settings["qsl_rng_seed"]


def test_a_file_that_loadgen_does_not_read_is_named(server, tmp_path):
    setup = replace(SMALL, configs=(str(tmp_path / "none.conf"),))
    with pytest.raises(CannotMeasure, match=r"LoadGen cannot read .*none\.conf"):
        server(setup=setup).run(LoadSpec(qps=400.0))
    (tmp_path / "none.conf").write_text("*.Server.target_qps = many\n")
    with pytest.raises(CannotMeasure, match=r"LoadGen cannot read .*none\.conf"):
        server(setup=setup).run(LoadSpec(qps=400.0))


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (LoadSpec(qps=0.0), "a target of 0 queries/s"),
        (LoadSpec(qps=float("nan")), "a target of nan queries/s"),
        (LoadSpec("Serve", qps=1.0), "unknown scenario 'Serve'"),
        (LoadSpec(qps=1.0, bound=0.0), "a bound of 0 s"),
        (LoadSpec(qps=1.0, seconds=0.0), "a run of 0 s"),
        (LoadSpec(qps=1.0, seed=-1), "a seed of -1"),
    ],
)
def test_a_load_that_cannot_be_run_is_refused(server, load, said):
    with pytest.raises(InputError, match=said):
        server().run(load)


def test_a_run_that_does_not_fit_into_memory_is_refused_with_what_it_needs():
    load = LoadSpec(qps=500_000.0, seconds=600.0)
    assert load_run.memory_needed(load) == pytest.approx(153e9, rel=0.01)
    with pytest.raises(CannotMeasure, match=r"this run needs 153 GB of memory, 16 GB are free") as said:
        load_run.check_memory(load, 16_000_000_000)
    assert said.value.hint == "a run of 56 s fits, or free memory"
    load_run.check_memory(load, None)
    load_run.check_memory(load, 200_000_000_000)


class Ended(Exception):
    """Ends a run from its tick."""


def test_one_run_at_a_time(server):
    runner, second = server(), server()

    def tick(issued: int, answered: int, late: int) -> None:
        with pytest.raises(CannotMeasure, match="runs in this process already"):
            second.run(SOUND)
        raise Ended

    runner.tick = tick
    with pytest.raises(Ended):
        runner.run(LoadSpec(qps=100.0, seconds=600.0, bound=NEVER))


def test_an_error_of_the_caller_s_function_ends_the_run(server):
    runner = server()

    def tick(issued: int, answered: int, late: int) -> None:
        raise ZeroDivisionError

    runner.tick = tick
    with pytest.raises(ZeroDivisionError):
        runner.run(LoadSpec(qps=500.0, seconds=600.0))
    runner.tick = None
    assert runner.run(SOUND).valid


def test_a_busy_python_thread_does_not_stand_in_the_way(loadgen, tmp_path):
    libc = ctypes.PyDLL(None)  # its calls keep the GIL, unlike those of os
    summaries: list[bool] = []

    def tick(issued: int, answered: int, late: int) -> None:
        (path,) = tmp_path.glob("*/mlperf_log_summary.txt")
        with path.open("rb") as file:
            end = time.monotonic() + 120.0  # in case it hangs
            while not (judged := libc.lseek(file.fileno(), 0, os.SEEK_END) > 0) and time.monotonic() < end:
                pass
        summaries.append(judged)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)  # s: no other thread gets the GIL before the tick has seen the run's end
    try:
        run = LoadGenRunner(_native.NullSystem(), tmp_path, tick=tick).run(
            LoadSpec(qps=5000.0, seconds=1.0, queries=5000, bound=NEVER)
        )
    finally:
        sys.setswitchinterval(interval)
    assert summaries == [True]
    assert run.valid
    assert run.queries == logged(run, "generated_query_count") >= 5000


def test_a_forked_process_says_that_it_cannot(loadgen, tmp_path):
    code = f"""
import os, sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from lanewise import _native
from lanewise.loadtest.loadgen import LoadGenRunner
from lanewise.loadtest.load_run import LoadSpec
runner = LoadGenRunner(_native.NullSystem(), Path({str(tmp_path)!r}))
runner.run(LoadSpec(qps=1000.0, seconds=0.1, bound=1.0))
if os.fork() == 0:
    try:
        runner.run(LoadSpec(qps=1000.0, seconds=0.1, bound=1.0))
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "this process was forked off one that has run a load test\n"


def test_no_place_for_logs_is_an_error(loadgen, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no folder for logs"):
        LoadGenRunner(_native.NullSystem(), Path(tmp_path / "file")).run(LoadSpec(qps=100.0))
