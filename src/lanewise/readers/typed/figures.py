"""Figures typed in by hand, `lanewise-rows: 1`: for questions that give numbers and no output of a tool."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from lanewise import late_re as re
from lanewise import units
from lanewise.errors import FormatError, LanewiseError
from lanewise.perf.flow import Flow, names_of, parse_flows
from lanewise.readers.tool_results import ImportedResults, check_rows
from lanewise.readers.typed import machine, values
from lanewise.readers.typed.keys import near_miss, own_keys, own_settings, with_usual_keys
from lanewise.readers.typed.said_beside import with_keys_for_all
from lanewise.readers.words import spellings
from lanewise.readers.words.devices import bus_share, memory_of, named_collective
from lanewise.results.observation import Observation, Source
from lanewise.results.posted import STATEMENTS, VARIABLE, PostedFacts, Statement, meaning, stated_as
from lanewise.yaml_positions import YamlNode, load

HEAD = "lanewise-rows"
_REFERENCE = "docs/reference/readers.md"
_FIELDS = ("flows", "value", "of", "p2p", "path", "note", "metric", "bytes", "depth", "threads", "ranks", "hosts",
           "line", "engine", "mode", "host memory", "pinned", "NUMA node", "link under load", "slot", "device",
           "expected", "rated")  # fmt: skip
_GPU_MEMORY = re.compile(r"(?i)\s*(?:gpu|cuda|device|rocm|vram|hbm|d d)s?(?: memory)?\s*")
_HOW = ("line", "engine", "mode", "host memory", "NUMA node", "link under load", "device", "note")
_SETTINGS = ("depth", "threads", "ranks", "hosts")
_METRICS = ("goodput", "total", "latency", "bus_bandwidth", "algorithm_bandwidth", "time", "iops")
# What a rate and a time of all GPUs of a ring are of: a collective, each by its rank's share.
_BY_ALGORITHM = "algorithm_bandwidth"
_OF_COLLECTIVES = ("bus_bandwidth", _BY_ALGORITHM, "time")
_OF_A_COLLECTIVE = {"goodput": "bus_bandwidth", "latency": "time"}
_MOST_COUNTED = 1_000_000
_HOST = re.compile(r"host|cpu\d")
# What somebody wants of a row, and how `references.texts` calls it.
_WANTED = {"expected": "expected", "rated": "nominal"}
# A copy of so many bytes takes far longer than to start and end it, so that its time is a rate: at 25 GB/s 16 MiB take
# 0.7 ms, and a call from Python some 20 us.
_LONG_COPY = 16 * 2**20
_OF_A_RING = ("all_reduce", "all_gather", "reduce_scatter")
_OF_ONE_SIZE = ("all_reduce", "broadcast", "sendrecv")
# Nobody wants so little that a time is below this share of it: its bytes were counted otherwise.
_SURELY_FASTER = 0.7
_COPIES = ("host to device", "device to host", "peer", "peer, staged", "GPU memory", "network")
# A drive answers a request in less (s): what takes longer is the load of a file.
_A_LOAD = 0.1
# What people call a machine of a network.
_MACHINE = re.compile(
    r"(?:client|server|node|pc|nas|desktop|laptop|workstation|mac|win|linux|pi|rpi|vm|guest|pod|container|docker|"
    r"router|switch|sender|receiver|source|target|initiator|master|worker|peer|remote|internet|cloud|site|machine|box)"
    r"[\w.-]*$",
    re.IGNORECASE,
)
# A flow by the names of a description, and its value with a unit: `host0->gpu[0-3]: 96 GB/s`.
_BARE_ROW = re.compile(
    r"((?:host|gpu|nic|ssd|vol)[\w:.\[\]-]*<?->[a-z][\w:.\[\]-]*[\w\]])(?:\s*[:=,|])?\s+(~?\d[\d.,]* ?[a-zA-Z]+(?:/s)?)"
)
_LONGEST_BARE = 120  # characters of a line
_BETWEEN_FLOWS = re.compile(r"\s+(?=[\w:.\[\]-]+->)")
_PACKETS = re.compile(r"pps\b|pac?ke?ts\b", re.IGNORECASE)
_WITHIN = re.compile(r"gpu\d*|host\d*(?::\d+)?")
# Drives, arrays, and file systems or volumes over a network.
_STORAGE = re.compile(
    r"sd\d|sd-?card|ssd|nvme|drive|vol|raid|storage|md|roc|pmem|mmcblk|disk|hdd|sata|emmc|optane|usb|rbd|ceph|zfs|zpool|"
    r"pool|nfs|smb|"
    r"cifs|share|lustre|gpfs|beegfs|weka|s3|bucket|minio|ebs|iscsi|lun\d|dm-|loop\d|gluster|moosefs|juicefs|hdfs|longhorn|"
    r"drbd|sshfs|webdav|orangefs|btrfs|bcache|efs\d*$|fsx|filestore|(?:sd|hd|vd|xvd)[a-z]\d*$"
)


def is_text(text: str) -> bool:
    """Whether a text is such a list of figures, or nothing but flows with a value each."""
    return any(line.startswith(f"{HEAD}:") for line in text.split("\n", 50)[:50]) or _bare_rows(text) is not None


def _bare_rows(text: str) -> str | None:
    """Lines such as `host0->gpu0 25.4 GB/s` as such a list, line by line; None for any other text."""
    listed = []
    for line in text.split("\n"):
        plain = line[: _LONGEST_BARE + 1].partition("#")[0].strip()
        row = _BARE_ROW.fullmatch(plain) if len(plain) <= _LONGEST_BARE else None
        if plain and row is None:
            return None
        listed.append(f'{{flows: "{row[1]}", value: "{row[2]}"}},' if row else "")
    return f"{{{HEAD}: 1, rows: [" + "\n".join(listed) + "]}" if any(listed) else None


def read_text(text: str, file: str) -> ImportedResults:
    """Its rows, the names of the GPUs and what else was stated; FormatError or UnknownName with the line otherwise."""
    root = load(_bare_rows(text) or text, file, _REFERENCE).root
    fields = root.check_fields((HEAD, "title", "gpus", "gpu", "stated", "rows"), "the file", needed=(HEAD, "rows"))
    fields[HEAD].integer(1, 1, 1)
    nodes = fields["rows"].items()
    maps = [node for node in nodes if node.is_map]
    shared = {node.key: node for node in machine.shared_facts(maps, _FIELDS)}
    rows: list[Observation] = []
    one_cpu = re.search(r"cpu ?[1-9]", text, re.IGNORECASE) is None
    for node in nodes:
        rows += _rows(_as_rows_have_it(node, shared, one_cpu) if node.is_map else node)
        check_rows(rows, node.location)
    stated = fields["stated"].members()
    posted = _posted({**shared, **{key: node for key, node in stated.items() if key != machine.GPU}}, file)
    devices = _devices(fields) or machine.gpu_names(maps)
    return ImportedResults("typed in", tuple(rows), posted=replace(posted, devices=devices))


def _devices(fields: YamlNode) -> dict[str, str]:
    """The names of GPUs by device: `gpus` is one name for all, a list of them, or a name for each."""
    named = (fields["gpus"], fields["gpu"], fields["stated"]["gpu"])
    gpus = next((node for node in named if node.given), fields["gpus"])
    if gpus.is_map:
        return {name: values.gpu_name(node.text()) for name, node in gpus.members().items()}
    if isinstance(gpus.value, list):
        return {f"gpu{number}": values.gpu_name(node.text()) for number, node in enumerate(gpus.items())}
    return {"gpu": values.gpu_name(gpus.text())} if gpus.given else {}


def _posted(stated: Mapping[str, YamlNode], file: str) -> PostedFacts:
    """`stated` holds the words of docs/reference/readers.md."""
    statements: list[Statement] = []
    unused: list[Statement] = []
    for key, node in stated.items():
        statement = Statement(stated_as(key), node.as_written().strip(), f"{file}:{node.location.line}")
        said = meaning(statement.key, _line_or_text(statement)) if stated_as(key) in STATEMENTS else ""
        is_known = bool(said) or VARIABLE.fullmatch(key) is not None
        if not is_known and statement.key == key and key not in STATEMENTS and near_miss(key, STATEMENTS):
            raise node.error(
                f"'{key}' is nothing that can be stated", f"known: {', '.join(STATEMENTS)}; NCCL_P2P_LEVEL etc."
            )
        # cores: 8P+16E says nothing that can be used
        known, vain = replace(statement, value=said or statement.value), replace(statement, key=key)
        (statements if is_known else unused).append(known if is_known else vain)
    return PostedFacts({}, tuple(statements), tuple(unused))


def _line_or_text(statement: Statement) -> str:
    return spellings.line(statement.value) if statement.key == "line" else statement.value


def _rows(node: YamlNode) -> Iterator[Observation]:
    own = own_keys(node, _FIELDS)
    node.check_fields((*_FIELDS, *own), "a row", needed=("flows", "value"))
    p2p = values.flag(node["p2p"])
    flows = _flows_of(node, p2p)
    value, unit, metric, taken = _quantity(node["value"], bits=path_of(flows[0]) == "network")
    _, of_what = values.of_what(node["value"].as_written())
    if of_what == "both" and len(flows) == 1:
        flows = (*flows, replace(flows[0], src=flows[0].dst, dst=flows[0].src))
    ring = not node["metric"].given and (_is_ring(node) or _names_a_ring(node))
    metric = _OF_A_COLLECTIVE.get(metric, metric) if ring else metric
    metric = _metric(node, "total" if metric == "goodput" and len(flows) > 1 else metric)
    of = node["of"].choice(("sum", "each", "first"), "each" if of_what == "each" else "sum")
    names = ", ".join(flow.name + " read" * flow.read + " sm" * flow.sm for flow in flows)
    if of == "sum" or len(flows) == 1:
        shown = [", ".join(flow.name for flow in flows)]
    else:
        metric, shown = "goodput" if metric == "total" else metric, [flow.name for flow in flows]
        shown = shown[:1] if of == "first" else shown
    how = _how(node, flows, names, p2p)
    settings = {key: _count(node[key]) for key in _SETTINGS if node[key].given}
    numbers, texts = own_settings(node, own)
    settings |= numbers
    name = " ".join(filter(None, (node["path"].text(), texts)))
    name = values.collective_first(name) if metric in _OF_COLLECTIVES else name
    if metric in _OF_COLLECTIVES and path_of(flows[0]).startswith("peer") and len(flows) > 1:
        settings.setdefault("ranks", len(flows))
    if node["bytes"].given:
        settings["bytes"] = _bytes(node["bytes"])
    note = "; ".join(filter(None, (node["note"].text(), taken)))
    counted = "" if node["metric"].given else _rate_of(metric, settings.get("bytes", 0), value, path_of(flows[0]))
    if counted:
        # Requests of one size, and one long copy, are a rate, which other rows and links can be compared with.
        note = "; ".join(filter(None, (note, counted)))
        value, unit = _in_bytes(metric, settings["bytes"], value)
        how |= {"timed": "a whole copy"} if metric == "latency" else {}
    if _PACKETS.search(node["value"].as_written()):
        how["counted"] = "packets"
    if share := _bus_share(metric, name, settings, value):
        # A collective's time is compared as its bus bandwidth, as tools print it.
        note = "; ".join(filter(None, (note, f"{units.show(value, 'ms')} a call")))
        metric, unit, value = "bus_bandwidth", "GB/s", settings["bytes"] * share / value
    if metric == _BY_ALGORITHM and (share := bus_share(named_collective(name), settings.get("ranks", 0))):
        note = "; ".join(filter(None, (note, f"{units.show(value, 'GB/s')} of algorithm bandwidth")))
        metric, value = "bus_bandwidth", value * share
    kind, wanted, wanted_unit = _wanted(node, path_of(flows[0]), settings["bytes"] if counted else 0)
    if kind:
        if metric in ("bus_bandwidth", "time"):
            wanted, wanted_unit = _of_a_call(wanted, wanted_unit, metric, named_collective(name), settings, value)
        how |= {"expected": units.show(wanted, wanted_unit, 12), "expectation": kind}
    if counted:
        metric = "total" if of == "sum" and len(flows) > 1 else "goodput"
    for flow in shown:
        yield Observation(
            name or flow, flow, metric, value, unit, Source.MEASURED, settings=settings,
            path=path_of(flows[0]), how=how, note=note,
        )  # fmt: skip


def _as_rows_have_it(row: YamlNode, shared: Collection[str], one_cpu: bool) -> YamlNode:
    """The row with the names of keys and of its flows' ends that rows have, without what is the machine's."""
    by_algorithm = "metric" not in row.value and any(values.metric(key) == _BY_ALGORITHM for key in row.value)
    row = with_keys_for_all(machine.without(with_usual_keys(row), (*shared, machine.GPU)))
    if by_algorithm:  # algbw: 270 GB/s says both
        row = replace(row, value={**row.value, "metric": _BY_ALGORITHM})
    flows = row["flows"].value
    if not isinstance(flows, str):
        return row
    flows = values.ends(re.sub(r"\bcpu ?0\b", "host0", flows) if one_cpu and "gpu" not in flows.lower() else flows)
    return replace(row, value={**row.value, "flows": flows})


def _rate_of(metric: str, size: int, value: float, path: str) -> str:
    """How many requests a second, or how long a copy, a value says that is as well a rate; empty if it is none."""
    if metric == "iops" and size:
        return f"{value:,.0f} requests a second"
    whole = path in _COPIES or (path == "storage" and value >= _A_LOAD)
    if metric == "latency" and size >= _LONG_COPY and value > 0 and whole:
        return f"{units.show(value, 'ms')} a copy"
    return ""


def _bus_share(metric: str, name: str, settings: Mapping[str, int], value: float) -> float:
    """Bus bandwidth over the rate of a collective's bytes (nccl-tests, doc/PERFORMANCE.md); 0 where none is meant.

    Of a gather, scatter or all-to-all people count the bytes of a rank or of all, so that their times stay times.
    """
    collective = named_collective(name)
    if metric != "time" or value <= 0 or settings.get("bytes", 0) < _LONG_COPY or collective not in _OF_ONE_SIZE:
        return 0.0
    return bus_share(collective, settings.get("ranks", 0))


def _in_bytes(metric: str, size: int, value: float) -> tuple[float, str]:
    """Requests of `size` bytes a second, or the time of one such copy, as a rate in B/s and the unit to show it in."""
    return (value * size, "MB/s") if metric == "iops" else (size / value, "GB/s")


def _flows_of(node: YamlNode, p2p: bool) -> tuple[Flow, ...]:
    """The flows of a row; FormatError with its line where they are none."""
    try:
        collective = _metric(node, "") in ("", *_OF_COLLECTIVES)
        flows = _flows(node["flows"].needed(), collective, p2p, _is_counted(node))
        if collective and len(flows) == 1 and flows[0].src == flows[0].dst and node["hosts"].given:
            flows = (replace(flows[0], dst="host1"),)  # one GPU a host
        return tuple(map(_of_its_gpu, flows)) if _of_gpus(node) else flows
    except LanewiseError as error:
        raise FormatError(error.cause, location=node["flows"].location, hint=error.hint) from None


def _of_its_gpu(flow: Flow) -> Flow:
    """A flow between two hosts from or to the memory of host0's GPU: GPUs have the numbers of one machine."""
    src, dst = (re.sub(r"^host0$", "gpu0", end) for end in (flow.src, flow.dst))
    return replace(flow, src=src, dst=dst)


