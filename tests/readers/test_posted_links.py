"""Lines about links that people cut out of dumps: one that has fewer lanes than its device can is a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise import api
from lanewise.checking.causes.machine import MachineState
from lanewise.checking.checkup import check
from lanewise.readers.kinds import read_posted
from lanewise.results.conditions import LinkState, MachineConditions

CAP, NOW = "LnkCap: Port #0, Speed 16GT/s, Width x4, ASPM L1", "LnkSta: Speed 16GT/s, Width x2 (downgraded)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{CAP}\n{NOW}\n", "a device x2 of x4"),
        (f"$ sudo lspci -vv -s 0e:00.0 | grep Lnk\n\t{CAP}\n\t{NOW}\n", "0e:00.0 x2 of x4"),
        ("MaxLinkWidth     = 16\nCurrentLinkWidth = 8\n", "a device x8 of x16"),
        ("max_link_width:4\ncurrent_link_width:1\n", "a device x1 of x4"),
        ("Maximum link width: 16 lanes\nLink width is 1 lanes\n", "a device x1 of x16"),
        # The port above a card of four lanes may have sixteen.
        ("Maximum link width: 16 lanes\nLink width is 4 lanes\n", ""),
        ("MaxLinkWidth = 4\nCurrentLinkWidth = 4\n", ""),
        (f"{CAP}\nLnkSta: Speed 2.5GT/s (downgraded), Width x4\n", ""),
        # A whole dump: discover knows both ends, and ports are downgraded by the cards in them.
        (f"00:01.0 PCI bridge: Host bridge\n\t{CAP}\n\t{NOW}\n", ""),
    ],
)  # fmt: skip
def test_lines_of_a_narrow_link_are_a_statement_and_a_fault(text: str, value: str):
    posted = read_posted(text, "f").posted
    assert [statement.value for statement in posted.stated("link width")] == ([value] if value else [])
    titles = [finding.title for finding in check([], posted=posted).findings]
    assert titles == ([f"a link has fewer lanes than it can: {value}"] if value else [])


QUERY = "index, name, pcie.link.gen.current, pcie.link.width.current, pcie.link.width.max"


def test_a_query_of_nvidia_smi_says_the_gpus_name_and_which_links_are_narrow(tmp_path: Path):
    rows = ["0, Tesla T4, 3, 16, 16", "1, Tesla T4, 1, 4, 16", "2, Tesla T4, 1, [N/A], 16"]
    posted = read_posted("\n".join([QUERY, *rows, "", "3, 4, 5, 6, 7"]), "f").posted
    assert [(each.value, each.source) for each in posted.stated("link width")] == [("GPU 1 x4 of x16", "f:3")]
    assert posted.title("gpu1") == "Tesla T4"
    (fine := tmp_path / "query.txt").write_text(f"{QUERY}\n{rows[0]}\n")
    assert (api.check([fine]).findings, api.check([fine]).exit_code) == ((), 3)
    assert read_posted(f"{QUERY}\n{rows[0]}\n1, Tesla P4, 3, 16, 16\n", "f").posted.devices == {}


BUSY = "index, name, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]"


def test_the_generation_of_a_busy_gpus_link_counts_and_that_of_an_idle_one_does_not(tmp_path: Path):
    rows = ["0, RTX A4000, 4, 4, 99 %", "1, RTX A4000, 1, 4, 98 %", "2, RTX A4000, 1, 4, 3 %"]
    posted = read_posted("\n".join([BUSY, *rows]), "f").posted
    said = [(each.value, each.source) for each in posted.stated("link speed")]
    assert said == [("GPU 1 Gen1 of Gen4, the GPU 98 % in use", "f:3")]
    (path := tmp_path / "query.txt").write_text("\n".join([BUSY, *rows]))
    assert api.check([path]).exit_code == 1


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, ""], ids=["superscript", "5000 digits", "nothing"])
def test_a_query_with_what_is_no_count_states_nothing(number: str):
    rows = [f"0, RTX A4000, {number}, 4, 99 %", f"1, RTX A4000, 1, {number}, 99 %", f"2, RTX A4000, 1, 4, {number} %"]
    assert not read_posted("\n".join([BUSY, *rows]), "f").posted.stated("link speed")


@pytest.mark.parametrize(
    ("name", "inactive", "said"),
    [
        ("NVIDIA H100 NVL", 1, ["1 of the 4 links of a bridge of gpu0 is inactive"]),
        ("NVIDIA H100 NVL", 4, []), ("NVIDIA A100 80GB PCIe", 12, []), ("NVIDIA RTX A6000", 4, []),
        ("NVIDIA RTX A6000", 2, ["2 of the 4 links of a bridge of gpu0 are inactive"]),
    ],
)  # fmt: skip
def test_a_bridge_has_all_of_its_nvlinks_or_is_not_there(name: str, inactive: int, said: list[str]):
    links = [f"\t Link {n}: {'<inactive>' if n < inactive else '26.562 GB/s'}" for n in range(12)]
    posted = read_posted("\n".join([f"GPU 0: {name} (UUID: GPU-a)", *links]), "f").posted
    assert [each.value for each in posted.stated("NVLink errors")] == said


def test_a_bridge_that_a_text_lists_twice_is_the_same_bridge():
    links = [f"\t Link {n}: {'<inactive>' if n < 2 else '14.062 GB/s'}" for n in range(4)]
    posted = read_posted("\n".join(["GPU 0: NVIDIA RTX A6000 (UUID: GPU-a)", *links] * 2), "f").posted
    said = [each.value for each in posted.stated("NVLink errors")]
    assert said == ["2 of the 4 links of a bridge of gpu0 are inactive"]


@pytest.mark.parametrize(("lanes", "fault"), [(16, True), (8, True), (4, False)])
def test_one_lane_of_a_gpu_is_a_fault_though_nobody_knows_the_slot(lanes: int, fault: bool):
    link = LinkState("gpu0", "", 4, lanes, 4, 1, False, "lspci:9 LnkSta", "cpu0", 4, lanes, None, None)
    findings = check([], MachineState(None, MachineConditions(links=(link,)))).findings
    assert [finding.kind for finding in findings] == ["fault"] * fault
