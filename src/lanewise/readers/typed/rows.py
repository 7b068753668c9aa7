"""A row typed in as observations: its figure in the metric that rows of tools have, so that both compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lanewise import late_re as re
from lanewise import units
from lanewise.perf.flow import Flow
from lanewise.readers.typed import fields, values
from lanewise.readers.typed.fields import BY_ALGORITHM, OF_COLLECTIVES
from lanewise.readers.typed.flows import flows_of, is_of_ring, path_of
from lanewise.readers.typed.keys import own_keys, own_settings
from lanewise.readers.words import spellings
from lanewise.readers.words.devices import bus_share, memory_of, named_collective
from lanewise.results.figure_words import BYTES_OF, OF_A_RANK_OR_ALL
from lanewise.results.observation import Observation, Source
from lanewise.yaml_positions import YamlNode

FIELDS = ("flows", "value", "of", "p2p", "path", "note", "metric", "bytes", "depth", "threads", "ranks", "hosts",
          "line", "engine", "mode", "host memory", "pinned", "NUMA node", "link under load", "slot", "device",
          "expected", "rated")  # fmt: skip
_HOW = ("line", "engine", "mode", "host memory", "NUMA node", "link under load", "device", "note")
_SETTINGS = ("depth", "threads", "ranks", "hosts")
_OF_A_COLLECTIVE = {"goodput": "bus_bandwidth", "latency": "time"}
# What somebody wants of a row, and how `references.texts` calls it.
_WANTED = {"expected": "expected", "rated": "nominal"}
# A copy of so many bytes takes far longer than to start and end it, so that its time is a rate: at 25 GB/s 16 MiB take
# 0.7 ms, and a call from Python some 20 us.
_LONG_COPY = 16 * 2**20
_OF_ONE_SIZE = ("all_reduce", "broadcast", "sendrecv")
# Nobody wants so little that a time is below this share of it: its bytes were counted otherwise.
_SURELY_FASTER = 0.7
_COPIES = ("host to device", "device to host", "peer", "peer, staged", "GPU memory", "network")
# A drive answers a request in less (s): what takes longer is the load of a file.
_A_LOAD = 0.1
_PACKETS = re.compile(r"pps\b|pac?ke?ts\b", re.IGNORECASE)


@dataclass(frozen=True)
class _RowFigure:
    """The `value` (SI) of a row in a `metric`, with the unit to show it in, and what the row says of it.

    `counted`: the bytes of each request or copy, where a count or a time of them was made a rate.
    """

    metric: str
    value: float
    unit: str
    name: str
    path: str
    settings: Mapping[str, int]
    note: str
    counted: int = 0

    @property
    def size(self) -> int:
        """The bytes of a request, copy or message; 0 if the row does not say."""
        return self.settings.get("bytes", 0)

    def converted(self, metric: str, value: float, unit: str, was: str) -> _RowFigure:
        """The same figure in another metric, with a note of what it was."""
        note = "; ".join(filter(None, (self.note, was)))
        return replace(self, metric=metric, value=value, unit=unit, note=note)


def observations(row: YamlNode) -> Iterator[Observation]:
    """What a row says: a value of all its flows together, of each, or of the first; FormatError with its line."""
    own = own_keys(row, FIELDS)
    row.check_fields((*FIELDS, *own), "a row", needed=("flows", "value"))
    p2p = values.flag(row["p2p"])
    flows = flows_of(row, p2p)
    each = values.of_what(row["value"].as_written())[1] == "each" and not _of_one_gpu(row, flows)
    of = row["of"].choice(("sum", "each", "first"), "each" if each else "sum")
    of = of if len(flows) > 1 else "sum"
    written = _written(row, flows, own)
    if of != "sum" and written.metric == "total":
        written = replace(written, metric="goodput")
    wanted = any(row[key].given for key in _WANTED)
    figure = _compared(written, several=of == "sum" and len(flows) > 1, is_named=row["metric"].given, is_wanted=wanted)
    how = _how(row, flows, p2p)
    if figure.counted and written.metric == "latency":
        how["timed"] = "a whole copy"
    of_a_time = written.metric == "time" and figure.metric == "bus_bandwidth"
    if of_a_time and named_collective(figure.name) not in _OF_ONE_SIZE:
        how[BYTES_OF] = OF_A_RANK_OR_ALL
    how |= _wanted(row, figure)
    shown = [(flow.name, path_of(flow)) for flow in flows[: 1 if of == "first" else None]]
    if of == "sum":
        shown = [(", ".join(flow.name for flow in flows), figure.path)]
    for name, path in shown:
        yield Observation(
            figure.name or name, name, figure.metric, figure.value, figure.unit, Source.MEASURED,
            settings=figure.settings, path=path, how=how, note=figure.note,
        )  # fmt: skip


def _of_one_gpu(row: YamlNode, flows: Sequence[Flow]) -> bool:
    """Whether a value per GPU is the sum of what other GPUs send to one GPU, or take from it."""
    alone = any(len({getattr(flow, end) for flow in flows}) == 1 for end in ("src", "dst"))
    of_gpus = all(end.startswith("gpu") for flow in flows for end in (flow.src, flow.dst))
    return alone and of_gpus and len(flows) > 1 and values.is_per_gpu(row["value"].as_written())


def _written(row: YamlNode, flows: Sequence[Flow], own: Sequence[str]) -> _RowFigure:
    """The figure of a row as it is written, with its name and settings."""
    path = path_of(flows[0])
    value, unit, metric, taken = fields.quantity(row["value"], bits=path == "network")
    if not row["metric"].given and is_of_ring(row):
        metric = _OF_A_COLLECTIVE.get(metric, metric)
    metric = fields.metric_of(row, "total" if metric == "goodput" and len(flows) > 1 else metric)
    settings = {key: fields.count(row[key]) for key in _SETTINGS if row[key].given}
    numbers, texts = own_settings(row, own)
    settings |= numbers
    name = " ".join(filter(None, (row["path"].text(), texts)))
    if metric in OF_COLLECTIVES:
        if hosts := values.hosts_named(name):
            settings.setdefault("hosts", hosts)
        name = values.collective_first(name)
        if path.startswith("peer") and len(flows) > 1:
            settings.setdefault("ranks", len(flows))
    if row["bytes"].given:
        settings["bytes"] = fields.size(row["bytes"])
    note = "; ".join(filter(None, (row["note"].text(), taken)))
    return _RowFigure(metric, value, unit, name, path, settings, note)


def _compared(figure: _RowFigure, *, several: bool, is_named: bool, is_wanted: bool) -> _RowFigure:
    """The figure as rows and links are compared: a rate of `several` flows or of one, or a bus bandwidth.

    Whoever names the metric of a row means it: a count and a time of copies stay what they are then.
    """
    if not is_named:
        figure = _rate_of_requests(_rate_of_a_copy(figure))
    if figure.counted:
        return replace(figure, metric="total" if several else "goodput")
    return _bus_bandwidth_of_a_rate(_bus_bandwidth_of_a_time(figure, of_gathers=not is_wanted))


def _rate_of_requests(figure: _RowFigure) -> _RowFigure:
    """Requests of one size a second as a rate, which other rows and links can be compared with."""
    if figure.metric != "iops" or not figure.size:
        return figure
    value, unit = _in_bytes("iops", figure.size, figure.value)
    rate = figure.converted("goodput", value, unit, f"{figure.value:,.0f} requests a second")
    return replace(rate, counted=figure.size)


def _rate_of_a_copy(figure: _RowFigure) -> _RowFigure:
    """The time of one long copy, or of the load of a file, as a rate."""
    is_whole = figure.path in _COPIES or (figure.path == "storage" and figure.value >= _A_LOAD)
    if figure.metric != "latency" or figure.size < _LONG_COPY or figure.value <= 0 or not is_whole:
        return figure
    value, unit = _in_bytes("latency", figure.size, figure.value)
    rate = figure.converted("goodput", value, unit, f"{units.show(figure.value, 'ms')} a copy")
    return replace(rate, counted=figure.size)


def _in_bytes(metric: str, size: int, value: float) -> tuple[float, str]:
    """Requests of `size` bytes a second, or the time of one such copy, as a rate in B/s and the unit to show it in."""
    return (value * size, "MB/s") if metric == "iops" else (size / value, "GB/s")


def _bus_bandwidth_of_a_time(figure: _RowFigure, *, of_gathers: bool) -> _RowFigure:
    """A collective's time as its bus bandwidth, as nccl-tests prints it: bytes are those of all ranks.

    Of a gather, scatter or all-to-all people count the bytes of a rank as well, so that what they want of it is a time.
    """
    collective = named_collective(figure.name)
    meant = of_gathers or collective in _OF_ONE_SIZE
    share = bus_share(collective, figure.settings.get("ranks", 0)) if meant else 0.0
    if figure.metric != "time" or figure.value <= 0 or figure.size < _LONG_COPY or not share:
        return figure
    value, was = figure.size * share / figure.value, f"{units.show(figure.value, 'ms')} a call"
    return figure.converted("bus_bandwidth", value, "GB/s", was)


def _bus_bandwidth_of_a_rate(figure: _RowFigure) -> _RowFigure:
    """A collective's algorithm bandwidth as its bus bandwidth."""
    share = bus_share(named_collective(figure.name), figure.settings.get("ranks", 0))
    if figure.metric != BY_ALGORITHM or not share:
        return figure
    was = f"{units.show(figure.value, 'GB/s')} of algorithm bandwidth"
    return figure.converted("bus_bandwidth", figure.value * share, figure.unit, was)


