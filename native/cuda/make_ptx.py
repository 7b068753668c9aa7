"""Compiles kernels.cu to kernels.ptx with NVRTC 11.8, whose PTX every driver since 520 reads and compiles for its GPU.

Needs no GPU and no CUDA: python -m venv V && V/bin/pip install nvidia-cuda-nvrtc-cu11==11.8.89, then
V/bin/python native/cuda/make_ptx.py. `--check` only says whether kernels.ptx is of the present sources.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ("kernels.cu", "pattern.hpp")
TARGET = "compute_52"  # the oldest that NVRTC 11.8 takes without a warning; drivers compile it for what they find
PREFIX = "// sources sha256 "


def digest() -> str:
    """SHA-256 over the sources, one after the other."""
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()


def compile_ptx() -> str:
    """The PTX of kernels.cu; SystemExit with the compiler's log if it refuses."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    source, header = ((HERE / name).read_bytes() for name in SOURCES)
    headers, names = (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(SOURCES[1].encode())
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 1, headers, names))
    flags = (f"--gpu-architecture={TARGET}", "--std=c++17", "--device-as-default-execution-space")
    options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    if nvrtc.nvrtcCompileProgram(program, len(flags), options) != 0:
        raise SystemExit(_text(nvrtc, program, "ProgramLog"))
    return _text(nvrtc, program, "PTX")


def _library() -> ctypes.CDLL:
    import nvidia.cuda_nvrtc

    folder = Path(next(iter(nvidia.cuda_nvrtc.__path__))) / "lib"
    ctypes.CDLL(str(next(folder.glob("libnvrtc-builtins.so*"))), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(next(folder.glob("libnvrtc.so*"))))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.value.decode()


def _check(nvrtc: ctypes.CDLL, result: int) -> None:
    if result != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise SystemExit(f"NVRTC: {nvrtc.nvrtcGetErrorString(result).decode()}")


def main() -> None:
    """Writes kernels.ptx, or with --check compares its first line with the sources."""
    ptx = HERE / "kernels.ptx"
    line = PREFIX + digest()
    if "--check" in sys.argv[1:]:
        if ptx.read_text().partition("\n")[0] != line:
            raise SystemExit("kernels.ptx is not of the present sources: run make_ptx.py")
        return
    ptx.write_text(f"{line}\n{compile_ptx()}")


if __name__ == "__main__":
    main()
