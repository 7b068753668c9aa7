"""The native reader: every byte once, in its place, by both engines; what goes wrong is named."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.storage_native import ENGINES, expected, job, opened, run

from lanewise._native import (
    ProbeFailure,
    StorageData,
    StorageEngine,
    StorageRunner,
    StorageTask,
    StorageVolume,
    in_page_cache,
)

KIB = 1024
engines = pytest.mark.parametrize("engine", ENGINES, ids=str)


@given(
    files=st.integers(1, 5), stripe=st.integers(1, 40), rows=st.integers(1, 12), io=st.integers(1, 200),
)  # fmt: skip
def test_the_pieces_of_all_ios_cover_a_striped_volume_once_as_raid_0_lays_it_out(files, stripe, rows, io):
    """Byte b of a RAID-0 volume: stripe b / stripe, dealt to the files in turn."""
    volume = StorageVolume(list(range(files)), stripe, rows * stripe * files)
    found = []
    for start in range(0, volume.bytes, io):
        bytes_wanted = min(io, volume.bytes - start)
        at = 0
        for file, offset, place, count in volume.pieces(start, bytes_wanted):
            assert place == at
            found += [(file, offset + i) for i in range(count)]
            at += count
        assert at == bytes_wanted
    if files == 1:
        assert found == [(0, b) for b in range(volume.bytes)]
    else:
        stripes = [(b // stripe, b % stripe) for b in range(volume.bytes)]
        assert found == [(s % files, s // files * stripe + within) for s, within in stripes]
    assert len(set(found)) == volume.bytes


@settings(max_examples=15)
@given(
    engine=st.sampled_from(ENGINES), files=st.integers(1, 3), stripe=st.sampled_from([4, 8, 20]),
    rows=st.integers(1, 4), io=st.sampled_from([4, 12, 32]), random=st.booleans(), striped=st.booleans(),
)  # fmt: skip
def test_both_engines_write_each_block_once_at_its_place_and_read_the_same_back(
    engine, files, stripe, rows, io, random, striped
):
    """Files begin empty, so a block that is left out or misplaced shows; the oracle knows nothing of stripes."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(i) for i in range(files)]
        stripe, io = stripe * KIB, io * KIB
        if striped and files > 1:
            size = rows * stripe * (io // KIB)  # a whole number of I/Os
            volumes = [StorageVolume(list(range(files)), stripe, size * files)]
        else:
            size = rows * io
            volumes = [StorageVolume([i], 0, size) for i in range(files)]
        with opened(paths) as opens:
            runner = StorageRunner(job(engine, opens, volumes, io))
            task = StorageTask(volumes[0].bytes // io, write=True, random=random, seed=3, data=StorageData.FILLED)
            wrote = run(runner, task)
            assert wrote.bytes == [size] * files
            for number, path in enumerate(paths):
                words = np.fromfile(path, dtype=np.uint64)
                assert np.array_equal(words, expected(number, size))
            for data in (StorageData.FILLED, StorageData.REREAD):
                read = run(runner, StorageTask(task_count(volumes, io), random=random, seed=9, data=data))
                assert read.bytes == [size] * files
                assert len(read.times) == len(volumes) * task_count(volumes, io)


def task_count(volumes: list[StorageVolume], io: int) -> int:
    return volumes[0].bytes // io


@engines
def test_one_wrong_byte_is_found_and_its_place_named(engine, tmp_path):
    with opened([tmp_path / "a"]) as files:
        runner = StorageRunner(job(engine, files, [StorageVolume([0], 0, 64 * KIB)], 4 * KIB))
        run(runner, StorageTask(16, write=True, data=StorageData.STAMPED))
        run(runner, StorageTask(16, data=StorageData.STAMPED))
        os.pwrite(files[0], b"\0\0", 5 * 4096 + 24)
        with pytest.raises(ProbeFailure) as wrong:
            run(runner, StorageTask(16, data=StorageData.STAMPED))
        assert wrong.value.args[0] == "file0: what was read at offset 20504 is not what was written there"
        with pytest.raises(ProbeFailure, match="is not what was written"):
            run(runner, StorageTask(16, salt=1, data=StorageData.STAMPED))


@engines
def test_a_bounce_takes_the_data_on_to_a_second_buffer(engine, tmp_path):
    with opened([tmp_path / "a"]) as files:
        made = job(engine, files, [StorageVolume([0], 0, 64 * KIB)], 8 * KIB)
        made.bounce = True
        runner = StorageRunner(made)
        run(runner, StorageTask(8, write=True, data=StorageData.FILLED))
        assert run(runner, StorageTask(8, data=StorageData.FILLED)).bytes == [64 * KIB]


@engines
def test_a_file_that_was_shortened_is_an_error_with_the_offset_and_leaves_the_threads_usable(engine, tmp_path):
    with opened([tmp_path / "a"]) as files:
        os.ftruncate(files[0], 10_000)
        runner = StorageRunner(job(engine, files, [StorageVolume([0], 0, 64 * KIB)], 4 * KIB, at_once=1))
        with pytest.raises(ProbeFailure, match="file0: reading at offset 10000: the file ends there"):
            run(runner, StorageTask(16))
        os.ftruncate(files[0], 64 * KIB)
        assert run(runner, StorageTask(16)).bytes == [64 * KIB]


@engines
def test_an_io_error_of_the_kernel_is_shown_with_a_hint(engine):
    """The page at address 0 of a process is never mapped: the kernel answers EIO, as for a drive that is gone."""
    file = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        runner = StorageRunner(job(engine, [file], [StorageVolume([0], 0, 64 * KIB)], 4 * KIB, at_once=1))
        with pytest.raises(ProbeFailure) as failed:
            run(runner, StorageTask(16))
    finally:
        os.close(file)
    cause, hint = failed.value.args
    assert cause == "file0: reading at offset 0: Input/output error"
    assert "dmesg" in hint


@engines
def test_an_io_that_does_not_fit_the_blocks_of_the_drive_is_an_error_with_what_to_do(engine, direct):
    (direct / "a").write_bytes(bytes(64 * KIB))
    file = os.open(direct / "a", os.O_RDONLY | os.O_DIRECT)
    try:
        with pytest.raises(ProbeFailure) as failed:
            run(StorageRunner(job(engine, [file], [StorageVolume([0], 0, 10_000)], 1000)), StorageTask(10))
    finally:
        os.close(file)
    cause, hint = failed.value.args
    assert "Invalid argument" in cause
    assert "multiple of 4 KiB, or --modes cached" in hint


@engines
def test_stopping_ends_a_round_early_and_what_was_read_is_counted(engine, tmp_path):
    with opened([tmp_path / "a"]) as files:
        os.ftruncate(files[0], 1 << 20)
        runner = StorageRunner(job(engine, files, [StorageVolume([0], 0, 1 << 20)], 4 * KIB))
        runner.start(StorageTask(256, seconds=600.0))
        while sum(runner.bytes) < 100 * 4 * KIB:
            assert runner.running
        runner.stop()
        found = runner.finish()
        assert not runner.running
        assert sum(found.bytes) == len(found.times) * 4 * KIB
        assert found.window <= found.makespan < 600


@engines
def test_a_timed_round_begins_anew_at_the_end_of_the_file(engine, tmp_path):
    with opened([tmp_path / "a"]) as files:
        os.ftruncate(files[0], 16 * KIB)
        runner = StorageRunner(job(engine, files, [StorageVolume([0], 0, 16 * KIB)], 4 * KIB))
        runner.start(StorageTask(4, seconds=600.0))
        while sum(runner.bytes) <= 16 * KIB:
            assert runner.running
        runner.stop()
        result = runner.finish()
        assert sum(result.in_window) <= sum(result.bytes)
        assert run(runner, StorageTask(4, seconds=0.05)).window >= 0.05


def test_the_common_window_ends_when_the_first_volume_is_done(tmp_path):
    """Two volumes of one I/O each, by one thread each: whichever is first, the other is counted up to then."""
    with opened([tmp_path / "a", tmp_path / "b"]) as files:
        for file in files:
            os.ftruncate(file, 1 << 20)
        volumes = [StorageVolume([i], 0, 1 << 20) for i in (0, 1)]
        found = run(StorageRunner(job(ENGINES[0], files, volumes, 16 * KIB)), StorageTask(64))
        assert max(found.in_window) == 1 << 20
        assert found.bytes == [1 << 20] * 2
        assert found.window <= found.makespan


def test_memory_on_a_node_that_does_not_exist_is_an_error(tmp_path):
    with opened([tmp_path / "a"]) as files:
        made = job(StorageEngine.SYNC, files, [StorageVolume([0], 0, 64 * KIB)], 4 * KIB)
        made.node = 60
        with pytest.raises(ProbeFailure, match="NUMA node 60"):
            StorageRunner(made)


def test_the_page_cache_is_seen_full_after_a_reading_and_empty_after_dropping_it(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(os.urandom(1 << 20))
    with opened([path]) as files:
        os.fsync(files[0])
        os.read(files[0], 1 << 20)
        assert in_page_cache(files[0], 1 << 20) == 1.0
        os.posix_fadvise(files[0], 0, 0, os.POSIX_FADV_DONTNEED)
        if in_page_cache(files[0], 1 << 20) == 1.0:
            pytest.skip("this file system lives in the page cache (tmpfs)")
        assert in_page_cache(files[0], 1 << 20) < 0.5
