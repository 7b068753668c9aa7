"""Loaders of other makers, where they are installed: the same files to the same targets, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from lanewise.errors import CannotMeasure
from lanewise.options.measure_load import MeasureLoadOptions
from lanewise.probes.load.layout import LoadLayout

_MODULES = {
    "safetensors": "safetensors", "fastsafetensors": "fastsafetensors", "runai-streamer": "runai_model_streamer",
}  # fmt: skip
_PACKAGES = {"runai-streamer": "runai-model-streamer"}
_NEED_TORCH = ("fastsafetensors", "runai-streamer")
Report = Callable[[int], None]


class LoadLibrary:
    """One installed loader; `load` returns the seconds until every tensor is where it should be.

    CannotMeasure where it, or torch where it needs that, is not installed.
    """

    def __init__(self, name: str, options: MeasureLoadOptions, plan: LoadLayout) -> None:
        missing = missing_module(name, bool(options.gpus))
        if missing:
            raise CannotMeasure(f"{missing} is not installed", hint=f"pip install {missing}")
        self.name, self._options, self._plan = name, options, plan
        self.version = version(_PACKAGES.get(name, name))
        self._devices = [f"cuda:{number}" for number in options.gpus] or ["cpu"]
        self._torch: Any = None
        if find_spec("torch") is not None:
            import torch

            self._torch = torch
            for device in self._devices:
                torch.zeros(1, device=device)  # creates the context outside of the timing

    def load(self, report: Report) -> float:
        """Seconds of one load; `report` gets the number of tensors so far."""
        run = {"safetensors": self._mapped, "fastsafetensors": self._fast, "runai-streamer": self._streamed}[self.name]
        try:
            return run(report)
        except (OSError, RuntimeError, ValueError, TypeError, AttributeError) as error:
            cause = f"{self.name} {self.version} failed: {str(error).splitlines()[0][:120] if str(error) else error!r}"
            raise CannotMeasure(cause, hint="leave it out with --modes") from None

    def _mapped(self, report: Report) -> float:
        """safe_open: pages of a mapping that are touched and copied, one tensor after the other."""
        from safetensors import safe_open

        framework = "numpy" if self._torch is None else "pt"
        files, kept, began = self._options.files, [], time.perf_counter()
        for device, names in zip(self._devices, self._plan.names, strict=True):
            for path, wanted in _by_file(files, names):
                with safe_open(path, framework=framework, device=device) as file:
                    for name in wanted:
                        # On a CPU the library hands out the mapping itself: copied, so that its bytes are read.
                        tensor = file.get_tensor(name)
                        kept.append(tensor.clone() if device == "cpu" and self._torch is not None else tensor)
                        report(len(kept))
        return self._end(began)

    def _fast(self, report: Report) -> float:
        from fastsafetensors import SafeTensorsFileLoader, SingleGroup

        kept, began = [], time.perf_counter()
        for device, names in zip(self._devices, self._plan.names, strict=True):
            loader = SafeTensorsFileLoader(SingleGroup(), device, nogds=True)
            buffers: Any = None
            try:
                loader.add_filenames({0: [path for path, _ in _by_file(self._options.files, names)]})
                buffers = loader.copy_files_to_device()
                kept += [buffers.get_tensor(name) for _, name in names]
                report(len(kept))
                seconds = self._end(began)
            finally:
                kept.clear()
                if buffers is not None:
                    buffers.close()
                loader.close()
        return seconds

    def _streamed(self, report: Report) -> float:
        from runai_model_streamer import SafetensorsStreamer

        kept, began = [], time.perf_counter()
        for device, names in zip(self._devices, self._plan.names, strict=True):
            wanted = {name for _, name in names}
            with SafetensorsStreamer() as streamer:
                streamer.stream_files([path for path, _ in _by_file(self._options.files, names)])
                for name, tensor in streamer.get_tensors():
                    if name in wanted:
                        # The streamer's buffers are used again: on a CPU a copy is what stays.
                        kept.append(tensor.clone() if device == "cpu" else tensor.to(device, non_blocking=True))
                        report(len(kept))
        return self._end(began)

    def _end(self, began: float) -> float:
        for device in self._devices:
            if device != "cpu":
                self._torch.cuda.synchronize(device)
        return time.perf_counter() - began


def missing_module(name: str, gpu: bool) -> str:
    """The package that keeps a library from loading here; '' where nothing is missing."""
    if find_spec(_MODULES[name]) is None:
        return _PACKAGES.get(name, name)
    return "torch" if (gpu or name in _NEED_TORCH) and find_spec("torch") is None else ""


def _by_file(files: Sequence[str], names: Sequence[tuple[int, str]]) -> list[tuple[str, list[str]]]:
    """The wanted tensors of each file."""
    wanted: dict[int, list[str]] = {}
    for file, name in names:
        wanted.setdefault(file, []).append(name)
    return [(files[file], each) for file, each in wanted.items()]
