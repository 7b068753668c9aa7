"""NVLinks that a pair of GPUs should use and does not, or only in part, by the rate alone."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise import units
from lanewise.checking import changes
from lanewise.checking.cause import Cause
from lanewise.checking.expectation_model import ExpectationModel
from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.verdict import PathResult
from lanewise.perf.flow import Flow
from lanewise.routes.find import route
from lanewise.routes.model import Hop
from lanewise.topology.model import LinkKind

STEP = "nvidia-smi nvlink -s; nvidia-smi topo -m; is the fabric manager running? dmesg | grep -i xid"


def unused_nvlinks(model: ExpectationModel, result: PathResult, flow: Flow) -> Iterator[Cause]:
    """A pair joined by NVLinks copies at a rate that PCIe carries: whether peer to peer or through host memory."""
    both = 2 if result.row.metric == "total" else 1
    links = [changes.link_above(model.system, end) for end in (flow.src, flow.dst)]
    wires = [raw_rate(link.gen, link.lanes) for link in links if link is not None and link.gen and link.lanes]
    value = result.row.value
    if nvlink_hops(model, flow) and wires and value is not None and value <= both * min(wires):
        what = "these GPUs exchange data over PCIe: their NVLinks are down or not in use"
        rate = units.show(value, result.row.display_unit, 3)
        evidence = f"{rate} is a rate of PCIe, which carries {units.show(both * min(wires), 'GB/s', 3)} here at most"
        yield Cause(("nvlink",), what, STEP, evidence=evidence, devices=frozenset({flow.src, flow.dst}))


def some_nvlinks(model: ExpectationModel, result: PathResult, flow: Flow) -> Iterator[Cause]:
    """Some NVLinks of a GPU, or of a pair, are down: the number of them that the rate fits best."""
    if any(unused_nvlinks(model, result, flow)):
        return
    for hop in nvlink_hops(model, flow):
        link = hop.link
        ends = [end for end in (link.a, link.b) if end in (flow.src, flow.dst)]
        distances: list[tuple[float, int]] = []
        for down in range(1, link.count):
            predicted = model.value(result.row, changes.nvlinks_down(link, down))
            if predicted is not None and result.reached_by(predicted):
                distances.append((abs(predicted - (result.row.value or 0.0)), down))
        if distances:
            down = min(distances)[1]
            what = f"{down} of the {link.count} NVLinks of {' and '.join(ends)} may be down"
            change = changes.nvlinks_down(link, down)
            yield Cause(("nvlink", *ends), what, STEP, change=change, devices=frozenset(ends))


def nvlink_hops(model: ExpectationModel, flow: Flow) -> list[Hop]:
    """The NVLinks of the flow's route."""
    return [hop for hop in route(model.system, flow.src, flow.dst, flow.p2p).hops if hop.link.kind is LinkKind.NVLINK]
