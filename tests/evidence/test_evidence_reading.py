"""Evidence files: what is read, and how each mistake is reported."""

from __future__ import annotations

import pytest

from lanewise.blocks.pieces import Pieces
from lanewise.catalog import builtin
from lanewise.errors import LanewiseError, UnknownName
from lanewise.evidence.model import EvidenceMachine
from lanewise.evidence.reading import read_machine, ready_machine
from lanewise.perf.flow import parse_flows
from lanewise.results.traffic import BlockCopies, WeightLoad
from lanewise.weights.prediction import WeightSource

ROW = '{path: one socket, flows: "gpu0->gpu1", value: 25.8 GB/s}'
MACHINE = f"""lanewise-evidence: 1
machine: pair
source: somebody
system:
  system: pair
  devices:
    cpu0: {{cpu: rome}}
    "gpu[0-1]": {{gpu: rtx-4090}}
  links:
    - {{from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}}
rows:
  - {ROW}
"""


def machine(row: str = ROW, old: str = "", new: str = "") -> EvidenceMachine:
    return read_machine(MACHINE.replace(ROW, row).replace(old, new, 1), "pair.yaml")


def test_a_row_carries_flows_value_and_how_the_value_counts_them() -> None:
    text = '{path: out, flows: "gpu[0-1]->host0", value: 20 GB/s, of: each, low: 19 GB/s, high: 21 GB/s, quality: weak}'
    row = machine(text).rows[0]
    assert [flow.name for flow in row.flows] == ["gpu0->host0", "gpu1->host0"]
    assert (row.value, row.of, row.low, row.high, row.quality) == (20e9, "each", 19e9, 21e9, "weak")


def test_a_staged_row_and_a_latency() -> None:
    row = machine('{path: staged, flows: "gpu0->gpu1", p2p: false, latency: true, value: 18.7 us}').rows[0]
    assert (row.flows[0].p2p, row.latency, row.unit) == (False, True, "s")
    assert row.value == pytest.approx(18.7e-6)


def test_a_skipped_row_needs_no_flows() -> None:
    row = machine("{path: small reads, value: 0.1 GiB/s, skip: no rate of a path}").rows[0]
    assert (row.flows, row.skip) == ((), "no rate of a path")


def test_blocks_are_a_row_for_each_number_and_size() -> None:
    rows = machine('{blocks: "gpu0->gpu1 read", software: kernel, posters: 2, rate: {1024 x 1 MiB: 20 GB/s}, '
                   "time: {8 x 4 KiB: 2 s}, learned: true}").rows  # fmt: skip
    assert [row.traffic for row in rows] == [
        BlockCopies(parse_flows("gpu0->gpu1 read"), Pieces(1024, 2.0**20), "kernel", 2),
        BlockCopies(parse_flows("gpu0->gpu1 read"), Pieces(8, 4096), "kernel", 2),
    ]
    assert [(row.value, row.latency, row.learned) for row in rows] == [(20e9, False, True), (2.0, True, True)]


def test_a_load_names_storage_by_rate_or_name() -> None:
    load = '{load: 15 GB, from: 1 GB/s, latency: 0.4 ms, to: "gpu[0-1]", loader: safetensors, warm: true, time: 9 s}'
    row = machine(load).rows[0]
    source = WeightSource(rate=1e9, latency=0.4e-3)
    assert row.traffic == WeightLoad(15e9, source, ("gpu0", "gpu1"), "safetensors", warm=True)
    assert (row.value, row.unit, row.learned) == (9.0, "s", False)
    named = machine(load.replace("1 GB/s", "ssd0").replace("latency: 0.4 ms, ", "")).rows[0].traffic
    assert isinstance(named, WeightLoad)
    assert named.source == WeightSource("ssd0")


def test_a_machine_revises_parts() -> None:
    text = MACHINE.replace("system:\n", "parts: [{part: rtx-4090, extends: rtx-4090, figures: "
                           "{peer.access: {value: 'yes', source: patched driver}}}]\nsystem:\n", 1)  # fmt: skip
    system = read_machine(text, "pair.yaml").system(builtin())
    assert system.catalog.get("rtx-4090").text("peer.access") == "yes"
    assert builtin().get("rtx-4090").text("peer.access") == "no"


@pytest.mark.parametrize(
    ("old", "new", "line", "cause"),
    [
        ("lanewise-evidence: 1\n", "", 1, "no evidence file of format 1"),
        ("source: somebody\n", "", 1, "has no source"),
        (f"rows:\n  - {ROW}\n", "rows: []\n", 11, "no rows"),
        ('flows: "gpu0->gpu1", ', "", 12, "no flows"),
        ("25.8 GB/s", "25.8", 12, "has no unit"),
        ("25.8 GB/s", "18 us", 12, "'value'"),
        ("gpu0->gpu1", "gpu0", 12, "is not a flow"),
        ("value: 25.8 GB/s", "value: 25.8 GB/s, low: 3 GB/s, high: 2 GB/s", 12, "low is above high"),
        ("value: 25.8 GB/s", "value: 25.8 GB/s, of: most", 12, "unknown of 'most'"),
        ("path: one socket", "pth: one socket", 12, "unknown key 'pth'"),
        (ROW, "{blocks: gpu0->gpu1}", 12, "neither 'rate' nor 'time'"),
        (ROW, "{blocks: gpu0->gpu1, rate: {1 MiB: 2 GB/s}}", 12, "no number of blocks"),
        (ROW, "{load: 15 GB, to: gpu0, time: 9 s}", 12, "has no from"),
    ],
)
def test_a_mistake_is_reported_with_its_line(old: str, new: str, line: int, cause: str) -> None:
    with pytest.raises(LanewiseError, match=cause) as error:
        machine(old=old, new=new)
    assert error.value.location is not None
    assert (error.value.location.file, error.value.location.line) == ("pair.yaml", line)


def test_a_mistake_of_the_system_is_reported_with_the_line_of_the_whole_file() -> None:
    with pytest.raises(LanewiseError, match="rtx-409") as error:
        machine(old="gpu: rtx-4090", new="gpu: rtx-4099").system(builtin())
    assert error.value.location is not None
    assert error.value.location.line == 8


def test_machines_written_with_commas_are_told_apart() -> None:
    with pytest.raises(UnknownName) as error:
        ready_machine("rtx4090-rome, a100-a147")
    assert error.value.hint == "separate machines by spaces: rtx4090-rome a100-a147"
