"""Samples of a pinned library brought to a GPU batch by batch, and the two latencies."""

from __future__ import annotations

from collections.abc import Callable

import fake_cuda
import pytest

from lanewise._native import Cuda, ProbeFailure

Open = Callable[..., Cuda]
METHODS = ("calls", "batch", "kernel", "staged")
SMALL = {"library": 64, "bytes": 4096}


@pytest.mark.parametrize("method", METHODS)
def test_each_method_brings_the_right_samples(cuda: Open, method: str) -> None:
    run = cuda().prepare_queries(0, -1, method, batch=16, batches=5, **SMALL)
    (timing,) = run.run()
    assert len(timing.timestamps) == 5
    assert timing.timestamps == sorted(timing.timestamps)
    run.verify()
    run.resize([2])
    assert len(run.run()[0].timestamps) == 2
    assert sum(run.pages()[0].values()) == 64


@pytest.mark.parametrize("method", METHODS)
def test_more_copies_than_can_be_held_are_queued_after_the_release(cuda: Open, method: str) -> None:
    run = cuda(QUEUE=600).prepare_queries(0, -1, method, batch=128, batches=8, **SMALL)
    assert len(run.run()[0].timestamps) == 8


def test_one_copy_of_a_batch_costs_less_than_a_copy_each(cuda: Open) -> None:
    driver = cuda()
    last = {
        method: driver.prepare_queries(0, -1, method, batch=32, batches=2, **SMALL).run()[0].timestamps[-1]
        for method in ("calls", "staged")
    }
    assert last["calls"] > last["staged"]  # 2 us a copy in the fake driver


@pytest.mark.parametrize(("variant", "called"), [("13", True), ("12", True), ("no batch", False)])
def test_batches_go_by_the_call_that_the_driver_has(variant: str, called: bool) -> None:
    library = fake_cuda.build(variant)
    driver = Cuda(str(library))
    if called:
        run = driver.prepare_queries(0, -1, "batch", batch=4, batches=2, **SMALL)
        run.run()
        run.verify()
        assert fake_cuda.calls(library, "cuMemcpyBatchAsync") >= 3
    else:
        with pytest.raises(ProbeFailure, match="no cuMemcpyBatchAsync") as failure:
            driver.prepare_queries(0, -1, "batch", **SMALL)
        assert "12.8" in failure.value.args[1]


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ({"method": "magic"}, "no method 'magic'"),
        ({"method": "calls", "bytes": 1001}, "samples of 1001 bytes"),
        ({"method": "calls", "library": 0}, "library without samples"),
        ({"method": "calls", "batch": 0}, "batches of 0"),
        ({"method": "calls", "batches": 0}, "no batch"),
    ],
)
def test_queries_that_cannot_be_are_refused(cuda: Open, asked: dict[str, object], cause: str) -> None:
    with pytest.raises(ProbeFailure, match=cause):
        cuda().prepare_queries(0, -1, **{**SMALL, **asked})  # type: ignore[arg-type]


@pytest.mark.parametrize(("reader", "holder", "nanoseconds"), [(0, -1, 1000), (0, 1, 800), (1, 0, 800), (0, 0, 300)])
def test_a_pointer_chase_takes_the_latency_of_a_load(cuda: Open, reader: int, holder: int, nanoseconds: float) -> None:
    seconds = cuda().chase(reader, holder, steps=4000, bytes=64 * 1024)
    assert seconds * 1e9 == pytest.approx(nanoseconds, rel=0.01)


def test_a_chase_needs_peers_and_room(cuda: Open) -> None:
    driver = cuda(NO_PEER="0:1")
    with pytest.raises(ProbeFailure, match="no peer access"):
        driver.chase(0, 1)
    with pytest.raises(ProbeFailure, match="0 steps"):
        driver.chase(0, -1, steps=0)
    with pytest.raises(ProbeFailure, match="100 bytes"):
        driver.chase(0, -1, bytes=100)


@pytest.mark.parametrize(
    ("src", "dst", "p2p", "microseconds"),
    [(0, 1, True, 2), (0, 1, False, 20), (1, 0, True, 2), (-1, 0, True, 2), (0, -1, True, 2), (0, 0, True, 1)],
)
def test_a_small_copy_takes_the_latency_of_its_path(
    cuda: Open, src: int, dst: int, p2p: bool, microseconds: float
) -> None:
    assert cuda().launch(src, dst, p2p) * 1e6 == pytest.approx(microseconds, rel=0.05)


def test_a_row_of_small_copies_has_an_end(cuda: Open) -> None:
    with pytest.raises(ProbeFailure, match="600 copies in a row"):
        cuda().launch(0, 1, True, repeats=600)
    with pytest.raises(ProbeFailure, match="no GPU takes part"):
        cuda().launch(-1, -1, True)
