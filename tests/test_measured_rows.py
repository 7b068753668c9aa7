"""One word for one thing: probes and readers say what docs/reference/measured-rows.md lists."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from gpu.stand_in import Cuda

import lanewise
from lanewise.options.sampling import SamplingRule
from lanewise.results.observation import Observation
from lanewise.results.sample import Sample

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "measured-rows.md"
READ = sorted((ROOT / "tests" / "readers" / "data").iterdir())
ONCE = SamplingRule(1, 1)
linux = pytest.mark.skipif(sys.platform != "linux", reason="measures on Linux only")


def listed(head: str) -> dict[str, str]:
    """The first two columns of the table with that head, by each word in code of the first one."""
    found: dict[str, str] = {}
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n| {head} |")
    for line in below.partition("\n\n")[0].splitlines()[2:]:
        first, second = line.split("|")[1:3]
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), second)
    return found


def unlisted(rows: Iterable[Sample | Observation]) -> set[str]:
    """Words of rows that the page does not have, metrics with their unit."""
    metrics, settings, how, paths = (listed(head) for head in ("metric", "setting", "key of `how`", "path"))
    # The value of several flows may be of several kinds of path.
    others = re.compile("|".join(f"(?:, )?{re.escape(path)}" for path in sorted(paths, key=len, reverse=True)))
    missing: set[str] = set()
    for row in rows:
        missing |= {word for word in row.settings if word not in settings}
        missing |= {word for word in row.how if word not in how}
        missing |= {strange} if (strange := others.sub("", row.path)) else set()
        if f"`{row.display_unit}`" not in metrics.get(row.metric, ""):
            missing.add(f"{row.metric} in {row.display_unit}")
    return missing


@pytest.mark.parametrize("file", READ, ids=lambda file: file.name)
def test_every_reader_has_the_words_of_the_page(file):
    assert unlisted(lanewise.read_results(file).observations) == set()


@linux
def test_the_gpu_probe_has_the_words_of_the_page():
    from lanewise.options.measure_gpu import MeasureGpuOptions
    from lanewise.probes.gpu.probe import GpuProbe

    probe = GpuProbe(Cuda(), Path("/nowhere"))  # type: ignore[arg-type]
    asks = (
        MeasureGpuOptions(cases=("all",), rule=ONCE),
        MeasureGpuOptions(flows="host0->gpu0 1 MiB, host0->gpu0 2 MiB", rule=ONCE),
        MeasureGpuOptions(sizes=(2**20, 2**24), rule=ONCE),
    )
    assert unlisted(sample for ask in asks for sample in probe.run(ask)) == set()


@linux
def test_the_memory_probe_has_the_words_of_the_page():
    assert unlisted(lanewise.measure_host(threads=[1], bytes=2**21, rule=ONCE)) == set()


@linux
@pytest.mark.parametrize("asked", [{}, {"write": True}, {"stripe": "64 KiB"}], ids=["read", "write", "stripes"])
def test_the_storage_probe_has_the_words_of_the_page(asked, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        os.mkdir(folder)
    rows = lanewise.measure_storage(
        folders, runs=1, make="1 MiB", size="1 MiB", io="64 KiB", modes="cached", threads=2, **asked
    )
    assert unlisted(rows) == set()


@linux
def test_blocks_have_the_words_of_the_page(tmp_path):
    rows = lanewise.measure_kv(tmp_path, "4 x 64 KiB", "host", runs=1, threads=2, peak_bytes=1 << 20)
    assert unlisted(rows) == set()
    assert unlisted(lanewise.block_rows(lanewise.predict_blocks("h200-pair", "gpu0->host0", "4 x 64 KiB"))) == set()


@linux
@pytest.mark.parametrize("asked", [{}, {"latency": True}, {"both_ways": True}], ids=["bandwidth", "latency", "both"])
def test_the_network_probe_has_the_words_of_the_page(asked):
    rows = lanewise.measure_network(sizes=(4096,), connections=(2,), seconds=0.02, rule=ONCE, **asked)
    assert unlisted(rows) == set()


def test_peaks_of_load_tests_have_the_words_of_the_page_in_both_divisions():
    from loadtest.test_loadtest_results import ABOUT, peak, run

    from lanewise.loadtest.result import peak_samples

    for about in ({}, {"division": "Network", "devices": "a:7000/cpu, b:7000/cpu"}):
        rows = list(peak_samples(peak(run(900.0), setup={**ABOUT, **about})))
        metrics, paths = listed("metric of a load test"), listed("path")
        assert {row.path for row in rows} <= set(paths)
        assert {f"`{row.display_unit}`" in metrics[row.metric] for row in rows} == {True}
        assert {key for row in rows for key in row.settings} == {"bytes"}


def test_what_connections_did_has_the_words_of_the_page():
    from dataclasses import replace

    from loadtest.test_loadtest_results import ABOUT, peak, run, statistics

    from lanewise.dispatch.counters import ConnectionCounters
    from lanewise.loadtest.result import peak_samples

    names = ("dispatch", "fabric", "node", "queue", "copy", "infer", "answer", "total")
    stages = {name: {"mean": 1e-3} for name in names}
    tally = replace(statistics(), stages=stages, connections=(ConnectionCounters("a", 1, "eth0", bytes_out=10**9),))
    rows = list(peak_samples(peak(run(900.0), setup={**ABOUT, "division": "Network"}, tally=tally)))
    metrics = listed("metric of a load test")
    assert {f"`{row.display_unit}`" in metrics[row.metric] for row in rows} == {True}
    assert {key for row in rows for key in row.settings} <= set(listed("setting"))
    (sent,) = (row for row in rows if row.metric == "connection_goodput")
    assert sent.value == 10**9 / 8.0  # of a run of 8 s
    assert {"node", "NIC", "queries", "lost"} <= set(listed("key of `how`")) & set(sent.how)


def test_a_network_row_differs_from_the_closed_one_in_its_path_alone():
    from loadtest.test_loadtest_results import ABOUT, peak, run

    from lanewise.loadtest.result import peak_samples
    from lanewise.results.match import identity

    def rows(**about: object) -> list[Sample]:
        return list(peak_samples(peak(run(900.0), setup={**ABOUT, **about})))

    closed, network = rows(), rows(division="Network", devices="a:7000/cpu, b:7000/cpu")
    for one, other in zip(closed, network, strict=True):
        assert identity(one) != identity(other)
        assert identity(one, ignore=("path",)) == identity(other, ignore=("path",))
        assert (one.path, other.path) == ("service", "service, network")
    assert {row.how["devices"] for row in network} == {"a:7000/cpu, b:7000/cpu"}


def test_predicted_services_have_the_paths_of_measured_ones():
    from lanewise.probes.model import ModelProbe
    from lanewise.results.plan import Plan, Service

    system = lanewise.load_system("dgx-a100-network")
    for division, path in (("closed", "service"), ("network", "service, network")):
        service = Service("resnet50", "server", division, "accelerator")
        (row,) = ModelProbe().run(Plan(system, service, "qps", "QPS"))
        assert row.path == path
        assert path in listed("path")