def _of_gpus(node: YamlNode) -> bool:
    """Whether a row of two hosts says that its data lies in the memory of GPUs (`memory: GPU`)."""
    text = node["memory"].as_written() if node["memory"].given else ""
    ends = {end.strip() for end in node["flows"].text().split("->")}
    return len(ends) == 2 and all(re.fullmatch(r"host\d+", end) for end in ends) and bool(_GPU_MEMORY.fullmatch(text))


def _how(node: YamlNode, flows: Sequence[Flow], names: str, p2p: bool) -> dict[str, str]:
    """By which method a row was measured, as far as its keys and its name say."""
    how = {key: node[key].as_written() for key in _HOW if node[key].given}
    # The slot of this row's device, where others of the run have other slots.
    how |= {key: values.link(node[key].as_written()) for key in ("slot", "link under load") if node[key].given}
    if node["pinned"].given:
        how.setdefault("host memory", "pinned" if values.flag(node["pinned"]) else "pageable")
    if "host memory" in how:
        how["host memory"] = values.host_memory(how["host memory"])
    if "line" in how:
        how["line"] = spellings.line(how["line"])
    how |= {"flows": names, "tool": "typed in"}
    if path_of(flows[0]) in ("host to device", "device to host") and "engine" not in how:
        how.setdefault("host memory", memory_of(f"{node['path'].text()} {node['note'].text()}"))
        how = {key: value for key, value in how.items() if value}
    if node["p2p"].given or path_of(flows[0]).startswith("peer"):
        how["p2p"] = "on" if p2p else "off"
    return how


