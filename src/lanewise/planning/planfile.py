"""A plan file: what a plan is asked for, in YAML, for more than a command line holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lanewise import units
from lanewise.errors import FormatError, InputError, unknown_name
from lanewise.marks import Document, load
from lanewise.planning.ask import Ask
from lanewise.planning.work import Tenant, tenant
from lanewise.serving.load import ServiceLoad
from lanewise.serving.workload import Workload, workload

_KEYS = ("lanewise", "plan", "services", "flows", "pattern", "by", "move", "hosts", "at", "slots", "p2p")
_SERVICE = ("workload", "qps", "host", "from", "each", "mode")
_EXAMPLE = "shop: {workload: resnet50, qps: 170000}"
Checked = Callable[[Any], bool]


def read_plan(text: str, file: str, find: Callable[[str], Workload] = workload) -> Ask:
    """The question that a plan file asks; InputError with file and line for anything that cannot be meant.

    `find` gives the workload of a name.
    """
    document = load(text, file)
    data = document.data
    if not isinstance(data, dict) or data.get("lanewise") != 1:
        hint = f"start it with 'lanewise: 1', then services: {{{_EXAMPLE}}}"
        raise FormatError("this is no plan file", location=document.location(), hint=hint)
    for key in data:
        if key not in _KEYS:
            raise unknown_name("key of a plan", str(key), _KEYS, document.key_location(key))
    return Ask(
        services=tuple(_services(document, data.get("services") or {}, find)),
        flows=_text(document, "flows"),
        pattern=_text(document, "pattern"),
        by=_text(document, "by"),
        move=_text(document, "move"),
        hosts=_names(document, "hosts"),
        at=_text(document, "at"),
        slots=_slots(document, data.get("slots") or {}),
        p2p=_value(document, ("p2p",), lambda value: isinstance(value, bool), "true or false", True),
    )


def _services(document: Document, entries: object, find: Callable[[str], Workload]) -> list[Tenant]:
    if not isinstance(entries, dict):
        raise FormatError(
            "services are names with what each wants", location=document.location("services"), hint=_EXAMPLE
        )
    return [_service(document, str(name), entry, find) for name, entry in entries.items()]


def _service(document: Document, name: str, entry: object, find: Callable[[str], Workload]) -> Tenant:
    location = document.key_location("services", name)
    if not isinstance(entry, Mapping) or "workload" not in entry or "qps" not in entry:
        raise FormatError(f"service '{name}' needs a workload and its QPS", location=location, hint=_EXAMPLE)
    for key in entry:
        if key not in _SERVICE:
            raise unknown_name(
                "key of a service", str(key), _SERVICE, document.key_location("services", name, str(key))
            )
    try:
        each = entry.get("each")
        load = ServiceLoad(
            find(str(entry["workload"])),
            units.parse(entry["qps"], "1/s"),
            gpus=(str(entry["host"]),) if entry.get("host") is not None else (),
            frontend=str(entry["from"]) if entry.get("from") is not None else None,
        )
        rate = None if each is None else units.parse(each, "1/s")
        return tenant(load, rate, str(entry.get("mode", "server")), name)
    except InputError as error:
        error.location = error.location or location
        raise


def _text(document: Document, key: str) -> str | None:
    """A text, or a list of them joined by commas."""
    value = document.at((key,))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    found: str | None = _value(document, (key,), lambda each: isinstance(each, str), "a text or a list of texts", None)
    return found


def _names(document: Document, key: str) -> list[str] | None:
    text = _text(document, key)
    return None if text is None else [name.strip() for name in text.split(",")]


def _slots(document: Document, entries: object) -> dict[str, int]:
    if not isinstance(entries, dict):
        raise FormatError(
            "slots are ports with a number each", location=document.location("slots"), hint="slots: {sw0: 4}"
        )
    return {
        str(port): _value(
            document, ("slots", port), lambda each: isinstance(each, int) and each >= 0, "a whole number of devices", 0
        )
        for port in entries
    }


def _value(document: Document, path: tuple[str, ...], fits: Checked, what: str, default: Any) -> Any:
    value = document.at(path)
    if value is None:
        return default
    if not fits(value):
        hint = f"write {path[-1]}: as {what}"
        raise FormatError(f"'{path[-1]}' is not {what}", location=document.location(*path), hint=hint)
    return value


__all__ = ["read_plan"]
