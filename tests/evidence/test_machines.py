"""The measured machines that come with Lanewise: each reads, each row is predicted or says why not."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lanewise import package_data
from lanewise.catalog import builtin
from lanewise.evidence.prediction import predict_row, predict_traffic
from lanewise.evidence.reading import ready_machine, ready_machines
from lanewise.evidence.traffic_prediction import TrafficModel

# Held out is every third machine by the hash of its name, never by a result, but none of which the catalogue had a
# figure before there was a rule, and none that was measured for this model (the H200 machines).
EARLIER = {
    "a100-sm02", "ada-epyc-9374f", "h100-nvl-azure", "h200-vm-2gpus", "h200-vm-4gpus", "pro6000-turin-6gpu",
    "v100-c4130", "rtx4090-vast", "rtx4090-tinybox-six",
}  # fmt: skip
# Described from our documentation alone, before anyone saw a prediction of theirs. All of a lot are held out, until the
# second lot after it is there: then they teach (decision 53).
RUNS = Path(__file__).parents[2] / "benchmarks/runs"


def _lots(*names: str) -> list[str]:
    return [name for lot in names for name in (RUNS / lot / "machines.txt").read_text(encoding="utf-8").split()]


UNSEEN = _lots("2026-11-28-unseen-machines-fourteenth", "2026-11-28-unseen-machines-fifteenth")
TEACH_SINCE = _lots(
    "2026-11-23-accuracy-unseen", "2026-11-23-accuracy-sets", "2026-11-23-accuracy-unseen-5",
    "2026-11-24-accuracy-unseen-6", "2026-11-24-accuracy-unseen-7", "2026-11-27-unseen-machines",
    "2026-11-27-unseen-machines-later", "2026-11-27-unseen-machines-third", "2026-11-27-unseen-machines-fourth",
    "2026-11-27-unseen-machines-fifth", "2026-11-27-unseen-machines-sixth", "2026-11-27-unseen-machines-seventh",
    "2026-11-27-unseen-machines-eighth", "2026-11-28-unseen-machines-ninth", "2026-11-28-unseen-machines-tenth",
    "2026-11-28-unseen-machines-eleventh", "2026-11-28-unseen-machines-twelfth",
    "2026-11-28-unseen-machines-thirteenth",
)  # fmt: skip
# Held out until 2026-11-26: the second machine that shows what a figure or a rule says (decision 37).
LEARNED_SINCE = {"a100-a147", *TEACH_SINCE}
THREAD = re.compile(r"[\w.-]+/[\w.-]+ (?:issue|pull request) \d+")


@pytest.mark.parametrize("name", package_data.names("evidence"))
def test_a_machine_is_complete_and_its_rows_are_predicted_or_say_why_not(name: str) -> None:
    machine = ready_machine(name)
    assert Path(machine.description.file).stem == machine.name
    assert machine.wiring
    assert machine.tool
    assert all(row.low is None or row.low <= row.value for row in machine.rows)
    assert all(row.high is None or row.value <= row.high for row in machine.rows)
    assert not (machine.held_out and any(row.learned for row in machine.rows)), "held out means nothing is learned"
    system = machine.system(builtin())
    model = TrafficModel(system, machine.names)
    for row in machine.rows:
        if row.traffic is not None and not row.skip:
            predicted = predict_traffic(machine.name, model, row, row.traffic)
            assert predicted.observation.value, predicted.observation.note
            assert predicted.algorithm_right is not False, predicted.observation.note
            continue
        if row.skip or row.latency:  # not every GPU has a figure of its small copies
            continue
        # Two hundred copies in their order take a second to simulate.
        short = row if len(row.flows) <= 12 else replace(row, schedule="together")
        prediction = predict_row(machine.name, system, short).observation
        assert prediction.value, prediction.note or row.path


def test_machines_are_held_out_by_the_hash_of_their_name() -> None:
    names = {machine.name for machine in ready_machines()}
    for machine in ready_machines():
        assert machine.names <= names
        name = machine.same_as or machine.name  # rows under another setting of the same machine are as it is
        third = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 3 == 0
        held_out = name in UNSEEN or (third and name not in EARLIER)
        assert machine.held_out == (held_out and name not in LEARNED_SINCE), machine.name


@pytest.mark.parametrize(("name", "path"), [
    ("pro6000-b650d4u", "one switch both ways"),  # ACS redirect: both directions share the switch's uplink
    ("l40s-gds", "four GPUs to drives"),  # the drives write 10 GB/s each
    ("aurora-pvc", "host to six GPUs"),
    ("meluxina-a100", "GPU to memory of the other socket"),  # nothing binds the memory, so it is at the first one
    ("vega-a100", "GPU to memory of the other socket"),
])  # fmt: skip
def test_rows_of_mended_descriptions_are_predicted(name: str, path: str) -> None:
    machine = ready_machine(name)
    row = next(row for row in machine.rows if row.path == path)
    predicted = predict_row(name, machine.system(builtin()), row).observation.value
    assert predicted == pytest.approx(row.value, rel=0.1)


@pytest.mark.parametrize(("name", "path"), [
    ("p100-dgx1", "staged, one socket"),  # gaps of two other hosts with P100
    ("p100-dgx1", "staged both ways, two sockets"),
    ("a100-pcie-two-switches", "two sockets both ways"),  # peers over UPI of another host with Gen4 slots
    ("a30-nine", "one socket"),  # an Intel CPU with Gen4 slots passes what two others do
    ("h200-vm-4gpus-second", "host to four GPUs, mean"),  # memory of Emerald Rapids on three other machines
    ("gb300-dgx-station", "GPU to host while the other direction runs"),  # memory of Grace on six others
    ("rtx4090-rtx5090-windows", "staged, to the RTX 5090"),  # an RTX 4090 sends to a host what those of EPYC do
    ("rtx5060ti-x570", "peers both ways, RTX 5060 Ti"),  # two B70 at another Ryzen of AM4, and vice versa
    ("b70-am4-pair", "peers both ways, writes"),
    ("rx7900xtx-7f32-three", "host to two GPUs that share a link"),  # host bridges of Naples and Storm Peak
    ("pro6000-roots", "B: host to eight GPUs, one quadrant"),  # of Naples and Rome
])  # fmt: skip
def test_rows_are_predicted_by_what_other_machines_taught(name: str, path: str) -> None:
    machine = ready_machine(name)
    row = next(row for row in machine.rows if row.path == path)
    predicted = predict_row(name, machine.system(builtin().without_machine(name)), row).observation.value
    assert predicted == pytest.approx(row.value, rel=0.1)


def test_rates_of_mpi_between_gpus_are_skipped_whatever_they_are() -> None:
    over_mpi = [machine for machine in ready_machines() if "osu_bw" in machine.tool]
    assert len(over_mpi) >= 2
    for machine in over_mpi:
        network = [row for row in machine.rows if "another node" in row.path]
        between_gpus = [row for row in network if "memory to memory" not in row.path]
        assert between_gpus
        assert all(row.skip for row in between_gpus)
        assert not any(row.skip for row in network if row not in between_gpus)


def test_no_two_machines_have_the_same_range_of_values() -> None:
    # A page that copies another machine's output: the RTX 6000D had eight numbers of nvbandwidth's README.
    machines: dict[tuple[float, float], set[str]] = {}
    for machine in ready_machines():
        for row in machine.rows:
            if row.low is not None and row.high is not None and row.low < row.high and not (row.skip or row.latency):
                machines.setdefault((row.low, row.high), set()).add(machine.name)
    assert [names for names in machines.values() if len(names) > 1] == []


def test_no_figure_cites_the_thread_of_a_machine_that_is_held_out() -> None:
    parts = " ".join(figure.source + str(figure.condition) for part in builtin().parts.values()
                     for figure in part.figures.values())  # fmt: skip
    sources = [machine.source for machine in ready_machines() if machine.held_out]
    held_out = {thread for source in sources for thread in THREAD.findall(source)}
    assert len(held_out) > 2
    assert not held_out & set(THREAD.findall(parts))
