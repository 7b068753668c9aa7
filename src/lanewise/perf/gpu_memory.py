"""Whether data fits in the memory of GPUs, by the sizes that their parts state."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise import units
from lanewise.errors import InputError
from lanewise.topology.model import Kind, System


def least_memory(system: System, devices: Sequence[str]) -> tuple[str, float] | None:
    """The GPU of `devices` with the least memory, and its bytes; None unless the parts of all of them state it."""
    gpus = [name for name in devices if name in system.devices and system.device(name).kind is Kind.GPU]
    parts = [system.part(gpu) for gpu in gpus]
    sizes = [None if part is None else part.number("memory.size") for part in parts]
    known = [(size, gpu) for size, gpu in zip(sizes, gpus, strict=True) if size is not None]
    if not known or len(known) < len(gpus):
        return None
    size, gpu = min(known)
    return gpu, size


def check_fits(system: System, devices: Sequence[str], size: float, what: str, hint: str) -> None:
    """InputError where `size` B do not fit in the memory of one of the GPUs; nothing where a part states no size."""
    least = least_memory(system, devices)
    if least is not None and size > least[1]:
        gpu, memory = least
        cause = f"{what} of {units.show(size, 'GB')} does not fit in {gpu}: its memory has {units.show(memory, 'GB')}"
        raise InputError(cause, hint=hint)