def _wanted(node: YamlNode, path: str, size: int) -> tuple[str, float, str]:
    """How an expectation is called ('' without one), and its value in SI with the unit; with `size` (B) as a rate."""
    for key, kind in _WANTED.items():
        if node[key].given:
            value, unit, metric, _ = _quantity(node[key], bits=path == "network")
            if size and metric in ("iops", "latency") and value > 0:
                value, unit = _in_bytes(metric, size, value)
            return kind, value, unit
    return "", 0.0, ""


def _of_a_call(
    wanted: float, unit: str, metric: str, name: str, settings: Mapping[str, int], value: float
) -> tuple[float, str]:
    """What is wanted of a collective in the kind of the row: the time (s) of a bus bandwidth (B/s), or that of a time.

    Of a gather, scatter or all-to-all the bytes may be those of a rank, which takes longer: that time is wanted unless
    the row is faster by more than anybody misjudges.
    """
    ranks = settings.get("ranks", 0)
    moved = settings.get("bytes", 0) * bus_share(name, ranks)
    is_time = units.si_unit(unit) == "s"
    if is_time == (metric == "time") or wanted <= 0 or not moved:
        return wanted, unit
    if is_time:
        return moved / wanted, "GB/s"
    of_a_rank = ranks * moved / wanted
    by_rank = name not in _OF_ONE_SIZE and value > _SURELY_FASTER * of_a_rank
    return (of_a_rank if by_rank else moved / wanted), "ms"


