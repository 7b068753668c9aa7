"""How far a description alone determines a measured rate: rows of different machines that are described alike.

    .venv/bin/python benchmarks/twins.py [--once author] [--misses] [--json FILE]

Twins are rates of different documents whose descriptions agree in the flows (kind of path, GPUs, slowest link, number
and directions, copy engine or kernel, the tool's order, the root ports, sockets and switches that they cross together)
and in the CPU: by its name ("unnamed" is one), by its maker and PCIe generation, or not at all. For each level:

- pairs: the share of pairs of twins within 10 % of each other, each group counting once for each of its rates;
- ceiling: the most rates that one number for each group could have within 10 %, chosen with all of them known;
- one out: the rates within 10 % of the median of their twins, which leaves them out;
- ours: the rates that the model predicts within 10 %, without what it learned of their machines.

A machine counts once for a description (the median of such rows), and so does a document, whose machines may be one
machine in two settings; with `--once author` so do all of an author, such as our own machines. Drives and networks are
left out: their rate is that of the parts. Rates more than 10 % off are divided by what their twins say at the finest
level that has any; `--misses` lists them.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lanewise
from lanewise.catalog import builtin
from lanewise.evidence.model import EACH, FIRST, TOTAL, EvidenceMachine
from lanewise.evidence.prediction import PredictedRow
from lanewise.perf.flow import Flow
from lanewise.perf.known_parts import link_with_speed
from lanewise.routes.classify import class_of, path_kind
from lanewise.routes.find import route as find_route
from lanewise.routes.model import Route
from lanewise.topology.model import Kind, Link, LinkKind, System

NEAR = 0.10
LEFT_OUT = ("storage", "network")  # kinds of paths
# The largest ratio of two rates that one prediction may be within 10 % of: p <= 1.1 a and p >= 0.9 b.
WINDOW = (1 + NEAR) / (1 - NEAR)
UNNAMED = "unnamed"
OWN = "our own run"
ONE_FLOW, SETS = "one flow", "sets"


@dataclass(frozen=True, slots=True)
class Description:
    """All that a document could say of a row and that matters for its rate; CPUs by name and by maker and generation.

    `flows` describes each flow, `shared` what they cross together: numbers of GPUs, root ports, sockets and switches.
    """

    flows: tuple[Hashable, ...]
    shared: tuple[int, ...]
    counted: str
    schedule: str
    cpus: tuple[str, ...]
    makers: tuple[str, ...]


LEVELS: dict[str, Callable[[Description], Hashable]] = {
    "a, the same CPU": lambda d: (d.flows, d.shared, d.counted, d.schedule, d.cpus),
    "b, CPUs of one maker and generation": lambda d: (d.flows, d.shared, d.counted, d.schedule, d.makers),
    "c, any CPU": lambda d: (d.flows, d.shared, d.counted, d.schedule),
}


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """What one document says of one description: medians, in B/s, of its rows and of their predictions."""

    document: str
    machines: tuple[str, ...]
    text: str
    kind: str
    description: Description
    value: float
    predicted: float
    low: float
    high: float
    held_out: bool

    @property
    def is_near(self) -> bool:
        """Whether the prediction is within 10 %."""
        return near(self.predicted, self.value)

    @property
    def flow_set(self) -> str:
        """One flow, or a set of flows."""
        return ONE_FLOW if len(self.description.flows) == 1 else SETS


@dataclass(frozen=True, slots=True)
class LevelScore:
    """What twins of one level say, in groups of at least two documents."""

    groups: int
    rates: int
    pairs: float
    ceiling: int
    one_out: int
    ours: int


def near(predicted: float, measured: float) -> bool:
    """Whether a prediction is within 10 % of what was measured."""
    return abs(predicted / measured - 1) <= NEAR


def describe(system: System, row: PredictedRow) -> Description:
    """The description of a row on its machine."""
    flows, of = row.row.flows, row.row.of
    routes = [find_route(system, flow.src, flow.dst, flow.p2p) for flow in flows]
    words = [_flow_words(system, flow, route) for flow, route in zip(flows, routes, strict=True)]
    first = words[:1] if of == FIRST else []
    hops = [hop for route in routes for hop in route.hops]
    names = {name for route in routes for name in route.nodes}
    cpus = sorted(name for name in names if system.device(name).kind is Kind.CPU)
    gpus = {name for name in names if system.device(name).kind is Kind.GPU}
    ports = {(hop.link.a, hop.link.port) for hop in hops if hop.link.port}
    switches = [system.device(name) for name in names if system.device(name).kind is Kind.SWITCH]
    chips = sum(max(1, len(switch.partitions)) for switch in switches)
    return Description(
        flows=(*first, *sorted(words[len(first) :], key=repr)),
        shared=(len(gpus), len(ports), len(cpus), chips),
        counted=FIRST if of == FIRST else TOTAL,
        schedule=row.row.schedule,
        cpus=tuple(dict.fromkeys(_cpu_name(system, name) for name in cpus)),
        makers=tuple(dict.fromkeys(_maker(system, name) for name in cpus)),
    )


def _flow_words(system: System, flow: Flow, route: Route) -> Hashable:
    """One flow: kind of path, parts at its ends, its narrowest PCIe link, who copies, memory it ends in."""
    ends = tuple(_end(system, name) for name in (route.src, route.dst))
    cls = route.cls if route.stages else class_of(system, route.hops)
    memory = route.memory_node is not None
    return (path_kind(system, route), cls, ends, _narrowest(system, route), flow.sm, flow.read, memory)


def _end(system: System, name: str) -> Hashable:
    """A device as documents name it; of a CPU whether others use it too, and its NUMA nodes."""
    device = system.device(name)
    if device.kind is Kind.CPU:
        return ("memory", device.shared, device.numa_nodes)
    part = system.part(name)
    return (part.name.removesuffix("-p2p") if part else UNNAMED, device.power_limit)


def _narrowest(system: System, route: Route) -> Hashable:
    """Generation and lanes of the slowest PCIe link of a route."""
    links = [link_with_speed(system, hop.link) for hop in route.hops if hop.link.kind is LinkKind.PCIE]
    speeds = [_speed(link) for link in links]
    return min(speeds, key=lambda speed: 2 ** speed[0] * speed[1]) if speeds else None


def _speed(link: Link) -> tuple[int, int]:
    return link.gen or 0, link.lanes or 0


def _cpu_name(system: System, name: str) -> str:
    part = system.part(name)
    return part.name if part else UNNAMED


def _maker(system: System, name: str) -> str:
    """Maker and PCIe generation of a CPU."""
    part = system.part(name)
    return f"{part.title.split()[0]} {part.number('pcie.gen')}" if part else UNNAMED


def document_of(machine: EvidenceMachine) -> str:
    """The document that a machine is from: its source up to the second comma, without what stands in brackets."""
    return ",".join(machine.source.partition("(")[0].split(",")[:2]).strip()


def author_of(machine: EvidenceMachine) -> str:
    """Who published a machine: its source up to the first comma, a repository or site for most."""
    return OWN if machine.source.startswith(OWN) else document_of(machine).partition(",")[0]


ONCE = {"document": document_of, "author": author_of}


def measured_rates(
    rows: Iterable[PredictedRow], machines: Sequence[EvidenceMachine], once: str = "document"
) -> list[MeasuredRate]:
    """Every rate that is predicted, once for each document, or author, and description."""
    known = {machine.name: machine for machine in machines}
    systems = {name: machine.system(builtin()) for name, machine in known.items()}
    groups: dict[tuple[str, Description], list[PredictedRow]] = defaultdict(list)
    for row in rows:
        if row.observation.value is not None and not row.row.latency and not row.observation.path.startswith(LEFT_OUT):
            machine = known[row.machine]
            groups[ONCE[once](machine), describe(systems[row.machine], row)].append(row)
    return [_rate(document, what, group, known) for (document, what), group in groups.items()]


def _rate(
    document: str, what: Description, group: Sequence[PredictedRow], known: dict[str, EvidenceMachine]
) -> MeasuredRate:
    def middle(value: Callable[[PredictedRow], float]) -> float:
        return statistics.median(value(row) * (len(row.row.flows) if row.row.of == EACH else 1) for row in group)

    names = tuple(dict.fromkeys(row.machine for row in group))
    return MeasuredRate(
        document=document, machines=names, text=group[0].row.text, kind=group[0].observation.path, description=what,
        value=middle(lambda row: row.row.value), predicted=middle(lambda row: row.observation.value or 0.0),
        low=middle(lambda row: row.observation.low or row.observation.value or 0.0),
        high=middle(lambda row: row.observation.high or row.observation.value or 0.0),
        held_out=any(known[name].held_out for name in names),
    )  # fmt: skip


def groups_of(rates: Sequence[MeasuredRate], level: str) -> list[list[MeasuredRate]]:
    """The rates that are described alike, where that are two documents or more."""
    groups: dict[Hashable, list[MeasuredRate]] = defaultdict(list)
    for rate in rates:
        groups[LEVELS[level](rate.description)].append(rate)
    merged = [_one_a_document(group) for group in groups.values()]
    return [group for group in merged if len(group) > 1]


def _one_a_document(group: Sequence[MeasuredRate]) -> list[MeasuredRate]:
    """One rate of each document, the middle one where descriptions that the level takes for one have several."""
    documents: dict[str, list[MeasuredRate]] = defaultdict(list)
    for rate in sorted(group, key=lambda rate: rate.value):
        documents[rate.document].append(rate)
    return [several[len(several) // 2] for several in documents.values()]


def largest_window(values: Sequence[float]) -> int:
    """How many of the values one number can have within 10 %."""
    ordered = sorted(values)
    return max(sum(low <= value <= low * WINDOW for value in ordered) for low in ordered)


def score(groups: Sequence[Sequence[MeasuredRate]]) -> LevelScore:
    """What these groups of twins say."""
    rates = [rate for group in groups for rate in group]
    pairs = [
        sum(near(b.value, a.value) for b in group if b is not a) / (len(group) - 1) for group in groups for a in group
    ]
    return LevelScore(
        groups=len(groups), rates=len(rates), pairs=statistics.fmean(pairs) if pairs else 0.0,
        ceiling=sum(largest_window([rate.value for rate in group]) for group in groups),
        one_out=sum(near(twins_median(rate, group), rate.value) for group in groups for rate in group),
        ours=sum(rate.is_near for rate in rates),
    )  # fmt: skip


def twins_median(rate: MeasuredRate, group: Sequence[MeasuredRate]) -> float:
    """The median of the twins of a rate, without its own."""
    return statistics.median(twin.value for twin in group if twin is not rate)


@dataclass(frozen=True, slots=True)
class Miss:
    """A rate that is predicted more than 10 % off, what its twins measured (B/s) at the finest level that has any.

    `verdict`: its twins disagree with it, agree with it, or there are none; `held`: our interval has it and them.
    """

    rate: MeasuredRate
    level: str
    twins: tuple[float, ...]
    verdict: str
    held: bool


def misses(rates: Sequence[MeasuredRate]) -> list[Miss]:
    """Every rate that is predicted more than 10 % off, with its twins."""
    grouped = {level: groups_of(rates, level) for level in LEVELS}
    return [_miss(rate, grouped) for rate in rates if not rate.is_near]


def _miss(rate: MeasuredRate, grouped: dict[str, list[list[MeasuredRate]]]) -> Miss:
    for level, groups in grouped.items():
        group = next((group for group in groups if any(each is rate for each in group)), None)
        if group is not None:
            twins = tuple(sorted(twin.value for twin in group if twin is not rate))
            agree = near(statistics.median(twins), rate.value)
            held = all(rate.low <= value <= rate.high for value in (rate.value, *twins))
            return Miss(rate, level, twins, "twins agree with it" if agree else "twins disagree", held)
    return Miss(rate, "", (), "no twin", rate.low <= rate.value <= rate.high)


def report(rates: Sequence[MeasuredRate]) -> dict[str, dict[str, LevelScore]]:
    """The scores of all levels: one flow and sets, of all documents, of others' than ours, of CPUs with a name."""
    which: dict[str, Callable[[MeasuredRate], bool]] = {
        "": lambda _: True,
        ", not our own": lambda rate: OWN not in rate.document,
        ", CPUs with a name": lambda rate: bool(rate.description.cpus) and UNNAMED not in rate.description.cpus,
    }
    kinds = {
        f"{what}{who}": [rate for rate in rates if rate.flow_set == what and is_of(rate)]
        for what in (ONE_FLOW, SETS)
        for who, is_of in which.items()
    }
    return {name: {level: score(groups_of(of, level)) for level in LEVELS} for name, of in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="list the rates that are predicted more than 10 %% off")
    parser.add_argument("--once", choices=ONCE, default="document", help="what counts once for a description")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    accuracy = lanewise.accuracy()
    rates = measured_rates(accuracy.rates, accuracy.machines, options.once)
    scores = report(rates)
    for name, levels in scores.items():
        print(f"\n{name:<42} groups rates  pairs  ceiling  one out  ours")
        for level, one in levels.items():
            shares = "  ".join(f"{_share(count, one.rates):>7}" for count in (one.ceiling, one.one_out, one.ours))
            print(f"  {level:<40} {one.groups:6} {one.rates:5} {one.pairs:6.0%}  {shares}")
    missed = misses(rates)
    _print_unseen(rates)
    _print_kinds(rates)
    for flow_set in (ONE_FLOW, SETS):
        _print_verdicts(flow_set, rates, [miss for miss in missed if miss.rate.flow_set == flow_set])
    if options.misses:
        _print_misses(missed)
    if options.json:
        record = {"levels": {n: {k: asdict(s) for k, s in v.items()} for n, v in scores.items()},
                  "misses": [_as_record(miss) for miss in missed]}  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _print_unseen(rates: Sequence[MeasuredRate]) -> None:
    """How many rates have a twin at all, and how many of them and of the others the model has within 10 %."""
    with_twin = _with_twin(rates)
    print(f"\n{'predicted within 10 %':<30}   all  near   held out  near")
    for flow_set in (ONE_FLOW, SETS):
        for has_twin in (True, False):
            of = [rate for rate in rates if rate.flow_set == flow_set and (id(rate) in with_twin) == has_twin]
            out = [rate for rate in of if rate.held_out]
            near_all, near_out = (_share(sum(rate.is_near for rate in some), len(some)) for some in (of, out))
            name = f"{flow_set}, {'with a twin' if has_twin else 'no twin'}"
            print(f"  {name:<28} {len(of):5} {near_all:>5}      {len(out):5} {near_out:>5}")


