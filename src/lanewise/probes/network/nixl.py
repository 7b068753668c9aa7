"""Blocks over NIXL, where it is installed: an agent for each process, and one prepared transfer of all blocks."""

from __future__ import annotations

import importlib
import math
import os
import time
from typing import TYPE_CHECKING, Any

from lanewise import units
from lanewise.errors import CannotMeasure, MissingDependency

if TYPE_CHECKING:
    import numpy as np

BACKEND = "UCX"
_STANDSTILL = 10.0  # s until a transfer is given up
_WORD = 8
_MULTIPLIER = 0x9E3779B97F4A7C15


class NixlTimes:
    """What a transfer took, in s: all, in the post, in looks at its state that found it ended."""

    def __init__(self, seconds: float, posting: float, completing: float) -> None:
        self.seconds, self.posting, self.completing = seconds, posting, completing


class NixlBlocks:
    """One side's `count` blocks of `size` B in host memory; `sends` writes them into those of the other side.

    MissingDependency where NIXL is not installed, CannotMeasure for what it refuses.
    """

    def __init__(self, name: str, sends: bool, size: int, count: int) -> None:
        import numpy as np

        self._api = nixl_api()
        self._name, self._sends, self._size, self._count = name, sends, size, count
        words = np.arange(-(-size * count // _WORD), dtype=np.uint64) * np.uint64(_MULTIPLIER)
        self._pattern = words.view(np.uint8)[: size * count].reshape(count, size)
        self._memory = np.zeros((count, size), dtype=np.uint8)
        if sends:
            self._memory[places(count, at_source=True)] = self._pattern
        self._handle: Any = None
        self._lists: list[Any] = []
        self._agent = self._call("agent", lambda: self._api.nixl_agent(
            name, self._api.nixl_agent_config(backends=[BACKEND])
        ))  # fmt: skip
        address = [(self._memory.ctypes.data, self._memory.nbytes, 0, "")]
        self._registered = self._call("memory", lambda: self._agent.register_memory(address, "DRAM"))

    def address(self) -> tuple[str, int]:
        """What the side that sends takes: the agent's metadata in hexadecimal digits, and where its memory begins."""
        return self._agent.get_agent_metadata().hex(), int(self._memory.ctypes.data)

    def connect(self, metadata: str, memory: int) -> None:
        """Prepare the transfer to the blocks of the agent with that `address`."""
        import numpy as np

        there = self._call("the other side's agent", lambda: self._agent.add_remote_agent(bytes.fromhex(metadata)))
        own = self._blocks(int(self._memory.ctypes.data), places(self._count, at_source=True))
        theirs = self._blocks(memory, places(self._count, at_source=False))
        every = np.arange(self._count, dtype=np.int32)
        what = "the list of blocks"
        for agent, blocks in (("NIXL_INIT_AGENT", own), (there, theirs)):
            self._lists.append(self._call(what, lambda a=agent, b=blocks: self._agent.prep_xfer_dlist(a, b, "DRAM")))
        near, far = self._lists
        self._handle = self._call(what, lambda: self._agent.make_prepped_xfer("WRITE", near, every, far, every))

    def transfer(self) -> NixlTimes:
        """Move all blocks; the last has arrived where this returns."""
        begun = time.perf_counter()
        state = self._call("a transfer", lambda: self._agent.transfer(self._handle))
        posted = looked = time.perf_counter()
        while state == "PROC":
            looked = time.perf_counter()
            if looked - begun > _STANDSTILL:
                raise CannotMeasure(f"a transfer of NIXL does not end in {_STANDSTILL:g} s", hint=_LOOK)
            state = self._agent.check_xfer_state(self._handle)
        if state != "DONE":
            raise CannotMeasure(f"a transfer of NIXL ended in the state {state}", hint=_LOOK)
        end = time.perf_counter()
        return NixlTimes(end - begun, posted - begun, end - looked)

    def check(self) -> None:
        """Compare what arrived; CannotMeasure with the first block that differs."""
        if self._sends:
            return
        wrong = (self._memory[places(self._count, at_source=False)] != self._pattern).any(axis=1)
        if wrong.any():
            hint = "do not trust this path: look at the card, its driver and the kernel's log"
            raise CannotMeasure(f"data arrived changed: block {int(wrong.argmax())}", hint=hint)

    def ready(self) -> bool:
        """True: the side that sends knows when a transfer has ended."""
        return True

    done = ready

    def go(self) -> None:
        """Nothing: transfers begin one by one."""

    def stop(self) -> None:
        """Give everything back, in this order: an agent that outlives its lists or its memory ends the process."""
        if self._agent is None:
            return
        if self._handle is not None:
            self._handle.release()
        for prepared in self._lists:
            prepared.release()
        self._handle, self._lists = None, []
        self._agent.deregister_memory(self._registered)
        self._agent = None

    def nodes(self) -> dict[int, int]:
        """Unknown: NIXL's memory is not bound."""
        return {}

    def _blocks(self, base: int, order: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        import numpy as np

        addresses = np.uint64(base) + order.astype(np.uint64) * np.uint64(self._size)
        sizes = np.full(self._count, self._size, dtype=np.uint64)
        return np.stack([addresses, sizes, np.zeros_like(sizes)], axis=1)

    def _call(self, what: str, call: Any) -> Any:
        try:
            return call()
        except Exception as error:  # NIXL has an error class for each state
            cause = f"NIXL refuses {what} ({units.size(self._size * self._count)}): {error or type(error).__name__}"
            raise CannotMeasure(cause, hint=_LOOK) from None


_LOOK = "NIXL_LOG_LEVEL=DEBUG and UCX_LOG_LEVEL=info on both sides say more"


def nixl_api() -> Any:
    """NIXL's Python interface; MissingDependency where it is not installed."""
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")
    try:
        return importlib.import_module("nixl._api")
    except ImportError as error:
        raise MissingDependency(f"NIXL cannot be used: {error}", hint="pip install nixl, on both sides") from None


def nixl_version() -> str:
    """Such as 'NIXL 1.5.1'; 'NIXL' where the package does not say."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"NIXL {version('nixl')}"
    except PackageNotFoundError:
        return "NIXL"


def places(count: int, at_source: bool) -> np.ndarray[Any, Any]:
    """The place of each block in a side's memory, scattered, the same at both ends."""
    import numpy as np

    step = max(1, round(count * (0.618 if at_source else 0.382)))
    while math.gcd(step, count) > 1:
        step += 1
    return np.arange(count, dtype=np.int64) * step % count
