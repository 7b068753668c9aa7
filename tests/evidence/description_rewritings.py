"""Measured machines in other words: rewritings of a description that keep its meaning, and of some that say less."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any

import yaml

from lanewise import package_data
from lanewise.catalog import builtin
from lanewise.catalog.alternatives import meant_by
from lanewise.errors import Contradiction
from lanewise.evidence.prediction import PredictedRow, predict_machine
from lanewise.evidence.reading import read_machine
from lanewise.perf.flow import names_of, parse_flows, pieces_of
from lanewise.topology.model import System
from lanewise.topology.ranges import expand
from lanewise.topology.words import WORDS
from lanewise.topology.write import write_system


class _Loader(yaml.SafeLoader):
    """YAML as Lanewise reads it: yes and no are words."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), ["t", "f"])
Text = dict[str, Any]
Rewriting = Callable[[Text], Text]

# Words after a flow, such as `read`.
_REST = re.compile(r"(?:->|<-|<->)\s*\S+(?P<rest>\s.*)?$")
_SWITCH_WORDS = ("switch", "adapter", "raid")


def machine_text(name: str) -> Text:
    """A measured machine as plain data, ranges and pairs written out: an entry a device, a link and a flow."""
    return _written_out(original_text(name))


def original_text(name: str) -> Text:
    """A measured machine as plain data, as its file has it."""
    text, _ = package_data.text("evidence", name, "machine")
    plain: Text = yaml.load(text, _Loader)
    return plain


def system_of(text: Text) -> System:
    """The system of a machine; InputError if its words cannot be read."""
    return read_machine(as_yaml(text), "machine.yaml").system(builtin())


def _written_out(text: Text) -> Text:
    system = dict(text["system"])
    system["devices"] = {
        name: _counted(entry, index)
        for pattern, entry in system["devices"].items()
        for index, name in enumerate(expand(pattern))
    }
    system["links"] = [single for link in system.get("links", []) for single in _links(link)]
    for key in ("domains", "volumes"):
        for entry in system.get(key, {}).values():
            inner = "devices" if key == "domains" else "drives"
            entry[inner] = _names(entry[inner])
    return {**text, "system": system, "rows": [_row(row, _single_flows) for row in text["rows"]]}


def _counted(entry: Text, index: int) -> Text:
    entry = copy.deepcopy(entry)
    if isinstance(entry.get("numa"), str):
        entry["numa"] = int(entry["numa"]) + index
    if "partitions" in entry:
        entry["partitions"] = [_names(group) for group in entry["partitions"]]
    return entry


def _names(patterns: str | list[str]) -> list[str]:
    return [name for pattern in ([patterns] if isinstance(patterns, str) else patterns) for name in expand(pattern)]


