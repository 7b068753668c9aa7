"""Optional dependencies: their file names, whether they are installed, and what is disabled without them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_CUFILE, _NCCL = "libcufile.so.0", "libnccl.so.2"


@dataclass(frozen=True, slots=True)
class Dependency:
    """One optional dependency: whether it was found, a detail, and what is disabled without it."""

    piece: str
    found: bool
    detail: str
    without_it: str


def dependencies() -> tuple[Dependency, ...]:
    """Every optional dependency, those that verbs need first."""
    return tuple(Dependency(piece, *_attempt(look), without_it) for piece, look, without_it in _LOOKS)


def cuda_driver() -> str:
    """The file of the CUDA driver: what LANEWISE_CUDA_DRIVER names, else libcuda.so.1."""
    return os.environ.get("LANEWISE_CUDA_DRIVER") or "libcuda.so.1"


def cufile() -> str:
    """The file of cuFile: what LANEWISE_CUFILE names, else its path in a Python package, which no loader knows."""
    return os.environ.get("LANEWISE_CUFILE") or _in_wheel("cufile", _CUFILE)


def nccl() -> str:
    """The file of NCCL: what LANEWISE_NCCL names, else its path in a Python package, which no loader knows."""
    return os.environ.get("LANEWISE_NCCL") or _in_wheel("nccl", _NCCL)


def _in_wheel(package: str, file: str) -> str:
    """The path of a library in NVIDIA's Python package, its plain name where that is not installed."""
    from importlib.util import find_spec

    for name in (package, "cu13") if find_spec("nvidia") is not None else ():  # wheels of CUDA 12 and 13
        home = find_spec(f"nvidia.{name}")
        for folder in (home and home.submodule_search_locations) or ():
            if (path := Path(folder) / "lib" / file).exists():
                return str(path)
    return file


def _attempt(look: Callable[[], str]) -> tuple[bool, str]:
    try:
        return True, look()
    except AttributeError as error:
        if getattr(error.obj, "__name__", "") == "lanewise._native":
            return False, f"the native core has no {error.name}: built from another version; reinstall Lanewise"
        return False, str(error).split("\n")[0][:60]
    except Exception as error:  # whatever keeps a piece from loading, doctor goes on
        return False, "" if isinstance(error, OSError) else str(error).split("\n")[0][:60]


def _native() -> str:
    from lanewise import _native as core

    return str(core.__file__).rpartition("/")[2]


def _module(package: str, module: str = "") -> str:
    from importlib.metadata import version

    __import__(module or package)
    return version(package)


def _version(package: str) -> str:
    """That of a package which takes long to import."""
    from importlib.metadata import version

    return version(package)


def _library(name: str) -> str:
    import ctypes

    ctypes.CDLL(name)
    return name.rpartition("/")[2]


def _simgrid() -> str:
    import ctypes.util

    name = ctypes.util.find_library("simgrid")
    if not name:
        raise LookupError
    return name


def _nvml() -> str:
    import pynvml

    pynvml.nvmlInit()
    return f"{pynvml.nvmlDeviceGetCount()} GPUs"


def _onnxruntime() -> str:
    import onnxruntime

    providers = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    gpu = ", untested on GPUs" if {"CUDA", "Tensorrt"} & set(providers) else ""
    return f"{onnxruntime.__version__}: {', '.join(providers)}{gpu}"


def _tensorrt() -> str:
    return f"{_module('tensorrt')}, untested on GPUs"


def _torch() -> str:
    from importlib.util import find_spec

    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    compiler = "" if find_spec("triton") else ", no Triton: --mode graphs, not compiled-graphs"
    return f"{torch.__version__}: {f'CUDA, {gpus} GPUs{compiler}' if gpus else 'no CUDA here'}"


def _nvidia_fs() -> str:
    with open("/proc/driver/nvidia-fs/version", encoding="utf-8") as lines:
        return lines.readline().strip()


def _io_uring() -> str:
    from lanewise import _native as core

    if missing := core.io_uring_missing():
        raise LookupError(missing)
    return "the kernel has it"


