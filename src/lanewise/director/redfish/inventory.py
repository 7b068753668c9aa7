"""What a pool has, indexed for its resources: chassis, ports, devices of servers, composed systems."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from lanewise.director.records import PoolView
from lanewise.pool.model import Composition, CompositionState, Pool
from lanewise.topology.model import Device, Kind, Link, LinkKind, System

PCIE_DEVICES = (Kind.GPU, Kind.NIC, Kind.SSD, Kind.RAID)


class Inventory:
    """One version of a pool, indexed once."""

    def __init__(self, view: PoolView) -> None:
        self.view = view
        self.pool: Pool = view.pool
        self.system: System = view.pool.system
        self.servers = view.pool.servers

    @cached_property
    def composed(self) -> dict[str, Composition]:
        """Compositions that are not released, by name."""
        table = self.pool.compositions
        return {name: one for name, one in table.items() if one.state is not CompositionState.RELEASED}

    @cached_property
    def composition_of_server(self) -> dict[str, Composition]:
        """The composition of each server that has one."""
        return {one.server: one for one in self.composed.values()}

    @cached_property
    def own(self) -> dict[str, list[Device]]:
        """The devices of each server that are no blocks: CPUs, host adapters, cards in its own slots."""
        table: dict[str, list[Device]] = {server: [] for server in self.servers}
        for device in self.system.devices.values():
            if device.host in table and device.name not in self.pool.blocks:
                table[device.host].append(device)
        return table

    def devices_of(self, name: str) -> list[Device]:
        """The devices of a server (its own) or of a composed system (its server's own and the blocks given to it)."""
        composition = self.composed.get(name)
        if composition is None or name in self.own:
            return self.own[name]
        given = [self.system.devices[block] for block in composition.blocks if block in self.system.devices]
        return [*self.own.get(composition.server, []), *given]

    @cached_property
    def switches(self) -> dict[str, Device]:
        """The PCIe switches and host adapters of the fabric."""
        return {one.name: one for one in self.system.devices.values() if one.kind is Kind.SWITCH}

    @cached_property
    def boxes(self) -> dict[str, Device]:
        """The switches that are bound to no server: each is a chassis with the devices cabled to it."""
        return {name: one for name, one in self.switches.items() if one.host is None}

    @cached_property
    def chassis_of(self) -> dict[str, str]:
        """The chassis of each PCIe device: the box above it, else its server; devices without either are left out."""
        above = {link.b: link.a for link in self.system.links if link.kind is LinkKind.PCIE}
        table: dict[str, str] = {}
        for device in self.system.devices.values():
            if device.kind not in PCIE_DEVICES:
                continue
            upstream = above.get(device.name, "")
            if upstream in self.boxes:
                table[device.name] = upstream
            elif (host := device.host or self._host(upstream)) in self.own:
                table[device.name] = str(host)
        return table

    def _host(self, name: str) -> str | None:
        device = self.system.devices.get(name)
        return device.host if device else None

    @cached_property
    def in_chassis(self) -> dict[str, list[Device]]:
        """The PCIe devices in each chassis."""
        table: dict[str, list[Device]] = {name: [] for name in (*self.servers, *self.boxes)}
        for name, chassis in self.chassis_of.items():
            table[chassis].append(self.system.devices[name])
        return table

    @cached_property
    def upstream(self) -> dict[str, Link]:
        """The PCIe link above each device."""
        return {link.b: link for link in self.system.links if link.kind is LinkKind.PCIE}

    @cached_property
    def ports(self) -> dict[str, dict[str, Link]]:
        """The links at each switch by the name of its port there: the neighbour, numbered where several links meet."""
        table: dict[str, dict[str, Link]] = {}
        for name in self.switches:
            ports: dict[str, Link] = {}
            for one in self.system.links_at(name):
                if one.kind not in (LinkKind.PCIE, LinkKind.FABRIC):
                    continue
                label, number = one.far_end(name), 2
                while label in ports:
                    label, number = f"{one.far_end(name)}-{number}", number + 1
                ports[label] = one
            table[name] = ports
        return table

    @cached_property
    def port_of_link(self) -> dict[tuple[str, int], str]:
        """The port's name by switch and identity of the link, for the far side of a link."""
        return {(name, id(one)): label for name, ports in self.ports.items() for label, one in ports.items()}

    @cached_property
    def entries(self) -> dict[str, str]:
        """The switch port (its address's two names, joined by '/') at which each server enters the fabric."""
        table: dict[str, str] = {}
        for name in self.boxes:
            for label, one in self.ports[name].items():
                host = self._host(one.far_end(name))
                if host in self.own and host not in table:
                    table[str(host)] = f"{name}/{label}"
        return table

    @cached_property
    def attached(self) -> dict[str, list[str]]:
        """The blocks that the fabric has bound to each server now."""
        table: dict[str, list[str]] = defaultdict(list)
        for name in self.pool.blocks:
            device = self.system.devices.get(name)
            if device is not None and device.host is not None:
                table[device.host].append(name)
        return table
