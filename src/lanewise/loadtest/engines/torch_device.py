"""Where torch runs: the few calls that differ between a CPU and a GPU, each as short as can be.

A GPU takes orders: what is called here of the engine's thread is queued on one stream and done in that order, and an
event says when. On a CPU each call is done when it is back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from lanewise.errors import CannotMeasure

Run = Callable[[Any], Any]


class TorchDevice(ABC):
    """What the torch engine needs of a device, by default one whose calls are done when they are back.

    All but `wait` are called by the engine's thread.
    """

    name: str

    @abstractmethod
    def enter(self, entered: ExitStack) -> None:
        """Makes it the thread's own, until `entered` is closed."""

    def stream(self) -> int:
        """The handle of the stream that the engine's thread queues on; 0 where nothing is queued."""
        return 0

    @abstractmethod
    def bytes_at(self, address: int, rows: int, stride: int) -> Any:
        """Memory of the device as a tensor of uint8 (rows, stride), which nobody reads by that."""

    @abstractmethod
    def answers(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Host memory that a copy from the device ends in without waiting."""

    def event(self) -> Any:
        """A mark in the order of what is queued; None where nothing is."""
        return None

    def record(self, event: Any) -> None:  # noqa: B027 - nothing to do by default
        """Sets it behind all that was queued."""

    def wait(self, event: Any) -> None:  # noqa: B027 - nothing to do by default
        """Back when all before it is done; other threads of Python run meanwhile."""

    def captured(self, run: Run, buffer: Any) -> Run:
        """`run(buffer)` as a graph: a function that queues it, and always gives the same tensors; the function itself
        where there are no graphs."""
        return run

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What it is."""

    def let_go(self) -> None:  # noqa: B027 - nothing to do by default
        """Gives free memory back."""


class Cpu(TorchDevice):
    """Host memory and the cores."""

    name = "cpu"

    def __init__(self, torch: Any, threads: int) -> None:
        self.torch, self._threads = torch, threads

    def enter(self, entered: ExitStack) -> None:
        """See TorchDevice."""
        if self._threads:
            self.torch.set_num_threads(self._threads)

    def bytes_at(self, address: int, rows: int, stride: int) -> Any:
        """See TorchDevice."""
        import ctypes

        import numpy as np

        buffer = (ctypes.c_uint8 * (rows * stride)).from_address(address)
        return self.torch.from_numpy(np.ctypeslib.as_array(buffer).reshape(rows, stride))

    def answers(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """See TorchDevice."""
        return self.torch.empty(shape, dtype=dtype)

    def describe(self) -> dict[str, object]:
        """See TorchDevice."""
        return {"threads": self._threads or "torch's choice"}


class Cuda(TorchDevice):
    """The GPU that CUDA counts as `index`; CannotMeasure where torch has no CUDA or no such GPU."""

    def __init__(self, torch: Any, index: int) -> None:
        if not torch.cuda.is_available():
            raise CannotMeasure("torch finds no CUDA here", hint="pip install torch with CUDA, or use --device cpu")
        if index >= torch.cuda.device_count():
            cause = f"there is no cuda:{index}, torch sees {torch.cuda.device_count()} GPUs"
            raise CannotMeasure(cause, hint="count from cuda:0")
        self.name, self.torch, self._index = f"cuda:{index}", torch, index
        self._stream: Any = None
        self._pool: Any = None

    def enter(self, entered: ExitStack) -> None:
        """See TorchDevice: its own stream, and convolutions chosen by trying them, as sizes are few and prepared."""
        torch = self.torch
        torch.backends.cudnn.benchmark = True
        entered.enter_context(torch.cuda.device(self._index))
        self._stream = torch.cuda.Stream(self._index)
        entered.enter_context(torch.cuda.stream(self._stream))

    def stream(self) -> int:
        """See TorchDevice; a graph is captured on the same stream."""
        return int(self._stream.cuda_stream)

    def bytes_at(self, address: int, rows: int, stride: int) -> Any:
        """See TorchDevice."""
        interface = {"shape": (rows, stride), "typestr": "|u1", "data": (address, False), "version": 3}
        holder = type("Memory", (), {"__cuda_array_interface__": interface})()
        return self.torch.as_tensor(holder, device=self.name)

    def answers(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """See TorchDevice: pinned, as a copy to other memory would wait for the stream."""
        return self.torch.empty(shape, dtype=dtype, pin_memory=True)

    def event(self) -> Any:
        """See TorchDevice; who waits for it sleeps, as the cores are the load generator's."""
        return self.torch.cuda.Event(blocking=True)

    def record(self, event: Any) -> None:
        """See TorchDevice."""
        event.record(self._stream)

    def wait(self, event: Any) -> None:
        """See TorchDevice; sets the GPU first: a thread that is new to CUDA would create a context on GPU 0."""
        with self.torch.cuda.device(self._index):
            event.synchronize()

    def captured(self, run: Run, buffer: Any) -> Run:
        """See TorchDevice; graphs share memory: they run one after another, and each answer is copied in between."""
        torch = self.torch
        torch.cuda.synchronize(self._index)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use their GPUs meanwhile; this one's calls alone are captured.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            outputs = run(buffer)
        self._pool = graph.pool()

        def replayed(_: Any) -> Any:
            graph.replay()
            return outputs

        return replayed

    def describe(self) -> dict[str, object]:
        """See TorchDevice; which GPU it is by its PCI address, where torch says it."""
        torch = self.torch
        properties = torch.cuda.get_device_properties(self._index)
        setup: dict[str, object] = {"gpu": properties.name, "cuda": torch.version.cuda}
        if hasattr(properties, "pci_bus_id"):
            setup["pci"] = (
                f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
            )
        return setup | {"tf32": bool(torch.backends.cudnn.allow_tf32)}

    def let_go(self) -> None:
        """See TorchDevice."""
        self._pool = self._stream = None
        self.torch.cuda.empty_cache()


def device_of(torch: Any, index: int | None, threads: int) -> TorchDevice:
    """The GPU of that ordinal, or the CPU (None) with so many threads (0: torch's own choice)."""
    return Cpu(torch, threads) if index is None else Cuda(torch, index)