def _verbs() -> str:
    from lanewise import _native as core

    if not (devices := core.verbs_devices()):
        return "no RDMA device"
    return ", ".join(f"{device} ({'active' if _has_active_port(device) else 'no active port'})" for device in devices)


def _dma_buf() -> str:
    from lanewise import _native as core

    try:
        core.check_gpu_memory(cuda_driver(), 0)
    except core.ProbeFailure as failure:
        raise LookupError(str(failure.args[0]).partition(" (")[0]) from None
    return "GPU 0 and libibverbs; never run on RDMA hardware"


def _has_active_port(device: str) -> bool:
    ports = Path("/sys/class/infiniband", device, "ports")
    return any("ACTIVE" in state.read_text(encoding="ascii") for state in ports.glob("*/state"))


def loadgen_missing() -> str:
    """Why load tests cannot run here: what the build said about LoadGen, '' where it was built."""
    from importlib.util import find_spec

    if find_spec("lanewise._loadgen_build") is None:
        return "Lanewise was built before it had load tests"
    from lanewise._loadgen_build import WHY_NOT

    return WHY_NOT


def _loadgen() -> str:
    if missing := loadgen_missing():
        raise LookupError(missing)
    from lanewise import _loadgen as module

    return module.VERSION


_LOOKS: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("native core", _native, "predict, study, calibrate and measure do not run: reinstall Lanewise"),
    ("scipy", lambda: _module("scipy"), "no fits: calibrate and studies that fit do not run"),
    (
        "matplotlib",
        lambda: _module("matplotlib"),
        "no charts: report, study run -o and loadtest sweep --chart do not run: pip install 'lanewise[report]'",
    ),
    ("OR-tools", lambda: _module("ortools"), "no placements: plan ranks systems only: pip install 'lanewise[plan]'"),
    (
        "Ray",
        lambda: _version("ray"),
        "--on ray does not run, --on local does: pip install 'lanewise[ray]'",
    ),
    ("fsspec", lambda: _version("fsspec"), "a history is a folder, not s3://: pip install 'lanewise[history]'"),
    (
        "CUDA driver",
        lambda: _library(cuda_driver()),
        "measure gpu does not run, nor storage into GPU memory: install NVIDIA's driver 520 or later",
    ),
    ("NVML", _nvml, "clocks and what holds them down are not recorded; discover reads GPUs from PCIe alone"),
    ("cuFile", lambda: _library(cufile()), "storage reaches GPU memory by way of the host: pip install nvidia-cufile"),
    ("NCCL", lambda: _library(nccl()), "measure collectives does not run: pip install nvidia-nccl-cu12 (or cu13)"),
    ("nvidia-fs", _nvidia_fs, "cuFile reads by way of host memory, in its compat mode: modprobe nvidia-fs"),
    ("io_uring", _io_uring, "measure storage reads with threads that call pread, one I/O each"),
    ("libibverbs", _verbs, "measure network and loadtest --nodes run without RDMA: install rdma-core"),
    ("dma-buf", _dma_buf, "serve has no --gpu-memory: samples reach a GPU by way of the node's host memory"),
    (
        "LoadGen",
        _loadgen,
        "loadtest does not run: install again where PyPI can be reached, or see LANEWISE_LOADGEN_SDIST",
    ),
    ("onnxruntime", _onnxruntime, "loadtest has no onnxruntime engine: pip install 'lanewise[loadtest]'"),
    (
        "onnx",
        lambda: _module("onnx"),
        "loadtest builds no models of its own for onnxruntime: pip install 'lanewise[loadtest]'",
    ),
    ("torch", _torch, "loadtest has no torch engine: pip install 'lanewise[torch]'"),
    ("tensorrt", _tensorrt, "loadtest has no tensorrt engine: pip install 'tensorrt>=10' 'lanewise[torch,loadtest]'"),
    (
        "pillow",
        lambda: _module("pillow", "PIL.Image"),
        "loadtest reads no folders of images: pip install 'lanewise[images]'",
    ),
    ("SimGrid", _simgrid, "the benchmark against SimGrid is skipped; no verb needs it"),
)
