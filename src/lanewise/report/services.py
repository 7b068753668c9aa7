"""What is said of a service under load, prepared as plain text and numbers for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

from lanewise import units
from lanewise.report.table import Column, Table, TableCell, number_columns
from lanewise.report.words import MINUS, NONE, shortened
from lanewise.results.network_share import NetworkShare
from lanewise.results.service_result import Advice, ResourceUtilization, SearchRun, ServiceResult

BUSIEST = 10
ALIKE = 0.05  # GPUs whose uses differ by no more are shown as one
IDLE = 0.01  # use below which a resource is not worth a line
FULL = 0.9  # use from which a strip of the chart stands out
_BASES = {
    "physics": "physics: data sheets and standards alone",
    "calibrated": "calibrated: a part measured elsewhere",
    "typical": "typical: the median of other parts of the generation",
    "planning": "planning: constants meant for ranking paths",
    "fitted": "fitted to published values",
}


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The unit in which all times of one service are written."""

    unit: str
    decimals: int

    def number(self, seconds: float) -> str:
        """Seconds in the unit, with the decimals that all of its numbers have: '2.50'."""
        return f"{units.from_si(seconds, self.unit):,.{self.decimals}f}"

    def short(self, seconds: float) -> str:
        """'15 ms', '6.1 ms': three digits, no trailing zeros."""
        return units.show(seconds, self.unit, 3)


def scale(seconds: float) -> TimeScale:
    """The unit that suits a time and what is shorter than it."""
    unit = "s" if seconds >= 1 else "ms" if seconds >= 1e-3 else "us"
    return TimeScale(unit, 1 if units.from_si(seconds, unit) >= 100 else 2)


def clock(loaded: ServiceResult) -> TimeScale:
    """The unit of this service's times: the one in which people state its bound."""
    return scale(bound(loaded) or loaded.latency)


def bound(loaded: ServiceResult) -> float:
    """The latency bound in s of the verdict; 0 where there is none: MLPerf bounds Server alone."""
    return loaded.bound if loaded.scenario.lower() == "server" else 0.0


def rate(qps: float) -> str:
    """'136,000 QPS'."""
    return f"{_rate(qps)} QPS"


def _rate(qps: float) -> str:
    # A scale in thousands is read by magnitude; fractions of a query a second matter to small services only.
    return f"{qps:,.0f}" if abs(qps) >= 100 else units.number(qps, 3)


def interval(low: float, high: float) -> str:
    """'135,500 to 136,500 QPS', one number where both read the same."""
    ends = (_rate(low), _rate(high))
    return f"{ends[0]} QPS" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} QPS"


def percentile(share: float) -> str:
    """'p99', 'p99.9', 'max'."""
    # Never rounded up to the next nine: 0.99999 is not 100.
    return "max" if share >= 1 else f"p{round(100 * share, 6):.8g}"


def slowest(loaded: ServiceResult) -> str:
    """'slowest 1 %', as far as the bound's percentile goes."""
    return f"slowest {round(100 * (1 - loaded.percentile), 6):g} %"


def verdict(loaded: ServiceResult) -> str:
    """MLPerf's word, where a bound is judged."""
    if not bound(loaded):
        return "no bound"
    return "VALID" if loaded.valid else "INVALID"


def headline(loaded: ServiceResult) -> str:
    """'150,000 QPS: VALID, p99 6.1 ms of 15 ms; limit: read window of hop4'."""
    return f"{rate(loaded.qps)}: {verdict(loaded)}{after_verdict(loaded)}"


def after_verdict(loaded: ServiceResult) -> str:
    """The rest of the headline: ', p99 6.1 ms of 15 ms; limit: ...', with the reason where it is not valid."""
    text = f", {latency_of_bound(loaded)}"
    if not loaded.valid and loaded.reason:
        text += f" ({loaded.reason})"
    return text + (f"; limit: {loaded.limit}" if loaded.limit else "")


def latency_of_bound(loaded: ServiceResult) -> str:
    """'p99 6.1 ms of 15 ms', without a bound 'p99 6.1 ms'."""
    text = f"{percentile(loaded.percentile)} {clock(loaded).short(loaded.latency)}"
    return text + (f" of {clock(loaded).short(bound(loaded))}" if bound(loaded) > 0 else "")


