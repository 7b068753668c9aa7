"""Dumps and captures that a hostile machine wrote: an error that names the limit, no hang, no memory without end."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterable

import pytest
import zstandard
from bounded import outcome

from lanewise.catalog import builtin
from lanewise.discovery import capture
from lanewise.discovery.build import discover
from lanewise.discovery.capture import Capture
from lanewise.discovery.dumps import read_capture, read_dump
from lanewise.errors import FormatError

LONG = 400_000
CARD = "CA 'mlx5_0'\n  Port 1:\n"
GPU = "GPU 0: NVIDIA H100 (UUID: GPU-1)\n"
XML = "<topology><object type='Machine'>{}</object></topology>"
ROOT = "-[0000:00]-+-00.0  Intel\n"
TITLE = "01:00.0 VGA compatible controller: NVIDIA Corporation "
PCI = "<object type='PCIDev' pci_busid='0000:01:00.0' pci_type='0302 [10de:2330]' {}/>"


def machine(data: bytes | str) -> str:
    dumps = read_dump(data if isinstance(data, bytes) else data.encode(), "f")
    return discover(dumps, builtin()).text()


@pytest.fixture(scope="module", autouse=True)
def catalog_read():
    """The catalogue and what reads a dump are there before children start, which would each read them again."""
    machine("0000:01:00.0 3D controller: NVIDIA [10de:2330]\n")


# Each would take half an hour or more (quadratic in a text of 400 kB, or exponential in 40 comments) unless bounded.
LONG_TEXTS = {
    "comments of XML": "<!-- c -->" * 40 + "x",
    "comments of XML before a topology": "<!-- c -->" * (LONG // 10) + "<topology/>",
    "blank lines": "\n" * LONG,
    "blank lines of ibstat": CARD + "\n" * LONG + "State: Active\n",
    "a state of ibstat with blanks": CARD + "State: a" + " " * LONG + "b\n",
    "ports of ibstat": "".join(f"CA 'mlx5_{card}'\nState: Active\n" for card in range(LONG // 25)),
    "blanks in the name of a GPU": GPU.replace("(", " " * LONG + "(") + "   Link 0: 25 GB/s\n",
    "open brackets in the name of a GPU": f"GPU 0: {' (UUID: ' * (LONG // 9)}x\n   Link 0: 25 GB/s\n",
    "GPUs with NVLinks": GPU * (LONG // 35) + "   Link 0: 25 GB/s\n",
    "brackets behind the name of a function": f"{TITLE}{' (a)' * 40}x\n",
    "open brackets behind the name of a function": f"{TITLE}{' (' * (LONG // 2)}x\n",
    "many names of NVIDIA in one": f"{TITLE}{'NVIDIA Corporation ' * 100_000}\n",
    "speeds of a link": f"{TITLE}\n\tLnkCap: {'Speed 1GT/s ' * (LONG // 12)}\n",
    "a line of dashes": f"{ROOT}{'-' * LONG}\n",
    "a tree as deep as it is long": "-[0000:00]-" + "".join(f"00.0-[{n >> 8:04x}:{n & 255:02x}]-" for n in range(9999)),
    "a matrix of many GPUs": " ".join(f"GPU{number}" for number in range(3000)) + "\nGPU0 X\n",
    "heads of matrices": "GPU0\n" * (LONG // 5),
    "the mask of a NUMA node": XML.format(f"<object type='NUMANode' os_index='0' cpuset='{'0x1,' * (LONG // 4)}'/>"),
    "bridges whose buses hold each other": "".join(
        f"{n:02x}:{f >> 3:02x}.{f & 7} PCI bridge: x\n\tBus: primary=00, secondary={(n + f) % 256:02x}, "
        "subordinate=ff\n"
        for n in range(256)
        for f in range(8)
    ),
    "virtual functions without end": f"{TITLE}\n\tTotal VFs: {10**17}, Number of VFs: {10**17}\n"
    "\tVF offset: 1, stride: 0\n\tVF offset: 99999, stride: 99999\n",
    "bytes of configuration spaces": f"{TITLE}\n" + f"00: {'ff ' * 16}".rstrip() + "\n" * (LONG // 40),
    "quotes of quotes": "> " * (LONG // 2) + "\n",
    "paths of functions": "00:00.0/" * (LONG // 8) + TITLE + "x\n",
    "blank lines of lscpu": "Architecture: x\n" + "\n" * (LONG // 10) + "CPU(s): 1\n",
    "blanks in a line of lscpu": "Architecture: x\nCPU(s): 1\n" + (" " * 4000 + "x\n") * (LONG // 4000),
    "blanks and tabs of cpuinfo": "processor : 0\n" + (" \t" * 2000 + "\n") * 38,
    "sockets of cpuinfo": "processor : 0\n" + "physical id : 1\n" * (LONG // 16),
    "many GPUs": "".join(f"{n >> 8:04x}:{n & 255:02x}:00.0 3D controller: NVIDIA [10de:2330]\n" for n in range(12_000)),
    "many NUMA nodes": "".join(
        f"00{n >> 8:02x}:{n & 255:02x}:00.0 3D controller: x\n\tNUMA node: {n}\n" for n in range(4000)
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_a_long_dump_is_read_in_time_that_grows_with_its_length(text):
    outcome(lambda: machine(text), mebibytes=4096)


DIGITS = "9" * 5000
LONG_NUMBER = DIGITS.encode()
# What each of them was: a traceback.
BAD_VALUES = {
    "NUMA node of lspci": f"{TITLE}\n\tNUMA node: {DIGITS}\n",
    "payload of lspci": f"{TITLE}\n\tDevCap: MaxPayload {DIGITS} bytes\n",
    "width of lspci": f"{TITLE}\n\tLnkCap: Speed 8GT/s, Width x{DIGITS}\n",
    "virtual functions of lspci": f"{TITLE}\n\tTotal VFs: {DIGITS}, Number of VFs: 1\n",
    "NUMA affinity": f"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\tX\t0-1\t{DIGITS}\n",
    "NVLinks of a matrix": f"\tGPU0\tGPU1\nGPU0\tX\tNV{DIGITS}\nGPU1\tNV1\tX\n",
    "NVLinks by the million": "\tGPU0\tGPU1\nGPU0\tX\tNV999999999999\nGPU1\tNV1\tX\n",
    "NUMA node of NCCL": f"<system><cpu numaid='{DIGITS}'><pci busid='0000:01:00.0' class='0x030200'/></cpu></system>",
    "width of NCCL": f"<system><cpu numaid='0'><pci busid='0000:01:00.0' link_width='{DIGITS}'/></cpu></system>",
    "NVLinks of NCCL": "<system><cpu numaid='0'><pci busid='0000:01:00.0' class='0x030200'>"
    f"<nvlink target='0000:02:00.0' count='{DIGITS}'/></pci></cpu></system>",
    "link speed of hwloc": XML.format(PCI.format("pci_link_speed='1e999'")),
    "link speed of hwloc, negative": XML.format(PCI.format("pci_link_speed='-1'")),
    "bandwidths of hwloc": XML.format(
        PCI.format("gp_index='1'") + PCI.format("gp_index='2'").replace("01:00", "02:00")
    ).replace(
        "</topology>",
        f"<distances2hetero name='NVLinkBandwidth'><indexes>PCI:1 PCI:2</indexes><u64values>0 1 {'9' * 400} 0"
        "</u64values></distances2hetero></topology>",
    ),
}


@pytest.mark.parametrize("text", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_value_that_no_machine_has_ends_in_an_error_or_is_left_out(text):
    outcome(lambda: machine(text))


def member(name: str, content: bytes = b"", size: int | None = None, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A member of a tar, whose header may state another size than it has."""
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content) if size is None else size, kind
    return info.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def packed(pieces: Iterable[bytes]) -> bytes:
    """A tar of those members, compressed; the members may be far larger than what is packed."""
    out = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as stream:
        for piece in pieces:
            stream.write(piece)
        stream.write(b"\0" * 1024)
    return out.getvalue()


