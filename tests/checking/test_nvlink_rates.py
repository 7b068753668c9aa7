"""Rates of copies over NVLinks of which some are down, or which a pair has but a share of."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.checkup import Checkup, check
from lanewise.readers.kinds import read_results


def matrix(name: str, rates: list[list[str]]) -> Checkup:
    """The check of a matrix of peer writes."""
    count = len(rates)
    lines = [f"Device: {n}, {name}, pciBusID: {n}, pciDeviceID: 0, pciDomainID:0" for n in range(count)]
    lines += ["Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)"]
    lines += ["D\\D " + " ".join(map(str, range(count)))]
    lines += [" ".join([str(n), *row]) for n, row in enumerate(rates)]
    results = read_results("\n".join(lines), "f")
    return check(results.observations, posted=results.posted)


def rates(count: int, usual: float, lesser: float, of: int | None) -> list[list[str]]:
    """A matrix of one rate, of one GPU another."""
    return [
        ["2000.0" if row == column else f"{lesser if of in (row, column) else usual:.2f}" for column in range(count)]
        for row in range(count)
    ]


@pytest.mark.parametrize(("name", "links", "usual"), [("NVIDIA H200", 18, 393.2), ("NVIDIA A100-SXM4-80GB", 12, 276.0)])
def test_a_gpu_whose_pairs_are_whole_nvlinks_below_all_others_is_a_fault(name: str, links: int, usual: float):
    checkup = matrix(name, rates(6, usual, usual * (links - 1) / links, 4))
    assert {str(result.verdict) for result in checkup.results} == {"ok"}
    [fault] = checkup.findings
    assert fault.title == f"1 of the {links} NVLinks of gpu4 may be down: its pairs reach {links - 1}/{links} of others"
    assert checkup.exit_code == 1


@pytest.mark.parametrize(("lesser", "count"), [(1.0, 6), (0.975, 6), (17 / 18, 3)])
def test_pairs_that_agree_or_are_too_few_to_say_what_is_usual_are_no_fault(lesser: float, count: int):
    checkup = matrix("NVIDIA H200", rates(count, 393.2, 393.2 * lesser, 1))
    assert (checkup.findings, checkup.exit_code) == ((), 0)


def test_a_gpu_that_differs_between_its_pairs_has_not_lost_a_link():
    table = rates(6, 393.2, 393.2 * 17 / 18, 4)
    table[4][0] = table[0][4] = "393.20"
    assert matrix("NVIDIA H200", table).findings == ()


@pytest.mark.parametrize(("rate", "verdict"), [(133.1, "ok"), (266.0, "unknown"), (88.7, "unknown")])
def test_a_bridge_over_four_cards_gives_each_pair_a_third_of_the_nvlinks(rate: float, verdict: str):
    checkup = matrix("NVIDIA H200 NVL", rates(4, rate, rate, None))
    assert {str(result.verdict) for result in checkup.results} == {verdict}


def test_copies_of_one_gpu_alone_accuse_no_link(tmp_path: Path):
    pairs = [f'  - {{flows: "gpu0->gpu{other}", value: 240 GB/s, path: x}}' for other in range(1, 5)]
    (path := tmp_path / "rows.yaml").write_text(
        "\n".join(["lanewise-rows: 1", "gpus: NVIDIA A100-SXM4-80GB", "rows:", *pairs])
    )
    assert [each.kind for each in api.check([path]).findings] == []


@pytest.mark.parametrize(
    ("links", "rate", "verdict"),
    [
        ("NV4", 93.1, "ok"),
        ("NV4", 20.0, "slow"),
        ("NV4", 50.0, "unknown"),
        ("NV12", 241.3, "ok"),
        ("NV18", 300.0, "unknown"),
    ],
)
def test_gpus_without_a_name_are_judged_by_the_links_of_their_matrix(
    links: str, rate: float, verdict: str, tmp_path: Path
):
    topology = f"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{links}\t0-35\t0\nGPU1\t{links}\t X \t0-35\t0\n"
    table = (
        f"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n     0 1500 {rate}\n"
    )
    path = tmp_path / "posted.txt"
    path.write_text(f"{topology}\n{table}     1 {rate} 1500\n", "utf-8")
    checkup = api.check([path])
    assert {str(result.verdict) for result in checkup.results} == {verdict}
    if verdict == "slow":
        assert checkup.findings[0].causes[0].key == ("nvlink",)


@pytest.mark.parametrize(
    ("share", "verdict"),
    # all links of a board of eight, a third of them as on a board of four, a fifth, which no board has
    [(1.0, "ok"), (1 / 3, "unknown"), (0.2, "slow")],
)
@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"])
def test_a_pair_of_a_board_has_a_third_of_its_nvlinks_at_least(name: str, share: float, verdict: str):
    usual = {"NVIDIA H100 80GB HBM3": 372.0, "NVIDIA A100-SXM4-80GB": 276.0}[name]
    checkup = matrix(name, rates(2, usual * share, usual * share, None))
    assert {str(result.verdict) for result in checkup.results} == {verdict}


@pytest.mark.parametrize(("rate", "verdict"), [(340, "ok"), (130, "unknown"), (80, "slow")])
def test_a_coherent_link_with_less_than_memory_of_the_other_node_has_is_slow(rate: int, verdict: str):
    text = f"lanewise-rows: 1\ngpus: NVIDIA GH200 480GB\nrows: [{{flows: host0->gpu0, value: {rate} GB/s}}]\n"
    results = read_results(text, "f")
    [result] = check(results.observations, posted=results.posted).results
    assert str(result.verdict) == verdict
