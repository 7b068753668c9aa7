"""Where the time of a run over nodes went: the Frontend's stages, those of the nodes, a trace of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanewise import _native
from lanewise.dispatch.counters import ConnectionCounters, since
from lanewise.dispatch.frontend import Frontend
from lanewise.dispatch.messages import NodeStatistics
from lanewise.loadtest.system import NodeTimes, SystemStatistics

LAST, NODE = "total", "node"


def merged(
    system: _native.NetworkSystem, frontend: Frontend, before: Sequence[ConnectionCounters] = ()
) -> SystemStatistics:
    """The last run's stages: dispatch (until a query is posted), fabric (there and back), node, and of the nodes queue,
    copy, infer, answer; total.

    `before` is what the connections had done when it began. Of several nodes a stage has the mean over all queries, and
    percentiles and largest value of the slowest node.
    """
    every = frontend.statistics()
    nodes = [statistics for _, statistics in every]
    times = {
        node.number: NodeTimes(
            node.facts.name, node.address, its.answered, _stages(system.latencies(node.number), [its])
        )
        for node, its in every
    }
    for loss in frontend.losses():  # of a lost node only this side can say something
        node = loss.node
        stages = _stages(system.latencies(node.number), [])
        times[node.number] = NodeTimes(
            node.facts.name, node.address, loss.answered, stages, loss.queries, loss.reason
        )  # fmt: skip
    stages = _stages(system.latencies(), nodes)
    sizes: dict[int, int] = {}
    for size, count in (pair for its in nodes for pair in its.sizes):
        sizes[size] = sizes.get(size, 0) + count
    connections = since(before, frontend.connection_counters())
    return SystemStatistics(
        stages, sizes, sum(its.bytes for its in nodes),
        sum(each.answered for each in times.values()),
        sum(one.lost for one in connections) + sum(its.failed for its in nodes),
        system.stalled, tuple(copy for its in nodes for copy in its.copies),
        tuple(times[number] for number in sorted(times)), connections,
    )  # fmt: skip


def _stages(
    of_frontend: Mapping[str, Mapping[str, float]], nodes: Sequence[NodeStatistics]
) -> dict[str, dict[str, float]]:
    """The Frontend's stages, those of the nodes, the total."""
    stages = {name: dict(values) for name, values in of_frontend.items() if values}
    total = stages.pop(LAST, None)
    stages |= {name: values for name, values in combined(nodes).items() if name != LAST}
    return stages if total is None else {**stages, LAST: total}


def combined(nodes: Sequence[NodeStatistics]) -> dict[str, dict[str, float]]:
    """The stages of all nodes together."""
    stages: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(stage for node in nodes for stage in node.stages):
        present = [(node.answered, node.stages[name]) for node in nodes if node.stages.get(name)]
        weight = sum(answered for answered, _ in present)
        values = {key: max(times.get(key, 0.0) for _, times in present) for key in (present[0][1] if present else {})}
        if "mean" in values and weight:
            values["mean"] = sum(answered * times.get("mean", 0.0) for answered, times in present) / weight
        stages[name] = values
    return stages


def perfetto(system: _native.NetworkSystem, frontend: Frontend) -> str:
    """The kept queries as JSON for https://ui.perfetto.dev: a process a node, a query as a span with its stages.

    A query's time at the node is drawn in the middle of its time on the fabric, as no common clock gives its place.
    """
    queries = sorted(system.trace(), key=lambda query: query[1])
    begin = queries[0][1] if queries else 0
    nodes = {connection["number"]: int(connection["node"]) for connection in frontend.counters()}
    events: list[Mapping[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": node.number + 1, "tid": 0,
         "args": {"name": f"{node.facts.name} ({node.address}, {node.transport})"}}
        for node in frontend.nodes
    ]  # fmt: skip
    for number, query in enumerate(queries):
        events += _events(number, nodes[query[0]] + 1, query, begin)
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    about = json.dumps({"system": ", ".join(node.facts.name for node in frontend.nodes), "made by": "lanewise"})
    return f'{{"displayTimeUnit":"ns","otherData":{about},"traceEvents":[\n{lines}\n]}}\n'


def _events(
    number: int, process: int, query: tuple[int, int, int, int, int], begin: int
) -> Iterator[Mapping[str, Any]]:
    connection, issued, posted, answered, at_node = query
    on_fabric = max(0, answered - posted - at_node)
    arrived = posted + on_fabric // 2
    spans = [("query", issued, answered), ("dispatch", issued, posted), ("fabric", posted, arrived),
             (NODE, arrived, arrived + at_node), ("fabric", arrived + at_node, answered)]  # fmt: skip
    for name, start, end in spans:
        common = {"cat": "query", "id": f"0x{number:x}", "pid": process, "tid": connection + 1, "name": name}
        yield {"ph": "b", **common, "ts": (start - begin) / 1e3, "args": {"connection": connection}}
        yield {"ph": "e", **common, "ts": (max(start, end) - begin) / 1e3}