ZEROS = b"\0" * 2**20
WANTED = "sys/devices/pci0000:00/0000:{:02x}:{:02x}.0/vendor"


def long_name(kind: bytes, mebibytes: int) -> Iterable[bytes]:
    yield member("././@LongLink", size=mebibytes << 20, kind=kind)
    yield from (ZEROS for _ in range(mebibytes))


def many_texts() -> Iterable[bytes]:
    return (
        member(WANTED.format(number >> 5, number & 31).replace("0000:00", f"{number >> 13:04x}:00"), b"x" * 65_536)
        for number in range(12_000)
    )


BOMBS: dict[str, tuple[Callable[[], Iterable[bytes]], str]] = {
    "a GNU long name of 1 GB": (lambda: long_name(tarfile.GNUTYPE_LONGNAME, 1024), "bytes of a name"),
    "a GNU long link of 1 GB": (lambda: long_name(tarfile.GNUTYPE_LONGLINK, 1024), "bytes of a name"),
    "a pax header of 1 GB": (lambda: long_name(tarfile.XHDTYPE, 1024), "bytes of a name"),
    "a global pax header of 1 GB": (lambda: long_name(tarfile.XGLTYPE, 1024), "bytes of a name"),
    "12,000 wanted files of 64 KiB": (many_texts, "more than 64 MiB"),
    "names upon names": (lambda: (member("././@LongLink", b"a" * 511, kind=b"L") for _ in range(5000)), "tar"),
    "a member of 20 GB": (lambda: [member("x", size=20 << 30), *(ZEROS for _ in range(1536))], "more than 1 GiB"),
    "members": (lambda: [member("x") * 12_000], "more than 10,000"),
    "long names": (
        lambda: [(member("././@LongLink", b"a" * 400, kind=b"L") + member("x")) * 12_000],
        "more than 10,000",
    ),
    "digits in a pax header": (lambda: [member("x", b"1" * 16_000, kind=tarfile.XHDTYPE), member("y")] * 4000, "tar"),
    "a sparse map without end": (lambda: sparse(), "sparse"),
    "a size below zero": (lambda: [member("x", b"24 size=-1000000000000\n", kind=tarfile.XHDTYPE), member("y")], "tar"),
}  # fmt: skip


