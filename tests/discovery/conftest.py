"""What the tests of discovery share: dumps of our own, real ones where they lie, and a small /sys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lanewise.api import discover
from lanewise.discovery.build import Discovery

DATA = Path(__file__).parent / "data"
SHARED = Path(os.environ.get("LANEWISE_MACHINE_DUMPS") or Path(__file__).parents[3] / "shared" / "machines")


@pytest.fixture
def own() -> Callable[..., Discovery]:
    """The machine of dumps in tests/discovery/data."""
    return lambda *names: discover([DATA / name for name in names])


@pytest.fixture
def real() -> Callable[..., Discovery]:
    """The machine of dumps in LANEWISE_MACHINE_DUMPS, a folder; skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("LANEWISE_MACHINE_DUMPS names no folder of dumps of real machines")
    return lambda *names: discover([SHARED / name for name in names])


@pytest.fixture
def small_sys(tmp_path: Path) -> Path:
    """A folder with a /sys of one root port and one GPU on a trained-down link."""
    home = "devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    gpu = {
        "class": "0x030200",
        "vendor": "0x10de",
        "device": "0x26b9",
        "numa_node": "0",
        "current_link_speed": "2.5 GT/s",
    }
    gpu |= {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16", "current_link_width": "16", "serial": "SECRET"}
    port = {"class": "0x060400", "numa_node": "0", "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "8"}
    for folder, texts in ((home, gpu), (home.rpartition("/")[0], port)):
        (tmp_path / "sys" / folder).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (tmp_path / "sys" / folder / name).write_text(f"{text}\n")
        link = tmp_path / "sys/bus/pci/devices" / folder.rpartition("/")[2]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../{folder}")
    node = tmp_path / "sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("0-7\n")
    group = tmp_path / "sys/kernel/iommu_groups/0"
    group.mkdir(parents=True)
    (group / "type").write_text("DMA-FQ\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name\t: AMD EPYC 7742 64-Core Processor\n")
    return tmp_path