def _is_counted(node: YamlNode) -> bool:
    """Whether a row's value counts tokens, requests or the like."""
    unit = spellings.rate_or_time(node["value"].as_written(), bits=False)[0].rpartition(" ")[2]
    return unit != "IOPS" and units.si_unit(unit) == "1/s"


def _flows(text: str, collective: bool, p2p: bool, counted: bool) -> tuple[Flow, ...]:
    """The flows of a row: of a collective its ring, of a service on several GPUs each, and copies within a memory."""
    source, _, target = (word.strip() for word in text.partition("->"))
    names = names_of(source) if (collective or counted) and source == target else []
    if counted and len(names) > 1:
        return tuple(Flow(name, name, p2p=p2p) for name in names)
    if len(names) > 1:
        return tuple(Flow(a, b, p2p=p2p) for a, b in zip(names, [*names[1:], names[0]], strict=True))
    if source == target and _WITHIN.fullmatch(source):
        return (Flow(source, target, p2p=p2p),)
    return parse_flows(_BETWEEN_FLOWS.sub(", ", text), p2p)


def _is_ring(node: YamlNode) -> bool:
    """Whether a row is of all GPUs with each other, as a collective is: `gpu[0-7]->gpu[0-7]`."""
    source, _, target = (word.strip() for word in node["flows"].needed().partition("->"))
    return source == target and len(names_of(source)) > 1


