"""Scores of predictions on measured machines, against figures computed by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import lanewise
from lanewise.catalog import builtin, read_parts
from lanewise.cli.verbs import run
from lanewise.errors import UnknownName
from lanewise.evidence.prediction import PredictedRow
from lanewise.evidence.reading import read_machine, ready_machine, ready_machines
from lanewise.evidence.score import AccuracyScore, accuracy_score, quantile
from lanewise.perf.uncertainty import is_tie

# Links with a stated rate and unknown parts: 11 GB/s to sw0, 5 GB/s to each GPU but gpu2 with 20.
MACHINE = """lanewise-evidence: 1
machine: made-up
source: this test
system:
  system: made-up
  devices:
    cpu0: {cpu: null}
    sw0: {switch: null}
    "gpu[0-2]": {gpu: null}
  links:
    - {from: cpu0, to: sw0, pcie: gen3 x16, rate: 11 GB/s}
    - {from: sw0, to: "gpu[0-1]", pcie: gen3 x16, rate: 5 GB/s}
    - {from: sw0, to: gpu2, pcie: gen4 x16, rate: 20 GB/s}
rows:
"""


def score(*rows: str) -> AccuracyScore:
    text = MACHINE + "".join(f"  - {{path: p, {row}}}\n" for row in rows)
    return accuracy_score([read_machine(text, "made-up.yaml")], builtin())


def one(row: str) -> PredictedRow:
    return score(row).rows[0]


def test_the_value_of_several_flows_is_their_sum_their_mean_or_that_of_the_first() -> None:
    rate = one('flows: "gpu0->host0", value: 1 GB/s').observation.value
    assert rate is not None
    flows = 'flows: "gpu[0-1]->host0", value: 1 GB/s'
    assert one(flows).observation.value == pytest.approx(2 * rate)
    assert one(f"{flows}, of: each").observation.value == pytest.approx(rate)
    assert one(f"{flows}, of: first").observation.value == pytest.approx(rate)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ('flows: "gpu0->host0"', "device to host"),
        ('flows: "gpu0<->host0"', "host and device, both directions"),
        ('flows: "gpu0->gpu1"', "peer PIX"),
        ('flows: "gpu0->gpu1, gpu1->gpu0"', "peer PIX, both directions"),
        ('flows: "gpu0->gpu1, gpu1->gpu2"', "peer PIX, several flows"),
        ('flows: "gpu0->gpu1, gpu2->host0"', "mixed paths, several flows"),
        ('flows: "gpu0->gpu1", p2p: false', "staged"),
    ],
)
def test_the_kind_of_path(row: str, kind: str) -> None:
    assert one(f"{row}, value: 1 GB/s").observation.path == kind


def test_a_collective_is_named_by_what_joins_its_ranks() -> None:
    # R9700 have no Infinity Fabric between them; eight MI300X have.
    wanted = {"r9700-plx-vm": "PCIe", "mi350x-rccl": "Infinity Fabric", "h200-nd-nccl": "NVLink"}
    for name, fabric in wanted.items():
        rows = accuracy_score([ready_machine(name)], builtin()).rows
        kinds = {row.observation.path.split(", ")[1] for row in rows if row.row.collective and not row.row.skip}
        assert kinds == {fabric}, name


def test_errors_and_coverage_of_rows() -> None:
    rate = one('flows: "gpu0->host0", value: 1 GB/s').observation.value
    assert rate is not None
    values = [rate / 1e9, 1.25 * rate / 1e9, 2 * rate / 1e9]  # errors 0, -0.2 and -0.5
    total = score(*(f'flows: "gpu0->host0", value: {value!r} GB/s' for value in values)).total
    assert (total.rows, total.predicted, total.median, total.bias) == (3, 3, pytest.approx(0.2), pytest.approx(-0.2))
    assert total.p90 == pytest.approx(0.44)  # four fifths of the way from 0.2 to 0.5
    assert (total.within_5, total.within_10) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_paths_of_equally_many_flows_are_in_order_or_reversed() -> None:
    slow, fast = 'flows: "gpu0->host0"', 'flows: "gpu2->host0"'
    right = score(f"{slow}, value: 4 GB/s", f"{fast}, value: 9 GB/s", 'flows: "gpu[0-1]->host0", value: 30 GB/s').total
    assert (right.pairs, right.ordered, right.reversed) == (1, 1, 0)
    wrong = score(f"{slow}, value: 9 GB/s", f"{fast}, value: 4 GB/s").total
    assert (wrong.pairs, wrong.ordered, wrong.reversed) == (1, 0, 1)
    close = score(f"{slow}, value: 9 GB/s", f"{fast}, value: 9.5 GB/s").total
    assert close.pairs == 0
    # Equal paths of the source range from 7 to 9 and from 4 to 7 GB/s: nobody measured which is faster.
    for high, pairs in ((7, 0), (6.9, 1)):
        row = f"{fast}, value: 4 GB/s, low: 4 GB/s, high: {high} GB/s"
        assert score(f"{slow}, value: 9 GB/s, low: 7 GB/s, high: 9 GB/s", row).total.pairs == pairs


def test_predictions_less_apart_than_their_errors_together_are_tied() -> None:
    assert is_tie((18, 20, 22), (19, 20.9, 23))
    assert not is_tie((18, 20, 22), (19, 21.1, 23))  # more than 5 % apart
    # The faster one may well be the slower one; outside one interval, but 0.9 apart where errors are 0.1 and 1.9.
    assert is_tie((19.9, 20, 20.1), (19, 20.9, 23))
    assert is_tie((19, 20.9, 23), (19.9, 20, 20.1))
    assert not is_tie((18, 20, 20.3), (20.4, 20.9, 23))  # 0.9 apart, errors of 0.3 and 0.5 are 0.58 together
    assert not is_tie((18, 20, 22), (18, 21.1, 23))
    ties = lanewise.predict("rack-16gpu", "host0->gpu0, gpu1->host0, gpu0->gpu4").ties
    assert [(a.flow.name, b.flow.name) for a, b in ties] == [("host0->gpu0", "gpu1->host0")]
    assert not lanewise.predict("rack-16gpu", "host0->gpu0, host0->gpu4").ties  # equal, not close
    score = lanewise.accuracy(["pro6000-turin-6gpu"]).total
    assert (score.pairs, score.ordered + score.tied + score.reversed) == (5, 5)
    assert score.reversed == 0 < score.tied


def test_skipped_rows_and_latencies_stay_out_of_the_rates() -> None:
    all_rows = score("value: 1 GB/s, skip: no path", 'flows: "gpu0->gpu1", latency: true, value: 2 us',
                     'flows: "gpu0->host0", value: 5 GB/s')  # fmt: skip
    assert (len(all_rows.rows), len(all_rows.rates), all_rows.total.rows, all_rows.latencies().rows) == (3, 1, 1, 1)


def test_a_schedule_is_predicted_as_the_tool_counts() -> None:
    row = 'flows: "gpu0->gpu1, gpu1->gpu0", value: 5 GB/s'
    both, first = one(row).observation.value, one(f"{row}, schedule: nvbandwidth").observation.value
    assert both is not None
    assert first == pytest.approx(both / 2)


def test_a_flow_of_a_device_that_is_not_there_is_reported_with_its_line() -> None:
    with pytest.raises(UnknownName, match="gpu9") as error:
        one('flows: "gpu9->host0", value: 5 GB/s')
    assert error.value.location is not None
    assert error.value.location.line == 15


def test_a_quantile_lies_between_two_values() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([7.0], 0.9) == 7.0


def test_a_figure_measured_on_a_machine_is_left_out_there_unless_fitted() -> None:
    part = """
