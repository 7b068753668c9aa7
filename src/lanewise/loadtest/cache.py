"""Folders in the user's cache, which nobody else may write to: what lies there is run (models, compiled kernels)."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from lanewise.errors import CannotMeasure


def cache_folder(name: str) -> Path:
    """The folder lanewise/NAME in the user's cache, made if missing; CannotMeasure if others may write to it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser()) / "lanewise"
    for home in (folder, folder / name):
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = home.lstat()
        except OSError as error:
            hint = "set XDG_CACHE_HOME to a folder that you may write to"
            raise CannotMeasure(f"no folder {home} for {name}: {error.strerror}", hint=hint) from None
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            cause = f"{home}, where {name} are kept, is not a folder that only you may write to"
            hint = f"remove it, or: chown $USER {home} && chmod 700 {home}; or set XDG_CACHE_HOME to another folder"
            raise CannotMeasure(cause, hint=hint)
    return folder / name


def write_cached(path: Path, content: bytes) -> None:
    """Writes a temporary file in the same folder and renames it: nobody reads half of it. CannotMeasure if it fails."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as out:
            try:
                out.write(content)
                out.flush()
                os.replace(out.name, path)
            except BaseException:
                os.unlink(out.name)
                raise
    except OSError as error:
        hint = "make room, or set XDG_CACHE_HOME to a folder with room"
        raise CannotMeasure(f"{path} cannot be written: {error.strerror or error}", hint=hint) from error
