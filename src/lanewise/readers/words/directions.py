"""How people and programs write copies between host and device: H2D, HtoD, host_to_device, CPU -> GPU.

Patterns for any case. Formats of tools have words of their own, each with its reader.
"""

from __future__ import annotations


def _copy(*ends: tuple[str, str]) -> str:
    joined = "|".join(rf"{source}(?:2|[ _-]?to[ _-]?| ?(?:->|\u2192) ?){target}" for source, target in ends)
    return rf"(?<![a-z0-9])(?:{joined})(?![a-z0-9])"


_HOST, _DEVICE = r"h(?:ost)?", r"d(?:ev(?:ice)?)?"
TO_DEVICE = f"(?:{_copy((_HOST, _DEVICE), ('cpu', 'gpu'))}|host_to_gpu)"
FROM_DEVICE = f"(?:{_copy((_DEVICE, _HOST), ('gpu', 'cpu'))}|gpu_to_host)"
WITHIN_DEVICES = _copy((_DEVICE, _DEVICE))
# Their short names alone: a longer text may speak of a host and of a device without a copy between them.
H2D, D2H = r"\b(?:h2d|htod)\b", r"\b(?:d2h|dtoh)\b"
