"""Rows that nothing judges: their units and flows as typed, the reason in plain words, where to look first."""

from __future__ import annotations

import pytest
from checking.thread_list import threads

from lanewise.checking.causes.commonest import COMMONEST, kind_of_path
from lanewise.checking.checkup import Checkup, check
from lanewise.checking.unjudged import aside
from lanewise.readers.kinds import read_results
from lanewise.report.check_json import check_json
from lanewise.report.text.check import render_checkup
from lanewise.results.observation import Observation, Source


def checked(*rows: str, head: str = "") -> Checkup:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    results = read_results(text, "figures.yaml")
    return check(results.observations, posted=results.posted)


def test_a_count_keeps_its_unit_and_its_flows_are_those_that_were_typed():
    text = render_checkup(checked('path: llama, flows: "gpu[0-3]->gpu[0-3]", value: 11 tokens/s'))
    assert "11 tokens/s" in text
    assert "gpu[0-3]->gpu[0-3]" in text
    assert "iops" not in text
    assert "1/s" not in text.replace("tokens/s", "")
    assert "nothing says how many tokens/s there should be" in text
    assert "expected: 25 tokens/s" in text
    assert text.endswith("1 row: not judged")


def test_the_step_of_a_count_settles_it():
    row = 'path: llama, flows: "gpu0->gpu0", value: 11 tokens/s'
    assert checked(row).exit_code == 3
    assert checked(f"{row}, expected: 25 tokens/s").exit_code == 1
    assert checked(f"{row}, expected: 11 tokens/s").exit_code == 0


def test_tokens_are_not_compared_with_requests():
    rows = 'path: llama, flows: "gpu0->gpu0", value: 2 {}', 'path: llama 2, flows: "gpu0->gpu0", value: 90 {}'
    apart = checked(rows[0].format("requests/s"), rows[1].format("tokens/s"))
    assert (len(apart.results), len(apart.left_aside)) == (0, 2)
    assert checked(rows[0].format("tok/s"), rows[1].format("tokens/s")).exit_code == 1


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("gpu[0-7]->gpu[0-7]", "gpu[0-7]->gpu[0-7]"),
        ("host0->gpu[0-3]", "host0->gpu[0-3]"),
        ("gpu[0-3]->gpu[4-7]", "gpu[0-3]->gpu[4-7]"),
        ("nvme[0-3]n1->host0", "nvme[0-3]n1->host0"),
        ("gpu0->gpu1, gpu1->gpu0", "gpu0->gpu1, gpu1->gpu0"),
        ("gpu0->gpu4, gpu1->gpu4, gpu2->gpu5", "gpu0->gpu4, gpu1->gpu4, gpu2->gpu5"),
        ("gpu0->gpu2, gpu1->gpu3, gpu4->gpu5", "gpu0->gpu2, gpu1->gpu3, gpu4->gpu5"),
    ],
)
def test_flows_are_folded_where_a_range_says_the_same(typed: str, shown: str):
    assert f"unknown  {shown}  " in render_checkup(checked(f'flows: "{typed}", value: 30 GB/s'))


@pytest.mark.parametrize(
    ("row", "why", "step"),
    [
        ('flows: "host0->host1", value: 3 Gb/s', "the network between these hosts", "line: 100 Gb/s"),
        ('flows: "nvme0->host0", value: 3 GB/s', "which model the drive is", "nvme list"),
        ('flows: "raid0->host0", value: 3 GB/s', "the volume or file system", "rated: 7 GB/s"),
        ('flows: "host0->gpu0", value: 3 GB/s', "names the GPU", "nvidia-smi -L"),
        ('flows: "gpu[0-7]->gpu[0-7]", value: 30 GB/s, hosts: 2, path: all_reduce', "the network", "line: 100 Gb/s"),
        ('flows: "gpu[0-7]->gpu[0-7]", value: 30 GB/s, path: all_reduce', "what joins the GPUs", "nvidia-smi topo -m"),
    ],
)
def test_an_unknown_row_says_what_is_missing_and_how_to_give_it(row: str, why: str, step: str):
    (finding,) = checked(row).findings
    assert finding.kind == "unknown"
    assert why in finding.title
    assert step in finding.step


@pytest.mark.parametrize(
    ("metric", "unit", "path", "settings", "why"),
    [
        ("iops", "IOPS", "storage", {}, "requests a second"),
        ("latency_p99", "us", "storage", {}, "how long"),
        ("goodput", "GB/s", "host memory", {}, "memory of this host"),
        ("goodput", "GB/s", "storage", {"bytes": 4096}, "short requests"),
        ("goodput", "GB/s", "GPU memory", {}, "this GPU's memory"),
        ("completed", "1/s", "service", {}, "how many a second"),
    ],
)
def test_a_row_left_aside_has_a_reason_and_a_step(
    metric: str, unit: str, path: str, settings: dict[str, int], why: str
):
    row = Observation("a", "gpu0->gpu0", metric, 1.0, unit, Source.MEASURED, path=path, settings=settings)
    assert why in aside(row).why
    assert aside(row).step


def test_where_to_look_first_is_told_of_what_nothing_can_be_compared_with_alone():
    unknown = checked('flows: "host0->host1", value: 3 Gb/s')
    assert [cause.key[0] for paths in unknown.look_first for cause in paths.causes] == ["software", "setting"]
    assert "if 3 Gb/s is less than it was or should be, look first at:" in render_checkup(unknown)
    assert unknown.exit_code == 3
    assert [finding.kind for finding in unknown.findings] == ["unknown"]
    found = check_json(unknown)
    assert [each["cause"] for each in found["look_first"][0]["causes"]] == ["software", "setting"]
    assert found["findings"][0]["causes"] == []
    fine = checked('flows: "host0->host1", value: 95 Gb/s, line: 100 Gb/s')
    slow = checked('flows: "host0->host1", value: 9 Gb/s, line: 100 Gb/s')
    assert (fine.exit_code, slow.exit_code) == (0, 1)
    for each in (fine, slow):
        assert each.look_first == ()
        assert "look first" not in render_checkup(each)


def test_peer_copies_that_are_off_are_no_cause_of_what_pcie_does_not_carry():
    keys = [
        [cause.key[0] for cause in checked(f'flows: "gpu0->gpu1", value: {rate} GB/s').look_first[0].causes]
        for rate in (20, 200)
    ]
    assert keys == [["software", "peers"], ["software"]]


def test_the_commonest_causes_are_those_of_the_questions_held_out(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("threads")
    right = {kind: [0, 0] for kind in COMMONEST}
    for thread in threads():
        if not thread.held_out or thread.verdicts[:1] != ("slow",) or not thread.causes or thread.open:
            continue
        checkup = thread.check(folder)
        kinds = [kind_of_path(result.row, "") for result in checkup.findings[0].results if checkup.findings]
        if kinds and kinds[0] in right:
            named = {cause.key[0] for cause in COMMONEST[kinds[0]]}
            named |= {"staged"} if "peers" in named else set()  # peer copies that are off go through host memory
            right[kinds[0]][0] += bool(named & set(thread.causes))
            right[kinds[0]][1] += 1
    many = {kind: share for kind, share in right.items() if share[1] >= 10}
    assert len(many) >= 5
    assert all(named > questions / 2 for named, questions in many.values()), many
