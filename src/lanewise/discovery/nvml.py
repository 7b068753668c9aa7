"""A machine's GPUs as NVML reports them: queries the library and writes a record; reads the record as facts.

The record (nvml.json in a capture) holds no serial number and no UUID: GPUs go by their PCI address.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lanewise.discovery.facts import MACHINE, NVML_MOST, DumpFacts, address, width
from lanewise.errors import FormatError, Location
from lanewise.results.conditions import CLOCK_REASONS

KIND = "NVML"
# By the numbers that NVML gives: who is at the other end of an NVLink, what pairs may do, how it says so.
_REMOTES = {0: "gpu", 1: "cpu", 2: "switch"}
_ABILITIES = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3, "pci": 4}
_STATUS = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
_MOST_LINKS = 36
# Of nvmlDeviceGetNvLinkVersion: the numbers of nvmlNvlinkVersion_t (nvml.h).
_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0"}


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _NvLink(_Form):
    link: int
    active: bool
    version: int | None = None
    kind: str = ""
    to: str = ""


class _Gpu(_Form):
    address: str
    name: str = ""
    gen: int | None = None
    lanes: int | None = None
    gen_now: int | None = None
    lanes_now: int | None = None
    throttle: list[str] = []
    busy: int | None = None
    nvlinks: list[_NvLink] = []


class _Pair(_Form):
    a: str
    b: str
    status: dict[str, str]


class Record(_Form):
    """The form of nvml.json."""

    driver: str = ""
    gpus: list[_Gpu] = []
    p2p: list[_Pair] = []


def query_gpus(nvml: Any) -> dict[str, Any]:
    """What NVML says now, as plain data; `nvml` has the functions of pynvml. What it refuses to say is left out."""
    nvml.nvmlInit()
    try:
        handles = [_try(nvml.nvmlDeviceGetHandleByIndex, number) for number in range(nvml.nvmlDeviceGetCount())]
        placed = [(_try(nvml.nvmlDeviceGetPciInfo, handle), handle) for handle in handles if handle is not None]
        gpus = [(bdf, handle) for info, handle in placed if info and (bdf := _address(info))]
        return {
            "driver": _text(_try(nvml.nvmlSystemGetDriverVersion)) or "",
            "gpus": [_gpu(nvml, bdf, handle) for bdf, handle in gpus],
            "p2p": [
                {"a": a, "b": b, "status": _statuses(nvml, first, second)}
                for a, first in gpus for b, second in gpus if a != b
            ],
        }  # fmt: skip
    finally:
        nvml.nvmlShutdown()


def _try(question: Callable[..., Any], *about: Any) -> Any:
    """The answer, None where NVML has none: an old driver, a virtual machine, a card that lacks it."""
    with suppress(Exception):
        return question(*about)
    return None


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _address(info: Any) -> str:
    return address(_text(info.busId) or "") or ""


def _gpu(nvml: Any, bdf: str, handle: Any) -> dict[str, Any]:
    most = _try(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    reasons = _try(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    use = _try(nvml.nvmlDeviceGetUtilizationRates, handle)
    return {
        "address": bdf,
        "name": _text(_try(nvml.nvmlDeviceGetName, handle)) or "",
        "gen": most,
        "lanes": _try(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        "gen_now": _try(nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
        "lanes_now": _try(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "throttle": [word for bit, word in CLOCK_REASONS.items() if (reasons or 0) & bit],
        "busy": getattr(use, "gpu", None),
        "nvlinks": _nvlinks(nvml, handle),
    }


def _nvlinks(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    links = []
    for number in range(_MOST_LINKS):
        state = _try(nvml.nvmlDeviceGetNvLinkState, handle, number)
        if state is None:
            continue
        link: dict[str, Any] = {"link": number, "active": bool(state)}
        if state:
            info = _try(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, number)
            remote = _try(nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, number)
            link["version"] = _try(nvml.nvmlDeviceGetNvLinkVersion, handle, number)
            link["kind"], link["to"] = _REMOTES.get(remote, ""), _address(info) if info else ""
        links.append(link)
    return links


def _statuses(nvml: Any, first: Any, second: Any) -> dict[str, str]:
    codes = {word: _try(nvml.nvmlDeviceGetP2PStatus, first, second, number) for word, number in _ABILITIES.items()}
    return {word: _STATUS[code] for word, code in codes.items() if isinstance(code, int) and 0 <= code < len(_STATUS)}


def read_nvml(text: str, file: str) -> DumpFacts:
    """The facts of such a record; FormatError if it is none."""
    try:
        record = Record.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError) as error:
        cause = f"the record of NVML in it is none: {str(error).splitlines()[0]}"
        raise FormatError(cause, location=Location(file), hint="write the capture again") from None
    facts = DumpFacts(file, KIND)
    facts.add(MACHINE, "driver", record.driver, "NVML driver version")
    gpus = {address(gpu.address) or "" for gpu in record.gpus}
    for gpu in record.gpus:
        bdf = address(gpu.address)
        if bdf:
            _add_gpu(bdf, gpu, gpus, facts)
    for pair in record.p2p:
        for ability, status in pair.status.items():
            facts.add_peer(address(pair.a) or "", address(pair.b) or "", ability, status)
    return facts


def _add_gpu(bdf: str, gpu: _Gpu, gpus: set[str], facts: DumpFacts) -> None:
    facts.add(bdf, "class", 0x0302, "NVML")
    facts.add(bdf, "vendor", 0x10DE, "NVML")
    facts.add(bdf, "name", gpu.name, "NVML name")
    facts.add(bdf, "gen", gpu.gen or None, f"{NVML_MOST} NVML PCIe generation")
    facts.add(bdf, "lanes", width(str(gpu.lanes)), f"{NVML_MOST} NVML PCIe width")
    facts.add(bdf, "gen_now", gpu.gen_now or None, "NVML PCIe generation")
    facts.add(bdf, "lanes_now", width(str(gpu.lanes_now)), "NVML PCIe width")
    facts.add(bdf, "throttle", ", ".join(gpu.throttle), "NVML clock event reasons")
    facts.add(bdf, "busy", gpu.busy, "NVML utilisation, %")
    if gpu.nvlinks:
        _add_gpu_nvlinks(bdf, gpu, gpus, facts)


def _add_gpu_nvlinks(bdf: str, gpu: _Gpu, gpus: set[str], facts: DumpFacts) -> None:
    active = [link for link in gpu.nvlinks if link.active]
    facts.add(bdf, "nvlinks", len(active), "NVML NVLink state")
    facts.add(bdf, "nvlinks_off", len(gpu.nvlinks) - len(active) or None, "NVML NVLink state")
    versions = sorted({link.version for link in active if link.version is not None})
    version = _VERSIONS.get(versions[-1]) if versions else None
    facts.add(bdf, "nvlink_version", version, "NVML NVLink version")
    peers = Counter(to for link in active if (to := address(link.to) or "") in gpus and link.kind != "switch")
    for to, count in peers.items():
        if bdf < to:
            facts.add_pair(bdf, to, f"NV{count}", "NVML NVLink remote")
    through = sum(1 for link in active if link.kind == "switch")
    hidden = sum(1 for link in active if not link.kind and address(link.to) not in gpus)
    if hidden and not peers and not through:
        facts.notes.append(f"NVML does not show where the NVLinks of {bdf} lead; an NVSwitch is assumed")
    facts.add(bdf, "nvswitch:all", through or (hidden if not peers else None) or None, "NVML NVLink remote")


def same_record(text: bytes) -> bytes:
    """The record with what its form knows alone; what is no record stays as it is, to be refused when it is read."""
    try:
        return Record.model_validate_json(text).model_dump_json(indent=1).encode() + b"\n"
    except ValidationError:
        return text


def as_text(record: Mapping[str, Any]) -> bytes:
    """A record of a capture, of NVML or of the capture itself, as JSON text."""
    return json.dumps(record, indent=1).encode() + b"\n"
