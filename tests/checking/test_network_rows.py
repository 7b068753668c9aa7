"""Causes of slow rows over a network: the program, several senders, one host, the way between GPU and card."""

from __future__ import annotations

import pytest

from lanewise.checking.checkup import Finding, check
from lanewise.checking.verdict import Verdict
from lanewise.readers.kinds import read_results


def findings(*rows: str, head: str = "") -> tuple[Finding, ...]:
    text = f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows)
    results = read_results(text, "f")
    return check(results.observations, posted=results.posted).findings


def causes(finding: Finding) -> list[str]:
    return [cause.key[0] for cause in finding.causes]


@pytest.mark.parametrize(("rate", "verdict"), [(64, Verdict.SLOW), (68, Verdict.UNKNOWN)])
def test_less_than_two_thirds_of_a_line_are_slow(rate: int, verdict: Verdict):
    (finding,) = findings(f'flows: "gpu0->host1", value: {rate} Gb/s, line: 100 Gb/s')
    assert finding.kind == verdict


def test_another_program_that_carries_more_over_the_same_network_comes_first():
    line = 'flows: "gpu0->host1", value: 13 GB/s, line: 400 Gb/s'
    wire = 'flows: "host0->host1", value: 390 Gb/s, line: 400 Gb/s'
    (finding,) = findings(f"path: NCCL, {line}", f"path: ib_write_bw, {wire}")
    assert causes(finding)[:2] == ["software", "staged"]
    assert finding.causes[0].evidence == "'ib_write_bw' reached 390 Gb/s over the same network"
    # One program alone: the memory makes the difference.
    (finding,) = findings(line, wire)
    assert "software" not in causes(finding)


def test_several_senders_that_get_less_together_than_one_alone_are_congested():
    alone = 'flows: "host0->host2", value: 23 Gb/s, line: 25 Gb/s'
    both = 'flows: "host0->host2, host1->host2", value: 5 Gb/s, line: 25 Gb/s'
    (finding,) = findings(alone, both)
    assert causes(finding)[0] == "congestion"
    assert "2 senders share a port of host2" in finding.title


def test_a_host_that_every_slow_pair_has_is_the_cause_and_no_gpu_is_far_for_it():
    pairs = [("gpu0", 3, 45), ("gpu1", 3, 44), ("gpu0", 1, 88), ("gpu0", 2, 87)]
    (finding,) = findings(*(f'flows: "{gpu}->host{n}", value: {v} GB/s, line: 800 Gb/s' for gpu, n, v in pairs))
    assert finding.causes[0].key == ("common", "host3")
    assert not any(cause.evidence for cause in finding.causes if cause.key[0] == "far")


def test_a_gpu_without_memory_of_its_own_is_not_far_from_a_card():
    (finding,) = findings('flows: "gpu0->host1", value: 3 GB/s, line: 200 Gb/s', head="gpus: NVIDIA GB10\n")
    assert causes(finding)[0] == "software"
    assert not {"far", "staged", "acs"} & set(causes(finding))


def test_half_of_a_line_may_be_one_port_of_two():
    (finding,) = findings('flows: "host0->host1", value: 100 Gb/s, line: 200 Gb/s')
    assert causes(finding) == ["software", "link", "port"]
