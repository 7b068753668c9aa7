"""Typical figures: what the measured parts of a generation have in common stands for a figure that nobody measured.

A typical figure is the median of the figures that the catalogue in use states for other parts of the same kind, maker
and PCIe generation, with their spread as its range. A catalogue without the figures of some machine has medians without
them too. Figures carried over from another part are no measurement of their own and do not count.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from lanewise.catalog.keys import GENERATIONS
from lanewise.catalog.model import Catalog, Figure, Part
from lanewise.catalog.ports import CHIPSET_KEYS, is_chipset

_MAKERS = ("NVIDIA", "AMD", "Intel")
_ENGINES = tuple(f"engine.{name}.gen{gen}" for name in ("h2d", "d2h") for gen in GENERATIONS)
_STAGING = "staging.rate"
_SOCKETS = "cpu.sockets_max"
_LINK_RATE, _PEER_RATE = "intersocket.link_rate", "intersocket.peer_rate"
# The figures that are filled in, by kind of part: those of the parts of one maker, and those of one PCIe generation.
_OF_MAKER = {"gpu": (*_ENGINES, _STAGING)}
_OF_GENERATION = {
    "cpu": ("memory.rate", "latency.memory_read", "intersocket.raw", "intersocket.links"),
    "switch": ("switch.cut_through",),
}
_LATENCIES = ("latency.api_p2p", "latency.api_nvlink", "latency.api_staged")
_BEFORE_VOLTA = re.compile(r"\b(?:K\d+|M\d+|P\d+|GTX|TITAN Xp?|GP100)\b")  # NVIDIA's Kepler, Maxwell and Pascal
_GOODPUT = "nvlink.goodput"
_NVLINK = re.compile(r"NVLink (\d)")
_STAGES = "staging.stages"
_SERIES = re.compile(r"\bGeForce RTX (\d)")  # 20, 30, 40, 50: the chips of one generation, in cards for desktops
_GRAPHICS = re.compile(r"\b(?:GeForce|RTX|TITAN|Quadro|Radeon)\b")
_MOST_NAMES = 6
_Stated: TypeAlias = "list[tuple[Part, Figure]]"


def completed(catalog: Catalog, part: Part) -> Part:
    """`part` with typical figures of `catalog` where it states none."""
    done = catalog.completed.get(part)
    if done is None:
        done = _with_figures(part, dict(_stages_of_its_series(catalog, part)))
        done = _with_figures(done, dict(_missing(catalog, done)))
        catalog.completed[part] = done
    return done


def typical_part(catalog: Catalog, kind: str, gen: int | None, sockets: int = 1) -> Part:
    """A part that stands for one nobody named: its kind, the PCIe generation of its links, all figures typical.

    A CPU beside another of its host is none of those that work alone.
    """
    done = catalog.completed.get((kind, gen, sockets))
    if done is None:
        figures = {} if gen is None else {"pcie.gen": Figure(float(gen), "1", "the generation of its links")}
        if sockets > 1:
            figures[_SOCKETS] = Figure(float(sockets), "1", "the sockets of its host")
        done = completed(catalog, Part(f"unknown {kind}", kind, f"a {kind} that is not named", (), figures))
        # It may be of a newer generation, whose engines fill more of an older link: the link bounds it.
        wider = {
            key: replace(figure, high=2 * figure.value)
            for key, figure in done.figures.items()
            if key in _ENGINES and isinstance(figure.value, float)
        }
        done = replace(done, figures={**done.figures, **wider, **_between_sockets(catalog, done)})
        catalog.completed[kind, gen, sockets] = done
    return done


def _between_sockets(catalog: Catalog, part: Part) -> dict[str, Figure]:
    """What one xGMI link between two sockets carries, and what one flow of peers gets, if the maker is not known.

    Medians of the CPUs of its generation that were measured, peers the middle of AMD's and Intel's; nothing unless both
    were measured. A share of the typical raw rate would be 23.8 GB/s of Gen4, which none reached: 21.2 to 22.2 GB/s on
    four hosts with EPYC 7002, 18.6 on one whose CPUs are Ice Lake.
    """
    if part.kind != "cpu" or not _applies(part, _LINK_RATE):
        return {}
    links, peers = (_between(catalog, part, *of) for of in ((_LINK_RATE, "xgmi"), (_PEER_RATE, "upi")))
    if links is None or peers is None:
        return {}
    rates = [figure.value for figure in (links, peers) if isinstance(figure.value, float)]
    source = f"the middle of one xGMI link and of peers over UPI: {links.source}; {peers.source}"
    between = Figure(statistics.mean(rates), "B/s", source, basis="typical", low=min(rates), high=max(rates))
    return {_LINK_RATE: links, _PEER_RATE: between}


def _between(catalog: Catalog, part: Part, key: str, kind: str) -> Figure | None:
    """The median of `key` over CPUs of its PCIe generation with such links that were measured; None without any."""
    gen = part.number("pcie.gen")
    near = [
        pair for pair in _stated(catalog, part, key)
        if pair[0].number("pcie.gen") == gen and pair[0].text("intersocket.kind") == kind
    ]  # fmt: skip
    values = [figure.value for _, figure in near if isinstance(figure.value, float)]
    if not values:
        return None
    source = f"median of {_named([other.name for other, _ in near])}"
    return Figure(statistics.median(values), "B/s", source, basis="typical", low=min(values), high=max(values))


def both_ways_share(catalog: Catalog, part: Part) -> float | None:
    """What host copies of both directions reach at once of their rates alone: median of other parts of its maker.

    Those measured at the PCIe generation nearest to that of `part` count; None without any. A rate alone that nobody
    measured is the typical one (decision 54).
    """
    own = part.number("pcie.gen") or max(GENERATIONS)
    for gen in sorted(GENERATIONS, key=lambda each: abs(each - own)):
        shares = [
            figure.value / alone
            for other, figure in _stated(catalog, part, f"engine.duplex.gen{gen}")
            if _maker(other) == _maker(part) and isinstance(figure.value, float)
            and (alone := _sum_alone(catalog, other, gen))
        ]  # fmt: skip
        if shares:
            return statistics.median(shares)
    return None


def _sum_alone(catalog: Catalog, part: Part, gen: int) -> float | None:
    """Its host copies of both directions, each alone, of that PCIe generation; None where one is not even typical."""
    rates = [completed(catalog, part).number(f"engine.{way}.gen{gen}") for way in ("h2d", "d2h")]
    return sum(rate for rate in rates if rate) if all(rates) else None


def _with_figures(part: Part, figures: dict[str, Figure]) -> Part:
    return Part(part.name, part.kind, part.title, part.aliases, {**part.figures, **figures}) if figures else part


def _stages_of_its_series(catalog: Catalog, part: Part) -> Iterator[tuple[str, Figure]]:
    """How stages of staged copies run on GeForce RTX cards of the nearest series that was measured, if they agree.

    All that were measured of RTX 20 and 30 take turns (RTX 2080 Ti; RTX 3090 of six machines), none of RTX 40 and 50.
    """
    own = _series(part)
    if own is None or part.figure(_STAGES).known:
        return
    cards = {other.name: other for key in (_STAGES, _STAGING) for other, _ in _stated(catalog, part, key)}.values()
    apart = [(abs(series - own), other) for other in cards if (series := _series(other)) is not None]
    nearest = min((distance for distance, _ in apart), default=None)
    near = [other for distance, other in apart if distance == nearest]
    figures = [other.figure(_STAGES) for other in near]
    if figures and figures[0].known and len({figure.value for figure in figures}) == 1:
        source = f"as {_named([other.name for other in near])}, of the {'nearest' if nearest else 'same'} series"
        yield _STAGES, replace(figures[0], source=source, basis="typical", machines=(), condition="")


def _series(part: Part) -> int | None:
    """The number of a GeForce RTX card's series: 2 of RTX 20 to 5 of RTX 50; None of others."""
    series = _SERIES.search(part.title) if part.kind == "gpu" else None
    return int(series[1]) if series is not None else None


