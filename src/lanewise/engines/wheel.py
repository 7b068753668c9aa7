"""This installation of Lanewise as a wheel, for workers on other machines."""

from __future__ import annotations

import base64
import hashlib
import sysconfig
import zipfile
from pathlib import Path

import lanewise
from lanewise.engines import wheel_first
from lanewise.engines.work import installed_version

FIRST = "lanewise_wheel_first"  # the module of the wheel that a worker runs before it imports Lanewise

_DATE = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel, which Ray's nodes then keep


def project_wheel(folder: str | Path) -> Path:
    """The wheel, written to `folder`: every file of the package, native modules included, and what runs before it.

    It states no requirements: pip on the node would install all of them again, and needs an index for that. Its tag
    names the platform but no version of Python, as the pip that Ray calls may be that of another one.
    """
    version = installed_version()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    path = Path(folder) / f"lanewise-{version}-py3-none-{platform}.whl"
    info = f"lanewise-{version}.dist-info"
    roots = [Path(root) for root in reversed(lanewise.__path__)]  # an editable install has its native modules elsewhere
    files = {f"lanewise/{entry.relative_to(root)}": entry.read_bytes() for root in roots
             for entry in sorted(root.rglob("*")) if entry.is_file() and "__pycache__" not in entry.parts}  # fmt: skip
    files[f"{FIRST}.py"] = Path(wheel_first.__file__).read_bytes()
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: lanewise\nVersion: {version}\n".encode()
    tag = f"Wheel-Version: 1.0\nGenerator: lanewise\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    files[f"{info}/WHEEL"] = tag.encode()
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
