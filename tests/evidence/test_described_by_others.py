"""Evidence files that others wrote: read where a system is read, one file or a folder, and never other than stated."""

from __future__ import annotations

from pathlib import Path

import pytest

import lanewise
from lanewise.errors import InputError, UnknownName
from lanewise.evidence.reading import read_machine

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "runs" / "2026-11-28-described-again").glob("*.yaml"))
BODY = """\
lanewise-evidence: 1
machine: {name}
source: a test
same_as: {same_as}
system:
  system: {name}
  devices: {{cpu0: {{cpu: genoa}}, "gpu[0-1]": {{gpu: RTX PRO 6000}}}}
  links: [{{from: cpu0, to: "gpu[0-1]", pcie: gen5 x16}}]
rows:
  - {{path: one socket, flows: "gpu0->gpu1", value: 50 GB/s}}
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_others_described_is_read_and_no_name_of_several_parts_is_silent(file: Path) -> None:
    system = lanewise.load_system(file)
    open_parts = {device.part for device in system.devices.values() if " or " in (device.part or "")}
    assert len(system.readings) >= len(open_parts)
    assert read_machine(file.read_text(), str(file)).rows


def test_one_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(BODY.format(name="mine", same_as="''"))
    for path in (tmp_path, tmp_path / "mine.yaml"):
        assert [row.machine for row in lanewise.accuracy(folder=path).rows] == ["mine"]


def test_another_setting_is_that_of_a_machine_that_exists(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(BODY.format(name="mine", same_as="rtx4090-rom"))
    with pytest.raises(UnknownName, match=r"mine.yaml:4: unknown measured machine 'rtx4090-rom'") as refused:
        lanewise.accuracy(folder=tmp_path)
    assert refused.value.hint.startswith("did you mean rtx4090-rome")
    (tmp_path / "mine.yaml").write_text(BODY.format(name="mine", same_as="other"))
    (tmp_path / "other.yaml").write_text(BODY.format(name="other", same_as="rtx4090-rome"))
    assert len(lanewise.accuracy(folder=tmp_path).rows) == 2


def test_sizes_go_with_the_order_of_a_tool_if_they_are_equal() -> None:
    schedule = "p2pBandwidthLatencyTest-cuda9"
    sized = lanewise.predict("rack-16gpu", "gpu0<->gpu8 200 MB", p2p=False, schedule=schedule)
    assert sized.total <= lanewise.predict("rack-16gpu", "gpu0<->gpu8", p2p=False, schedule=schedule).total
    with pytest.raises(InputError, match="all of one size"):
        lanewise.predict("rack-16gpu", "gpu0->gpu8 200 MB, gpu8->gpu0 100 MB", schedule=schedule)
    with pytest.raises(InputError, match="has a size"):
        lanewise.predict("rack-16gpu", "gpu0->gpu8 200 MB")