def _missing(catalog: Catalog, part: Part) -> Iterator[tuple[str, Figure]]:
    for key in (*_OF_MAKER.get(part.kind, ()), *_OF_GENERATION.get(part.kind, ())):
        if not part.figure(key).known and _applies(part, key):
            figure = _typical(catalog, part, key)
            if figure is not None:
                yield key, figure
    for key in CHIPSET_KEYS if is_chipset(part) else ():
        if not part.figure(key).known and (figure := _typical(catalog, part, key)) is not None:
            yield key, figure
    for key in _LATENCIES if part.kind == "gpu" else ():
        if not part.figure(key).known and (small := _typical_latency(catalog, part, key)) is not None:
            yield key, small
    if part.kind == "nvlink" and not part.figure(_GOODPUT).known:
        figure = _typical_goodput(catalog, part)
        if figure is not None:
            yield _GOODPUT, figure


def _applies(part: Part, key: str) -> bool:
    """Whether a part can have such a figure at all."""
    if key in _ENGINES:
        return int(key[-1]) <= (part.number("pcie.gen") or max(GENERATIONS))
    if key.startswith("intersocket."):
        return part.number(_SOCKETS) != 1 and part.text("intersocket.kind") != "none"
    return True


def _typical(catalog: Catalog, part: Part, key: str) -> Figure | None:
    """The median of `key` over the nearest parts that state it: of its maker, of its generation, else of all."""
    stated = list(_stated(catalog, part, key))
    if key in _OF_MAKER.get(part.kind, ()):
        word, near = _maker(part), [(other, figure) for other, figure in stated if _maker(other) == _maker(part)]
        if key in _ENGINES and (alike := _of_its_generation(catalog, part, key, near)) is not near:
            near = alike
            if not near:
                return None
    else:
        gen = part.number("pcie.gen")
        if part.kind == "cpu" and (part.number(_SOCKETS) or 1) > 1:
            stated = [pair for pair in stated if pair[0].number(_SOCKETS) != 1] or stated
        word, near = f"Gen{gen or 0:.0f}", [pair for pair in stated if pair[0].number("pcie.gen") == gen]
    if key == _STAGING:  # a gap beside stages that overlap, or between stages that take turns
        order = part.text("staging.stages")
        near = [pair for pair in near if pair[0].text("staging.stages") == order]
        near = [pair for pair in near if _is_graphics_card(pair[0]) == _is_graphics_card(part)] or near
    chosen = near if (near and word) or key == _STAGING else stated
    if not chosen or (chosen is not near and _of_other_generations(catalog, part, key)):
        return _of_a_newer_generation(catalog, part, key)
    values = [figure.value for _, figure in chosen if isinstance(figure.value, float)]
    names = _named([other.name for other, _ in chosen])
    return Figure(
        statistics.median(values), chosen[0][1].unit, f"median of {names}", basis="typical",
        low=min(values), high=max(values),
    )  # fmt: skip


