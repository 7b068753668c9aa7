"""Links and conditions read from a tree like /sys."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from gpu.stand_in import Cuda

from lanewise.probes import machine
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.gpu.telemetry import GpuTelemetry


def device(sys: Path, pci: str, **files: str | bytes) -> Path:
    folder = sys / "bus/pci/devices" / pci
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.mark.parametrize(
    ("speed", "width", "shown"),
    [
        ("32.0 GT/s PCIe\n", "16\n", "Gen5 x16"),
        ("2.5 GT/s PCIe\n", "8\n", "Gen1 x8"),
        ("Unknown\n", "16\n", ""),
        ("16.0 GT/s PCIe\n", "0\n", ""),
        ("", "", ""),
    ],
)
def test_a_link_is_read_as_generation_and_width(tmp_path: Path, speed: str, width: str, shown: str) -> None:
    folder = device(tmp_path, "0000:1b:00.0", current_link_speed=speed, current_link_width=width)
    assert machine.link(folder) == shown


def test_a_link_that_trains_up_under_load_is_recorded_as_it_was_then(tmp_path: Path) -> None:
    folder = device(tmp_path, "0000:1b:00.0", current_link_speed="2.5 GT/s PCIe\n", current_link_width="16\n")
    watch = GpuTelemetry({"gpu0": "0000:1B:00.0"}, tmp_path)
    with watch.recording():
        (folder / "current_link_speed").write_text("32.0 GT/s PCIe\n")
        deadline = time.monotonic() + 300
        while watch.links.get("gpu0") != "Gen5 x16" and time.monotonic() < deadline:
            time.sleep(0.01)
    (folder / "current_link_speed").write_text("2.5 GT/s PCIe\n")
    assert watch.how()["link under load"] == "Gen5 x16"


def test_two_gpus_are_told_apart_and_nothing_is_said_of_what_cannot_be_read(tmp_path: Path) -> None:
    watch = GpuTelemetry({"gpu0": "0000:1b:00.0", "gpu1": "0000:1c:00.0"}, tmp_path)
    watch.links.update({"gpu0": "Gen5 x16", "gpu1": "Gen5 x8"})
    assert watch.how()["link under load"] == "gpu0 Gen5 x16, gpu1 Gen5 x8"
    assert GpuTelemetry({"gpu0": "0000:1b:00.0"}, tmp_path).how() == {}


def test_conditions_hold_what_the_machine_says_and_leave_out_the_rest(tmp_path: Path) -> None:
    config = bytearray(256)
    config[0x34] = 0x60
    config[0x60:0x62] = bytes([0x10, 0])
    config[0x68:0x6A] = (0x2 << 12 | 0x1 << 5).to_bytes(2, "little")
    device(tmp_path, "0000:1b:00.0", max_link_speed="32.0 GT/s PCIe\n", max_link_width="16\n", config=bytes(config))
    said = Gpus(Cuda(gpus=2), tmp_path).machine_facts()  # type: ignore[arg-type]
    assert said["CUDA driver"] == "13.0"
    expected = "Stand-in, 0000:1b:00.0, ordinal 0, NUMA node 0, at most Gen5 x16, max payload 256 B, read request 512 B"
    assert said["gpu0"] == expected
    assert said["gpu1"] == "Stand-in, 0000:1c:00.0, ordinal 1, NUMA node 0"


def test_a_capability_list_that_goes_in_circles_ends(tmp_path: Path) -> None:
    config = bytearray(256)
    config[0x34], config[0x40], config[0x41] = 0x40, 0x05, 0x40
    device(tmp_path, "0000:1b:00.0", config=bytes(config))
    driver: Any = Cuda(gpus=1)
    assert Gpus(driver, tmp_path).machine_facts()["gpu0"].endswith("NUMA node 0")


class Nvml:
    """As much of NVML as is asked, of a GPU that its power cap slows."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    def nvmlDeviceGetHandleByPciBusId(self, address: bytes) -> bytes:  # noqa: N802
        if address != b"0000:1b:00.0":
            raise LookupError(address)
        return address

    def nvmlDeviceGetClockInfo(self, handle: bytes, which: int) -> int:  # noqa: N802
        return {1: 1200, 2: 3201}[which]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: bytes) -> int:  # noqa: N802
        return 0x4 | 0x1

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: bytes) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: bytes) -> int:  # noqa: N802
        return 16


def test_nvml_says_what_sys_does_not_and_what_holds_clocks_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanewise.probes.gpu.telemetry.nvml", Nvml)
    watch = GpuTelemetry({"gpu0": "0000:1b:00.0", "gpu1": "0000:1c:00.0"}, tmp_path)
    with watch.recording():
        deadline = time.monotonic() + 300
        while not watch.clocks and time.monotonic() < deadline:
            time.sleep(0.01)
    assert watch.how() == {"link under load": "Gen4 x16", "clocks": "SM 1200 MHz, memory 3201 MHz (power cap)"}
