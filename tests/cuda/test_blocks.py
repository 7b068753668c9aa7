"""Pieces scattered in two memories, moved by each method over the driver without GPUs."""

from __future__ import annotations

from collections.abc import Callable

import fake_cuda
import pytest

from lanewise._native import Cuda, CudaBlocks, ProbeFailure

Open = Callable[..., Cuda]
METHODS = (
    "cuMemcpyAsync", "cuMemcpyBatchAsync", "cuMemcpyBatchAsync-256", "cuMemcpyBatchAsync-256-sorted", "kernel",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_each_method_brings_every_piece_to_its_place_both_ways_at_once(cuda: Open, method: str) -> None:
    driver = cuda()
    pairs = ((-1, 0), (0, -1), (0, 1), (1, 0))
    run = driver.prepare_blocks([CudaBlocks(src, dst, 4112, 33, method) for src, dst in pairs])
    seconds = run.run()
    assert len(seconds) == len(pairs)
    assert min(seconds) > 0
    run.verify()
    assert [bool(pages) for pages in run.pages()] == [True, True, False, False]
    run.close()
    with pytest.raises(ProbeFailure, match="closed"):
        run.run()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("ends", "place"), [((-1, 0), "in"), ((0, -1), "out"), ((0, 1), "peers")])
def test_a_piece_that_arrives_wrong_is_named(cuda: Open, method: str, ends: tuple[int, int], place: str) -> None:
    run = cuda(CORRUPT=place).prepare_blocks([CudaBlocks(*ends, 4096, 8, method)])
    with pytest.raises(ProbeFailure, match=f"by {method}: piece 0 from its byte 2048 arrived wrong"):
        run.verify()


def test_all_pieces_go_by_one_call_where_the_driver_has_it() -> None:
    for variant, count in (("13", 1), ("12", 1), ("no batch", 0)):
        library = fake_cuda.build(variant)
        driver = Cuda(str(library))
        if not count:
            with pytest.raises(ProbeFailure, match="no cuMemcpyBatchAsync") as failure:
                driver.prepare_blocks([CudaBlocks(-1, 0, 64, 8, "cuMemcpyBatchAsync")])
            assert "12.8" in failure.value.args[1]
            continue
        driver.prepare_blocks([CudaBlocks(-1, 0, 64, 8, "cuMemcpyBatchAsync")]).run()
        assert fake_cuda.calls(library, "cuMemcpyBatchAsync") == count
        several = driver.prepare_blocks([CudaBlocks(-1, 0, 64, 600, "cuMemcpyBatchAsync-256")])
        several.verify()
        assert fake_cuda.calls(library, "cuMemcpyBatchAsync") == count + 3


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_sorted_pieces_are_posted_in_the_order_of_their_addresses_at_the_destination(count: int) -> None:
    library = fake_cuda.build()

    def descents(method: str) -> int:
        run = Cuda(str(library)).prepare_blocks([CudaBlocks(0, -1, 64, count, method)])
        run.verify()  # one transfer
        before = fake_cuda.calls(library, "batched to a lower address than before")
        run.run()  # starts at the lowest address again
        return fake_cuda.calls(library, "batched to a lower address than before") - before

    assert descents("cuMemcpyBatchAsync-256-sorted") == (count > 1)
    assert count < 255 or descents("cuMemcpyBatchAsync-256") > count / 3
    assert fake_cuda.calls(library, "cuMemcpyBatchAsync") >= 2 * -(-count // 256)


@pytest.mark.parametrize(
    ("blocks", "cause"),
    [
        ((-1, 0, 64, 8, "magic"), "no method 'magic'"),
        ((-1, 0, 100, 8, "kernel"), "pieces of 100 bytes"),
        ((-1, 0, 64, 0, "kernel"), "no piece"),
        ((0, 0, 64, 8, "kernel"), "stay where they are"),
        ((-1, -1, 64, 8, "kernel"), "stay where they are"),
        ((-2, 0, 64, 8, "kernel"), "no such end"),
    ],
)
def test_pieces_that_cannot_be_are_refused(cuda: Open, blocks: tuple[int, int, int, int, str], cause: str) -> None:
    with pytest.raises(ProbeFailure, match=cause):
        cuda().prepare_blocks([CudaBlocks(*blocks)])


def test_no_flow_and_no_peer_access_are_refused(cuda: Open) -> None:
    driver = cuda(NO_PEER="0:1")
    with pytest.raises(ProbeFailure, match="no flow"):
        driver.prepare_blocks([])
    with pytest.raises(ProbeFailure, match="no peer access"):
        driver.prepare_blocks([CudaBlocks(0, 1, 64, 8, "kernel")])
