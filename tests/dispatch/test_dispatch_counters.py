"""What connections did: differences, rates and Little's law, Prometheus' text, tables; and of a real run over nodes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.api.dispatch_watch import DispatchWatch
from lanewise.control.interfaces import interface_of
from lanewise.dispatch.counters import ADDED, ConnectionCounters, DispatchRates, by_nic, rates, since
from lanewise.report import dispatch

ONE = ConnectionCounters("a", 1, "eth0", posted=100, completed=90, bytes_out=5000, bytes_in=700, outstanding=10)
TWO = ConnectionCounters("b", 1, "eth1", posted=50, completed=50, bytes_out=2000, lost=3, doorbells=7)


@given(st.lists(st.integers(0, 10**12), min_size=len(ADDED), max_size=len(ADDED)), st.integers(0, 100))
def test_a_difference_added_to_what_was_is_what_is(grown: list[int], outstanding: int) -> None:
    values: dict[str, Any] = {name: getattr(ONE, name) + more for name, more in zip(ADDED, grown, strict=True)}
    now = replace(ONE, outstanding=outstanding, **values)
    (found,) = since([ONE], [now])
    assert [getattr(found, name) for name in ADDED] == grown
    assert found.outstanding == outstanding


def test_a_connection_made_anew_counts_from_0() -> None:
    again = replace(ONE, posted=5, completed=5, bytes_out=10, bytes_in=1)
    assert since([ONE], [again, TWO]) == (again, TWO)


def test_rates_are_those_of_the_time_between_and_the_lag_is_littles_law() -> None:
    now = replace(ONE, completed=290, bytes_out=9000)
    found = rates([ONE, TWO], [now, TWO], 2.0)
    assert (found.bandwidth, found.outstanding) == (2000.0, 10)
    assert found.lag == pytest.approx(10 / (200 / 2.0))  # 10 in flight at 100 queries/s
    assert rates([ONE], [ONE], 2.0).lag is None  # nothing comes back
    assert rates([TWO], [TWO], 2.0).lag == 0.0


def test_sums_by_nic_are_those_of_its_connections() -> None:
    sums = by_nic([ONE, replace(ONE, connection=2), TWO])
    assert list(sums) == ["eth0", "eth1"]
    assert (sums["eth0"].posted, sums["eth0"].outstanding, sums["eth1"].lost) == (200, 20, 3)


def test_the_line_of_progress_says_all_connections_together() -> None:
    now = DispatchRates((ONE, TWO), 2.0, 4_000_000_000, 200)
    assert dispatch.progress(now) == "150 posted, 140 completed, 2 GB/s, 10 outstanding, 100 ms behind"
    assert dispatch.progress(replace(now, completed=0)).endswith("no answers")


def test_every_counter_is_a_series_of_each_connection() -> None:
    odd = replace(TWO, node='b "quoted"\\')
    text = dispatch.prometheus(DispatchRates((ONE, odd), 1.0, 0, 0), 12.5)
    assert 'lanewise_dispatch_messages_posted_total{node="a",connection="1",nic="eth0"} 100.0\n' in text
    assert 'lanewise_dispatch_queries_lost_total{node="b \\"quoted\\"\\\\",connection="1",nic="eth1"} 3.0\n' in text
    assert text.endswith("lanewise_dispatch_timestamp_seconds 12.5\n")
    names = re.findall(r"# TYPE (\S+) (counter|gauge)", text)
    assert len({name for name, _ in names}) == len(names)
    assert all(name.startswith("lanewise_dispatch_") for name, _ in names)
    assert all((kind == "counter") is name.endswith("_total") for name, kind in names)
    for name in ADDED:
        changed = dispatch.prometheus(DispatchRates((_with(ONE, name, 12345),), 1.0, 0, 0), 0.0)
        assert changed.count(" 12345.0\n") == 1, name


def _with(one: ConnectionCounters, name: str, value: int) -> ConnectionCounters:
    values: dict[str, Any] = {name: value}
    return replace(one, **values)


def test_a_watch_looks_once_a_second_of_its_clock_and_writes_whole_files(tmp_path: Path) -> None:
    times = [0.0]
    seen: list[DispatchRates] = []
    file = tmp_path / "dispatch.prom"
    watch = DispatchWatch(file, seen.append, lambda: times[0])
    watch.tick()
    watch.look()
    assert seen == []  # no nodes, no counters
    now = [ONE]
    watch._connections = lambda: tuple(now)
    watch._before, watch._at = (ONE,), 0.0
    for at in (0.3, 0.9, 1.0, 1.1, 2.2):
        times[0] = at
        now[0] = replace(now[0], completed=now[0].completed + 10)
        watch.tick()
    assert [round(look.seconds, 6) for look in seen] == [1.0, 1.2]
    assert [look.completed for look in seen] == [30, 20]
    assert 'received_total{node="a",connection="1",nic="eth0"} 140.0' in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_loopback_is_an_interface_too() -> None:
    assert interface_of("127.0.0.1") == "lo"


def test_a_run_over_nodes_says_what_its_connections_did(tmp_path: Path) -> None:
    pytest.importorskip("lanewise._loadgen", reason="built without LoadGen")
    from dispatch.nodes import nodes, over

    import lanewise
    from lanewise.loadtest.result import run_data
    from lanewise.report.text.loadtest import render_run

    looks: list[DispatchRates] = []
    with nodes(tmp_path, "a", "b") as started:
        options = over(started, tmp_path, transport="tcp", qps=500.0, percentile=0.9, output=tmp_path / "run.json",
                       prometheus=tmp_path / "dispatch.prom")  # fmt: skip
        result = lanewise.loadtest_run(options, on_counters=looks.append)
    connections = result.statistics.connections
    assert [(one.node, one.connection, one.nic) for one in connections] == [
        ("a", 1, "lo"), ("a", 2, "lo"), ("b", 1, "lo"), ("b", 2, "lo"),
    ]  # fmt: skip
    assert sum(one.posted for one in connections) == sum(one.completed for one in connections) == result.run.queries
    assert sum(one.bytes_out for one in connections) >= 512 * result.run.queries
    assert looks[-1].outstanding == 0
    assert "lanewise_dispatch_sent_bytes_total" in (tmp_path / "dispatch.prom").read_text()
    data = run_data(result)
    assert data["nics"]["lo"]["bytes_out"] == sum(one.bytes_out for one in connections)
    text = render_run(data)
    assert "connections in this run" in text
    assert re.search(r"^  infer +\S+ [mu]s", text, re.M)  # below its node
    rows = lanewise.load_run(tmp_path / "run.json").rows
    means = {row.metric: row.value or math.nan for row in rows if row.metric.endswith("_mean")}
    parts = means["dispatch_mean"] + means["fabric_mean"] + means["node_mean"]
    assert parts == pytest.approx(means["total_mean"], rel=0.02)
    sent = [row for row in rows if row.metric == "connection_goodput"]
    assert [(row.settings["connection"], row.how["NIC"]) for row in sent] == [(n, "lo") for n in (1, 2, 3, 4)]


def test_counters_without_nodes_are_refused(tmp_path: Path) -> None:
    import lanewise
    from lanewise.errors import InputError
    from lanewise.options.loadtest import RunOptions

    options = RunOptions(engine="synthetic", qps=1.0, prometheus=tmp_path / "x.prom", results=tmp_path / "kept")
    with pytest.raises(InputError, match="--prometheus has no effect without nodes"):
        lanewise.loadtest_run(options)
