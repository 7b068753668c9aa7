"""Links and clocks of GPUs while copies run: idle links train down, so their speed counts only under load."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanewise.probes import machine
from lanewise.results.conditions import CLOCK_REASONS

_FAULTS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # what holds a busy GPU down; idle and set clocks are no fault
_PAUSE = 0.005  # s; one reading costs some tens of microseconds, and samples take tens of milliseconds


class GpuTelemetry:
    """Reads links from /sys and clocks through NVML, in a thread of its own, while a measurement runs.

    `addresses` are PCI addresses by GPU name. What cannot be read is left out.
    """

    def __init__(self, addresses: Mapping[str, str], sys: Path = machine.SYS) -> None:
        self._folders = {gpu: sys / "bus/pci/devices" / pci.lower() for gpu, pci in addresses.items()}
        self._clocks = _Nvml(addresses)
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
                link = machine.link(folder) or self._clocks.link(gpu)
                if link:
                    self.links[gpu] = link
            if not self.clocks:  # once: NVML takes milliseconds to answer, and every sample waits for it
                self.clocks.update(self._clocks.read())


def nvml() -> Any:
    """NVML, initialised; None where there is none (no driver, or one that hides it)."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return None  # its errors differ by version, and whichever it is, clocks are extra
    return pynvml


class _Nvml:
    """Clocks and what holds them down, and links where /sys does not show them."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._nvml = nvml()
        handles = {gpu: self._handle(pci) for gpu, pci in addresses.items()} if self._nvml else {}
        self._handles = {gpu: handle for gpu, handle in handles.items() if handle is not None}

    def read(self) -> dict[str, str]:
        """'SM 1980 MHz, memory 3201 MHz' by GPU, and why they are low where something slows them."""
        clocks = {}
        for gpu, handle in self._handles.items():
            try:
                clocks[gpu] = self._read(handle)
            except Exception:  # as above; not every GPU answers every question
                continue
        return clocks

    def link(self, gpu: str) -> str:
        """'Gen5 x16', or '' where NVML does not say."""
        handle = self._handles.get(gpu)
        if handle is None:
            return ""
        try:
            generation = self._nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)
            return f"Gen{generation} x{self._nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)}"
        except Exception:
            return ""

    def _handle(self, pci: str) -> Any:
        try:
            return self._nvml.nvmlDeviceGetHandleByPciBusId(pci.encode())
        except Exception:
            return None

    def _read(self, handle: Any) -> str:
        lib = self._nvml
        sm = lib.nvmlDeviceGetClockInfo(handle, lib.NVML_CLOCK_SM)
        memory = lib.nvmlDeviceGetClockInfo(handle, lib.NVML_CLOCK_MEM)
        reasons = lib.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        slowed = [text for bit, text in CLOCK_REASONS.items() if reasons & bit & _FAULTS]
        return f"SM {sm} MHz, memory {memory} MHz" + (f" ({', '.join(slowed)})" if slowed else "")


def _joined(by_gpu: Mapping[str, str]) -> str:
    """The text of one GPU; of several each with its GPU's name."""
    if len(by_gpu) == 1:
        return next(iter(by_gpu.values()))
    return ", ".join(f"{gpu} {text}" for gpu, text in by_gpu.items())
