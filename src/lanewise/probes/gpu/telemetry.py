"""Links and clocks of GPUs while copies run: idle links train down, so their speed counts only under load."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lanewise.probes import machine
from lanewise.results.conditions import CLOCK_REASONS

_FAULTS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # what holds a busy GPU down; idle and set clocks are no fault
_PAUSE = 0.005  # s; one reading costs some tens of microseconds, and samples take tens of milliseconds


class GpuTelemetry:
    """Reads links from /sys (or NVML) and clocks through NVML, in a thread of its own, while a measurement runs.

    `addresses` are PCI addresses by GPU name. What cannot be read is left out.
    """

    def __init__(self, addresses: Mapping[str, str], sys: Path = machine.SYS) -> None:
        self._folders = {gpu: sys / "bus/pci/devices" / pci.lower() for gpu, pci in addresses.items()}
        self._nvml = nvml()
        self._handles: dict[str, Any] = {}
        for gpu, pci in addresses.items() if self._nvml else ():
            with suppress(Exception):  # errors differ by version, and not every GPU answers: what is read here is extra
                self._handles[gpu] = self._nvml.nvmlDeviceGetHandleByPciBusId(pci.encode())
        self.links: dict[str, str] = {}
        self.clocks: dict[str, str] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Read while the block runs: the last reading of links stays in `links`, the first of clocks in `clocks`."""
        stop = threading.Event()
        thread = threading.Thread(target=self._poll, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def how(self) -> dict[str, str]:
        """The readings, in the words of a sample's `how`."""
        readings = {"link under load": _joined(self.links), "clocks": _joined(self.clocks)}
        return {key: text for key, text in readings.items() if text}

    def _poll(self, stop: threading.Event) -> None:
        while not stop.wait(_PAUSE):
            for gpu, folder in self._folders.items():
                with suppress(Exception):
                    self.links[gpu] = machine.link(folder) or self._link(self._handles[gpu])
            if not self.clocks:  # once: NVML takes milliseconds to answer, and every sample waits for it
                for gpu, handle in self._handles.items():
                    with suppress(Exception):
                        self.clocks[gpu] = self._clocks(handle)

    def _link(self, handle: Any) -> str:
        """'Gen5 x16', as NVML says where /sys does not."""
        lib = self._nvml
        return f"Gen{lib.nvmlDeviceGetCurrPcieLinkGeneration(handle)} x{lib.nvmlDeviceGetCurrPcieLinkWidth(handle)}"

    def _clocks(self, handle: Any) -> str:
        """'SM 1980 MHz, memory 3201 MHz', and why they are low where something slows them."""
        lib = self._nvml
        sm = lib.nvmlDeviceGetClockInfo(handle, lib.NVML_CLOCK_SM)
        memory = lib.nvmlDeviceGetClockInfo(handle, lib.NVML_CLOCK_MEM)
        reasons = lib.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        slowed = [text for bit, text in CLOCK_REASONS.items() if reasons & bit & _FAULTS]
        return f"SM {sm} MHz, memory {memory} MHz" + (f" ({', '.join(slowed)})" if slowed else "")


def nvml() -> Any:
    """NVML, initialised; None where there is none (no driver, or one that hides it)."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return None  # its errors differ by version, and whichever it is, clocks are extra
    return pynvml


def _joined(by_gpu: Mapping[str, str]) -> str:
    """The text of one GPU; of several each with its GPU's name."""
    if len(by_gpu) == 1:
        return next(iter(by_gpu.values()))
    return ", ".join(f"{gpu} {text}" for gpu, text in by_gpu.items())
