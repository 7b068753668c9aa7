"""From the `devices:` entries to devices: ranges, conditions, parts and hosts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.catalog.alternatives import meant_by
from lanewise.catalog.cpu_models import generations_of_maker
from lanewise.catalog.model import OR
from lanewise.errors import Contradiction, FormatError, error_location, most_shared_words, unknown_name
from lanewise.topology.model import Device, Kind
from lanewise.topology.ranges import check_name
from lanewise.topology.words import WORDS

_OF_A_SWITCH = " (the speeds of its links say what it carries; chipset where it is one)"

if TYPE_CHECKING:
    from lanewise.topology.form import DeviceForm, SystemForm
    from lanewise.topology.scope import Scope

MAX_NUMA_NODES = 64


def read_devices(form: SystemForm, hosts: tuple[str, ...], scope: Scope) -> dict[str, Device]:
    """All devices by name, hosts only where stated; problems go to the scope."""
    devices: dict[str, Device] = {}
    for pattern, entry in form.devices.items():
        location = scope.location("devices", pattern)
        with scope.problems.at(location):
            if not scope.included(entry.when):
                continue
            for index, name in enumerate(scope.names(pattern)):
                if name in devices:
                    first = devices[name].location
                    cause = f"device '{name}' is given twice, first in line {first.line if first else '?'}"
                    raise Contradiction(cause, location=location, hint="rename one, or let the ranges not overlap")
                devices[name] = _device(name, index, pattern, entry, hosts, scope)
    if not devices and not scope.problems.found:
        hint = "name one under devices:, such as cpu0: {cpu: null}"
        raise FormatError("the system has no devices", location=scope.document.location("devices"), hint=hint)
    return devices


def _device(name: str, index: int, pattern: str, entry: DeviceForm, hosts: tuple[str, ...], scope: Scope) -> Device:
    words = [word for word in WORDS if word in entry.model_fields_set]
    if len(words) != 1:
        what = f"is both {' and '.join(words)}" if words else "does not say what it is"
        hint = f"write one of {', '.join(WORDS)}, such as {name}: {{gpu: l40s}}"
        raise FormatError(f"device '{name}' {what}", hint=hint)
    word = words[0]
    kind = WORDS[word][0]
    if entry.partitions and kind is not Kind.SWITCH:
        location = scope.location("devices", pattern, "partitions")
        raise Contradiction(f"'{name}' is no switch and has no partitions", location=location, hint="take them out")
    numa_nodes = _numa_nodes(name, kind, entry, pattern, scope)
    return Device(
        name=name,
        kind=kind,
        part=_part(word, getattr(entry, word), pattern, scope),
        host=_host(name, kind, entry, pattern, hosts, scope),
        numa=None if entry.numa is None else scope.whole(entry.numa, index * numa_nodes),
        numa_nodes=numa_nodes,
        shared=_shared(name, kind, entry, pattern, scope),
        power_limit=_power_limit(name, kind, entry, pattern, scope),
        partitions=tuple(frozenset(scope.names(group)) for group in entry.partitions),
        os_names=_os_names(entry, pattern, scope),
        location=scope.location("devices", pattern),
    )


def _os_names(entry: DeviceForm, pattern: str, scope: Scope) -> tuple[str, ...]:
    several = scope.names(pattern) if entry.os_names else []
    if len(several) > 1:
        location = scope.location("devices", pattern, "os_names")
        hint = f"give each an entry of its own: {several[0]}: {{..., os_names: [{entry.os_names[0]}]}}"
        raise Contradiction(f"{len(several)} devices cannot have the same names", location=location, hint=hint)
    for name in entry.os_names:
        with error_location(scope.location("devices", pattern, "os_names")):
            check_name(name)
    return tuple(entry.os_names)


def _power_limit(name: str, kind: Kind, entry: DeviceForm, pattern: str, scope: Scope) -> float | None:
    if entry.power_limit is None:
        return None
    location = scope.location("devices", pattern, "power_limit")
    if kind is not Kind.GPU:
        raise Contradiction(f"'{name}' is no GPU and has no power limit", location=location, hint="take it out")
    with error_location(location):
        watts = units.parse(entry.power_limit, "W")
    if not isinstance(entry.power_limit, str) or not 0.0 < watts < math.inf:
        raise FormatError(f"'{entry.power_limit}' is no power", location=location, hint="write such as 225 W")
    return watts


def _numa_nodes(name: str, kind: Kind, entry: DeviceForm, pattern: str, scope: Scope) -> int:
    if entry.numa_nodes is None:
        return 1
    location = scope.location("devices", pattern, "numa_nodes")
    if kind is not Kind.CPU:
        hint = f"write numa: for the node of '{name}', and numa_nodes: at its CPU"
        raise Contradiction(f"'{name}' is no CPU and has no NUMA nodes of its own", location=location, hint=hint)
    count = scope.whole(entry.numa_nodes)
    if not 1 <= count <= MAX_NUMA_NODES:
        hint = f"write 1 to {MAX_NUMA_NODES}: 4 for NPS4, 2 for SNC2"
        raise FormatError(f"'{name}' cannot have {count} NUMA nodes", location=location, hint=hint)
    return count


def _shared(name: str, kind: Kind, entry: DeviceForm, pattern: str, scope: Scope) -> bool:
    if entry.shared and kind is not Kind.CPU:
        location = scope.location("devices", pattern, "shared")
        raise Contradiction(
            f"'{name}' is no CPU whose socket others use", location=location, hint="write it at its CPU"
        )
    return entry.shared


def _part(word: str, stated: str | None, pattern: str, scope: Scope) -> str | None:
    if stated is None:
        return None
    location = scope.document.location("devices", pattern, word)
    name = scope.text(stated)
    legal = WORDS[word][1]
    meant = meant_by(scope.catalog, name, legal)
    if not meant:
        names = [part for kind in legal for part in scope.catalog.names(kind)]
        aliases = [alias for part in names for alias in scope.catalog.get(part).aliases]
        if most_shared_words(name, aliases) > most_shared_words(name, names):
            names = aliases
        unknown = unknown_name(f"{word} part", name, names, location)
        if unknown.hint.startswith("known:"):  # a list of all helps less than what to do
            kind = legal[0]
            unknown.hint = (
                f"lanewise parts list --kind {kind} has the names; write null{_OF_A_SWITCH * (kind == 'switch')}, or "
                f"add it: lanewise parts template {kind} NAME -o new.yaml, and parts: [new.yaml] at the top"
            )
        elif unknown.hint:  # the nearest name need not be the same chip
            unknown.hint += f" If it is another part: null, or lanewise parts template {legal[0]}"
        slots = generations_of_maker(name) if word == "cpu" else {}
        if slots:
            generations = ", ".join(f"{part} (Gen{gen})" for gen, part in slots.items())
            unknown.hint = f"of a maker alone write the generation that its slots tell: {generations}"
        raise unknown
    part = scope.catalog.get(OR.join(meant))
    if part.kind not in legal:
        fitting = next((fits for fits, (_, kinds) in WORDS.items() if part.kind in kinds), "")
        hint = f"write {fitting}: {name}, or name a part of kind {' or '.join(legal)}" if fitting else ""
        raise Contradiction(f"part '{name}' is a {part.kind}, not a {word}", location=location, hint=hint)
    return part.name


def _host(name: str, kind: Kind, entry: DeviceForm, pattern: str, hosts: tuple[str, ...], scope: Scope) -> str | None:
    location = scope.document.location("devices", pattern, "host")
    if entry.host is not None:
        host = scope.text(entry.host)
        if host not in hosts:
            raise unknown_name("host", host, hosts, location)
        return host
    if kind is not Kind.CPU:
        return None
    if len(hosts) != 1:
        cause = f"'{name}' does not say which host it is in"
        raise FormatError(cause, location=location, hint=f"add host: {hosts[0] if hosts else 'host0'}")
    return hosts[0]
