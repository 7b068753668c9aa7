"""Where `lanewise study new` writes: two files in the current folder, neither of which may exist."""

from __future__ import annotations

from pathlib import Path

from lanewise.errors import InputError, Location


def write(name: str) -> list[Path]:
    """Write NAME.yaml and NAME-system.yaml here; InputError for a name that is none, or files that exist."""
    from lanewise import api

    study, system = api.new_study(name)
    texts = {Path(f"{name}.yaml"): study, Path(f"{name}-system.yaml"): system}
    for path in texts:
        if path.exists():
            raise InputError(
                "exists already and is not overwritten", location=Location(str(path)), hint="choose another name"
            )
    from lanewise.files import write_file

    for path, text in texts.items():
        write_file(path, text)
    return list(texts)