def peak_text(loaded: ServiceResult) -> str:
    """How large a rate is valid, how that is known, and what the bound costs; '' for a single rate."""
    parts = []
    if loaded.peak is not None and loaded.peak[0] > 0:
        parts.append(f"largest valid rate {interval(*loaded.peak)}{_found_in(loaded.search_runs)}")
    elif loaded.peak is not None:
        parts.append(f"no valid rate{_found_in(loaded.search_runs).replace('found in', 'in')}")
    if loaded.steady:
        text = f"GPUs and paths alone, without a bound, allow {rate(loaded.steady)}"
        if loaded.peak is not None and loaded.peak[0] > 0:
            left = f"{100 * loaded.qps / loaded.steady:.0f}"
            text += " (the bound costs nothing)" if left == "100" else f" (the bound leaves {left} %)"
        parts.append(text)
    return "; ".join(parts)


def _found_in(runs: Sequence[SearchRun]) -> str:
    return f", found in {len(runs)} run{'s' * (len(runs) != 1)}" if runs else ""


def facts(loaded: ServiceResult) -> list[tuple[str, str]]:
    """Name and text of everything else that was recorded; what is not known is left out."""
    share = f" ({units.number(100 * loaded.late / loaded.queries, 2)} %)" if loaded.queries and loaded.late else ""
    basis = _BASES.get(loaded.basis, loaded.basis)
    found = [
        ("system", system(loaded)),
        ("workload", ", ".join(text for text in (loaded.workload, loaded.scenario) if text)),
        ("source", loaded.source.value),
        ("answered", rate(loaded.answered)),
        ("queries", f"{loaded.queries:,}, {loaded.late:,} late{share}" if loaded.queries else ""),
        ("mean batch", units.show(loaded.batch, "1", 3) if loaded.batch else ""),
        ("goodput", units.readable(loaded.goodput, "B/s") if loaded.goodput else ""),
        *network_facts(loaded.network),
        ("length", scale(loaded.duration).short(loaded.duration) if loaded.duration else ""),
        ("seed", str(loaded.seed) if loaded.queries else ""),
        ("limit", f"{loaded.limit}; {basis}" if loaded.limit and basis else loaded.limit),
        ("note", loaded.note),
    ]
    return [(name, text) for name, text in found if text]


def network_facts(network: NetworkShare | None) -> list[tuple[str, str]]:
    """Share of Closed, ingress and software cost of a service in the Network division, as name and text."""
    if network is None:
        return []
    cost = "" if network.software is None else f"{units.readable(network.software, 's')} a query on the hosts"
    return [
        ("share", share_text(network) if network.share is not None else ""),
        ("ingress", f"{units.readable(network.ingress, 'B/s')}, queries/s times the bytes of a query"),
        ("software", cost),
        ("assumed", network.note),
        ("hint", network.hint),
    ]


def share_text(network: NetworkShare) -> str:
    """'99.9 % of Closed (301,504 QPS), 99.3 to 100.4 %', 'at most ...' where a cost is not known."""
    most = "at most " if network.software is None else ""
    ends = [f"{100 * end:.1f}" for end in network.interval or ()]
    between = f", {' to '.join(dict.fromkeys(ends))} %" if ends else ""
    return f"{most}{100 * (network.share or 0.0):.1f} % of Closed ({rate(network.closed or 0.0)}){between}"


def system(loaded: ServiceResult) -> str:
    """'composable-server-gen4 (path 4, gpus 4)'."""
    settings = ", ".join(f"{key} {value}" for key, value in loaded.settings.items())
    return f"{loaded.system} ({settings})" if settings else loaded.system


def peak_interval(loaded: ServiceResult) -> str:
    """'136,000 to 136,250' in QPS, 'none' where no rate is valid, '' for a single rate."""
    if loaded.peak is None:
        return ""
    return interval(*loaded.peak).removesuffix(" QPS") if loaded.peak[0] > 0 else "none"


