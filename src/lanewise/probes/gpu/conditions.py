"""The conditions that GPUs are measured under: driver, GPUs and their links; every run records the rest."""

from __future__ import annotations

from pathlib import Path

from lanewise.probes.gpu.names import Gpus
from lanewise.probes.gpu.telemetry import nvml
from lanewise.probes.machine import SYS, link, text

_CAPABILITIES, _NEXT, _EXPRESS = 0x34, 1, 0x10  # the PCI configuration space: first capability, next, PCI Express


def conditions(gpus: Gpus, driver: int, sys: Path = SYS) -> dict[str, str]:
    """What a run file's `machine` says of GPUs; what cannot be read is left out."""
    facts = {
        "CUDA driver": f"{driver // 1000}.{driver % 1000 // 10}",
        "NVIDIA driver": _nvidia_driver(sys),
    }
    for name, device in gpus.by_name.items():
        folder = sys / "bus/pci/devices" / device.pci.lower()
        node = f"NUMA node {device.numa}" if device.numa >= 0 else ""
        best = link(folder, "max")
        parts = [device.name, device.pci, f"ordinal {device.ordinal}", node, f"at most {best}" if best else "",
                 _payload(folder)]  # fmt: skip
        facts[name] = ", ".join(part for part in parts if part)
    return {key: text for key, text in facts.items() if text}


def _nvidia_driver(sys: Path) -> str:
    lib = nvml()
    if lib is not None:
        driver = lib.nvmlSystemGetDriverVersion()
        return driver.decode() if isinstance(driver, bytes) else str(driver)
    return text(sys / "module/nvidia/version")


def _payload(folder: Path) -> str:
    """Max payload and max read request of a PCIe device, from its device control register (root may read it)."""
    try:
        config = (folder / "config").read_bytes()
    except OSError:
        return ""
    at, capabilities = config[_CAPABILITIES] & 0xFC if len(config) > 64 else 0, 48
    while at and at + 10 <= len(config) and capabilities:
        if config[at] == _EXPRESS:
            control = int.from_bytes(config[at + 8 : at + 10], "little")
            return f"max payload {128 << (control >> 5 & 7)} B, read request {128 << (control >> 12 & 7)} B"
        at, capabilities = config[at + _NEXT] & 0xFC, capabilities - 1
    return ""
