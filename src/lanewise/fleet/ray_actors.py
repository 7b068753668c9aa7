"""Nodes reached through Ray: one measuring actor a node, with all of the node's GPUs reserved for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanewise.engines.work import installed_version
from lanewise.errors import printable, shorten
from lanewise.fleet.node import NodeReport
from lanewise.fleet.survey import NodeJob

if TYPE_CHECKING:
    from lanewise.engines.ray_engine import RayEngine

_RESERVED = "Ray has given its GPUs to other work"


class RayConnections:
    """The nodes of a Ray cluster by an actor each; `agent` is the actor's class, called with a name and the version.

    `names`: so many actors on the one node of a Ray that nobody else uses. They reserve no GPUs, as all share them.
    """

    def __init__(self, engine: RayEngine, agent: type, names: Sequence[str] = ()) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = engine.ray
        actor = self._ray.remote(agent)
        self._addresses: dict[str, str] = {}
        self._gpus: dict[str, float] = {}
        self._actors: dict[str, Any] = {}
        self._answered: set[str] = set()
        nodes = self._ray.nodes()
        for name, node in (dict.fromkeys(names, nodes[0]) if names else named_nodes(nodes)).items():
            gpus = 0 if names else node["Resources"].get("GPU", 0)
            place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            self._addresses[name], self._gpus[name] = node["NodeManagerAddress"], gpus
            # The GPUs stay the actor's until the survey ends, so that no task of others starts on them meanwhile.
            options = actor.options(num_cpus=0, num_gpus=gpus, scheduling_strategy=place, max_restarts=0)
            self._actors[name] = options.remote(name, installed_version())

    @property
    def addresses(self) -> Mapping[str, str]:
        """The nodes' names and addresses."""
        return self._addresses

    def do(self, jobs: Mapping[str, NodeJob], limit: float) -> Iterator[NodeReport]:
        """What each of these nodes answers; the actor of one that does not within `limit` seconds is ended."""
        end = time.monotonic() + limit
        running = {self._actors[name].answer.remote(job): name for name, job in jobs.items()}
        while running:
            ready, _ = self._ray.wait(list(running), timeout=max(0.0, end - time.monotonic()))
            for answer in ready:
                yield self._report(running.pop(answer), answer)
            if not ready and time.monotonic() >= end:
                break
        for name in running.values():
            self._ray.kill(self._actors[name])
            if self._gpus[name] and name not in self._answered:
                yield NodeReport(name, busy=_RESERVED)
            else:
                yield NodeReport(name, failure=f"no answer within {limit:.0f} s")

    def close(self) -> None:
        """End the actors, which gives their GPUs back."""
        for actor in self._actors.values():
            self._ray.kill(actor)

    def _report(self, name: str, answer: Any) -> NodeReport:
        try:
            report: NodeReport = self._ray.get(answer)
        except Exception as error:  # an actor that is lost, or that could not be made there
            lines = [line for line in str(error).strip().splitlines() if line.strip()] or [type(error).__name__]
            return NodeReport(name, failure=shorten(printable(lines[-1].strip()), 200))
        self._answered.add(name)
        return report


def named_nodes(nodes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The nodes that are alive by their host names, or by their addresses where several have one host name."""
    alive = [node for node in nodes if node["Alive"]]
    counts = Counter(node["NodeManagerHostname"] for node in alive)
    return {
        node["NodeManagerHostname"] if counts[node["NodeManagerHostname"]] == 1 else node["NodeManagerAddress"]: node
        for node in alive
    }
