"""What NVML says of a machine's GPUs: asked of the library into a record, and read from the record into facts.

The record (nvml.json in a capture) holds no serial number and no UUID: GPUs go by their PCI address.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lanewise.discovery.facts import MACHINE, Gatherer, Reading, address, width
from lanewise.discovery.merge import NVML_MOST
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


def ask(nvml: Any) -> dict[str, Any]:
    """What NVML says now, as plain data; `nvml` has the functions of pynvml. What it refuses to say is left out."""
    nvml.nvmlInit()
    try:
        handles = [_try(nvml.nvmlDeviceGetHandleByIndex, number) for number in range(nvml.nvmlDeviceGetCount())]
        placed = [(_try(nvml.nvmlDeviceGetPciInfo, handle), handle) for handle in handles if handle is not None]
        known = [(here, handle) for info, handle in placed if info and (here := _address(info))]
        return {
            "driver": _text(_try(nvml.nvmlSystemGetDriverVersion)) or "",
            "gpus": [_gpu(nvml, here, handle) for here, handle in known],
            "p2p": [
                {"a": a, "b": b, "status": _statuses(nvml, one, other)}
                for a, one in known for b, other in known if a != b
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


def _gpu(nvml: Any, here: str, handle: Any) -> dict[str, Any]:
    most = _try(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    reasons = _try(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    use = _try(nvml.nvmlDeviceGetUtilizationRates, handle)
    return {
        "address": here,
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
    found = []
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
        found.append(link)
    return found


def _statuses(nvml: Any, one: Any, other: Any) -> dict[str, str]:
    said = {word: _try(nvml.nvmlDeviceGetP2PStatus, one, other, number) for word, number in _ABILITIES.items()}
    return {word: _STATUS[code] for word, code in said.items() if isinstance(code, int) and 0 <= code < len(_STATUS)}


def read_nvml(text: str, file: str) -> Reading:
    """The facts of such a record; FormatError if it is none."""
    try:
        record = Record.model_validate(json.loads(text))
    except (ValidationError, ValueError) as error:
        cause = f"the record of NVML in it is none: {str(error).splitlines()[0]}"
        raise FormatError(cause, location=Location(file), hint="write the capture again") from None
    found = Gatherer(file, KIND)
    found.say(MACHINE, "driver", record.driver, "NVML driver version")
    gpus = {address(gpu.address) or "" for gpu in record.gpus}
    for gpu in record.gpus:
        here = address(gpu.address)
        if here:
            _say(here, gpu, gpus, found)
    for pair in record.p2p:
        for ability, status in pair.status.items():
            found.peer(address(pair.a) or "", address(pair.b) or "", ability, status)
    return found.done()


def _say(here: str, gpu: _Gpu, gpus: set[str], found: Gatherer) -> None:
    found.say(here, "class", 0x0302, "NVML")
    found.say(here, "vendor", 0x10DE, "NVML")
    found.say(here, "name", gpu.name, "NVML name")
    found.say(here, "gen", gpu.gen or None, f"{NVML_MOST} NVML PCIe generation")
    found.say(here, "lanes", width(str(gpu.lanes)), f"{NVML_MOST} NVML PCIe width")
    found.say(here, "gen_now", gpu.gen_now or None, "NVML PCIe generation")
    found.say(here, "lanes_now", width(str(gpu.lanes_now)), "NVML PCIe width")
    found.say(here, "throttle", ", ".join(gpu.throttle), "NVML clock event reasons")
    found.say(here, "busy", gpu.busy, "NVML utilisation, %")
    if gpu.nvlinks:
        _say_nvlinks(here, gpu, gpus, found)


def _say_nvlinks(here: str, gpu: _Gpu, gpus: set[str], found: Gatherer) -> None:
    active = [link for link in gpu.nvlinks if link.active]
    found.say(here, "nvlinks", len(active), "NVML NVLink state")
    found.say(here, "nvlinks_off", len(gpu.nvlinks) - len(active) or None, "NVML NVLink state")
    versions = sorted({link.version for link in active if link.version is not None})
    version = _VERSIONS.get(versions[-1]) if versions else None
    found.say(here, "nvlink_version", version, "NVML NVLink version")
    peers = Counter(to for link in active if (to := address(link.to) or "") in gpus and link.kind != "switch")
    for to, count in peers.items():
        if here < to:
            found.pair(here, to, f"NV{count}", "NVML NVLink remote")
    through = sum(1 for link in active if link.kind == "switch")
    hidden = sum(1 for link in active if not link.kind and address(link.to) not in gpus)
    if hidden and not peers and not through:
        found.notes.append(f"NVML does not show where the NVLinks of {here} lead; an NVSwitch is assumed")
    found.say(here, "nvswitch:all", through or (hidden if not peers else None) or None, "NVML NVLink remote")


def same_record(text: bytes) -> bytes:
    """The record with what its form knows alone; what is no record stays as it is, to be refused when it is read."""
    try:
        return Record.model_validate_json(text).model_dump_json(indent=1).encode() + b"\n"
    except ValidationError:
        return text


def as_text(record: Mapping[str, Any]) -> bytes:
    """The record as it stands in a capture."""
    return json.dumps(record, indent=1).encode() + b"\n"