def _with_twin(rates: Sequence[MeasuredRate]) -> set[int]:
    """The identities of the rates that have a twin at any level."""
    return {id(rate) for level in LEVELS for group in groups_of(rates, level) for rate in group}


def _print_kinds(rates: Sequence[MeasuredRate]) -> None:
    """How many rates of each kind of path the model has within 10 %, with a twin and without."""
    with_twin = _with_twin(rates)
    kinds: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    for rate in rates:
        kinds[rate.kind][id(rate) not in with_twin].append(rate.is_near)
    print(f"\n{'predicted within 10 %':<42} with a twin     no twin")
    for kind, columns in sorted(kinds.items(), key=lambda item: -len(item[1][0] + item[1][1])):
        print(f"  {kind:<40} {'     '.join(f'{sum(column):3} of {len(column):2}' for column in columns)}")


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"


def _print_verdicts(flow_set: str, rates: Sequence[MeasuredRate], missed: Sequence[Miss]) -> None:
    print(f"\n{flow_set}: {sum(rate.flow_set == flow_set for rate in rates)} rates, {len(missed)} beyond 10 %")
    for verdict in ("twins disagree", "twins agree with it", "no twin"):
        of = [miss for miss in missed if miss.verdict == verdict]
        out, held = sum(miss.rate.held_out for miss in of), sum(miss.held for miss in of)
        print(f"  {verdict:<20} {len(of):3}, held out {out:2}; the interval has it and its twins {held}")


def _print_misses(missed: Sequence[Miss]) -> None:
    for miss in sorted(missed, key=lambda miss: (miss.verdict, miss.rate.flow_set, miss.rate.kind, miss.rate.machines)):
        rate = miss.rate
        twins = " ".join(f"{value / 1e9:.1f}" for value in miss.twins)
        print(
            f"{miss.verdict:<20}{miss.level[:1]:2}{'held out' if rate.held_out else '':9}{rate.machines[0]:26}"
            f"{rate.kind[:36]:37}{rate.text[:36]:37}{rate.value / 1e9:7.1f} predicted {rate.predicted / 1e9:6.1f} "
            f"({rate.low / 1e9:.1f} to {rate.high / 1e9:.1f}{'' if miss.held else ', not all held'}); twins {twins}"
        )


def _as_record(miss: Miss) -> dict[str, Any]:
    rate = miss.rate
    return {
        "machines": rate.machines, "flows": rate.text, "kind": rate.kind, "measured": rate.value,
        "predicted": rate.predicted, "low": rate.low, "high": rate.high, "held_out": rate.held_out,
        "level": miss.level, "twins": miss.twins, "verdict": miss.verdict, "interval_has_all": miss.held,
    }  # fmt: skip


if __name__ == "__main__":
    main()