def stage_table(loaded: ServiceResult, colours: Sequence[str] = ()) -> Table:
    """Where a query's time goes: mean and slowest by stage with their shares, the sum last; `colours` of the chart."""
    scale = clock(loaded)
    table = Table([
        Column("stage"), Column("mean", scale.unit, number=True), Column("share", "%", number=True),
        Column(slowest(loaded), scale.unit, number=True), Column("share", "%", number=True),
    ])  # fmt: skip
    total, worst = (math.fsum(getattr(stage, part) for stage in loaded.stages) for part in ("mean", "slowest"))

    def numbers(mean: float, slow: float) -> tuple[str, str, str, str]:
        pairs = ((mean, total), (slow, worst))
        shares = [f"{100 * part / whole:.0f}" if whole > 0 else NONE for part, whole in pairs]
        return (scale.number(mean), shares[0], scale.number(slow), shares[1])

    for stage, colour in zip(loaded.stages, colours or repeat(""), strict=False):
        table.add(TableCell(stage.name, swatch=colour), *numbers(stage.mean, stage.slowest))
    if loaded.stages:
        table.add(*(TableCell(text, "sum") for text in ("sum", *numbers(total, worst))))
    return table


@dataclass(frozen=True, slots=True)
class UtilizationGroup:
    """One resource, or `count` alike as one: `mean` and `series` are then the average, `least` and `most` the range."""

    name: str
    mean: float
    series: tuple[float, ...]
    least: float
    most: float
    count: int = 1

    @property
    def spread(self) -> str:
        """'76 to 77 %', '' where both read the same."""
        ends = [f"{100 * end:.0f}" for end in (self.least, self.most)]
        return "" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} %"


def busiest(loaded: ServiceResult) -> list[UtilizationGroup]:
    """The busiest first, of equally busy ones the one named first; GPUs that are alike busy are one."""
    groups = [[one] for one in loaded.utilization if one.kind != "GPU"]
    for one in sorted((one for one in loaded.utilization if one.kind == "GPU"), key=lambda one: -one.mean):
        if groups and groups[-1][0].kind == "GPU" and groups[-1][0].mean - one.mean <= ALIKE:
            groups[-1].append(one)
        else:
            groups.append([one])
    places = {one.name: place for place, one in enumerate(loaded.utilization)}
    return sorted(map(_together, groups), key=lambda one: (-one.mean, places.get(one.name, -1)))


def _together(members: Sequence[ResourceUtilization]) -> UtilizationGroup:
    means = [one.mean for one in members]
    length = max(len(one.series) for one in members)
    known = [one.series for one in members if len(one.series) == length]
    series = tuple(math.fsum(uses) / len(uses) for uses in zip(*known, strict=True))
    name = members[0].name
    if len(members) > 1:
        name = f"GPUs {ranges(one.name.removeprefix('GPU ') for one in members)}"
    return UtilizationGroup(name, math.fsum(means) / len(means), series, min(means), max(means), len(members))


def grouped(loaded: ServiceResult) -> str:
    """The note on rows that each describe several GPUs, '' where there are none."""
    several = [group for group in shown_busy(loaded) if group.count > 1]
    text = "GPUs that are alike busy as one, their mean" if several else ""
    return text + ", least and most in brackets" * any(group.spread for group in several)


def ranges(names: Iterable[str]) -> str:
    """'gpu[0-3]', 'gpu[0-1,4], other'."""
    numbers: dict[str, list[int]] = {}
    words = []
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if stem and digits and (digits == "0" or digits[0] != "0"):
            numbers.setdefault(stem, []).append(int(digits))
        else:
            words.append(name)
    folded = []
    for stem, found in numbers.items():
        runs: list[list[int]] = []
        for number in sorted(set(found)):
            if runs and runs[-1][1] == number - 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        inside = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
        folded.append(f"{stem}{inside}" if inside.isdigit() else f"{stem}[{inside}]")
    return ", ".join([*folded, *sorted(words)])


def shown_busy(loaded: ServiceResult) -> list[UtilizationGroup]:
    """The ten busiest, without those that are idle, and one at least."""
    groups = busiest(loaded)[:BUSIEST]
    return [group for group in groups if group is groups[0] or group.mean >= IDLE]


