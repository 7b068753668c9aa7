"""Reads results of other tools, and of Lanewise, from the files that users name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.files import read_file

if TYPE_CHECKING:
    from lanewise.readers.tool_results import ToolResults


def read_results(files: str | Path | Sequence[str | Path]) -> ToolResults:
    """The results in one file or several as observations, with who can access whom and what to know of them.

    lanewise.read_results("p2p.txt").observations; InputError for a file that cannot be read, FormatError with the line
    for one that holds no results of a known tool or is cut short.
    """
    from lanewise.readers.kinds import read_results as read
    from lanewise.readers.tool_results import merge

    several = [files] if isinstance(files, (str, Path)) else list(files)
    return merge([read(read_file(path), str(path)) for path in several])
