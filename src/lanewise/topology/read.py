"""From the text of a description to a System (docs/reference/system-format.md has the format)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lanewise.catalog import Catalog, builtin
from lanewise.errors import Contradiction
from lanewise.topology.binding import StatedHosts, name_ports, reached_by, settle_hosts
from lanewise.topology.expand_devices import read_devices
from lanewise.topology.expand_links import read_links
from lanewise.topology.limits import check_sums
from lanewise.topology.model import ENDPOINTS, Device, Link, System
from lanewise.topology.open_parts import settle_open_parts
from lanewise.topology.overlays import check_bound, check_reach, read_domains, read_policies, read_volumes
from lanewise.topology.scope import Problems, Scope, read_hosts, read_parameters, settle
from lanewise.topology.trees import PCIE_AND_FABRIC, check_forest, orient
from lanewise.topology.validate import validate
from lanewise.yaml_loader import load

if TYPE_CHECKING:
    from lanewise.topology.form import SystemForm
    from lanewise.yaml_positions import YamlDocument

_NONE: Mapping[str, int] = {}


def read_system(text: str, file: str, settings: Mapping[str, int] = _NONE, catalog: Catalog | None = None) -> System:
    """The system that a description states, at these parameter values, on the built-in parts by default.

    The part files that it names are not read here: `catalog` holds their parts (`part_files` tells which).
    InputError with file, line and hint for anything that cannot be used; further problems are in the hint.
    """
    return read_document(load(text, file), settings, catalog)


def read_document(
    document: YamlDocument, settings: Mapping[str, int] = _NONE, catalog: Catalog | None = None
) -> System:
    """The same of a description that is part of another file; InputError as `read_system`."""
    form = validate(document)
    parameters = read_parameters(form, document)
    values = settle(parameters, form.settings, settings, document)
    scope = Scope(document, values, catalog if catalog is not None else builtin())
    hosts = read_hosts(form, scope)
    devices = read_devices(form, hosts, scope)
    scope.problems.raise_if_any()
    devices, readings = settle_open_parts(form, devices, scope)
    links = _links(form, devices, scope)
    domains = read_domains(form, devices, scope)
    volumes = read_volumes(form, devices, scope)
    policies = read_policies(form, devices, links, scope)
    check_reach(domains, reached_by(devices, links, PCIE_AND_FABRIC), scope)
    stated = _stated(form, scope)
    check_bound(domains, devices, stated, scope)
    settled = settle_hosts(devices, links, domains, stated, scope.problems)
    scope.problems.raise_if_any()
    return System(
        name=form.system,
        devices=settled,
        links=tuple(links),
        catalog=scope.catalog,
        title=form.title,
        source=form.source,
        hosts=hosts,
        domains=domains,
        volumes=volumes,
        policies=policies,
        parameters=parameters,
        settings=values,
        assumptions=tuple(form.assumptions),
        readings=readings,
        part_files=(form.parts,) if isinstance(form.parts, str) else tuple(form.parts),
    )


def part_files(text: str, file: str) -> tuple[str, ...]:
    """The part files that a description names under `parts:`; () where it names none or is no description."""
    if re.search(r"^[\"']?parts\b", text, re.MULTILINE) is None:
        return ()
    data = load(text, file).data
    named = data.get("parts") if isinstance(data, dict) else None
    names = named if isinstance(named, list) else [named]
    return tuple(name for name in names if isinstance(name, str))


def _links(form: SystemForm, devices: Mapping[str, Device], scope: Scope) -> list[Link]:
    """All links, checked as a whole, upstream ends first and root ports named."""
    links = read_links(form, devices, scope)
    scope.problems.raise_if_any()
    _check_linked(devices, links, scope.problems)
    _check_partitions(devices, links, scope.problems)
    scope.problems.raise_if_any()
    check_forest(devices, links)
    check_sums(devices, links, scope.catalog, scope.problems)
    return name_ports(devices, orient(devices, links), scope.catalog, scope.problems)


def _check_linked(devices: Mapping[str, Device], links: Sequence[Link], problems: Problems) -> None:
    linked = {end for link in links for end in (link.a, link.b)}
    for device in devices.values():
        if device.kind in ENDPOINTS and device.name not in linked:
            hint = f"add a link, such as {{from: cpu0, to: {device.name}, pcie: auto}}"
            problems.add(Contradiction(f"'{device.name}' has no link", location=device.location, hint=hint))


def _check_partitions(devices: Mapping[str, Device], links: Sequence[Link], problems: Problems) -> None:
    for device in devices.values():
        if not device.partitions:
            continue
        near = {link.far_end(device.name) for link in links if device.name in (link.a, link.b)}
        named = frozenset().union(*device.partitions)
        for name in sorted(named - near):
            cause = f"a partition of '{device.name}' names '{name}', which is not linked to it"
            hint = f"its neighbours: {', '.join(sorted(near)) or 'none'}"
            problems.add(Contradiction(cause, location=device.location, hint=hint))
        for name in sorted(near - named):
            cause = f"'{name}' is linked to '{device.name}' but is in none of its partitions"
            problems.add(Contradiction(cause, location=device.location, hint=f"add '{name}' to a partition"))


def _stated(form: SystemForm, scope: Scope) -> StatedHosts:
    """The devices whose entry has `host:` or `numa:`."""
    stated: dict[str, set[str]] = {"host": set(), "numa": set()}
    for pattern, entry in form.devices.items():
        for key, names in stated.items():
            if key in entry.model_fields_set and scope.included(entry.when):
                names.update(scope.names(pattern))
    return StatedHosts(frozenset(stated["host"]), frozenset(stated["numa"]))
