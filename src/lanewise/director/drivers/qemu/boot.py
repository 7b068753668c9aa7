"""What a guest boots: a Linux kernel with its modules, and an initramfs that leads to the agent on the host's files."""

from __future__ import annotations

import lzma
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from lanewise.errors import MissingDependency

_HINT = "apt-get install qemu-system-x86 busybox-static linux-image-amd64 (or unpack the kernel: dpkg -x)"
# In the order of need; what is built into the kernel is no file. Checksums: for NVMe and ext4.
_MODULES = (
    "virtio_pci", "virtio_console", "9pnet_virtio", "9p", "crc32c_generic", "nvme", "md_mod", "raid0", "ext4", "e1000e",
)  # fmt: skip
# A guest may write there; what the host has there is hidden, but for the agent's own files.
_SCRATCH = ("tmp", "run", "mnt")
_INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
for module in {modules}; do /bin/busybox insmod /modules/$module; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host
/bin/busybox mount -t devtmpfs none /host/dev
/bin/busybox mount -t sysfs none /host/sys
/bin/busybox mount -t proc none /host/proc
/bin/busybox mount -o bind /host /under
for folder in {scratch}; do /bin/busybox mount -t tmpfs none /host/$folder; done
for folder in {kept}; do /bin/busybox mkdir -p /host$folder; /bin/busybox mount -o bind /under$folder /host$folder; done
/bin/busybox umount /under
/bin/busybox umount /proc
export PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8 PYTHONPATH={source}
exec /bin/busybox switch_root /host {python} -m {agent}
"""


@dataclass(frozen=True, slots=True)
class GuestSoftware:
    """The emulator, the kernel with the folder of its modules, and a busybox that needs no libraries."""

    qemu: str
    kernel: Path
    modules: Path
    busybox: Path


def find_software(kernel: Path | None = None) -> GuestSoftware:
    """What guests need, the kernel from `kernel`, else LANEWISE_GUEST_KERNEL, else the newest in /boot.

    A kernel's modules are expected in ../lib/modules/VERSION, as a package of Debian lays them. MissingDependency
    names what is absent.
    """
    qemu = shutil.which("qemu-system-x86_64")
    if qemu is None:
        raise MissingDependency("qemu-system-x86_64 is not installed", hint=_HINT)
    named = kernel or Path(os.environ.get("LANEWISE_GUEST_KERNEL") or _newest_kernel())
    if not os.access(named, os.R_OK):
        raise MissingDependency(f"no kernel that can be read at {named}", hint=f"{_HINT}; or set LANEWISE_GUEST_KERNEL")
    modules = named.parent.parent / "lib/modules" / named.name.removeprefix("vmlinuz-")
    if not modules.is_dir():
        raise MissingDependency(f"no modules of {named} at {modules}", hint=_HINT)
    for path in (Path("/bin/busybox"), Path("/usr/bin/busybox")):
        if path.exists():
            return GuestSoftware(qemu, named, modules, path)
    raise MissingDependency("busybox is not installed", hint=_HINT)


def _newest_kernel() -> str:
    kernels = [str(path) for path in Path("/boot").glob("vmlinuz-*")]
    return max(kernels, key=_version, default="/boot/vmlinuz")


def _version(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", path)]


def initramfs(software: GuestSoftware) -> bytes:
    """An archive with busybox, the modules a guest needs, and an `init` that starts the agent."""
    modules = dict(_load_order(software.modules, _MODULES))
    source = Path(__file__).parents[4]
    kept = kept_folders((source, Path(sys.prefix), Path(sys.base_prefix)))
    init = _INIT.format(
        modules=" ".join(modules),
        scratch=" ".join(_SCRATCH),
        kept=" ".join(map(shlex.quote, kept)),
        source=shlex.quote(str(source)),
        python=shlex.quote(sys.executable),
        agent="lanewise.director.drivers.qemu.guest",
    )
    members = [(name, 0o040755, b"") for name in ("bin", "modules", "proc", "host", "under", "dev")]
    members += [("bin/busybox", 0o100755, software.busybox.read_bytes()), ("init", 0o100755, init.encode())]
    members += [(f"modules/{name}", 0o100644, data) for name, data in modules.items()]
    return _archive(members)


def kept_folders(folders: Iterable[Path]) -> list[str]:
    """Those of the host's folders that a guest's scratch folders would hide."""
    return sorted({str(folder) for folder in folders if folder.parts[1:2] and folder.parts[1] in _SCRATCH})


def _archive(members: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive in the new ASCII format (Linux: Documentation/driver-api/early-userspace/buffer-format)."""
    parts = []
    for name, mode, data in [*members, ("TRAILER!!!", 0, b"")]:
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        header = "070701" + "".join(f"{field:08x}" for field in fields) + name + "\0"
        parts += [_padded(header.encode()), _padded(data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".ko": bytes,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def _load_order(folder: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The modules with those they depend on first, each once; what is no file is built in, or does without."""
    files = {_plain(path.name): path for path in folder.rglob("*.ko*") if path.suffix in _UNPACK}
    loaded: set[str] = set()

    def load(name: str) -> Iterator[tuple[str, bytes]]:
        if name in loaded or name not in files:
            return
        loaded.add(name)
        data = _UNPACK[files[name].suffix](files[name].read_bytes())
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in depends[1].decode().split(",") if depends else ():
            yield from load(_plain(other))
        yield f"{name}.ko", data

    for name in wanted:
        yield from load(_plain(name))


def _plain(name: str) -> str:
    return name.partition(".")[0].replace("-", "_")
