"""The catalogue that ships with Lanewise, and the reader of a user's own part file."""

from __future__ import annotations

from functools import cache

from lanewise import package_data
from lanewise.catalog.model import Catalog
from lanewise.catalog.reading import Resolver, read_drafts


@cache
def builtin() -> Catalog:
    """The parts that ship with Lanewise, read once from the package's own data files."""
    files = [package_data.text("parts", name, "part file") for name in package_data.names("parts")]
    return Resolver([draft for file in files for draft in read_drafts(*file)], Catalog).catalog()


def read_parts(text: str, file: str, base: Catalog | None = None) -> Catalog:
    """The parts of one file; `extends` may name any part of `base` (or that ships); InputError with line."""
    return Resolver(read_drafts(text, file), builtin if base is None else lambda: base).catalog()