def sparse() -> Iterable[bytes]:
    info = tarfile.TarInfo("x")
    info.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[482] = 1
    head[148:155] = b"%06o\0" % (int(head[148:154], 8) + 1)
    yield bytes(head)
    block = b"0000000001\0 " * 42 + b"\1" + b"\0" * 7
    yield from (block * 2048 for _ in range(1536))


@pytest.mark.parametrize(("pieces", "words"), BOMBS.values(), ids=BOMBS)
def test_a_tar_is_bounded_before_it_is_read(pieces, words, monkeypatch):
    monkeypatch.setattr(capture, "_MAX_MEMBERS", 10_000)  # 500,000 take a minute to make and read
    monkeypatch.setattr(capture, "_MAX_UNPACKED", 2**30)
    data = packed(pieces())
    assert len(data) < 8 << 20
    text = outcome(lambda: machine(data), mebibytes=512)
    assert text.startswith("FormatError: f: ")
    assert words in text


def test_the_limits_hold_for_gzip_too():
    head = next(iter(long_name(tarfile.GNUTYPE_LONGNAME, 1024)))
    data = gzip.compress(head, 1) + gzip.compress(ZEROS * 64, 1) * 16  # members one after another are one stream
    assert "bytes of a name" in outcome(lambda: machine(data), mebibytes=512)


def text_of(texts: dict[str, bytes] | None = None, links: dict[str, str] | None = None) -> str:
    given = Capture("f", texts or {}, links or {}, frozenset())
    return discover(read_capture(given), builtin()).text()


