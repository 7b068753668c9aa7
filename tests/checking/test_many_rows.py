"""A check of many rows: work that grows with their number, not with its square."""

import statistics
import sys

import pytest

from lanewise import api
from lanewise.catalog import builtin
from lanewise.checking import checkup
from lanewise.checking.causes import nvlink_steps
from lanewise.checking.references import judged, paths, siblings, side_by_side, stated_limits
from lanewise.readers.tool_results import ToolValue, observation


def counted(calls, function):
    def call(*words):
        calls.append(words)
        return function(*words)

    return call


def copies(gpus):
    pairs = [(a, b) for a in range(gpus) for b in range(gpus) if a != b]
    return [
        observation("nvbandwidth", f"case {case}", ToolValue(flow, flow, path="peer"), 390.0 + case, {"p2p": "on"}, {})
        for case in range(8)
        for flow in (f"gpu{a}->gpu{b}" for a, b in pairs)
    ]


def test_flows_are_read_once_however_many_rows_are_compared(monkeypatch):
    calls: list[object] = []
    parse = siblings.parse_flows
    monkeypatch.setattr(siblings, "parse_flows", counted(calls, parse))
    siblings._parsed.cache_clear()
    rows = copies(6)
    checkup.check(rows, catalog=builtin())
    assert len(rows) == 240
    assert len(calls) <= 60  # one a pair and direction; 240 times 240 before


def test_names_of_limits_are_looked_for_once_a_row(monkeypatch):
    calls: list[object] = []
    names = stated_limits.names_limit
    monkeypatch.setattr(stated_limits, "names_limit", counted(calls, names))
    rows = copies(6)
    checkup.check(rows, catalog=builtin())
    assert len(calls) <= 20 * len(rows)  # those of the same path; all 240 before


def test_words_of_lines_that_are_uneven_are_looked_for_on_networks_alone(monkeypatch):
    class Pattern:
        def search(self, text):
            raise AssertionError(text)

    monkeypatch.setattr(side_by_side, "_UNEVEN", Pattern())
    rows = [
        observation("typed in", "copy", ToolValue(flow, flow, path="storage"), 3.0, {}, {"bytes": 1 << 20})
        for flow in ("nvme0->host0", "nvme1->host0", "host0->nvme0")
    ]
    assert len(checkup.check(rows, catalog=builtin()).results) == 3


def test_rows_that_differ_in_their_values_alone_are_compared_with_a_few(monkeypatch):
    calls: list[object] = []
    asks = paths._asks_no_more
    monkeypatch.setattr(paths, "_asks_no_more", counted(calls, asks))
    flow = ToolValue("dd", "nvme0->host0", path="storage")
    how, settings = {"mode": "direct"}, {"bytes": 2**20}
    rows = [observation("dd", "dd", flow, 1.0 + at % 7 / 100, how, settings) for at in range(400)]
    results = checkup.check(rows, catalog=builtin()).results
    assert len(results) == 400
    assert len(calls) <= 100 * len(rows)  # 200 a row and question before


def test_the_fastest_of_many_like_rows_is_what_another_is_compared_with():
    flow = ToolValue("dd", "nvme0->host0", path="storage")
    values = [*(1e9 + at for at in range(400)), 3e9, 1e8]
    rows = [observation("dd", "dd", flow, value / 1e9, {"mode": "direct"}, {"bytes": 2**20}) for value in values]
    results = checkup.check(rows, catalog=builtin()).results
    slow = [result for result in results if result.verdict == "slow"]
    assert len(slow) == 401
    assert all(result.expected.value == 3e9 for result in slow)


def test_counts_of_one_kind_are_compared_with_the_fastest_of_many(monkeypatch):
    calls: list[object] = []
    monkeypatch.setattr(side_by_side, "less_by_design", counted(calls, side_by_side.less_by_design))
    rows = [
        observation("typed in", f"run {case}", ToolValue("gpu0->gpu0", "gpu0->gpu0", path="GPU memory", metric="iops"),
                    100.0 + case % 13, {}, {})
        for case in range(300)
    ]  # fmt: skip
    checkup.check(rows, catalog=builtin())
    assert 0 < len(calls) <= side_by_side._MOST_LIKE * len(rows)  # 300 times 300 before


GPUS = 8
VALUES = (50.0, 49.0, 20.0, 51.0, 10.0)


def differently_named(count, path, metric="goodput"):
    """Rows over the pairs of eight GPUs, or between them and the host, each under a name of its own."""
    rows = []
    for at in range(count):
        gpu, other = at % GPUS, (at % GPUS + 1 + at // GPUS % (GPUS - 1)) % GPUS
        flow = f"gpu{gpu}->gpu{other}" if path == "peer" else f"host0->gpu{gpu}"
        how = {"p2p": "on"} if path == "peer" else {}
        value = ToolValue(flow, flow, path=path, metric=metric)
        rows.append(observation("typed in", f"run {at}", value, VALUES[at % 5] + at % 7 / 10, how, {}))
    return rows


def functions_called(rows, posted=None):
    """How many Python functions a check of rows calls: the same on every machine."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        checkup.check(rows, catalog=builtin(), posted=posted)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    ("path", "metric"), [("peer", "goodput"), ("peer", "latency"), ("host to device", "goodput")]
)
def test_rows_of_many_names_cost_as_much_each_as_few(path, metric, monkeypatch):
    monkeypatch.setattr(siblings, "_MOST_OF_KIND", 40, raising=False)
    monkeypatch.setattr(judged, "_MOST_ON_A_PATH", 40)
    functions_called(differently_named(20, path, metric))  # fills what is looked up once
    few, many = (functions_called(differently_named(count, path, metric)) for count in (200, 800))
    assert many < 7 * few  # of four times the rows: 12 and more times before


def test_links_lost_by_many_gpus_of_a_board_are_looked_for_at_the_slowest_pair(monkeypatch):
    calls: list[object] = []
    monkeypatch.setattr(nvlink_steps, "_alike", counted(calls, nvlink_steps._alike))
    medians = counted(calls, statistics.median)
    monkeypatch.setattr(nvlink_steps.statistics, "median", medians)
    rates = {(f"gpu{a}", f"gpu{b}"): 390e9 for a in range(40) for b in range(40) if a != b}
    assert list(nvlink_steps._lost(rates, 18)) == []
    assert len(calls) <= 8  # two of each of 40 GPUs before
    down = {pair: rate * 17 / 18 if "gpu7" in pair else rate for pair, rate in rates.items()}
    assert [cause.key for cause in nvlink_steps._lost(down, 18)] == [("nvlink", "gpu7")]


def test_the_median_of_many_rows_of_a_kind_is_that_of_some_of_them():
    rows = differently_named(1200, "host to device")
    (some,) = siblings.Siblings(rows).of_kind(rows[4])
    assert some.nominal == pytest.approx(statistics.median(row.value for row in rows), rel=0.01)
    assert some.limit == "207 others of its kind"  # 240 of 1200, but those of its own GPU
    (all_of_few,) = siblings.Siblings(rows[:80]).of_kind(rows[4])
    assert all_of_few.limit == "the other 70 of its kind"


def test_rows_of_a_described_machine_are_sorted_once(monkeypatch):
    calls: list[object] = []
    monkeypatch.setattr(judged, "kinds_side_by_side", counted(calls, judged.kinds_side_by_side))
    checkup.check(copies(4), target=api.load_system("dgx-a100"), catalog=builtin())
    assert len(calls) == 1  # again with the GPUs' names before
