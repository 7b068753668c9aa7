"""Prints the requirements in pyproject.toml, one a line: those of Lanewise and of the named extras.

    python packaging/requirements.py [EXTRA ...]
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def of_extra(project: dict[str, Any], extra: str) -> Iterator[str]:
    """The requirements of an extra; where it names others of the package, theirs."""
    for requirement in project["optional-dependencies"][extra]:
        others = re.fullmatch(rf"{project['name']}\[(.+)\]", requirement)
        if others is None:
            yield requirement
        else:
            for other in others[1].split(","):
                yield from of_extra(project, other.strip())


if __name__ == "__main__":
    table = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join([*table["dependencies"], *(line for extra in sys.argv[1:] for line in of_extra(table, extra))]))
