"""Network as a share of Closed: closed forms over servers of known law, what a run file keeps, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from loadtest.known_runner import KnownRunner

from lanewise.api.divisions import save_divisions
from lanewise.api.peak_prediction import PREDICTION
from lanewise.catalog import read_parts
from lanewise.errors import InputError
from lanewise.loadtest import divisions
from lanewise.loadtest.divisions import DivisionsResult, check_division, divisions_data, divisions_samples
from lanewise.loadtest.peak import PeakResult, find
from lanewise.loadtest.prediction import PART, SERVICE, DeviceModel, full_load_cost, part_file, predict_peak
from lanewise.loadtest.result import peak_samples
from lanewise.options.loadtest import PeakOptions
from lanewise.report.text.compare import render_comparison
from lanewise.report.text.loadtest import render_divisions
from lanewise.results.compare import compare_runs
from lanewise.results.match import identity
from lanewise.results.run import Run
from lanewise.results.sample import summarise
from lanewise.serving.queues import md1_peak

BOUND, SERVICE_S, COST = 0.015, 0.001, 0.0002
ABOUT: dict[str, object] = {"engine": "synthetic", "devices": "cpu", "model": "none", "sample bytes": 1000}
NETWORK: dict[str, object] = {"division": "Network", "transport": "shm (one host)", "connections": "4 a node"}


def peak(service: float, stream: int = 0, **setup: object) -> PeakResult:
    """The peak that a search finds of a server with that constant service time."""
    result = find(KnownRunner(times=(service,), stream=stream), PeakOptions(seconds=140.0, bound=BOUND))
    return replace(result, setup={**ABOUT, **setup})


@pytest.fixture(scope="module")
def result() -> DivisionsResult:
    network = peak(SERVICE_S + COST, 1, **NETWORK, devices="node/cpu")
    return DivisionsResult(peak(SERVICE_S), network, predicted=0.83)


def test_share_and_software_cost_of_two_servers_are_those_of_the_closed_form(result: DivisionsResult) -> None:
    true = md1_peak(SERVICE_S + COST, BOUND) / md1_peak(SERVICE_S, BOUND)
    share = result.share
    assert share.share == pytest.approx(true, rel=0.04)
    assert share.interval
    assert share.interval[0] <= true <= share.interval[1]
    assert share.software == pytest.approx(COST, rel=0.2)
    assert share.ingress == result.network.qps * 1000


def test_equal_divisions_have_a_share_of_one_and_no_cost() -> None:
    one = peak(SERVICE_S)
    share = DivisionsResult(one, replace(one, setup={**ABOUT, **NETWORK})).share
    assert (share.share, share.software) == (1.0, 0.0)
    assert share.interval == (one.interval[0] / one.interval[1], one.interval[1] / one.interval[0])


def test_the_part_file_holds_the_cost_with_which_the_network_peak_is_predicted(result: DivisionsResult) -> None:
    text = part_file({1: SERVICE_S}, "this test", result.share.software, "over shm: two servers")
    part = read_parts(text, "parts.yaml").get(PART)
    figure = part.figure(f"software.{SERVICE}")
    assert figure.value == pytest.approx(result.share.software, rel=1e-5)
    assert "over shm" in f"{figure}"
    again = predict_peak({1: SERVICE_S + float(figure.value or 0.0)}, DeviceModel(BOUND))
    assert again.rate == pytest.approx(result.network.qps, rel=0.04)


def test_the_cost_at_full_load_is_what_each_device_takes_longer() -> None:
    model = DeviceModel(BOUND, servers=2)
    assert full_load_cost({1: 0.001, 8: 0.004}, model, 2 / (0.0005 + 0.0001)) == pytest.approx(0.0001)
    assert full_load_cost({8: 0.004}, model, 5000.0) == 0.0  # faster than alone: nothing to see
    with pytest.raises(InputError, match="at full load"):
        full_load_cost({1: 0.001}, model, 0.0)


def test_the_rows_of_both_peaks_differ_in_their_path_alone_and_the_network_one_says_the_share(
    result: DivisionsResult,
) -> None:
    closed, network = (row for row in divisions_samples(result) if row.metric == "qps")
    ignored = ("path", "method")
    assert (closed.path, network.path) == ("service", "service, network")
    assert identity(closed, ignored) == identity(network, ignored)
    assert network.how["share of Closed"] == f"{100 * (result.share.share or 0):.2f} %"
    assert " to " in network.how["share interval"]
    assert network.how["predicted share"] == "83.00 %"


def test_compare_gives_network_as_a_share_of_closed_from_two_files(result: DivisionsResult) -> None:
    closed, network = (Run((), "", "", rows=summarise(peak_samples(each))) for each in (result.closed, result.network))
    for comparison in (compare_runs(closed, network), compare_runs(network, closed)):
        assert comparison.share is not None
        assert comparison.share.share == pytest.approx(result.share.share)
        assert comparison.share.interval == pytest.approx(result.share.interval, rel=1e-4)
        text = render_comparison(comparison)
        assert f"Network is {100 * (result.share.share or 0):.1f} % of Closed (" in text
        assert "Closed / Network" in text or "Network / Closed" in text
        assert ";" not in text
    assert compare_runs(closed, closed).share is None
    refused = tuple(replace(run, interference=0.5) for run in result.network.runs)
    disturbed = Run((), "", "", rows=summarise(peak_samples(replace(result.network, runs=refused))))
    assert "; other work disturbed the Network search" in render_comparison(compare_runs(closed, disturbed))


@pytest.mark.parametrize(
    ("setup", "says"),
    [({"devices": "node/cpu, node/cpu"}, "devices differ: Closed host0->cpu, Network host0->cpu, host0->cpu"),
     ({"sample bytes": 7}, "bytes of a sample differ: Closed 1000, Network 7")],
)  # fmt: skip
def test_peaks_of_other_devices_or_samples_have_no_share_and_the_error_says_what_differs(
    setup: dict[str, object], says: str, result: DivisionsResult
) -> None:
    other = replace(result.network, setup={**result.network.setup, **setup})
    closed, network = (Run((), "", "", rows=summarise(peak_samples(each))) for each in (result.closed, other))
    with pytest.raises(InputError, match=f"Network has no share of Closed: {says}"):
        compare_runs(closed, network)


def test_text_and_data_say_both_peaks_the_share_and_how_sure_it_is(result: DivisionsResult) -> None:
    data = json.loads(json.dumps(divisions_data(result), allow_nan=False))
    assert data["share"] == data["network"]["qps"] / data["closed"]["qps"]
    text = render_divisions(data)
    assert f"share      {100 * data['share']:.1f} % of Closed" in text
    assert "at least 80 %" in text
    off = 100 * (0.83 / data["share"] - 1)
    assert f"predicted  83.0 % of Closed, {abs(off):.1f} % too {'high' if off > 0 else 'low'}" in text
    assert "above 100 %" not in text
    assert text.index("Closed division") < text.index("Network division")


def test_a_share_above_1_says_why_it_can_be_and_how_far_a_prediction_was_below_it(result: DivisionsResult) -> None:
    data = {**divisions_data(result), "share": 1.046, "predicted": 0.731}
    text = render_divisions(data)
    assert "share      104.6 % of Closed; above 100 %, as each peak is known to its interval only" in text
    assert "predicted  73.1 % of Closed, 30.1 % too low" in text
    assert "predicted  104.6 % of Closed\n" in render_divisions({**data, "predicted": 1.0464})


@pytest.mark.parametrize("cost", [0.0, COST])
def test_the_part_file_of_both_divisions_has_a_software_cost_only_if_one_was_seen(
    cost: float, result: DivisionsResult, tmp_path: Path
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / PREDICTION).write_text(json.dumps({"engine": {"1": SERVICE_S}}))
    network = peak(SERVICE_S + cost, 1, **NETWORK) if cost else replace(result.closed, setup={**ABOUT, **NETWORK})
    both = DivisionsResult(result.closed, network, folder=tmp_path)
    save_divisions(both, PeakOptions())
    text = (tmp_path / "service-times.yaml").read_text()
    assert "service_time.measured.1: 1000 us" in text
    assert ("software.measured" in text) == bool(cost)


def test_without_a_valid_rate_there_is_no_share(result: DivisionsResult) -> None:
    none = replace(result.network, qps=0.0, best=None, interval=(0.0, 0.0), reason="too slow")
    share = replace(result, network=none).share
    assert (share.share, share.software) == (None, None)
    text = render_divisions(divisions_data(replace(result, network=none)))
    assert "Network    no rate was VALID: too slow" in text
    assert "share " not in text.split("Closed division")[0].replace("no share", "")


def test_a_search_that_other_work_disturbed_is_said_next_to_the_share(result: DivisionsResult, tmp_path: Path) -> None:
    refused = tuple(replace(run, interference=0.5) for run in result.network.runs)
    both = replace(result, network=replace(result.network, runs=refused), folder=tmp_path)
    note = "other work disturbed the Network search: let nothing else run and measure again"
    assert both.share.note == note
    assert f"note       {note}" in render_divisions(divisions_data(both))
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / PREDICTION).write_text(json.dumps({"engine": {"1": SERVICE_S}}))
    save_divisions(both, PeakOptions())
    assert note in (tmp_path / "service-times.yaml").read_text()


def test_another_model_or_engine_at_the_nodes_is_said(result: DivisionsResult) -> None:
    other = replace(result.network, setup={**result.network.setup, "model": "resnet50"})
    note = replace(result, network=other).share.note
    assert note == "the nodes have another model (resnet50) than this machine (none): no share of the same"
    assert result.share.note == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (PeakOptions(division="closed", nodes=("a:7000",)), "--nodes has no effect with --division closed"),
        (PeakOptions(division="network"), "--division network needs nodes"),
        (PeakOptions(connections=2), "--connections has no effect without nodes"),
        (PeakOptions(division="closed", depth=8), "--depth has no effect without nodes"),
        (PeakOptions(transport="tcp"), "--transport has no effect without nodes"),
        (PeakOptions(secret_file=Path("s")), "--secret-file has no effect without nodes"),
        (PeakOptions(division="both"), "both divisions have no single peak"),
    ],
)
def test_a_division_that_cannot_be_is_refused(options: PeakOptions, says: str) -> None:
    with pytest.raises(InputError, match=says):
        check_division(options)


def test_the_frontend_has_no_options_of_the_nodes() -> None:
    asked = PeakOptions(division="both", engine="synthetic", batch=32, library=7, seconds=9.0, nodes=("a:1",))
    network = divisions.network_options(asked, Path("n"))
    assert (network.batch, network.engine, network.library, network.seconds) == (8, "", 7, 9.0)
    closed = divisions.closed_options(replace(asked, connections=2, depth=16, transport="tcp"), Path("c"))
    check_division(closed)
    assert (closed.batch, closed.nodes, closed.seconds) == (32, (), 9.0)