def _names_a_ring(node: YamlNode) -> bool:
    """Whether a row of one host's GPUs names a collective: its rate is the bus bandwidth, which people quote."""
    flows = node["flows"].needed()
    of_gpus = "gpu" in flows and "host" not in flows and not node["hosts"].given
    return of_gpus and named_collective(node["path"].text()) in _OF_A_RING and not _is_counted(node)


def _quantity(node: YamlNode, *, bits: bool) -> tuple[float, str, str, str]:
    """Value in SI, the unit it was written in, the metric that this unit means, and how it was taken."""
    text, note = spellings.rate_or_time(values.of_what(node.as_written())[0], bits)
    unit = re.sub(r"[\s\d.,_+-]*(?:[eE][+-]?\d+)?\s*", "", text, count=1) if not text.endswith("1/s") else "1/s"
    unit = "IOPS" if re.fullmatch(r"[kM]? ?IOPS", unit) else unit
    metric = {"B/s": "goodput", "s": "latency", "1/s": "iops"}.get(units.si_unit(unit), "")
    if not metric:
        raise node.error(f"'{node.as_written()}' is no rate and no time", "write 12.3 GB/s, 100 Gb/s or 2.1 us")
    value = _parsed(node, text, units.si_unit(unit))
    if not 0 <= value < math.inf:
        raise node.error(f"'value' must be finite and not negative, not {node.as_written()}", "write 12.3 GB/s")
    return value, unit, metric, note


