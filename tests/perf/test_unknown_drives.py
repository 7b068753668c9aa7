"""A path whose rate hangs on a drive or card that nobody named: the answer is its interval, and what to state."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.catalog import builtin
from lanewise.perf.flow import Flow
from lanewise.perf.matrix import bandwidth_matrix
from lanewise.perf.predict import Prediction
from lanewise.perf.transfers import finish_times
from lanewise.report.json import flow_rates
from lanewise.report.text.predict import render_flow_rates, render_pairs, render_transfers
from lanewise.topology.model import System
from lanewise.topology.read import read_system

SERVER = """
lanewise: 1
system: server
devices: {cpu0: {cpu: genoa}, gpu0: {gpu: %s}, "ssd[0-3]": {ssd: %s}, nic0: {nic: null}}
links:
  - {from: cpu0, to: gpu0, pcie: "%s"}
  - {from: cpu0, to: "ssd[0-3]", pcie: gen4 x4}
  - {from: cpu0, to: nic0, pcie: gen4 x16}
volumes: {vol0: {raid: 0, drives: "ssd[0-3]"}}
"""


def server(ssd: str = "null", gpu: str = "l40s", link: str = "gen4 x16") -> System:
    return read_system(SERVER % (gpu, ssd, link), "server.yaml")


def predicted(flows: str, system: System | None = None) -> Prediction:
    return lanewise.predict(system or server(), flows)


@pytest.mark.parametrize(
    "flows", ["ssd0->gpu0", "gpu0->ssd0", "host0->ssd0", "vol0->gpu0", "gpu0->vol0", "nic0->host0"]
)
def test_a_drive_or_card_without_a_rate_gives_no_rate_but_an_interval(flows: str) -> None:
    prediction = predicted(flows)
    (rate,) = prediction.rates
    assert "unknown" in rate.why_unknown
    assert rate.low < 0.5 * rate.high
    answer = flow_rates(prediction)
    (flow,) = answer["flows"]
    assert (flow["goodput"], flow["raw"], answer["total"]) == (None, None, None)
    assert (flow["low"], flow["high"]) == (rate.low, rate.high)
    text = render_flow_rates(prediction)
    assert "unknown  " in text
    assert rate.why_unknown.split(":")[0] in " ".join(text.split())
    assert f"{rate.rate / 1e9:.4g} " not in text


@pytest.mark.parametrize("drive", [name for name in builtin().names() if builtin().get(name).kind == "ssd"])
def test_the_interval_holds_what_every_drive_of_such_a_slot_reads(drive: str) -> None:
    part = builtin().get(drive)
    if (part.number("pcie.gen"), part.number("pcie.lanes")) != (4, 4) or not part.number("read.rate"):
        return
    rate = predicted("ssd0->host0", server(drive)).rates[0]
    unknown = predicted("ssd0->host0").rates[0]
    assert not rate.why_unknown
    assert unknown.low <= rate.rate <= unknown.high


def test_what_the_drives_cannot_hold_down_is_known() -> None:
    narrow = server(link="gen3 x1")
    assert not predicted("vol0->gpu0", narrow).why_unknown
    both = predicted("ssd0->gpu0, host0->gpu0")
    assert [bool(rate.why_unknown) for rate in both.rates] == [True, False]
    assert both.why_unknown


def test_drives_that_several_flows_share_are_unknown_to_all() -> None:
    assert all(rate.why_unknown for rate in predicted("ssd0->gpu0, vol0->gpu0").rates)


def test_matrices_and_transfers_say_so_too() -> None:
    matrix = bandwidth_matrix(server(), ["ssd0", "gpu0"])
    assert matrix.cells[0][1] is None
    assert "read rate of ssd0 unknown" in render_pairs(server(), matrix)
    finished = finish_times(server(), [Flow("ssd0", "gpu0", size=1e9)])
    assert finished[0].why_unknown
    assert "read rate of ssd0 unknown" in render_transfers(server(), finished)