def _links(link: Text) -> list[Text]:
    speed = {key: value for key, value in link.items() if key not in ("from", "to", "pairs", "chain", "mesh")}
    if "mesh" in link:
        names = _names(link["mesh"])
        if str(speed.get("nvlink")) == "auto":  # the share of each depends on how many the mesh has
            return [{"mesh": names, **speed}]
        ends = list(combinations(names, 2))
    elif "chain" in link:
        ends = list(pairwise(_names(link["chain"])))
    else:
        above, below = _names(link["from"]), _names(link["to"])
        each = len(below) // max(len(above), 1)
        paired = [(above[number // each], end) for number, end in enumerate(below)] if link.get("pairs") else []
        ends = paired or list(product(above, below))
    return [{"from": a, "to": b, **speed} for a, b in ends]


def _single_flows(piece: str) -> str:
    rest = (_REST.search(piece) or {"rest": ""})["rest"] or ""
    rest = rest.replace(" all-to-all", "")
    return ", ".join(f"{flow.src}->{flow.dst}{rest}" for flow in parse_flows(piece))


def _row(row: Text, flows: Callable[[str], str]) -> Text:
    """A row with the pieces of its flows changed."""
    key = "flows" if "flows" in row else "blocks"
    if key not in row:
        return row
    return {**row, key: ", ".join(flows(piece) for piece in pieces_of(row[key]) if piece)}


# Small changes of which rewritings are made.


def _devices(text: Text, change: Callable[[str, Text], Text]) -> Text:
    devices = {name: change(name, entry) for name, entry in text["system"]["devices"].items()}
    return {**text, "system": {**text["system"], "devices": devices}}


def each_link(text: Text, change: Callable[[Text], Text]) -> Text:
    """The machine with each link changed."""
    return {**text, "system": {**text["system"], "links": [change(link) for link in text["system"]["links"]]}}


def _word(entry: Text) -> str:
    return next(word for word in WORDS if word in entry)


def renamed(text: Text, names: Mapping[str, str]) -> Text:
    """The machine with other names of its devices and hosts, in its rows as well."""

    def name(old: Any) -> Any:
        if isinstance(old, list):
            return [name(each) for each in old]
        if isinstance(old, dict):
            return {name(key): value for key, value in old.items()}
        return names.get(old, old)

    def device(entry: Text) -> Text:
        changed = {**entry, **({"host": name(entry["host"])} if "host" in entry else {})}
        return {**changed, "partitions": name(entry["partitions"])} if "partitions" in entry else changed

    def end(old: str) -> str:
        host, colon, node = old.partition(":")
        return f"{name(host)}{colon}{node}" if colon and host in names else str(name(old))

    def flow(piece: str) -> str:
        rest = (_REST.search(piece) or {"rest": ""})["rest"] or ""
        found = parse_flows(piece)[0]
        return f"{end(found.src)}->{end(found.dst)}{rest}"

    system = dict(text["system"])
    system["devices"] = {name(old): device(entry) for old, entry in system["devices"].items()}
    system["links"] = [
        {key: name(value) if key in ("from", "to", "mesh") else value for key, value in link.items()}
        for link in system["links"]
    ]
    if "hosts" in system:
        system["hosts"] = name(_names(system["hosts"]))
    for key in ("domains", "volumes"):
        if key in system:
            system[key] = {
                old: {word: name(value) if word != "raid" else value for word, value in entry.items()}
                for old, entry in system[key].items()
            }
    if "policies" in system:
        system["policies"] = {key: name(value) for key, value in system["policies"].items()}
    return {**text, "system": system, "rows": [_renamed_row(_row(row, flow), end) for row in text["rows"]]}


def _renamed_row(row: Text, end: Callable[[str], str]) -> Text:
    changed = dict(row)
    if "ranks" in row:
        changed["ranks"] = ", ".join(end(name) for name in names_of(row["ranks"]))
    if "load" in row and "to" in row:
        changed["to"] = ", ".join(end(name) for name in names_of(row["to"]))
        if "from" in row and not str(row["from"])[:1].isdigit():
            changed["from"] = end(str(row["from"]))
    return changed


def _stated_numas(text: Text) -> Text:
    """NUMA nodes of CPUs stated as the order of the entries gives them."""
    system = system_of(text)

    def stated(name: str, entry: Text) -> Text:
        return {**entry, "numa": system.device(name).numa} if "cpu" in entry else entry

    return _devices(text, stated)


def _several_uplinks(text: Text) -> bool:
    """Whether a switch has several links to CPUs: which one a device takes then follows the order of the links."""
    cpus = {name for name, entry in text["system"]["devices"].items() if "cpu" in entry}
    switches = {name for name, entry in text["system"]["devices"].items() if _word(entry) in _SWITCH_WORDS}
    uplinks = [
        end
        for link in text["system"]["links"]
        if "pcie" in link and {link["from"], link["to"]} & cpus
        for end in (link["from"], link["to"])
        if end in switches
    ]
    return len(uplinks) > len(set(uplinks))


# Rewritings that keep the meaning.


def links_backwards(text: Text) -> Text:
    """The links in the opposite order."""
    if _several_uplinks(text):
        return text
    return {**text, "system": {**text["system"], "links": text["system"]["links"][::-1]}}


def devices_backwards(text: Text) -> Text:
    """The devices in the opposite order, the NUMA nodes of CPUs stated."""
    text = _stated_numas(text)
    return {**text, "system": {**text["system"], "devices": dict(reversed(text["system"]["devices"].items()))}}


def devices_backwards_alone(text: Text) -> Text:
    """The devices but CPUs in the opposite order."""
    devices = text["system"]["devices"]
    cpus = {name: entry for name, entry in devices.items() if "cpu" in entry}
    others = {name: entry for name, entry in reversed(devices.items()) if "cpu" not in entry}
    return {**text, "system": {**text["system"], "devices": {**others, **cpus}}}


def ends_swapped(text: Text) -> Text:
    """Each link from its other end; fabric links keep their order by the format."""

    def swap(link: Text) -> Text:
        if "from" not in link or "fabric" in link:
            return link
        return {**link, "from": link["to"], "to": link["from"]}

    return each_link(text, swap)


def flows_backwards(text: Text) -> Text:
    """The flows of a row in the opposite order, where they run together and no row counts the first."""

    def turned(row: Text) -> Text:
        if row.get("of") == "first" or row.get("schedule", "together") != "together" or "flows" not in row:
            return row
        return {**row, "flows": ", ".join(pieces_of(row["flows"])[::-1])}

    return {**text, "rows": [turned(row) for row in text["rows"]]}


def arrows_turned(text: Text) -> Text:
    """`b<-a` for `a->b`."""

    def turned(piece: str) -> str:
        ends, *rest = piece.split(" ", 1)
        a, b = ends.split("->")
        return " ".join([f"{b}<-{a}", *rest])

    return {**text, "rows": [_row(row, turned) for row in text["rows"]]}


def names_backwards(text: Text) -> Text:
    """Names of devices in the opposite alphabetical order."""
    devices = list(text["system"]["devices"])
    return renamed(text, {name: f"d{len(devices) - number:03d}.x" for number, name in enumerate(devices)})


def names_of_others(text: Text) -> Text:
    """Names that say another kind of device: the CPU gpu0, the GPU nic0, the network card ssd0."""
    devices = list(text["system"]["devices"])
    return renamed(text, {name: f"{('gpu', 'nic', 'cpu')[number % 3]}-{number}" for number, name in enumerate(devices)})


def hosts_renamed(text: Text) -> Text:
    """Other names of the hosts, in the opposite alphabetical order."""
    hosts = _names(text["system"].get("hosts", ["host0"]))
    text = {**text, "system": {"hosts": hosts, **text["system"]}}
    return renamed(text, {host: f"n{len(hosts) - number}" for number, host in enumerate(hosts)})


def by_system(text: Text) -> Text:
    """The description that Lanewise writes of the system."""
    return {**text, "system": {key: value for key, value in yaml.safe_load(write_system(system_of(text))).items()
                               if key != "lanewise"}}  # fmt: skip


def nodes_stated(text: Text) -> Text:
    """NUMA nodes and hosts stated as they are by default."""
    system = system_of(text)

    def stated(name: str, entry: Text) -> Text:
        device = system.device(name)
        return {"numa": device.numa, "host": device.host, **entry}

    return _devices(text, stated)


def ports_stated(text: Text) -> Text:
    """Ports and bridges stated as they are by default."""
    links = iter(system_of(text).links)

    def stated(link: Text) -> Text:
        if "mesh" in link:
            for _ in combinations(link["mesh"], 2):
                next(links)
            return link
        found = next(links)
        return {"port": found.port, "bridge": found.bridge, **link} if found.port else link

    return each_link(text, stated)


_GT = {"1": "2.5", "2": "5", "3": "8", "4": "16", "5": "32", "6": "64"}


def _speeds(form: Callable[[str, str], str]) -> Rewriting:
    """PCIe speeds of which both figures are stated, in other words."""

    def written(link: Text) -> Text:
        match = re.fullmatch(r"gen(\d) x(\d+)", str(link.get("pcie") or link.get("fabric")))
        key = "pcie" if "pcie" in link else "fabric"
        return {**link, key: form(match[1], match[2])} if match else link

    return lambda text: each_link(text, written)


def _speed_left_out(what: str) -> Rewriting:
    """PCIe speeds as `auto`, without generation or lanes, where the parts give the same."""

    def short(link: Text) -> Text:
        match = re.fullmatch(r"gen(\d) x(\d+)", str(link.get("pcie")))
        words = {"auto": "auto", "lanes": f"gen{match[1]}", "generation": f"x{match[2]}"} if match else {}
        return {**link, "pcie": words[what]} if words else link

    def rewrite(text: Text) -> Text:
        if any("mesh" in link for link in text["system"]["links"]):
            return text
        try:
            stated, left_out = (_pcie(system_of(other)) for other in (text, each_link(text, short)))
        except Contradiction:  # x16 in both slots of a desktop's CPU
            return text
        same = iter([one == other for one, other in zip(stated, left_out, strict=True)])
        return each_link(text, lambda link: short(link) if next(same) else link)

    return rewrite


def _pcie(system: System) -> list[tuple[int | None, int | None]]:
    return [(link.gen, link.lanes) for link in system.links]


def _counts(form: Callable[[int], Any]) -> Rewriting:
    """Numbers of bonded links in other words."""

    def written(link: Text) -> Text:
        for key in ("nvlink", "socket"):
            if isinstance(link.get(key), int):
                return {**link, key: form(link[key])}
        return link

    return lambda text: each_link(text, written)


def counts_as_numbers(text: Text) -> Text:
    """`auto` of NVLinks and of links between sockets as the number that it stands for."""
    if any("mesh" in link for link in text["system"]["links"]):
        return text
    links = iter(system_of(text).links)

    def written(link: Text) -> Text:
        found = next(links)
        key = next((key for key in ("nvlink", "socket") if str(link.get(key)) == "auto"), "")
        return {**link, key: found.count} if key else link

    return each_link(text, written)


_NETWORKS = {
    "hdr": ["200 Gb/s", "HDR", "InfiniBand HDR", "200G", "200Gb/s", "200 Gbps", "HDR200"],
    "ndr": ["400 Gb/s", "NDR", "InfiniBand NDR", "400G", "400 Gbit/s", "NDR400"],
    "edr": ["100 Gb/s", "EDR", "InfiniBand EDR", "100G", "100 Gbps", "EDR100"],
    "100gbe": ["100 GbE", "100GbE", "100G Ethernet", "100 Gb/s Ethernet", "RoCE 100 Gb/s"],
    "400gbe": ["400 GbE", "400GbE", "400G Ethernet", "400 Gb/s Ethernet", "RoCE 400 Gb/s"],
}


def _networks(number: int) -> Rewriting:
    def written(link: Text) -> Text:
        words = _NETWORKS.get(str(link.get("network")), [])
        return {**link, "network": words[number]} if number < len(words) else link

    return lambda text: each_link(text, written)


def _parts(form: Callable[[str], str | None]) -> Rewriting:
    """Parts by another of their names, None where there is none."""

    def written(_: str, entry: Text) -> Text:
        word = _word(entry)
        if entry[word] is None or entry[word] not in builtin():
            return entry
        new = form(entry[word])
        return {**entry, word: new} if new else entry

    return lambda text: _devices(text, written)


def _title(name: str) -> str | None:
    title = builtin().get(name).title.partition(",")[0]
    return title if title and title in builtin() and builtin().get(title).name == builtin().get(name).name else None


def _alias(number: int) -> Callable[[str], str | None]:
    def alias(name: str) -> str | None:
        part = builtin().get(name)
        # Not h200-141gb, which other cards have too.
        aliases = [alias for alias in part.aliases if meant_by(builtin(), alias, (part.kind,)) == (part.name,)]
        return aliases[number] if number < len(aliases) else None

    return alias


def _by_part_name(name: str) -> str | None:
    part = builtin().get(name)
    return part.name if part.kind != "cpu" else None


def cpu_by_generation(text: Text) -> Text:
    """A CPU by the name of its generation's part in place of its model."""

    def written(_: str, entry: Text) -> Text:
        return {**entry, "cpu": builtin().get(entry["cpu"]).name} if entry.get("cpu") in builtin() else entry

    return _devices(text, written)


def own_parts_of(kind: str) -> Rewriting:
    """Parts under a name of one's own that take over every figure of the shipped part."""

    def rewrite(text: Text) -> Text:
        if "parts" in text:
            return text
        entries = text["system"]["devices"].values()
        used = sorted({builtin().get(entry[kind]).name for entry in entries if entry.get(kind)})
        if not used:
            return text
        own = [{"part": f"own-{name}", "extends": name, "figures": {}} for name in used]

        def written(_: str, entry: Text) -> Text:
            return {**entry, kind: f"own-{builtin().get(entry[kind]).name}"} if entry.get(kind) else entry

        return {**_devices(text, written), "parts": own}

    return rewrite


def second_host(first: bool) -> Rewriting:
    """The same machine once more in the file, as another host that nothing joins to this one."""

    def rewrite(text: Text) -> Text:
        hosts = _names(text["system"].get("hosts", ["host0"]))
        if len(hosts) > 1:
            return text
        system = text["system"]
        own = _devices(text, lambda name, entry: {"host": hosts[0], **entry} if "cpu" in entry else entry)
        other = renamed(own, {**{name: f"other-{name}" for name in system["devices"]}, hosts[0]: "other"})
        both = [other["system"], own["system"]] if first else [own["system"], other["system"]]
        joined = {
            **system,
            "hosts": ["other", *hosts] if first else [*hosts, "other"],
            "devices": {**both[0]["devices"], **both[1]["devices"]},
            "links": both[0]["links"] + both[1]["links"],
        }
        volumes = {f"other-{name}": volume for name, volume in other["system"].get("volumes", {}).items()}
        if volumes:
            joined["volumes"] = {**system["volumes"], **volumes}
        if isinstance(system.get("policies", {}).get("peers"), dict):
            peers = {**system["policies"]["peers"], **other["system"]["policies"]["peers"]}
            joined["policies"] = {**system["policies"], "peers": peers}
        return {**text, "system": joined}

    return rewrite


def _unused(name: str, entry: Text, link: Text) -> Rewriting:
    """A device that no row uses, at the first and at the last CPU."""

    def rewrite(text: Text) -> Text:
        cpus = [cpu for cpu, entry in text["system"]["devices"].items() if "cpu" in entry]
        if not cpus:
            return text
        new = {f"{name}-{cpu}": dict(entry) for cpu in dict.fromkeys((cpus[0], cpus[-1]))}
        links = [{"from": cpu, "to": f"{name}-{cpu}", **link} for cpu in dict.fromkeys((cpus[0], cpus[-1]))]
        system = text["system"]
        return {**text, "system": {**system, "devices": {**system["devices"], **new}, "links": system["links"] + links}}

    return rewrite


def unused_switch(text: Text) -> Text:
    """A switch without anything below it."""
    return _unused("idle", {"switch": None}, {"pcie": "gen4 x16"})(text)


def policies_by_cpu(text: Text) -> Text:
    """`peers:` for each CPU, and `acs_redirect: true` as all switches."""
    system, policies = text["system"], dict(text["system"].get("policies") or {})
    if isinstance(policies.get("peers"), str):
        policies["peers"] = {name: policies["peers"] for name, entry in system["devices"].items() if "cpu" in entry}
    if policies.get("acs_redirect") is True:
        switches = [name for name, entry in system["devices"].items() if _word(entry) in _SWITCH_WORDS]
        policies["acs_redirect"] = switches
    return {**text, "system": {**system, "policies": policies}} if policies else text


def rates_in_gigabits(text: Text) -> Text:
    """Rates of links in Gb/s."""

    def written(link: Text) -> Text:
        match = re.fullmatch(r"([\d.]+) GB/s", str(link.get("rate")))
        return {**link, "rate": f"{float(match[1]) * 8:g} Gb/s"} if match else link

    return each_link(text, written)


# What says less.


def unknown_part(word: str) -> Rewriting:
    """Devices of a kind without their part, what their links took from it stated."""

    def rewrite(text: Text) -> Text:
        if not any(entry.get(word) for entry in text["system"]["devices"].values()):
            return text
        stated = by_system(text)
        stated = _written_out(stated)
        return _devices(stated, lambda _, entry: {**entry, word: None} if word in entry else entry)

    return rewrite


def _without(key: str, value: Any) -> Rewriting:
    def rewrite(text: Text) -> Text:
        return each_link(text, lambda link: {**link, key: value} if key in link else link)

    return rewrite


def _lanes_unknown(text: Text) -> Text:
    return each_link(
        text, lambda link: {**link, "pcie": re.sub(r"x\d+", "x?", link["pcie"])} if "pcie" in link else link
    )


def _generation_unknown(text: Text) -> Text:
    return each_link(
        text, lambda link: {**link, "pcie": re.sub(r"gen\d", "gen?", link["pcie"])} if "pcie" in link else link
    )


SAME: dict[str, Rewriting] = {
    "links in the opposite order": links_backwards,
    "devices in the opposite order, NUMA nodes stated": devices_backwards,
    "devices but CPUs in the opposite order": devices_backwards_alone,
    "ends of links swapped": ends_swapped,
    "flows in the opposite order": flows_backwards,
    "b<-a": arrows_turned,
    "names in the opposite order": names_backwards,
    "names of other kinds": names_of_others,
    "hosts renamed": hosts_renamed,
    "as Lanewise writes it": by_system,
    "NUMA nodes and hosts stated": nodes_stated,
    "ports and bridges stated": ports_stated,
    "PCIe 5.0 x16": _speeds(lambda gen, lanes: f"PCIe {gen}.0 x{lanes}"),
    "pcie5 x16": _speeds(lambda gen, lanes: f"pcie{gen} x{lanes}"),
    "PCIe Gen5 x16": _speeds(lambda gen, lanes: f"PCIe Gen{gen} x{lanes}"),
    "PCIe Gen 5 x16": _speeds(lambda gen, lanes: f"PCIe Gen {gen} x{lanes}"),
    "PCIe 5 x16": _speeds(lambda gen, lanes: f"PCIe {gen} x{lanes}"),
    "gen5x16": _speeds(lambda gen, lanes: f"gen{gen}x{lanes}"),
    "PCIe5x16": _speeds(lambda gen, lanes: f"PCIe{gen}x{lanes}"),
    "Gen5 X16": _speeds(lambda gen, lanes: f"Gen{gen} X{lanes}"),
    "x16 gen5": _speeds(lambda gen, lanes: f"x{lanes} gen{gen}"),
    "x16 PCIe 5.0": _speeds(lambda gen, lanes: f"x{lanes} PCIe {gen}.0"),
    "PCIe x16 Gen5": _speeds(lambda gen, lanes: f"PCIe x{lanes} Gen{gen}"),
    "5.0 x16": _speeds(lambda gen, lanes: f"{gen}.0 x{lanes}"),
    "gen5, x16": _speeds(lambda gen, lanes: f"gen{gen}, x{lanes}"),
    "PCIe 5.0 (x16)": _speeds(lambda gen, lanes: f"PCIe {gen}.0 (x{lanes})"),
    "g5 x16": _speeds(lambda gen, lanes: f"g{gen} x{lanes}"),
    "gen5 16 lanes": _speeds(lambda gen, lanes: f"gen{gen} {lanes} lanes"),
    "gen5-x16": _speeds(lambda gen, lanes: f"gen{gen}-x{lanes}"),
    "Speed 32GT/s, Width x16": _speeds(lambda gen, lanes: f"Speed {_GT[gen]}GT/s, Width x{lanes}"),
    "32.0 GT/s x16": _speeds(lambda gen, lanes: f"{_GT[gen]}.0 GT/s x{lanes}"),
    "PCIe 5.0 x16 with a sign of multiplication": _speeds(lambda gen, lanes: f"PCIe {gen}.0 ×{lanes}"),
    "auto": _speed_left_out("auto"),
    "generation alone": _speed_left_out("lanes"),
    "lanes alone": _speed_left_out("generation"),
    "links counted as text": _counts(str),
    "links counted as x4": _counts(lambda count: f"x{count}"),
    "links counted as 4 links": _counts(lambda count: f"{count} links"),
    "auto as a number": counts_as_numbers,
    **{f"networks, {number + 1}": _networks(number) for number in range(7)},
    "parts in capital letters": _parts(str.upper),
    "parts by title": _parts(_title),
    "parts by name": _parts(_by_part_name),
    "parts by first alias": _parts(_alias(0)),
    "parts by second alias": _parts(_alias(1)),
    "parts by third alias": _parts(_alias(2)),
    "parts with blanks": _parts(lambda name: name.replace("-", " ")),
    "parts with underscores": _parts(lambda name: name.replace("-", "_")),
    "CPUs by generation": cpu_by_generation,
    "GPUs under names of one's own": own_parts_of("gpu"),
    "CPUs under names of one's own": own_parts_of("cpu"),
    "switches under names of one's own": own_parts_of("switch"),
    "cards under names of one's own": own_parts_of("nic"),
    "a second host after": second_host(False),
    "a second host before": second_host(True),
    "a card more": _unused("idle", {"nic": None}, {"pcie": "gen3 x4"}),
    "a drive more": _unused("idle", {"ssd": None}, {"pcie": "gen3 x4"}),
    "an empty switch more": unused_switch,
    "policies by CPU": policies_by_cpu,
    "rates as Gb/s": rates_in_gigabits,
}
LESS: dict[str, Rewriting] = {
    **{f"{word} unknown": unknown_part(word) for word in ("cpu", "gpu", "switch", "nic", "ssd", "nvswitch")},
    "links between sockets unknown": _without("socket", "?"),
    "network unknown": _without("network", "?"),
    "lanes unknown": _lanes_unknown,
    "generation unknown": _generation_unknown,
    "link unknown": _without("pcie", "gen? x?"),
}


# What changes a machine in a known direction.


def _switch_between(kind: str) -> Rewriting:
    """One more switch of no name above each device of a kind that is at a CPU."""

    def rewrite(text: Text) -> Text:
        devices = text["system"]["devices"]
        new, links = {}, []
        for link in text["system"]["links"]:
            ends = (link.get("from"), link.get("to"))
            found = "pcie" in link and "from" in link and "cpu" in devices[ends[0]] and kind in devices[ends[1]]
            if not found:
                links.append(link)
                continue
            name = f"more-{ends[1]}"
            new[name] = {"switch": None}
            speed = re.fullmatch(r"gen\d x\d+", link["pcie"])
            if not speed:
                return text
            links += [{**link, "to": name}, {"from": name, "to": ends[1], "pcie": link["pcie"]}]
        return {**text, "system": {**text["system"], "devices": {**devices, **new}, "links": links}}

    return rewrite


def _scaled_links(gens: int, lanes: int) -> Rewriting:
    """All PCIe links of a stated speed older by `gens` generations or narrower by a factor of `lanes`."""

    def less(link: Text) -> Text:
        match = re.fullmatch(r"gen(\d) x(\d+)", str(link.get("pcie")))
        if not match or int(match[1]) - gens < 1 or int(match[2]) // lanes < 1:
            return link
        return {**link, "pcie": f"gen{int(match[1]) - gens} x{int(match[2]) // lanes}"}

    return lambda text: each_link(text, less)


def _memory(factor: float) -> Rewriting:
    """Memory of each CPU with a share of its rate, as a part file states it."""

    def rewrite(text: Text) -> Text:
        if "parts" in text:
            return text
        entries = text["system"]["devices"].values()
        used = sorted({builtin().get(entry["cpu"]).name for entry in entries if entry.get("cpu")})
        rates = {name: rate for name in used if (rate := builtin().get(name).number("memory.rate"))}
        if not rates:
            return text
        own = [
            {"part": name, "extends": name,
             "figures": {"memory.rate": {"value": f"{factor * rate / 1e9:.6g} GB/s", "source": "modules"}}}
            for name, rate in rates.items()
        ]  # fmt: skip
        return {**text, "parts": own}

    return rewrite


def flows_doubled(text: Text) -> Text:
    """Each flow as two between the same ends, for rows that count the sum."""

    def doubled(row: Text) -> Text:
        if row.get("of", "total") != "total" or row.get("schedule", "together") != "together" or row.get("latency"):
            return row
        return {**row, "flows": f"{row['flows']}, {row['flows']}"} if "flows" in row else row

    return {**text, "rows": [doubled(row) for row in text["rows"]]}


def last_flow_left_out(text: Text) -> Text:
    """A row of several flows without its last one, where the first alone counts."""

    def fewer(row: Text) -> Text:
        pieces = pieces_of(row.get("flows", ""))
        if len(pieces) < 2 or row.get("schedule", "together") != "together":
            return row
        return {**row, "of": "first", "flows": ", ".join(pieces[:-1])}

    return {**text, "rows": [fewer(row) for row in text["rows"]]}


def first_counts(text: Text) -> Text:
    """The rows that `last_flow_left_out` changes with all their flows, of which the first counts."""

    def first(row: Text) -> Text:
        several = len(pieces_of(row.get("flows", ""))) > 1 and row.get("schedule", "together") == "together"
        return {**row, "of": "first"} if several else row

    return {**text, "rows": [first(row) for row in text["rows"]]}


def twins_swapped(text: Text) -> Text:
    """The rows with each pair of neighbouring equal devices exchanged: same part, same links to the same device."""
    system, devices = text["system"], text["system"]["devices"]
    if _several_uplinks(text) or "domains" in system or "volumes" in system:
        return text

    def signature(name: str) -> str | None:
        if _word(devices[name]) not in ("gpu", "nic", "ssd"):
            return None
        links = []
        for link in system["links"]:
            if "mesh" in link:
                links.append(repr(link) if name in link["mesh"] else "")
            elif name in (link["from"], link["to"]):
                speed = {key: value for key, value in link.items() if key not in ("from", "to", "port", "bridge")}
                if "bridge" in link:
                    return None
                links.append(repr((sorted({link["from"], link["to"]} - {name}), speed)))
        if any(f"'{other}'" in repr(links) for other in devices if other != name and _word(devices[other]) == "gpu"
               and "mesh" not in repr(links)):  # fmt: skip
            return None
        return repr((devices[name], sorted(links)))

    alike: dict[str, list[str]] = {}
    for name in devices:
        if (of := signature(name)) is not None:
            alike.setdefault(of, []).append(name)
    names: dict[str, str] = {}
    for group in alike.values():
        for a, b in zip(group[::2], group[1::2], strict=False):
            names |= {a: b, b: a}
    if not names:
        return text
    return {**text, "rows": renamed(text, names)["rows"]}


SAME["equal devices exchanged"] = twins_swapped
# What cannot make a row faster.
SLOWER: dict[str, Rewriting] = {
    "a switch more above GPUs": _switch_between("gpu"),
    "links a generation older": _scaled_links(1, 1),
    "links of half the lanes": _scaled_links(0, 2),
    "half the memory": _memory(0.5),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two forms of a machine, and whether a row of the second contradicts that of the first."""

    before: Rewriting
    after: Rewriting
    moved: Callable[[PredictedRow, PredictedRow], bool]


def as_yaml(text: Text) -> str:
    """A machine as the text of its file."""
    return yaml.safe_dump(text, sort_keys=False, allow_unicode=True)


def predicted(text: Text) -> tuple[PredictedRow, ...]:
    """The rows of a machine as predicted; InputError where its words cannot be read."""
    return predict_machine(read_machine(as_yaml(text), "machine.yaml"), builtin())


def ends_of(row: PredictedRow) -> tuple[float, float, float] | None:
    """Low end, value and high end, None where nothing is predicted."""
    seen = row.observation
    if seen.value is None:
        return None
    low, high = (seen.value if end is None else end for end in (seen.low, seen.high))
    return low, seen.value, high


def is_other(old: PredictedRow, new: PredictedRow) -> bool:
    """Whether value or interval differ."""
    one, other = ends_of(old), ends_of(new)
    if one is None or other is None:
        return one is not other
    return any(abs(a - b) > _ROUNDING * abs(a) for a, b in zip(one, other, strict=True))


def is_surer(old: PredictedRow, new: PredictedRow) -> bool:
    """Whether less said leaves the old value outside the interval, or the interval narrower on both sides."""
    one, other = ends_of(old), ends_of(new)
    if one is None or other is None:
        return False
    (low, value, high), (new_low, _, new_high) = one, other
    holds = new_low * (1 - _ROUNDING) <= value <= new_high * (1 + _ROUNDING)
    return not holds or new_high / new_low < high / low * (1 - _ROUNDING)


def is_faster(old: PredictedRow, new: PredictedRow) -> bool:
    """Whether the rate is higher, or the time shorter."""
    one, other = ends_of(old), ends_of(new)
    if one is None or other is None:
        return False
    ratio = one[1] / other[1] if new.row.latency else other[1] / one[1]
    return ratio > 1 + _RATES


_ROUNDING, _RATES = 1e-6, 1e-3  # of sums in another order; of rates of many flows, which the solver finds in steps


def _as_it_is(text: Text) -> Text:
    return text


COMPARISONS: dict[str, Comparison] = {
    **{what: Comparison(_as_it_is, rewriting, is_other) for what, rewriting in SAME.items()},
    **{what: Comparison(_as_it_is, rewriting, is_surer) for what, rewriting in LESS.items()},
    **{what: Comparison(_as_it_is, rewriting, is_faster) for what, rewriting in SLOWER.items()},
    "a flow more": Comparison(last_flow_left_out, first_counts, is_faster),
}
