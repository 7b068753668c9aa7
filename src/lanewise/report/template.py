"""The templates of pages, compiled once in a process: compiling them takes longer than a short page."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any


@cache
def page_environment(*names: str) -> Any:
    """A jinja2 environment of these files of `templates`, the same for the same names."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    folder = resources.files("lanewise.report") / "templates"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    return Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined, loader=DictLoader(texts))


def page_styles() -> str:
    """The style sheet that pages share."""
    return (resources.files("lanewise.report") / "templates" / "page.css").read_text(encoding="utf-8")