def _metric(node: YamlNode, otherwise: str) -> str:
    """The metric that a row names, `otherwise` if none; UnknownName for other words."""
    word = values.metric(node["metric"].text(otherwise))
    return word if word == otherwise else replace(node["metric"], value=word).choice(_METRICS)


def _count(node: YamlNode) -> int:
    """A number of requests, threads, ranks or hosts, with or without the word; FormatError if it is none."""
    number = spellings.count(node.as_written())
    return number if number is not None and 1 <= number <= _MOST_COUNTED else node.integer(1, _MOST_COUNTED)


def _bytes(node: YamlNode) -> int:
    """The size of a request or copy; FormatError if it is none or not above 0."""
    value = _parsed(node, spellings.size(node.as_written()), "B")
    if not 1 <= value < math.inf:
        raise node.error(f"'bytes' must be finite and above 0, not {node.as_written()}", "for example bytes: 64 MiB")
    return int(value)


def _parsed(node: YamlNode, text: str, unit: str) -> float:
    """A quantity of that SI unit; FormatError at the node otherwise."""
    try:
        return units.parse(text, unit)
    except LanewiseError as error:
        error.cause, error.location = f"{node.name}: {error.cause}", node.location
        raise


def path_of(flow: Flow) -> str:
    """The kind of path as measured rows call it, by the names of the ends."""
    ends = (flow.src, flow.dst)
    if flow.src == flow.dst and flow.src.startswith("gpu"):
        return "GPU memory"
    if any(_STORAGE.match(end.lower()) for end in ends):
        return "storage"
    if any(_MACHINE.match(end) for end in ends) and not any(end.startswith("gpu") for end in ends):
        return "network"
    hosts = ["host0" if end.startswith("cpu") else end.partition(":")[0] for end in ends if _HOST.match(end)]
    other_host = len(set(hosts)) == 2 or hosts not in ([], ["host0"], ["host"], ["host0"] * 2)
    if other_host or any(end.startswith(("nic", "mlx")) for end in ends):
        return "network"
    if len(hosts) == 2:
        return "host memory"
    if hosts:
        return "host to device" if _HOST.match(flow.src) else "device to host"
    return "peer" if flow.p2p else "peer, staged"