FOLDER = "sys/devices/pci0000:00/0000:01:00.0"
DEVICE = {f"{FOLDER}/class": b"0x030200", f"{FOLDER}/vendor": b"0x10de", f"{FOLDER}/device": b"0x2330"}
CPU = "sys/devices/system/cpu/cpu"
NODES = "sys/devices/system/node/node"
SUBSYSTEM = "sys/devices/virtual/nvme-subsystem/s/nvme"
BAD_CAPTURES: dict[str, Callable[[], str]] = {
    "CPU lists that repeat": lambda: text_of({**DEVICE, f"{NODES}0/cpulist": b"0-65535," * 8000}),
    "a CPU list of thousands of digits": lambda: text_of({**DEVICE, f"{NODES}0/cpulist": DIGITS.encode()}),
    "a NUMA node of thousands of digits": lambda: text_of({**DEVICE, f"{NODES}{DIGITS}/cpulist": b"0"}),
    "memory of thousands of digits": lambda: text_of({**DEVICE, f"{NODES}0/meminfo": b"MemTotal: %s kB" % LONG_NUMBER}),
    "a core of a high number": lambda: text_of({**DEVICE, f"{CPU}99999999999/topology/physical_package_id": b"0"}),
    "an NVMe subsystem that leads to itself": lambda: text_of(
        DEVICE,
        {
            "sys/block/nvme0n1": "../devices/virtual/nvme-subsystem/s/x",
            f"{SUBSYSTEM}0": "../../nvme-subsystem/s/nvme0",
        },
    ),
    "many drives of one NVMe subsystem": lambda: text_of(
        DEVICE,
        {f"sys/block/nvme{n}n1": "../devices/virtual/nvme-subsystem/s/x" for n in range(40_000)}
        | {f"{SUBSYSTEM}{n}": "../../x" for n in range(40_000)},
    ),
    "many volumes": lambda: text_of(
        DEVICE | {f"sys/devices/virtual/block/md{n}/md/level": b"raid0" for n in range(40_000)},
        {f"sys/devices/virtual/block/md{n}/slaves/a": "../../x" for n in range(40_000)},
    ),
    "a size of other digits": lambda: text_of({**DEVICE, f"{FOLDER}/numa_node": "²".encode()}),
    "a NUMA node that no machine has": lambda: text_of({**DEVICE, f"{FOLDER}/numa_node": b"9" * 18}),
    "an IOMMU group of other digits": lambda: text_of(DEVICE, {f"{FOLDER}/iommu_group": "../../²"}),
    "a record of the capture nested deeply": lambda: text_of({**DEVICE, "capture.json": b"[" * 100_000}),
    "a record of the capture with digits": lambda: text_of({**DEVICE, "capture.json": b'{"made": %s}' % LONG_NUMBER}),
    "a record of NVML nested deeply": lambda: text_of({**DEVICE, "nvml.json": b"[" * 100_000}),
    "a record of NVML with digits": lambda: text_of(
        {**DEVICE, "nvml.json": f'{{"gpus": [{{"address": "0000:01:00.0", "lanes": {DIGITS}}}]}}'.encode()}
    ),
    "NVML's busy beyond any number": lambda: text_of(
        {**DEVICE, "nvml.json": b'{"gpus": [{"address": "0000:01:00.0", "gen": -1, "lanes": 77, "busy": 1e300}]}'}
    ),
}  # fmt: skip


@pytest.mark.parametrize("work", BAD_CAPTURES.values(), ids=BAD_CAPTURES)
def test_a_capture_of_a_hostile_machine_ends(work):
    outcome(work)


@pytest.mark.parametrize(
    "text", ["<!-- c -->" * 40, "<?xml version='1.0'?>\n<!DOCTYPE topology>\n<!-- b -->", " " * 5000 + "<!-- > -->"]
)
def test_what_stands_before_the_root_of_an_xml_does_not_hide_it(text):
    assert "no GPU, network card or drive" in outcome(lambda: machine(f"{text}<topology/>"))


def test_a_folder_is_bounded_as_a_tar_is(small_sys, monkeypatch):
    from lanewise.api import collecting, discover

    assert discover(small_sys).system.devices
    monkeypatch.setattr(collecting, "MAX_KEPT", 60)
    with pytest.raises(FormatError, match="MiB of what discovery reads"):
        discover(small_sys)
