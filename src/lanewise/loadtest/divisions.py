"""Both divisions on the same accelerators: the Closed peak, the Network peak, and Network as a share of Closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lanewise import units
from lanewise.control.handshake import read_secret
from lanewise.dispatch.frontend import connect
from lanewise.dispatch.host import boot_id
from lanewise.errors import InputError
from lanewise.loadtest.frontend_session import SAME
from lanewise.loadtest.peak import PeakResult
from lanewise.loadtest.result import disturbed, peak_data, peak_samples
from lanewise.options.loadtest import BOTH, CLOSED, NETWORK, LoadOptions, ModelOptions, PeakOptions
from lanewise.options.option import options_of
from lanewise.results.network_share import NetworkShare, disturbance, share_interval
from lanewise.results.sample import Sample
from lanewise.serving.queues import md1_service

# Two intervals, each with 90 % chance: both hold with 80 % or more, whatever their errors have to do with each other.
CHANCE = "at least 80 %: lowest Network over highest Closed rate, each of a 90 % interval, to highest over lowest"
NETWORK_OPTIONS = ("transport", "connections", "depth", "device", "gid_index", "secret_file", "tls_ca", "prometheus")
COMPARED = (*SAME, "engine", "batch")


@dataclass(frozen=True, slots=True)
class DivisionsResult:
    """The peaks of both divisions on the same accelerators.

    `predicted` is the share (a ratio) that was predicted before the Network search, None if it could not be. `folder`
    holds a folder of results for each.
    """

    closed: PeakResult
    network: PeakResult
    predicted: float | None = None
    folder: Path = Path()

    @property
    def share(self) -> NetworkShare:
        """Network over Closed with its interval, ingress, and the software cost of a query that explains the ratio."""
        closed, network = self.closed, self.network
        size = network.setup.get("sample bytes")
        ingress = network.qps * (size if isinstance(size, int) else 0)
        if not (closed.qps and network.qps):
            return NetworkShare(ingress, None, closed.qps or None, note="no share: a division has no VALID rate")
        return NetworkShare(
            ingress, software_cost(closed, network), closed.qps, network.qps / closed.qps,
            share_interval(network.interval, closed.interval), note="; ".join(self._notes()),
        )  # fmt: skip

    def _notes(self) -> Iterator[str]:
        for key in COMPARED:
            one, other = (str(result.setup.get(key, "")) for result in (self.closed, self.network))
            if one != other:
                yield f"the nodes have another {key} ({other}) than this machine ({one}): no share of the same"
        sides = [name for name, result in (("Closed", self.closed), ("Network", self.network)) if disturbed(result)]
        if sides:
            yield disturbance(sides)


def software_cost(closed: PeakResult, network: PeakResult) -> float:
    """Seconds that a query costs over the network: the difference of the constant service times of M/D/1 queues, one a
    device, with these peaks; 0 where Network is as fast."""
    devices = str(closed.setup.get("devices", "")).count(",") + 1
    bound, percentile = closed.options.bound, closed.options.percentile
    own, over = (md1_service(result.qps / devices, bound, percentile) for result in (closed, network))
    return max(0.0, over - own)


def check_network_options(options: LoadOptions) -> None:
    """InputError for an option of the connections to nodes where there are none."""
    if options.nodes:
        return
    for member, entry in options_of(LoadOptions):
        if member.name in NETWORK_OPTIONS and getattr(options, member.name) != member.default:
            raise InputError(f"{entry.flag} has no effect without nodes", hint="--nodes HOST:PORT (lanewise serve)")


def check_division(options: PeakOptions) -> None:
    """InputError for a division that these options, or a search of one peak, cannot have."""
    if options.division != BOTH:
        check_network_options(options)
    if options.division == CLOSED and options.nodes:
        raise InputError("--nodes has no effect with --division closed", hint="leave one of them out, or write both")
    if options.division == NETWORK and not options.nodes:
        raise InputError("--division network needs nodes", hint="--nodes HOST:PORT; --division both starts one here")
    if options.division == BOTH:
        raise InputError("both divisions have no single peak", hint="call lanewise.loadtest_divisions")


def closed_options(options: PeakOptions, folder: Path) -> PeakOptions:
    """The search on this machine's devices."""
    defaults: dict[str, Any] = {
        member.name: member.default for member, _ in options_of(LoadOptions) if member.name in NETWORK_OPTIONS
    }
    return replace(options, division=CLOSED, nodes=(), results=folder, output=None, trace=None, **defaults)


def network_options(options: PeakOptions, folder: Path) -> PeakOptions:
    """The search over nodes, whose devices and model are not options of the Frontend."""
    of_nodes: dict[str, Any] = {member.name: member.default for member, _ in options_of(ModelOptions)}
    of_nodes.pop("library")  # the Frontend holds the samples
    return replace(options, division=NETWORK, results=folder, output=None, **of_nodes)


def check_nodes(options: PeakOptions) -> None:
    """InputError unless the nodes are processes of this host, with these devices; CannotMeasure for one not there."""
    devices: list[str] = []
    with connect(network_options(options, Path()), read_secret(options.secret_file)) as frontend:
        for node in frontend.nodes:
            if node.facts.host.boot != boot_id():
                hint = (
                    "lanewise loadtest peak --division closed -o closed.json there, --nodes ... -o network.json here, "
                    "then lanewise compare closed.json network.json"
                )
                raise InputError(f"node {node.address} is another host, {node.facts.host.name}: its Closed peak cannot "
                                 "be measured from here", hint=hint)  # fmt: skip
            devices += node.facts.devices
    if sorted(devices) != sorted(options.devices):
        raise InputError(
            f"the nodes have {', '.join(devices)}, the Closed division would have {', '.join(options.devices)}",
            hint=f"--devices {','.join(devices)}, or leave --nodes out",
        )


def divisions_data(result: DivisionsResult) -> dict[str, Any]:
    """The whole answer for other programs; SI units, None for what is not known."""
    share = result.share
    return {
        "share": share.share, "interval": share.interval, "chance": CHANCE, "predicted": result.predicted,
        "software": share.software, "ingress": share.ingress, "note": share.note,
        "closed": peak_data(result.closed), "network": peak_data(result.network), "folder": str(result.folder),
    }  # fmt: skip


def divisions_samples(result: DivisionsResult) -> Iterator[Sample]:
    """The rows of both peaks; `how` of the Network peak says the share, which a study computes from the two."""
    yield from peak_samples(result.closed)
    share = result.share
    first, *others = peak_samples(result.network)
    yield replace(first, how={**first.how, **_how(share, result.predicted)})
    yield from others


def _how(share: NetworkShare, predicted: float | None) -> Mapping[str, str]:
    facts = {
        "share of Closed": _percent([share.share]), "share interval": _percent(share.interval or ()),
        "predicted share": _percent([predicted]),
        "software": f"{units.readable(share.software, 's')} a query" if share.software is not None else "",
    }  # fmt: skip
    return {name: text for name, text in facts.items() if text}


def _percent(values: Sequence[float | None]) -> str:
    known = [f"{100 * value:.2f}" for value in values if value is not None]
    return f"{' to '.join(known)} %" if known else ""
