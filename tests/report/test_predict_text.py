"""`lanewise predict` as people read it: a sweep in one table, flows with their limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

import lanewise
from lanewise.cli import verbs
from lanewise.errors import FormatError
from lanewise.options.option import parameter_values
from lanewise.report import json, words
from lanewise.report.screen import Screen
from lanewise.report.text import predict


@pytest.fixture(autouse=True)
def errors_of_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors of each basis as they once were: texts do not change with every measured machine."""
    errors = {"calibrated": (2.0, 24, 155), "fitted": (1.0, 2, 48)}
    keys = ("median_pct", "p90_pct", "rows")
    named = {basis: dict(zip(keys, figures, strict=True)) for basis, figures in errors.items()}
    monkeypatch.setattr(words, "_errors_by_basis", lambda: named)


def swept(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a sweep prints."""
    assert verbs.run(["predict", "composable-server-gen4", *words]) == 0
    return capsys.readouterr().out


def test_a_sweep_is_one_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert swept(capsys, "--service", "resnet50", "--sweep", "path=1..4") == snapshot("""\
composable-server-gen4: resnet50
          qps  goodput
path      QPS     GB/s  limit                                    basis
   1  175,383    26.40  GPU service rate (l40s, resnet50)        calibrated
   2  175,383    26.40  GPU service rate (l40s, resnet50)        calibrated
   3  156,948    23.63  read window of hop1 (256 reads x 128 B)  fitted
   4  136,310    20.52  read window of hop1 (256 reads x 128 B)  fitted
calibrated: median error 2.0 %, nine in ten within 24 % (155 measured rates);
  fitted: median error 1.0 %, nine in ten within 2 % (48 measured rates)
""")
    assert swept(capsys, "--flows", "host0->gpu[0-3], gpu0->host0", "--sweep", "path=1,4") == snapshot("""\
composable-server-gen4
      slowest  all together
path     GB/s          GB/s  limit                                    basis
   1    6.324         50.79  reads through root port rp0 of cpu0      calibrated
   4    5.130         46.20  read window of hop1 (256 reads x 128 B)  fitted
calibrated: median error 2.0 %, nine in ten within 24 % (155 measured rates);
  fitted: median error 1.0 %, nine in ten within 2 % (48 measured rates)
""")


def test_verdicts_of_a_sweep_are_notes_of_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    text = swept(capsys, "--service", "resnet50", "--qps", "1e5", "--seconds", "0.1", "--sweep", "path=1,4")
    assert "latency" in text
    assert text.count("VALID, p99 ") == 2


def test_a_latency_that_nobody_knows_is_no_zero(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # a narrow screen has no room for latencies
    server = tmp_path / "server.yaml"
    server.write_text("lanewise: 1\nsystem: server\ndevices: {cpu0: {cpu: genoa}, gpu0: {gpu: null}}\n"
                      "links: [{from: cpu0, to: gpu0, pcie: gen5 x16}]\n", encoding="utf-8")  # fmt: skip
    assert verbs.run(["predict", str(server), "--flows", "host0->gpu0 2 MiB"]) == 0
    unknown = capsys.readouterr().out
    assert unknown.splitlines()[3].split()[:6] == ["host0->gpu0", "2", "MiB", "0", "s", "?"]
    assert "a small copy takes longer than this table says" in " ".join(unknown.split())
    known = swept(capsys, "--flows", "host0->gpu0 2 MiB")
    assert " 2.1 us " in known
    assert "longer" not in known


def test_flows_fit_the_terminal_and_their_sources_are_footnotes() -> None:
    prediction = lanewise.predict("rack-16gpu", "gpu0->gpu4, gpu1->gpu5")
    assert predict.render_flow_rates(prediction, Screen(80)) == snapshot("""\
rack-16gpu
flow           GB/s  interval      limit                     basis       source
gpu0->gpu4    21.85  19.2 to 23.0  link cpu0->sw1 (Gen5      calibrated  [1] [2]
                                   x16)
gpu1->gpu5    21.85  19.2 to 23.0  link cpu0->sw1 (Gen5      calibrated  [1] [2]
                                   x16)
all together  43.70  38.4 to 46.0
not shown in 80 columns: route

calibrated: median error 2.0 %, nine in ten within 24 % (155 measured rates)
[1] PCIe base specification
[2] 64 B packets from cpu0 on: sapphire-rapids peer.payload = 64 B, carried over
    from skylake-sp, Intel CPUs forward GPU peer traffic in 64 B packets (NCCL
    graph/topo.h planning table)\
""")


@pytest.mark.parametrize("text", ["path", "path=", "=1,2"])
def test_what_names_no_values_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parameter_values(text)


def test_a_copy_staged_for_want_of_the_cpus_name_says_what_to_state(tmp_path: Path) -> None:
    text = """
lanewise: 1
system: no-name
devices:
  cpu0: {cpu: null}
  "gpu[0-1]": {gpu: a100-pcie-40gb}
links:
  - {from: cpu0, to: gpu0, pcie: gen4 x16, bridge: b0}
  - {from: cpu0, to: gpu1, pcie: gen4 x16, bridge: b1}
"""
    assert "policies: {peers: system} states another" in flows_as_text(tmp_path, text)
    assert "staged:" not in flows_as_text(tmp_path, text + "policies: {peers: none}\n").split("GB/s", 1)[1]


def test_a_copy_that_an_iommu_of_unknown_mode_may_slow_says_what_to_state(tmp_path: Path) -> None:
    text = """
lanewise: 1
system: silent
devices: {cpu0: {cpu: rome}, gpu0: {gpu: a100-pcie-40gb}}
links: [{from: cpu0, to: gpu0, pcie: gen4 x16}]
"""
    silent = flows_as_text(tmp_path, text, "gpu0->host0")
    assert "if the IOMMU translates, which is not stated: gpu0->host0 21.50 GB/s (20.0 to 27.6); cat /sys" in silent
    (case,) = json.flow_rates(lanewise.predict(str(tmp_path / "m.yaml"), "gpu0->host0"))["if_iommu_translates"]
    assert case["goodput"] == 21.5e9
    for mode in ("off", "translate"):
        assert "if the" not in flows_as_text(tmp_path, f"{text}policies: {{iommu: {mode}}}\n", "gpu0->host0")


def flows_as_text(folder: Path, description: str, flows: str = "gpu0->gpu1") -> str:
    """What is printed of these flows."""
    (folder / "m.yaml").write_text(description, encoding="utf-8")
    return predict.render_flow_rates(lanewise.predict(str(folder / "m.yaml"), flows))
