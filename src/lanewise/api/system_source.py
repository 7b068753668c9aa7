"""A system as text, which worker processes and other machines read: no file of the driver is opened there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import overriding_parts, read_part_files, read_ref, with_own_parts
from lanewise.catalog import Catalog, builtin

if TYPE_CHECKING:
    from lanewise.topology.model import System


@dataclass(frozen=True)
class SystemSource:
    """A description, path and text of the part files that it names, and the parts that override built-in ones."""

    text: str
    file: str
    part_files: tuple[tuple[str, str], ...] = ()
    parts: Catalog = field(default_factory=Catalog, hash=False)

    @cached_property
    def catalog(self) -> Catalog:
        """Every part; read once in each batch."""
        stated = builtin().merge(self.parts) if self.parts.parts else builtin()
        return with_own_parts(stated, self.part_files)

    def system(self, settings: Mapping[str, int]) -> System:
        """The system with these settings; raises what load_system raises."""
        from lanewise.topology.read import read_system

        return read_system(self.text, self.file, settings, self.catalog)

    def content(self) -> list[Any]:
        """What a hash of the source takes: texts alone, so that it is the same in every process."""
        return [self.text, list(self.part_files), [repr(part) for part in self.parts.parts.values()]]

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemSource, (self.text, self.file, self.part_files, self.parts)


def system_source(ref: str | Path, catalog: Catalog | None = None) -> SystemSource:
    """The source of a built-in system or of a description file; `catalog` as load_system has it.

    Raises UnknownName for a system that does not exist, and InputError for a file that cannot be read.
    """
    from lanewise.topology.read import part_files

    text, file = read_ref(ref, "systems", "system")
    files = read_part_files(file, part_files(text, file))
    return SystemSource(text, file, files, Catalog() if catalog is None else overriding_parts(catalog))
