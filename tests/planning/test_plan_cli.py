"""`lanewise plan` as users meet it: text, JSON, errors of two lines, Ctrl-C, commands that run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_binary import interrupts_itself
from forked_cli import forked

from lanewise.cli import verbs

LAYOUTS = ["cirrascale-typical", "cirrascale-2cpu-2ib", "cirrascale-1rc", "cirrascale-1cpu"]
PATH4 = "composable-server-path4-two-hosts"
DEMAND = "resnet50 170000 QPS"
PLAN = """\
lanewise: 1
plan: two tenants on one box
services:
  shop: {workload: resnet50, qps: 150000, each: 43367 QPS}
  search: {workload: resnet50, qps: 80000 QPS, each: 43367, host: host1}
move: gpu[3-7]
"""

# A Ctrl-C as the search asks its solver for the tenth time.
TENTH_SOLUTION = """
import signal
from ortools.sat.python import cp_model
solve, calls = cp_model.CpSolver.solve, []
def interrupted(*arguments):
    calls.append(arguments)
    if len(calls) == 10:
        signal.raise_signal(signal.SIGINT)
    return solve(*arguments)
cp_model.CpSolver.solve = interrupted
"""


@pytest.fixture
def lanewise(tmp_path: Path):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM")}
    return lambda *arguments: forked(arguments, tmp_path, env)


def data(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_layouts_are_ranked_with_their_limits(lanewise):
    done = lanewise("plan", *LAYOUTS, "--pattern", "scatter", "--pattern", "ring")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\n\nring")
    assert first.splitlines()[3].split()[:2] == ["1", "cirrascale-typical"]
    assert "total 50 % less than cirrascale-typical: 4 flows behind" in first
    assert second.splitlines()[3].split()[:2] == ["1", "cirrascale-1rc"]


def test_descriptions_of_one_name_are_told_apart_by_their_files(lanewise, tmp_path):
    text = "{lanewise: 1, system: mine, devices: {cpu0: {cpu: genoa}, 'gpu[0-1]': {gpu: l40s}}, links: [%s]}"
    for name, speed in (("wide", "gen4 x16"), ("narrow", "gen4 x8")):
        (tmp_path / f"{name}.yaml").write_text(text % f"{{from: cpu0, to: 'gpu[0-1]', pcie: {speed}}}")
    ranks = data(lanewise("plan", "wide.yaml", "narrow.yaml", "--pattern", "scatter", "--json"))["ranks"]
    assert [rank["system"] for rank in ranks] == ["mine (wide.yaml)", "mine (narrow.yaml)"]


def test_a_gpu_moves_to_the_second_server_and_the_commands_do_it(lanewise, tmp_path):
    found = data(lanewise("plan", PATH4, "--service", DEMAND, "--json"))
    assert found["today"]["lines"][0]["rate"] == pytest.approx(136_310, rel=1e-3)
    assert found["best"]["moves"] == [{"device": "gpu3", "from": "host0", "to": "host1", "at": None}]
    assert found["best"]["lines"][0]["served"]
    assert found["proven"]
    assert (found["kept"], found["margin"]) == (True, 0.0)
    (simulated,) = found["best"]["simulated"]["tenants"]
    assert simulated["valid"]
    assert simulated["latency"] < simulated["bound"] == pytest.approx(0.015)
    assert found["today"]["simulated"]["tenants"][0]["queue_grows"]
    for command in found["commands"]:
        assert lanewise(*command.split()[1:]).returncode == 0
    again = lanewise("plan", "plan-2.yaml", "--service", DEMAND).stdout
    assert "nothing to move: no placement is better" in again


def test_text_says_before_and_after_what_to_do_and_whether_it_is_proven(lanewise):
    text = lanewise("plan", PATH4, "--service", DEMAND).stdout
    for piece in (
        "as it stands          resnet50     170,000  136,310     4  queue grows, INVALID         read window of a_hop1",
        "attach gpu3 to host1  resnet50     170,000  170,000     4  p99 ",
        "ms of 15 ms, VALID  its demand",
        "lanewise system attach plan-1.yaml gpu3 host1 -o plan-2.yaml",
        "resnet50: gpu0 gpu1 gpu2 at host0; gpu3 at host1",
        "proven: in steady state no other placement is better",
        "note: latencies are simulated (29.4 s of queries)",
    ):
        assert piece in text


def test_a_margin_is_told_and_so_is_a_bound_that_is_not_kept(lanewise):
    text = lanewise("plan", PATH4, "--service", "resnet50 136300 QPS").stdout
    assert "planned for 1 % more than asked, as steady state alone is late (resnet50: p99 2" in text
    assert "proven: in steady state for 1 % more no other placement is better" in text
    text = lanewise("plan", PATH4, "--service", "resnet50 136300 QPS on host0", "--anyway").stdout
    assert "nothing to move: no placement found holds either" in text
    assert "resnet50: the bound is not kept: p99 2" in text


def test_own_workloads_are_planned_too(lanewise, tmp_path):
    (tmp_path / "own.yaml").write_text(
        "own: {bytes_in: 600 kB, bytes_out: 4 kB, bound: 50 ms, percentile: 0.99, batch: 16, timeout: 2 ms, source: us}"
    )
    (tmp_path / "plan.yaml").write_text("lanewise: 1\nservices: {own: {workload: own.yaml, qps: 20000, each: 9000}}")
    by_file = data(lanewise("plan", PATH4, "--file", "plan.yaml", "--json"))
    assert by_file["kept"]
    assert data(lanewise("plan", PATH4, "--service", "own.yaml 20000 QPS each 9000", "--json")) == by_file


def test_settings_of_a_system_stand_after_commas(lanewise):
    systems = [f"composable-server-gen4,path={path}" for path in (4, 1, 3)]
    found = data(lanewise("plan", *systems, "--service", DEMAND, "--json"))
    assert [each["settings"]["path"] for each in found["ranks"]] == [1, 3, 4]


def test_a_plan_file_asks_for_tenants_with_names(lanewise, tmp_path):
    (tmp_path / "two.yaml").write_text(PLAN)
    found = data(lanewise("plan", "composable-server-two-hosts", "--file", "two.yaml", "--json"))
    assert {line["name"]: line["served"] for line in found["best"]["lines"]} == {"shop": True, "search": True}
    assert len(found["best"]["moves"]) == 2


def test_pins_give_a_line_for_each_gpu(lanewise):
    done = lanewise("plan", "dgx-a100-network", "--pin", "nic")
    assert "CUDA_VISIBLE_DEVICES=1 NCCL_IB_HCA==nic4 UCX_NET_DEVICES=nic4:1 numactl --cpunodebind=0" in done.stdout
    found = data(lanewise("plan", "dgx-a100-network", "--pin", "nic", "--json"))
    assert len({pin["card"] for pin in found["pins"]}) == 8


def test_cables_are_spread_over_root_ports(lanewise):
    arguments = ("--flows", "host->gpu[0-3]", "--move", "gpu[0-3]", "--at", "sw[0-3]")
    found = data(lanewise("plan", "rack-16gpu", *arguments, "--json"))
    assert len(found["best"]["moves"]) == 2
    assert all("--at" in command for command in found["commands"] if " attach " in command)


def test_an_impossible_demand_says_what_the_best_reaches_unless_told_to_go_on(lanewise):
    asked = ("plan", PATH4, "--service", "resnet50 400000 QPS")
    done = lanewise(*asked)
    assert done.returncode == 1  # it does not fit: nothing is wrong with what was typed
    assert done.stdout == ""
    assert done.stderr == (
        "error: no placement serves 400,000 QPS of resnet50: the best reaches 175,383, "
        "limited by GPU service rate (l40s, resnet50)\n"
        "hint:  ask for less, let more devices move (--move), or see the best with --anyway\n"
    )
    shown = lanewise(*asked, "--anyway")
    assert shown.returncode == 0
    assert "attach gpu3 to host1" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["rack-16gpu"], "nothing to plan for"),
        (["rack-16gpu", "--pattern", "scatter"], "nothing of rack-16gpu can move to another host"),
        (["rack-16gpu", "--flows", "host->gpu0", "--move", "gpu0"], "gpu0 can go nowhere else"),
        (["rack-16gpu", "--flows", "host->gpu0", "--move", "gpu99"], "unknown device of rack-16gpu 'gpu99'"),
        (["rack-16gpu", "--flows", "host->gpu0", "--move", "gpu0", "--at", "gpu1"], "no cable goes below gpu1"),
        ([PATH4, "--service", "resnet51 10 QPS"], "unknown workload 'resnet51'"),
        ([PATH4, "--service", "resnet50"], "'resnet50' states no demand"),
        ([PATH4, "--service", "resnet50 0 QPS"], "'resnet50 0 QPS' states no demand above zero"),
        ([PATH4, "--service", "resnet50 136300 QPS on host0"], "keeps the 15 ms of resnet50 at 136,300 QPS: p99 is 2"),
        ([PATH4, "--service", "resnet50 10 QPS each"], "'each' is not understood"),
        ([PATH4, "--service", "resnet50 10 QPS each 0"], "what one GPU answers of resnet50 is 0 QPS"),
        ([PATH4, "--service", "resnet50 10 QPS on gpu9"], "unknown host or GPU"),
        ([PATH4, "--service", "resnet50 -5"], "the demand of resnet50 is -5 QPS"),
        ([PATH4, "--service", "resnet50 many"], "'many' is not understood"),
        ([PATH4, "--service", "3d-unet 10 QPS"], "nobody has stated how many 3d-unet queries"),
        ([PATH4, "--service", DEMAND, "--to", "host7"], "unknown host"),
        ([PATH4, "--service", f"{DEMAND} on host7"], "unknown host"),
        ([PATH4, "--service", DEMAND, "--service", DEMAND], "two services are called 'resnet50'"),
        ([PATH4, "--service", DEMAND, "--pin", "nic"], "services and pins cannot be planned together"),
        ([PATH4, "--pin", "nic"], "has GPUs but no network card"),
        ([PATH4, "--pin", "gpu"], "unknown --pin 'gpu'"),
        ([*LAYOUTS, "--pattern", "rung"], "unknown pattern 'rung'"),
        ([*LAYOUTS, "--pattern", "scatter", "--move", "gpu0"], "several systems are ranked as they stand"),
        ([*LAYOUTS, "--flows", "gpu0->gpu1 1 GiB"], "gpu0->gpu1 has a size"),
        ([*LAYOUTS, "--pattern", "ring", "--by", "mood"], "unknown --by 'mood'"),
    ],
)
def test_errors_are_a_cause_and_a_hint(capsys, arguments, cause):
    # In this process: starting one for each error would take most of these tests' time.
    assert verbs.run(["plan", *arguments]) == (1 if cause.startswith("keeps the") else 2)  # 1: it does not fit
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    lines = stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert cause in lines[0]
    assert lines[1].startswith("hint:  ")
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("services:", "servces:", "own.yaml:3: unknown key 'servces' in a plan"),
        ("qps: 150000,", "qps: 0,", "own.yaml:4: the demand of resnet50 is 0 QPS"),
        ("qps: 150000,", "", "own.yaml:4: service 'shop' has no qps"),
        ("move: gpu[3-7]", "move: 7", "own.yaml:6: 'move' must be a text or a list of texts"),
        ("lanewise: 1", "lanewise: 2", "own.yaml:1: this is no plan file"),
    ],
)
def test_errors_in_a_plan_file_name_the_line(capsys, monkeypatch, tmp_path, old, new, cause):
    (tmp_path / "own.yaml").write_text(PLAN.replace(old, new))
    monkeypatch.chdir(tmp_path)
    assert verbs.run(["plan", "composable-server-two-hosts", "--file", "own.yaml"]) == 2
    assert f"error: {cause}" in capsys.readouterr().err.splitlines()[0]


def test_ctrl_c_shows_the_best_found(tmp_path):
    # Three tenants behind shared cables: the bound stays open, so the search goes on until its limit or a Ctrl-C.
    tenants = [f"resnet50 {qps} QPS each {each} {on} as t{qps}" for qps, each, on in (
        (150_000, 43_367, ""), (120_000, 43_367, "on host1"), (100_000, 30_000, ""))]  # fmt: skip
    services = [word for tenant in tenants for word in ("--service", tenant)]
    arguments = ["plan", "composable-server-two-hosts", "--set", "gpus=16", "--set", "bound=8", *services,
                 "--candidates", "100000"]  # fmt: skip
    done = interrupts_itself(TENTH_SOLUTION, arguments, tmp_path)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "best found, not proven: interrupted" in done.stdout