parts:
  - part: x
    kind: gpu
    figures:
      engine.d2h.gen3: {value: 1 GB/s, source: this test, basis: calibrated, machines: [made-up]}
"""
    text = MACHINE.replace("gpu: null", "gpu: x") + '  - {path: out, flows: "gpu0->host0", value: 4 GB/s}\n'
    machine, catalog = read_machine(text, "made-up.yaml"), builtin().merge(read_parts(part, "x.yaml"))
    kept, left_out = (accuracy_score([machine], catalog, fitted).rows[0] for fitted in (True, False))
    assert kept.observation.value == pytest.approx(1e9)
    assert left_out.observation.value is None or left_out.observation.value > 2e9
    other = text.replace("machine: made-up\n", "machine: made-up-patched\nsame_as: made-up\n", 1)
    again = accuracy_score([read_machine(other, "made-up-patched.yaml")], catalog).rows[0]
    assert again.observation.value == left_out.observation.value


def test_figures_name_machines_of_the_evidence_and_none_that_is_held_out() -> None:
    machines = {machine.name: machine for machine in ready_machines()}
    for part in builtin().parts.values():
        for key, figure in part.figures.items():
            for name in figure.machines:
                assert name in machines, f"{part.name} {key}"
                assert not machines[name].held_out, f"{part.name} {key}"


def signs(source: str) -> set[str]:
    """What tells a source from others: its documents, else a quoted title or a repository's thread, else all of it."""
    documents = set(re.findall(r"[\w./-]+\.(?:md|log|json)\b", source))
    titles = set(re.findall(r"'([^']{8,})'|([\w.-]+/[\w.-]+ issue \d+)", source))
    return documents or {title or thread for title, thread in titles} or {source}


