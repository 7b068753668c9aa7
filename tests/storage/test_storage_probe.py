"""The storage probe on real files: what its samples say, and each thing that can be wrong with a path."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise.errors import CannotMeasure, FormatError, InputError, LanewiseError, UnknownName
from lanewise.perf.flow import parse_flows
from lanewise.probes.storage.probe import percentile
from lanewise.probes.storage.session import StorageProgress
from lanewise.results.sample import Sample, summarise

SMALL: dict[str, Any] = {"io": "64 KiB", "size": "1 MiB", "threads": 2, "depth": 2}
NO_DIRECT = Path("/sys/kernel/btf/vmlinux")  # a file of a file system that has no direct reads, on most kernels


def measure(paths: Any, runs: int = 1, **settings: Any) -> list[Sample]:
    """All samples at once."""
    return list(lanewise.measure_storage(paths, runs=runs, **{**SMALL, **settings}))


def refused(paths: object, **settings: Any) -> LanewiseError:
    """What is said instead of measuring."""
    with pytest.raises(LanewiseError) as found:
        measure(paths, **settings)
    assert found.value.hint
    return found.value


@given(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=2000), st.sampled_from([50.0, 99.0, 99.9]))
def test_a_percentile_is_the_smallest_io_time_that_so_many_do_not_exceed(nanoseconds, share):
    times = np.array(nanoseconds, dtype=np.float32)
    found = percentile(times, share)
    wanted, slack = share / 100 * len(times), 1e-6
    if len(times) - wanted < 1 - slack:  # not one I/O would lie above it
        assert found is None
        return
    assert found is not None
    assert found in times
    assert np.count_nonzero(times <= found) >= wanted - slack
    assert np.count_nonzero(times < found) < wanted + slack


def test_modes_stand_side_by_side_with_rate_io_times_and_how_they_were_obtained(direct, data):
    os.sync()
    samples = measure(data, 2)
    rates = {s.scenario: s for s in samples if s.metric == "goodput"}
    assert list(rates) == ["read direct", "read cached", "read bounce"]
    for sample in rates.values():
        assert sample.value is not None
        assert sample.value > 0
        assert (sample.display_unit, sample.flow, sample.path) == ("GB/s", "data.bin->host0", "storage")
        assert dict(sample.settings) == {"bytes": 65536, "threads": 2, "depth": 2}
        assert sample.how["data"] == "verified"
        assert sample.how["mode"] == sample.scenario.removeprefix("read ")
        assert {"engine", "NUMA node", "flows", "data size"} <= set(sample.how)
    assert rates["read cached"].how["in cache before"] == "100 %"
    rows = summarise(samples)
    assert all(len(row.samples) == 2 for row in rows if row.metric in ("goodput", "iops", "latency_p50"))
    late = next(row for row in rows if row.metric == "latency_p99")
    assert (late.value, late.note) == (None, "16 I/Os a run are too few")


def test_a_test_file_is_made_read_written_and_never_seen_in_its_folder(direct):
    seen = []
    for sample in lanewise.measure_storage(direct, runs=1, make="2 MiB", write=True, **SMALL):
        seen += os.listdir(direct)
        assert sample.flow.startswith("host0->")
        assert sample.how["data"] == "verified"
        assert "drive" in sample.how["flush"]
    assert seen == os.listdir(direct) == []
    scenarios = {s.scenario for s in measure(direct, make="2 MiB", random=True)}
    assert scenarios == {"random read direct", "random read cached", "random read bounce"}


def test_several_files_are_read_in_parallel_or_as_one_striped_volume(tmp_path):
    folders = [tmp_path / name / "nvme" for name in "ab"]
    for folder in folders:
        folder.mkdir(parents=True)
    parallel = measure(folders, make="2 MiB", modes="cached")
    flows = [s.flow for s in parallel if s.metric == "goodput"]
    assert flows == ["a-nvme->host0", "b-nvme->host0"]
    total = next(s for s in parallel if s.metric == "total")
    assert total.value == pytest.approx(sum(s.value or 0 for s in parallel if s.metric == "goodput"))
    assert [f.name for f in parse_flows(total.how["flows"])] == flows
    striped = measure(folders, make="2 MiB", modes="cached", stripe="16 KiB", io="96 KiB")
    goodput = [s for s in striped if s.metric == "goodput"]
    assert [s.flow for s in goodput] == ["volume->host0"]
    assert goodput[0].how["volume"] == "a-nvme b-nvme, stripes of 16 KiB"
    assert goodput[0].how["data"] == "verified"


def test_a_folder_named_twice_gets_two_test_files(tmp_path):
    flows = [s.flow for s in measure([tmp_path, tmp_path], make="2 MiB", modes="cached") if s.metric == "goodput"]
    assert flows == [f"{tmp_path.name}-0->host0", f"{tmp_path.name}-1->host0"]


def test_rates_of_the_run_so_far_are_reported_while_it_runs(data, monkeypatch):
    monkeypatch.setattr("lanewise.probes.storage.session._PROGRESS_S", 1e-6)  # each time that it looks
    reports: list[StorageProgress] = []
    settings = {**SMALL, "modes": "cached", "seconds": 0.2}
    for _ in lanewise.measure_storage(data, reports.append, runs=1, **settings):
        pass
    rates = [report.rates["data.bin"] for report in reports if report.stage == "read cached, run 1"]
    assert len(rates) >= 2
    assert max(rates) > 0


def test_the_drive_below_delivers_what_is_read_directly(direct, data):
    os.sync()
    rows = {s.metric: s for s in measure(data, modes="direct", seconds="0.2 s")}
    if "drive_rate" not in rows:
        pytest.skip("the kernel tells no drive of this file system")
    drive = rows["drive_rate"].value
    assert drive is not None
    if drive == 0:
        pytest.skip("this file system does not read from the drive that it names")
    iops = rows["iops"]
    assert iops.value is not None
    read = iops.value * iops.settings["bytes"] / 1e9  # over the same time
    assert drive >= 0.99 * read  # others may use the drive as well


def test_memory_on_a_numa_node_is_asked_for_verified_and_shown(data):
    goodput = measure(data, modes="cached", to="host:0")[0]
    assert goodput.flow == "data.bin->host0:0"
    assert goodput.how["NUMA node"] == "0"
    assert "NUMA node 60" in str(refused(data, modes="cached", to="host0:60"))


def test_a_sparse_file_is_read_with_a_warning(tmp_path):
    path = tmp_path / "sparse"
    with open(path, "wb") as out:
        out.write(os.urandom(1 << 18))
        out.truncate(1 << 20)
        os.fsync(out.fileno())
    if os.stat(path).st_blocks * 512 >= 1 << 20:
        pytest.skip("this file system has no sparse files")
    assert measure(path, modes="cached")[0].note == "75 % of sparse are holes, which no drive reads"


def test_paths_that_cannot_be_read_are_named_with_what_to_do(tmp_path, data):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    for path, cause in (
        (tmp_path / "no", "cannot be read: No such file or directory"),
        (data / "below", "cannot be read: Not a directory"),
        (tmp_path, "is a folder"),
        (fifo, "is neither a file nor a block device"),
        ("/dev/null", "is neither a file nor a block device"),
    ):
        assert str(refused(path)) == f"{path}: {cause}"
    (tmp_path / "short").write_bytes(bytes(100))
    assert str(refused(tmp_path / "short")).endswith("short: holds 100 B, less than one I/O of 65,536 B")
    assert str(refused([data, data])) == "a file is named twice"


def test_a_folder_of_a_read_only_file_system_is_an_error():
    error = refused("/proc/self", make="1 MiB")
    assert str(error).startswith("/proc/self: no ")


@pytest.mark.skipif(not NO_DIRECT.exists(), reason="this kernel shows no file that has no direct reads")
def test_a_file_system_without_direct_reads_is_told_and_cached_reads_of_it_work():
    error = refused(NO_DIRECT)
    assert isinstance(error, CannotMeasure)
    assert str(error) == f"{NO_DIRECT}: its file system has no direct reads (O_DIRECT)"
    assert "--modes cached" in error.hint
    assert measure(NO_DIRECT, modes="cached", size="256 KiB")[0].how["data"] == "not verified"


def test_a_full_disk_is_an_error_before_and_while_a_test_file_is_made(tmp_path):
    error = refused(tmp_path, make="100000 TB")
    assert "no room for a test file of" in str(error)
    assert "GB are free" in str(error)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        error = refused(tmp_path, make="4 MiB")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.strerror(errno.EFBIG) in str(error)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("settings", "kind", "cause"),
    [
        ({"modes": "direct,fast"}, UnknownName, "unknown mode 'fast'"),
        ({"modes": "cuFile"}, InputError, "cuFile reads into GPU memory"),
        ({"modes": "direct", "to": "gpu0"}, InputError, "the kernel reads into host memory only"),
        ({"to": "disk"}, InputError, "'disk' is no memory to read into"),
        ({"write": True}, InputError, "only in test files that this command makes"),
        ({"write": True, "make": "1 MiB", "modes": "bounce"}, InputError, "writing has no mode 'bounce'"),
        ({"make": "1 kB"}, InputError, "holds no I/O"),
        ({"stripe": "64 KiB"}, InputError, "takes two or more files"),
        ({"io": "1000 B"}, InputError, "no multiple of 512"),
        ({"io": "5 GB/s"}, FormatError, "not in B"),
        ({"threads": 0}, InputError, "are not possible"),
        ({"size": "1 KiB"}, InputError, "less than one I/O"),
        ({"engine": "aio"}, UnknownName, "unknown engine 'aio'"),
    ],
)
def test_settings_without_meaning_are_refused_before_anything_is_opened(settings, kind, cause):
    error = refused("/no/such/file", **settings)
    assert isinstance(error, kind)
    assert cause in str(error)


def test_buffers_that_do_not_fit_into_memory_are_refused_before_any_page_is_touched(tmp_path):
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 1 << 30)
    error = refused(path, modes="cached", io="1 GiB", size="1 GiB", threads=1000, depth=30)
    assert str(error).startswith("buffers of 32212.25 GB are needed")
    assert "--depth" in error.hint


def test_a_file_given_where_a_folder_is_wanted_is_left_alone(data):
    before = data.read_bytes()
    assert "is not a folder" in str(refused(data, make="1 MiB", write=True))
    assert data.read_bytes() == before