def left_over(loaded: ServiceResult) -> str:
    """What is said of the resources that are not shown."""
    rest = busiest(loaded)[len(shown_busy(loaded)) :]
    count = sum(group.count for group in rest)
    if not rest:
        return ""
    if rest[0].mean < IDLE:
        return f"{count} more, idle or below {100 * IDLE:g} % on average"
    return f"{count} more, none busier than {100 * rest[0].mean:.0f} % on average"


def any_full(loaded: ServiceResult) -> bool:
    """Whether anything was in use so much that its chart marks it."""
    return any(resource.mean >= FULL for resource in loaded.utilization)


def rests(loaded: ServiceResult) -> list[str]:
    """What the limit is based on, without repeating what figures of one part share."""
    return [shortened(text) for text in loaded.rests_on]


def advice(loaded: ServiceResult) -> list[tuple[str, str]]:
    """Each change with '+18 %' or '', what brings most first."""
    ordered = sorted(loaded.advice, key=lambda one: -math.inf if one.gain is None else one.gain, reverse=True)
    return [(one.says, _gain(one)) for one in ordered]


def _gain(one: Advice) -> str:
    if one.gain is None:
        return ""
    change = 100 * (one.gain - 1)
    text = f"{abs(change):.0f}"
    return "0 %" if text == "0" else f"{'+' if change > 0 else MINUS}{text} %"


def runs_table(loaded: ServiceResult) -> Table:
    """Every run of the search, as it went."""
    scale = clock(loaded)
    table = Table([
        *number_columns("run"), *number_columns("rate", unit="QPS"), *number_columns("latency", unit=scale.unit),
        *number_columns("queries"), Column("verdict"), Column("why", wrap=True),
    ])  # fmt: skip
    for number, run in enumerate(loaded.search_runs, 1):
        table.add(str(number), _rate(run.rate), scale.number(run.latency), f"{run.queries:,}",
                  "VALID" if run.valid else "INVALID", run.reason)  # fmt: skip
    return table


def services_table(results: Sequence[ServiceResult], anchors: Sequence[str] = ()) -> Table:
    """A line a service, which leads to its anchor: rate, verdict, latency, largest valid rate and limit."""
    table = Table([
        Column("service", wrap=True), Column("system", drop_order=5, wrap=True), Column("rate", "QPS", number=True),
        Column("verdict"), Column("latency", wrap=True),
        Column("largest valid", "rate, QPS", number=True, drop_order=1),
        Column("limit", drop_order=4, wrap=True),
    ], title="Under load")  # fmt: skip
    for result, target in zip(results, anchors or repeat(""), strict=False):
        name = TableCell(result.name, href=f"#{target}") if target else result.name
        word = TableCell(verdict(result), "good" if result.valid else "bad")
        table.add(name, system(result), _rate(result.qps), word, latency_of_bound(result), peak_interval(result),
                  result.limit)  # fmt: skip
    return table


def chosen_percentiles(loaded: ServiceResult) -> list[tuple[str, str]]:
    """p50, p90, p99, p99.9 and the maximum, as far as they were recorded, and always that of the bound."""
    latencies = dict(loaded.percentiles)
    latencies.setdefault(loaded.percentile, loaded.latency)
    shares = {0.5, 0.9, 0.99, 0.999, 1.0, loaded.percentile}
    unit = clock(loaded)
    return [
        (percentile(share), unit.number(latencies[share]))
        for share in sorted(latencies)
        if any(math.isclose(share, wanted_share, abs_tol=1e-9) for wanted_share in shares)
    ]


def overview(services: Sequence[ServiceResult]) -> str:
    """'3 services under load: 2 VALID, 1 INVALID'."""
    if not services:
        return ""
    if len(services) == 1:
        return f"1 service under load: {verdict(services[0])}"
    good = sum(one.valid for one in services)
    words = [f"{count} {word}" for count, word in ((good, "VALID"), (len(services) - good, "INVALID")) if count]
    return f"{len(services)} services under load: {', '.join(words)}"
