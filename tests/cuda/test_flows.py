"""Timed flows, against a driver whose rates are known: 5 GB/s to a GPU, 4 back, 10 with P2P, 2 without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_cuda
import pytest

from lanewise import _native
from lanewise._native import Cuda, CudaFlow, ProbeFailure

Open = Callable[..., Cuda]
MIB = 2**20
HOST = -1


def rate(cuda: Cuda, flow: CudaFlow, size: int, copies: int) -> float:
    """GB/s of a flow by itself."""
    run = cuda.prepare([flow])
    (timing,) = run.run()
    run.close()
    assert len(timing.timestamps) == copies
    assert timing.timestamps == sorted(timing.timestamps)
    return size * copies / timing.timestamps[-1] / 1e9


def test_the_driver_describes_its_gpus(cuda: Open) -> None:
    driver = cuda(GPUS=3, MEMORY=64 * MIB)
    assert driver.driver == 13000
    devices = driver.devices
    assert [device.ordinal for device in devices] == [0, 1, 2]
    first = devices[0]
    assert (first.name, first.pci, first.numa, first.memory) == ("Fake GPU", "fa4e:1b:00.0", 0, 64 * MIB)
    assert (first.multiprocessors, first.copy_engines, first.capability) == (4, 3, (9, 0))


def test_looking_at_the_gpus_makes_no_context_and_asking_for_free_memory_one(cuda: Open, library: Path) -> None:
    driver = cuda(MEMORY=64 * MIB)
    devices = driver.devices
    assert fake_cuda.live(library)["contexts"] == 0
    assert devices[1].free == 64 * MIB
    assert fake_cuda.live(library)["contexts"] == 1


@pytest.mark.parametrize(
    ("flow", "gigabytes"),
    [
        ({"src": HOST, "dst": 0}, 5),
        ({"src": 0, "dst": HOST}, 4),
        ({"src": 0, "dst": 1}, 10),
        ({"src": 0, "dst": 1, "read": True}, 10),
        ({"src": 0, "dst": 1, "p2p": False}, 2),
        ({"src": 1, "dst": 0, "p2p": False, "read": True}, 2),
        ({"src": 0, "dst": 0}, 100),
        ({"src": HOST, "dst": 1, "sm": True}, 5),
        ({"src": 1, "dst": HOST, "sm": True}, 4),
        ({"src": 0, "dst": 1, "sm": True}, 10),
        ({"src": 0, "dst": 1, "sm": True, "read": True}, 10),
    ],
)
def test_a_flow_has_the_rate_of_its_path(cuda: Open, flow: dict[str, Any], gigabytes: float) -> None:
    size, copies = 8 * MIB, 3
    assert rate(cuda(), CudaFlow(bytes=size, copies=copies, **flow), size, copies) == pytest.approx(gigabytes, rel=0.05)


def test_the_gpu_that_starts_a_copy_is_the_source_unless_the_destination_reads(cuda: Open) -> None:
    driver = cuda(MEMORY=32 * MIB)
    for read in (False, True):
        run = driver.prepare([CudaFlow(0, 1, MIB, 1, read=read)])
        run.run()
        run.close()


def test_flows_start_together_and_each_has_its_marks(cuda: Open) -> None:
    sizes = [2 * MIB, MIB, MIB]
    flows = [CudaFlow(HOST, 0, sizes[0], 2), CudaFlow(0, HOST, sizes[1], 5), CudaFlow(0, 1, sizes[2], 1)]
    run = cuda().prepare(flows)
    for _ in range(2):
        timings = run.run()
        assert [len(timing.timestamps) for timing in timings] == [2, 5, 1]
        for timing, size, gigabytes in zip(timings, sizes, (5, 4, 10), strict=True):
            assert timing.timestamps[0] == pytest.approx(size / gigabytes / 1e9, rel=0.1)
    run.verify()


def test_other_numbers_of_copies_use_the_same_buffers(cuda: Open, library: Path) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 1), CudaFlow(0, HOST, MIB, 3)])
    held = fake_cuda.live(library)["memory"]
    run.resize([4, 2])
    assert [len(timing.timestamps) for timing in run.run()] == [4, 2]
    assert fake_cuda.live(library)["memory"] == held
    with pytest.raises(ProbeFailure, match="1 numbers of copies for 2 flows"):
        run.resize([4])


@pytest.mark.parametrize("queue", [2 * _native.CUDA_MOST_COPIES + 2, 1024])
def test_the_most_copies_fit_behind_the_hold(cuda: Open, queue: int) -> None:
    most = _native.CUDA_MOST_COPIES
    run = cuda(QUEUE=queue).prepare([CudaFlow(HOST, 0, 4096, most), CudaFlow(0, HOST, 4096, most)])
    assert [len(timing.timestamps) for timing in run.run()] == [most, most]
    with pytest.raises(ProbeFailure, match=f"host0->gpu0: {most + 1} copies"):
        run.resize([most + 1, 1])


def test_a_queue_that_blocks_ends_as_held_too_long(cuda: Open) -> None:
    run = cuda(QUEUE=8, HOLD_MS=30).prepare([CudaFlow(HOST, 0, 4096, 20)])
    with pytest.raises(ProbeFailure, match="held too long") as failure:
        run.run()
    assert "fewer copies" in failure.value.args[1]


def test_a_hold_that_times_out_is_no_measurement(cuda: Open) -> None:
    driver = cuda(SPIN_TIMEOUT=1)
    with pytest.raises(ProbeFailure, match="held too long"):
        driver.prepare([CudaFlow(0, 1, 4096, 2)]).run()
    with pytest.raises(ProbeFailure, match="held too long"):
        driver.launch(HOST, 0, p2p=True)


def test_the_pages_of_a_host_buffer_are_told_by_node(cuda: Open) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 1, node=0), CudaFlow(0, 1, MIB, 1), CudaFlow(1, HOST, MIB, 1)])
    host, peers, back = run.pages()
    assert peers == {}
    assert sum(back.values()) == MIB // 4096
    assert host in ({0: MIB // 4096}, {-1: MIB // 4096}, {})  # the last two where move_pages is not allowed


@pytest.mark.parametrize("size", [1, 7, 4096, 100_003])
def test_what_arrives_right_is_verified_in_every_direction(cuda: Open, size: int) -> None:
    pairs = [(HOST, 0), (0, HOST), (0, 1), (1, 1)]
    flows = [CudaFlow(src, dst, size, 1, sm=sm) for src, dst in pairs for sm in (False, True)]
    run = cuda().prepare(flows)
    run.verify()
    run.verify()


@pytest.mark.parametrize("how", [{}, {"sm": True}, {"read": True}, {"p2p": False}])
def test_a_byte_that_arrives_wrong_is_named(cuda: Open, how: dict[str, bool]) -> None:
    run = cuda(CORRUPT="peers").prepare([CudaFlow(HOST, 0, MIB, 1), CudaFlow(0, 1, MIB, 1, **how)])
    run.run()
    with pytest.raises(ProbeFailure, match=f"gpu0->gpu1: byte {MIB // 2} of {MIB} arrived wrong") as failure:
        run.verify()
    assert "IOMMU" in failure.value.args[1]


def both_ways(gpu: int, size: int, copies: int = 2) -> list[CudaFlow]:
    ends = ((gpu, HOST), (HOST, gpu))
    return [CudaFlow(src, dst, size, copies, sm=True, duplex=True) for src, dst in ends]


@pytest.mark.parametrize("size", [1, 7, 4096, 100_003])
def test_both_ways_by_one_kernel_arrive_and_end_together(cuda: Open, size: int) -> None:
    run = cuda().prepare([*both_ways(0, size), CudaFlow(HOST, 1, size, 3), *both_ways(1, size)])
    run.verify()
    out, into, other, *_ = run.run()
    assert out.timestamps == into.timestamps
    assert [len(timing.timestamps) for timing in (into, other)] == [2, 3]


@pytest.mark.parametrize(("way", "flow"), [("in", "host0->gpu0"), ("out", "gpu0->host0")])
def test_a_byte_wrong_on_one_of_both_ways_is_named(cuda: Open, way: str, flow: str) -> None:
    run = cuda(CORRUPT=way).prepare(both_ways(0, MIB))
    run.run()
    with pytest.raises(ProbeFailure, match=f"{flow}: byte {MIB // 2} of {MIB} arrived wrong"):
        run.verify()


def test_a_kernel_for_both_ways_needs_a_flow_back_of_as_many_bytes(cuda: Open) -> None:
    driver = cuda()
    into = CudaFlow(HOST, 0, MIB, 2, sm=True, duplex=True)
    for others in (
        [],
        [CudaFlow(0, HOST, MIB // 2, 2, sm=True, duplex=True)],
        [CudaFlow(0, HOST, MIB, 2, duplex=True)],
        [into],
    ):
        with pytest.raises(ProbeFailure, match="host0->gpu0: no opposite flow"):
            driver.prepare([into, *others])
    with pytest.raises(ProbeFailure, match="gpu0->gpu1: no opposite flow"):
        driver.prepare([CudaFlow(0, 1, MIB, 1, sm=True, duplex=True), CudaFlow(1, 0, MIB, 1, sm=True, duplex=True)])


def test_p2p_goes_on_and_off_as_runs_need_it(cuda: Open, library: Path) -> None:
    driver = cuda()
    on = driver.prepare([CudaFlow(0, 1, MIB, 1)])
    off = driver.prepare([CudaFlow(0, 1, MIB, 1, p2p=False)])
    fast, slow = on.run()[0].timestamps[0], off.run()[0].timestamps[0]
    assert fake_cuda.live(library)["peers"] == 0
    assert on.run()[0].timestamps[0] == pytest.approx(fast, rel=0.01)
    assert fake_cuda.live(library)["peers"] == 2
    assert slow > 3 * fast


def test_staged_copies_need_no_more_room_behind_the_hold_than_one(cuda: Open) -> None:
    flows = [CudaFlow(0, 1, MIB, 64, p2p=False), CudaFlow(1, 0, MIB, 64, p2p=False)]
    run = cuda(QUEUE=8, HOLD_MS=500).prepare(flows)
    assert [len(timing.timestamps) for timing in run.run()] == [64, 64]


def test_staged_copies_that_the_driver_does_not_let_be_held_start_as_they_come(cuda: Open) -> None:
    driver = cuda(STAGED_WAITS=1, HOLD_MS=100)
    assert driver.launch(1, 0, p2p=True) < 5e-6
    assert driver.holds_staged
    run = driver.prepare([CudaFlow(0, 1, MIB, 8, p2p=False), CudaFlow(1, 0, MIB, 8, p2p=False)])
    for timing in run.run():
        assert MIB * 8 / timing.timestamps[-1] == pytest.approx(2e9, rel=0.1)
    assert not driver.holds_staged
    assert driver.launch(0, 1, p2p=False, repeats=10) == pytest.approx(20e-6, rel=0.1)
    assert len(driver.prepare([CudaFlow(0, 1, MIB, 4)]).run()[0].timestamps) == 4  # peers are held as ever


def test_a_row_of_small_staged_copies_is_measured_where_none_can_be_held(cuda: Open) -> None:
    driver = cuda(STAGED_WAITS=1, HOLD_MS=100)
    assert driver.launch(0, 1, p2p=False, repeats=10) == pytest.approx(20e-6, rel=0.1)
    assert not driver.holds_staged


def test_peers_that_are_none_are_refused_but_copied_without_p2p(cuda: Open) -> None:
    driver = cuda(GPUS=3, NO_PEER="0:1")
    assert not driver.can_peer(0, 1)
    assert driver.can_peer(1, 2)
    with pytest.raises(ProbeFailure, match="no peer access from GPU 0 to GPU 1") as failure:
        driver.prepare([CudaFlow(0, 1, MIB, 1)])
    assert "P2P off" in failure.value.args[1]
    assert rate(driver, CudaFlow(0, 1, MIB, 2, p2p=False), MIB, 2) < 3


@pytest.mark.parametrize(
    ("flows", "cause"),
    [
        ([], "no flow"),
        ([(HOST, HOST, MIB, 1)], "no GPU takes part"),
        ([(HOST, 7, MIB, 1)], "no GPU 7"),
        ([(-2, 0, MIB, 1)], "no such end"),
        ([(HOST, 0, 0, 1)], "0 bytes"),
        ([(HOST, 0, MIB, 0)], "0 copies"),
        ([(0, 1, MIB, 1, -1, True, False, False)], "only with P2P on"),
        ([(0, 1, MIB, 1), (1, 0, MIB, 1, -1, False, False, False)], "P2P on and off"),
        ([(HOST, 0, MIB, 1, 999)], "NUMA node 999"),
    ],
)
def test_flows_that_cannot_be_are_refused(cuda: Open, flows: list[tuple[Any, ...]], cause: str) -> None:
    with pytest.raises(ProbeFailure, match=cause) as failure:
        cuda().prepare([CudaFlow(*flow) for flow in flows])
    assert failure.value.args[1]


def test_too_little_gpu_memory_is_told_with_what_is_free(cuda: Open) -> None:
    driver = cuda(MEMORY=8 * MIB)
    kept = driver.prepare([CudaFlow(HOST, 0, 2 * MIB, 1)])
    with pytest.raises(ProbeFailure, match=r"out of memory \(GPU 0, 7 MiB asked, 6 MiB free\)"):
        driver.prepare([CudaFlow(HOST, 0, 7 * MIB, 1)])
    kept.run()


def test_a_closed_run_says_so(cuda: Open) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 1)])
    run.close()
    run.close()
    for act in (run.run, run.verify, run.pages, lambda: run.resize([1])):
        with pytest.raises(ProbeFailure, match="closed"):
            act()


def test_closing_from_another_thread_waits_for_the_run(cuda: Open, library: Path) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 100)])
    ended: list[object] = []

    def keep_running() -> None:
        try:
            while True:
                ended.append(len(run.run()[0].timestamps))
        except ProbeFailure as failure:
            ended.append(failure.args[0])

    thread = threading.Thread(target=keep_running)
    thread.start()
    while not ended:
        pass
    run.close()
    assert fake_cuda.live(library)["streams"] == 1  # the GPU's own
    thread.join(timeout=300)
    assert not thread.is_alive()
    assert "closed" in str(ended.pop())
    assert set(ended) == {100}


def test_runs_outlive_the_driver_object(cuda: Open) -> None:
    run = cuda().prepare([CudaFlow(HOST, 0, MIB, 2)])
    assert len(run.run()[0].timestamps) == 2