def test_figures_whose_source_is_that_of_a_machine_name_it() -> None:
    figures = [
        (part.name, key, figure)
        for part in builtin().parts.values()
        for key, figure in part.figures.items()
        if figure.known and figure.basis == "calibrated"
    ]
    by_sign: dict[str, set[str]] = {}  # several machines may be of one document
    for machine in ready_machines():
        for sign in signs(machine.source):
            by_sign.setdefault(sign, set()).add(machine.name)
    silent = [
        (name, key, sorted(machines))
        for sign, machines in by_sign.items()
        for name, key, figure in figures
        if sign in figure.source and not machines & set(figure.machines)
    ]
    assert silent == []


def test_the_verb_scores_machines_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "made-up.yaml").write_text(MACHINE + '  - {path: out, flows: "gpu0->host0", value: 4 GB/s}\n')
    assert run(["accuracy", "--from", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["total"]["rows"], answer["rows"][0]["measured"]) == (1, 4e9)
    assert run(["accuracy", "--from", str(tmp_path), "--rows"]) == 0
    assert "device to host" not in capsys.readouterr().out
    assert run(["accuracy", "--from", str(tmp_path)]) == 0
    assert "device to host" in capsys.readouterr().out


def rival(row: str, text: str = MACHINE) -> float | None:
    system = text + f"  - {{path: p, {row}, value: 1 GB/s}}\n"
    rows = accuracy_score([read_machine(system, "made-up.yaml")], builtin()).rows
    return rows[0].observation.comparisons.get("NCCL's constants")


XEONS = """lanewise-evidence: 1
machine: made-up
source: this test
system:
  system: made-up
  devices:
    "cpu[0-1]": {cpu: CPU}
    "gpu[0-3]": {gpu: a100-sxm-40gb}
  links:
    - {from: cpu0, to: cpu1, socket: auto}
    - {from: cpu0, to: "gpu[0-1]", pcie: gen3 x16}
    - {from: cpu1, to: "gpu[2-3]", pcie: gen3 x16}
    - {from: gpu0, to: gpu2, nvlink: 12}
  policies: {peers: system}
rows:
"""


@pytest.mark.parametrize(
    ("cpu", "row", "rate"),
    [
        ("skylake-sp", 'flows: "host0->gpu0"', 12.0),  # 16 lanes x 60 / 80
        ("skylake-sp", 'flows: "host0->gpu0, host0->gpu1"', 24.0),
        ("skylake-sp", 'flows: "gpu0->gpu1"', 10.0),  # 12 by 6/5
        ("rome", 'flows: "gpu0->gpu1"', 12.0),
        ("broadwell-ep", 'flows: "gpu1->gpu3"', 6.0),
        ("rome", 'flows: "gpu1->gpu3"', 12.0),
        ("skylake-sp", 'flows: "gpu0->gpu2"', 240.0),  # 12 links of 20
        ("skylake-sp", 'flows: "gpu0->gpu1, gpu1->gpu0", of: first', 10.0),
    ],
)
def test_the_constants_of_nccl(cpu: str, row: str, rate: float) -> None:
    assert rival(row, XEONS.replace("CPU", cpu)) == pytest.approx(rate * 1e9)