def _of_its_generation(catalog: Catalog, part: Part, key: str, near: _Stated) -> _Stated:
    """Of `near` those of the part's own PCIe generation, for an engine on links of an older one; else `near`.

    Nothing where a figure of a newer generation, scaled, is nearer: GPUs of Gen5 fill 0.87 to 0.91 of a link, also of
    one of Gen3 or Gen4 (RTX 5060 Ti, RTX PRO 6000); those of Gen3 and Gen4 fill 0.78 to 0.86.
    """
    own, gen = part.number("pcie.gen"), int(key[-1])
    if own is None or own <= gen:
        return near
    alike = [pair for pair in near if pair[0].number("pcie.gen") == own]
    newer = [f"{key[:-1]}{each}" for each in GENERATIONS if gen < each <= own]
    measured = any(_maker(other) == _maker(part) for each in newer for other, _ in _stated(catalog, part, each))
    return alike if alike or measured else near


def _of_a_newer_generation(catalog: Catalog, part: Part, key: str) -> Figure | None:
    """An engine on links of the part's own generation where its maker states newer ones alone: their share of a link.

    Engines of an older generation are left to those that the part states or that are typical of it, scaled.
    """
    own, gen = part.number("pcie.gen"), int(key[-1]) if key in _ENGINES else None
    if gen is None or own != gen:
        return None
    measured = {each: [pair for pair in _stated(catalog, part, f"{key[:-1]}{each}") if _maker(pair[0]) == _maker(part)]
                for each in GENERATIONS}  # fmt: skip
    newer = min((each for each, pairs in measured.items() if pairs), default=gen)
    if newer <= gen:
        return None
    scale = GENERATIONS[gen] / GENERATIONS[newer]  # of raw rates from Gen3 on: 128b/130b
    values = [scale * figure.value for _, figure in measured[newer] if isinstance(figure.value, float)]
    names = _named([other.name for other, _ in measured[newer]])
    source = f"median of {names}, of Gen{newer}, scaled by {scale:.3g}"
    return Figure(statistics.median(values), "B/s", source, basis="typical", low=min(values), high=max(values))


def _of_other_generations(catalog: Catalog, part: Part, key: str) -> bool:
    """Whether parts of its maker state that engine at another PCIe generation: scaled, that is nearer than others'."""
    keys = [f"{key[:-1]}{gen}" for gen in GENERATIONS] if key in _ENGINES and _maker(part) else []
    return any(_maker(other) == _maker(part) for each in keys for other, _ in _stated(catalog, part, each))


