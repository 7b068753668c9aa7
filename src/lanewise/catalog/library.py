"""The catalogue that ships with Lanewise, and the reader of a user's own part file."""

from __future__ import annotations

from functools import cache

from lanewise.catalog.model import Catalog
from lanewise.catalog.reading import Draft, Resolver, read_drafts


@cache
def builtin() -> Catalog:
    """The parts that ship with Lanewise, read once from the package's own data files."""
    from importlib.resources import files  # here, so that importing the catalogue stays cheap

    folder = files("lanewise").joinpath("data", "parts")
    drafts: list[Draft] = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".yaml"):
            drafts += read_drafts(entry.read_text(encoding="utf-8"), entry.name)
    return Resolver(drafts, Catalog).catalog()


def read_parts(text: str, file: str, base: Catalog | None = None) -> Catalog:
    """The parts of one file; `extends` may name any part of `base` (or that ships); InputError with line."""
    return Resolver(read_drafts(text, file), builtin if base is None else lambda: base).catalog()