def _how(row: YamlNode, flows: Sequence[Flow], p2p: bool) -> dict[str, str]:
    """By which method a row was measured, as far as its keys and its name say."""
    how = {key: row[key].as_written() for key in _HOW if row[key].given}
    # The slot of this row's device, where others of the run have other slots.
    how |= {key: values.link(row[key].as_written()) for key in ("slot", "link under load") if row[key].given}
    if row["pinned"].given:
        how.setdefault("host memory", "pinned" if values.flag(row["pinned"]) else "pageable")
    if "host memory" in how:
        how["host memory"] = values.host_memory(how["host memory"])
    if "line" in how:
        how["line"] = spellings.line(how["line"])
    names = ", ".join(flow.name + " read" * flow.read + " sm" * flow.sm for flow in flows)
    how |= {"flows": names, "tool": "typed in"}
    path = path_of(flows[0])
    if path in ("host to device", "device to host") and "engine" not in how:
        how.setdefault("host memory", memory_of(f"{row['path'].text()} {row['note'].text()}"))
        how = {key: value for key, value in how.items() if value}
    if row["p2p"].given or path.startswith("peer"):
        how["p2p"] = "on" if p2p else "off"
    if _PACKETS.search(row["value"].as_written()):
        how["counted"] = "packets"
    return how


