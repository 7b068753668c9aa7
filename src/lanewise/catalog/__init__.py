"""Parts with sourced figures: GPUs, CPUs, switches, NICs, SSDs, NVLinks and adapters, kept as data files."""

from lanewise.catalog.keys import BASES, KEYS, KINDS, Key, unit_of
from lanewise.catalog.model import Catalog, Figure, Part
from lanewise.catalog.reading import builtin, read_parts
from lanewise.catalog.writing import write_parts

__all__ = [
    "BASES",
    "KEYS",
    "KINDS",
    "Catalog",
    "Figure",
    "Key",
    "Part",
    "builtin",
    "read_parts",
    "unit_of",
    "write_parts",
]
