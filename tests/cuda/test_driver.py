"""The driver's own failures: each is told, and whatever fails, all that was taken is given back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fake_cuda
import pytest
from example_counts import examples
from garbage import collect
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from lanewise._native import Cuda, CudaBlocks, CudaFlow, ProbeFailure

Open = Callable[..., Cuda]
NATIVE = Path(__file__).parents[2] / "native" / "cuda"
CALLS = """
    cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetPCIBusId cuDeviceGetAttribute
    cuDeviceTotalMem cuDevicePrimaryCtxRetain cuDeviceCanAccessPeer cuCtxEnablePeerAccess cuCtxDisablePeerAccess
    cuMemGetInfo cuMemAlloc cuMemHostRegister cuMemHostGetDevicePointer cuStreamCreate cuStreamSynchronize
    cuEventCreate cuEventRecord cuEventSynchronize cuEventElapsedTime cuMemsetD8Async cuMemcpyHtoDAsync
    cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpyPeerAsync cuModuleLoadDataEx cuModuleGetFunction cuFuncGetAttribute
    cuLaunchKernel cuMemcpyBatchAsync
""".split()  # noqa: SIM905


def use_everything(library: Path) -> None:
    """Each kind of work once, with what is made in between kept alive."""
    driver = Cuda(str(library))
    flows = [(-1, 0), (0, -1), (0, 1)]
    run = driver.prepare([CudaFlow(src, dst, 4096, 2, sm=sm) for src, dst in flows for sm in (False, True)])
    run.run()
    run.verify()
    driver.prepare([CudaFlow(src, dst, 4096, 2, sm=True, duplex=True) for src, dst in flows[:2]]).verify()
    driver.prepare([CudaFlow(0, 1, 4096, 1, p2p=False)]).run()
    for method in ("calls", "batch", "kernel", "staged"):
        driver.prepare_queries(0, -1, method, library=8, bytes=64, batch=4, batches=3).run()
    blocks = driver.prepare_blocks([CudaBlocks(0, -1, 64, 4, "kernel"), CudaBlocks(-1, 0, 64, 4, "cuMemcpyAsync")])
    blocks.run()
    blocks.verify()
    driver.chase(0, 1, steps=8)
    driver.launch(-1, 1, p2p=True, repeats=2)
    assert driver.devices[0].free > 0


@pytest.fixture(scope="module")
def how_often(library: Path) -> dict[str, int]:
    """How often each function is called when nothing fails."""
    use_everything(library)
    return {name: fake_cuda.calls(library, name) for name in CALLS}


def test_every_function_of_the_driver_is_used(how_often: dict[str, int]) -> None:
    assert [name for name, count in how_often.items() if count == 0] == []


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_whichever_call_fails_all_is_given_back(
    library: Path, how_often: dict[str, int], monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(CALLS))
    nth = data.draw(st.integers(1, how_often[name]))
    monkeypatch.setenv("FAKE_CUDA_FAIL", f"{name}:{nth}")
    try:
        use_everything(library)
    except ProbeFailure as failure:
        cause, hint = failure.args
        assert cause.startswith(f"{name}: unknown error"), cause
        assert "nvidia-smi" in hint or "memory" in hint
    collect()
    assert fake_cuda.live(library) == dict.fromkeys(fake_cuda.KINDS, 0)


def test_a_machine_without_the_driver_is_told_so() -> None:
    with pytest.raises(ProbeFailure, match=r"the CUDA driver cannot be opened: nowhere\.so") as failure:
        Cuda("nowhere.so")
    assert "nvidia-smi" in failure.value.args[1]


def test_a_library_that_is_no_driver_is_refused() -> None:
    with pytest.raises(ProbeFailure, match="has no cuInit"):
        Cuda("libc.so.6")


def test_a_driver_without_gpus_is_refused(cuda: Open) -> None:
    with pytest.raises(ProbeFailure, match="no CUDA-capable device") as failure:
        cuda(GPUS=0)
    assert "CUDA_VISIBLE_DEVICES" in failure.value.args[1]


def test_a_driver_too_old_for_the_kernels_is_refused(cuda: Open) -> None:
    with pytest.raises(ProbeFailure, match=r"of CUDA 11\.4; Lanewise needs CUDA 11\.8"):
        cuda(VERSION=11040)


def test_what_the_drivers_compiler_says_of_the_kernels_is_told(cuda: Open) -> None:
    with pytest.raises(ProbeFailure, match=r"a PTX JIT compilation failed \(GPU 0: ptxas fatal: planted\)"):
        cuda(JIT_ERROR=1).prepare([CudaFlow(-1, 0, 4096, 1)])


def test_a_process_that_ends_in_the_middle_ends_well(library: Path) -> None:
    code = (
        "from lanewise._native import Cuda, CudaFlow\n"
        f"cuda = Cuda({str(library)!r})\n"
        "run = cuda.prepare([CudaFlow(-1, 0, 4096, 2), CudaFlow(0, 1, 4096, 2)])\n"
        "run.run()\n"
        "print('ended')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


def test_the_ptx_is_of_the_present_kernels() -> None:
    check = subprocess.run(
        [sys.executable, str(NATIVE / "make_ptx.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stderr