def _wanted(row: YamlNode, figure: _RowFigure) -> dict[str, str]:
    """What somebody expects of a row, in the metric of its figure, and how that is called; empty without it."""
    kind = next((key for key in _WANTED if row[key].given), None)
    if kind is None:
        return {}
    value, unit, metric, _ = fields.quantity(row[kind], bits=figure.path == "network")
    if figure.counted and metric in ("iops", "latency") and value > 0:
        value, unit = _in_bytes(metric, figure.counted, value)
    if figure.metric in ("bus_bandwidth", "time"):
        value, unit = _wanted_of_a_call(value, unit, figure)
    return {"expected": units.show(value, unit, 12), "expectation": _WANTED[kind]}


def _wanted_of_a_call(wanted: float, unit: str, figure: _RowFigure) -> tuple[float, str]:
    """What is wanted of a collective in the kind of the row: the time (s) of a bus bandwidth (B/s), or that of a time.

    Of a gather, scatter or all-to-all the bytes may be those of a rank, which takes longer: that time is wanted unless
    the row is faster by more than anybody misjudges.
    """
    name, ranks = named_collective(figure.name), figure.settings.get("ranks", 0)
    moved = figure.size * bus_share(name, ranks)
    is_time = units.si_unit(unit) == "s"
    if is_time == (figure.metric == "time") or wanted <= 0 or not moved:
        return wanted, unit
    if is_time:
        return moved / wanted, "GB/s"
    of_a_rank = ranks * moved / wanted
    by_rank = name not in _OF_ONE_SIZE and figure.value > _SURELY_FASTER * of_a_rank
    return (of_a_rank if by_rank else moved / wanted), "ms"
