"""`lanewise measure host` on this machine: cells, what was seen, errors, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli_binary import BINARY, has_lines, interrupted
from forked_cli import forked

import lanewise
from lanewise.errors import CannotMeasure, UnknownName
from lanewise.options.measure_host import WORK, MeasureHostOptions
from lanewise.options.sampling import SamplingRule
from lanewise.probes.host import probe as host
from lanewise.probes.host.layout import HostLayout, read_layout

QUICK = SamplingRule(least=2, most=2)
MIB = 2**20


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return forked(["measure", "host", *arguments], folder, os.environ)


def test_every_kind_of_work_is_measured_verified_and_says_where():
    samples = list(lanewise.measure_host(threads=[1], nodes=read_layout().nodes[:1], bytes=8 * MIB, rule=QUICK))
    cells = {(s.scenario, s.metric, s.display_unit) for s in samples}
    assert cells == {
        ("memory copy", "goodput", "GB/s"),
        ("memory read", "goodput", "GB/s"),
        ("memory write", "goodput", "GB/s"),
        ("memory latency", "chase_latency", "ns"),
    }
    node = read_layout().nodes[0]
    for sample in samples:
        assert sample.value is not None
        assert sample.value > 0
        assert sample.flow == f"host0:{node}->host0:{node}"
        assert sample.how["data"] == "verified"
        assert sample.how["threads on"] == f"NUMA node {node}"
        assert sample.how["NUMA node"]
        assert sample.settings == {"threads": 1, "bytes": 8 * MIB}
        assert sample.path == "host memory"
    assert all(s.how["stores"] in ("memcpy", "non-temporal") for s in samples if s.scenario == "memory copy")


def test_threads_go_in_powers_of_two_up_to_all_cores():
    pair = host._NodePair(MeasureHostOptions(), HostLayout({0: tuple(range(12))}, (0,)), 256 * MIB, 0, 0)
    assert pair.counts("copy") == [1, 2, 4, 8, 12]


def test_readers_work_at_the_target_and_copiers_at_the_source_and_memory_needs_a_node():
    here = HostLayout({0: (0, 1), 1: (2, 3), 2: ()}, (0, 1, 2))
    there = host._NodePair(MeasureHostOptions(), here, 64 * MIB, 0, 1)
    assert [there.cores(kind) for kind in WORK] == [(0, 1), (2, 3), (0, 1), (2, 3)]
    from_memory_alone = host._NodePair(MeasureHostOptions(), here, 64 * MIB, 2, 1)
    assert from_memory_alone.work == ["copy", "read", "latency"]
    assert from_memory_alone.cores("copy") == (2, 3)
    to_memory_alone = host._NodePair(MeasureHostOptions(), here, 64 * MIB, 0, 2)
    assert to_memory_alone.work == ["copy", "write"]


def test_buffers_are_three_times_the_cache_unless_memory_is_short():
    assert host._default_bytes(HostLayout({0: (0,)}, (0,), 32 * MIB, 2**36)) == 128 * MIB
    assert host._default_bytes(HostLayout({0: (0,)}, (0,), 260 * MIB, 2**36)) == 1024 * MIB
    assert host._default_bytes(HostLayout({0: (0,)}, (0,), 260 * MIB, 2**30)) == 256 * MIB
    assert host._default_bytes(HostLayout({0: (0,)}, (0,), None, None)) == 64 * MIB


def test_buffers_that_fit_the_cache_are_said_to():
    here = HostLayout(read_layout().cores, read_layout().memory, 100 * MIB, None)
    options = MeasureHostOptions(("read", "latency"), threads=(1,), nodes=here.nodes[:1], bytes=2 * MIB, rule=QUICK)
    notes = {sample.note for sample in host.HostProbe(here).run(options)}
    assert notes == {"the buffer fits the last-level cache of 100 MiB"}


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (MeasureHostOptions(nodes=(7,)), "no NUMA node 7"),
        (MeasureHostOptions(threads=(3,)), "3 threads do not fit the 2 cores"),
        (MeasureHostOptions(threads=(0,)), "0 threads"),
        (MeasureHostOptions(bytes=1000), "too few"),
        (MeasureHostOptions(bytes=2**30), "do not fit the 1024 MiB"),
    ],
)
def test_what_the_machine_does_not_have_is_refused_before_anything_is_allocated(options, cause):
    here = HostLayout({0: (0, 1)}, (0,), None, 2**30)
    with pytest.raises(CannotMeasure, match=cause) as caught:
        next(host.HostProbe(here).run(options))
    assert caught.value.hint


def test_a_node_without_memory_of_its_own_is_an_error_of_the_kernel_in_words():
    here = HostLayout({0: (0,), 900: (0,)}, (0, 900), None, None)
    with pytest.raises(CannotMeasure, match="cannot be bound to NUMA node 900") as caught:
        next(host.HostProbe(here).run(MeasureHostOptions(nodes=(900,), bytes=MIB)))
    assert caught.value.hint


def test_nodes_that_cannot_do_what_is_asked_are_refused():
    here = HostLayout({0: (0,), 1: ()}, (0, 1), None, None)
    with pytest.raises(CannotMeasure, match="have not both"):
        next(host.HostProbe(here).run(MeasureHostOptions(("read",), nodes=(1,), bytes=MIB)))


def test_an_unknown_kind_is_named_with_the_known_ones():
    with pytest.raises(UnknownName, match="kind of memory work 'copies'") as caught:
        lanewise.measure_host(["copies"])
    assert "copy" in caught.value.hint


def test_wrong_data_stops_the_measurement(monkeypatch):
    monkeypatch.setattr(host.native, "spoil", lambda memory: None)

    class Liar:
        def __init__(self, *arguments):
            self.crew = real(*arguments)

        def __getattr__(self, name):
            return getattr(self.crew, name)

        def holds(self, *arguments):
            return False

    real = host.native.HostCrew
    monkeypatch.setattr(host.native, "HostCrew", Liar)
    with pytest.raises(CannotMeasure, match="does not hold what was written"):
        list(lanewise.measure_host(["copy"], threads=[1], bytes=2 * MIB, rule=QUICK))


def test_the_command_writes_run_and_samples_that_read_back_the_same(tmp_path):
    done = run("--bytes", "4MiB", "--threads", "1", "--what", "copy,latency", "-o", "r.json", "--samples", "s.jsonl",
               "--json", folder=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["rows"]
    assert [row["scenario"] for row in shown][:2] == ["memory copy", "memory latency"]
    saved = lanewise.load_run(tmp_path / "r.json")
    assert saved.rows == lanewise.read_results(tmp_path / "s.jsonl").observations
    assert "last-level cache" in saved.machine_facts


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--what", "copies"], "error: unknown kind of memory work 'copies'"),
        (["--threads", "x"], "error: --threads: 'x' is not a whole number"),
        (["--threads", "100000"], "error: 100000 threads do not fit"),
        (["--bytes", "much"], "error: --bytes: 'much' is not a size"),
        (["--nodes", "99"], "error: this machine has no NUMA node 99"),
    ],
)
def test_errors_are_one_line_with_a_hint_and_leave_no_file(arguments, error, tmp_path):
    done = run(*arguments, "-o", "run.json", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(error)
    assert "\nhint:" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    lines = tmp_path / "s.jsonl"
    command = [BINARY, "measure", "host", "--bytes", "16MiB", "-o", "run.json", "--samples", lines]
    done = interrupted(command, has_lines(lines, 3), tmp_path)
    assert done.returncode == 130
    assert "not finished" in done.stderr
    held = sum(len(row.samples) for row in lanewise.load_run(tmp_path / "run.json").rows)
    assert held > 2
    # A Ctrl-C just then may leave the last sample in one of the two.
    assert abs(held - lines.read_text().count("\n")) <= 1