def _typical_latency(catalog: Catalog, part: Part, key: str) -> Figure | None:
    """A small copy's time on other GPUs of its maker, cards for desktops apart from those for servers.

    The median of those of the nearest PCIe generation, with a range that holds all: peers take 0.37 us on Blackwell,
    1.1 on Ada and 1.7 to 2 on V100 and A100, staged copies 10 to 14 us of cards for desktops, 14 to 25 of the others.
    Nothing of NVIDIA's before Volta: K40, GTX 1070 and P100, all of 2014 to 2017, take 7 to 10 us between peers.
    """
    if _BEFORE_VOLTA.search(part.title):
        return None
    own = part.number("pcie.gen") or max(GENERATIONS)
    alike = [
        (abs((other.number("pcie.gen") or own) - own), other.name, figure.value, figure.unit)
        for other, figure in _stated(catalog, part, key)
        if _maker(other) == _maker(part) and _is_graphics_card(other) == _is_graphics_card(part)
        and isinstance(figure.value, float) and not _BEFORE_VOLTA.search(other.title)
    ]  # fmt: skip
    if not alike:
        return None
    nearest = min(distance for distance, *_ in alike)
    over_nvlink = key == "latency.api_nvlink"  # whose generations are no slots'
    near = [(name, value) for distance, name, value, _ in alike if over_nvlink or distance == nearest]
    times = [value for *_, value, _ in alike]
    return Figure(
        statistics.median(value for _, value in near), alike[0][-1], f"median of {_named([name for name, _ in near])}",
        basis="typical", low=min(times), high=max(times),
    )  # fmt: skip


def _typical_goodput(catalog: Catalog, part: Part) -> Figure | None:
    """The data that one link between GPUs carries: its raw rate times the median share of the nearest generation.

    Those of one family count, NVIDIA's NVLink or AMD's Infinity Fabric: packets, checksums and credits are alike there.
    """
    raw = part.number("nvlink.link_rate")
    apart = [(_generations_apart(entry[0], part), entry) for entry in _goodput_shares(catalog)]
    nearest = min((distance for distance, _ in apart if distance is not None), default=None)
    if raw is None or nearest is None:
        return None
    chosen = [entry for distance, entry in apart if distance == nearest]
    shares = sorted(share for _, _, share in chosen)
    share = statistics.median(shares)
    source = f"{share:.3g} of the raw rate, median of {_named([name for _, name, _ in chosen])}"
    return Figure(raw * share, "B/s", source, basis="typical", low=raw * shares[0], high=raw * shares[-1])


def _goodput_shares(catalog: Catalog) -> Iterator[tuple[Part, str, float]]:
    """Each measured share of a raw rate: the part of the link, and the part that it was measured on."""
    for part in catalog.parts.values():
        if part.kind == "nvlink":
            link, links, figure = part, 1.0, part.figure(_GOODPUT)
        elif part.kind == "gpu" and (name := part.text("nvlink.part")) in catalog:
            link, links = catalog.get(name or ""), part.number("nvlink.links") or 0.0
            figure = part.figure("engine.nvlink")
        else:
            continue
        raw = links * (link.number("nvlink.link_rate") or 0.0)
        if raw and isinstance(figure.value, float) and figure.basis == "calibrated" and not figure.carried_from:
            yield link, part.name, figure.value / raw


def _generations_apart(one: Part, other: Part) -> float | None:
    """By the numbers of NVLink generations, by the rates of Infinity Fabric; None for links of two families.

    AMD numbers no generations, but each has faster lanes: 42 (Vega 20), 46, 50, 64 and 76.8 GB/s (MI350) a link.
    """
    if _maker(one) == _maker(other) == "AMD":
        rates = [part.number("nvlink.link_rate") for part in (one, other)]
        return abs(math.log(rates[0] / rates[1])) if rates[0] and rates[1] else None
    first, second = (_NVLINK.match(part.title) for part in (one, other))
    return abs(int(first[1]) - int(second[1])) if first and second else None


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _stated(catalog: Catalog, part: Part, key: str) -> Iterator[tuple[Part, Figure]]:
    """Other parts with their own measured or specified figure; one that several parts share by `extends` once."""
    counted: set[tuple[float | str | None, str]] = set()
    for other in catalog.parts.values():
        if other.kind != part.kind or other.name == part.name:
            continue
        figure = other.figure(key)
        own = figure.known and not figure.carried_from and figure.basis in ("physics", "calibrated")
        if own and (figure.value, figure.source) not in counted:
            counted.add((figure.value, figure.source))
            yield other, figure


def _is_graphics_card(part: Part) -> bool:
    """Whether a GPU is made for desktops and workstations, by its maker's series.

    Their copies through host memory have shorter gaps, 5.4 to 7.4 ps a byte (TITAN RTX, RTX 6000 Ada, RTX 5090), than
    those of GPUs for servers, 8 to 19 (P100, V100, A100, H100, H200).
    """
    return bool(_GRAPHICS.search(part.title))


def _maker(part: Part) -> str:
    """NVIDIA, AMD or Intel, by the part's title; '' for others."""
    word = part.title.partition(" ")[0]
    return word if word in _MAKERS else ""
