"""Typical figures: medians of the measured parts of a generation stand for what nobody measured."""

from __future__ import annotations

import pytest

from lanewise.catalog import Catalog, Figure, Part
from lanewise.catalog.typical import both_ways_share, completed, typical_part

KEY = "engine.h2d.gen4"


def gpu(name: str, rate: float | None, maker: str = "NVIDIA", carried_from: str = "") -> Part:
    """A GPU with that rate of host-to-device copies."""
    figure = Figure(rate, "B/s", f"a bench of {name}", basis="calibrated", carried_from=carried_from)
    return Part(name, "gpu", f"{maker} {name}", (), {KEY: figure})


def catalog(*parts: Part) -> Catalog:
    return Catalog({part.name: part for part in parts})


def test_an_unknown_figure_is_the_median_of_the_makers_parts_with_their_spread() -> None:
    parts = catalog(gpu("a", 24e9), gpu("b", 26e9), gpu("c", 27e9), gpu("d", 29e9, "AMD"), gpu("x", None))
    figure = completed(parts, parts.get("x")).figure(KEY)
    assert (figure.value, figure.low, figure.high, figure.basis) == (26e9, 24e9, 27e9, "typical")
    assert figure.source == "median of a, b, c"


def test_gaps_of_staged_copies_are_those_of_cards_for_desktops_or_of_gpus_for_servers() -> None:
    def staged(name: str, rate: float | None) -> Part:
        figure = Figure(rate, "B/s", f"a bench of {name}", basis="calibrated")
        return Part(name, "gpu", f"NVIDIA {name}", (), {"staging.rate": figure})

    known = (staged("H100", 113e9), staged("TITAN RTX", 135e9), staged("GeForce RTX 5090", 184e9))
    parts = catalog(*known, staged("RTX PRO 6000", None), staged("B200", None))
    assert completed(parts, parts.get("RTX PRO 6000")).number("staging.rate") == 159.5e9
    assert completed(parts, parts.get("B200")).number("staging.rate") == 113e9
    alone = catalog(*known[1:], staged("B200", None))  # nobody measured one for servers
    assert completed(alone, alone.get("B200")).number("staging.rate") == 159.5e9


def test_a_maker_without_any_measurement_gets_the_median_of_all() -> None:
    parts = catalog(gpu("a", 24e9), gpu("b", 26e9), gpu("x", None, "AMD"))
    assert completed(parts, parts.get("x")).number(KEY) == 25e9


def test_an_engine_measured_at_another_generation_is_left_to_that_where_the_maker_states_none_here() -> None:
    def old(name: str, maker: str) -> Part:
        figure = Figure(12e9, "B/s", f"a bench of {name}", basis="calibrated")
        return Part(name, "gpu", f"{maker} {name}", (), {"engine.h2d.gen3": figure})

    parts = catalog(old("a", "NVIDIA"), gpu("d", 28e9, "AMD"), gpu("x", None, "AMD"))
    done = completed(parts, parts.get("x"))
    # Scaled from 28 GB/s at Gen4 the model has 14 at Gen3, which is nearer to AMD's cards than NVIDIA's 12.
    assert (done.number("engine.h2d.gen3"), done.number("engine.h2d.gen4")) == (None, 28e9)


def test_a_gpu_on_an_older_link_is_compared_with_gpus_of_its_own_generation() -> None:
    def of(name: str, gen: int, **figures: float) -> Part:
        known = {f"engine.h2d.{key}": Figure(rate, "B/s", f"a bench of {name}", basis="calibrated")
                 for key, rate in figures.items()}  # fmt: skip
        return Part(name, "gpu", f"NVIDIA {name}", (), {"pcie.gen": Figure(float(gen), "1", "data sheet"), **known})

    parts = catalog(
        of("old", 3, gen3=12e9), of("a", 4, gen3=13e9, gen4=26e9), of("b", 5, gen5=56e9), *map(of, "xyz", (4, 5, 6))
    )
    rates = {
        name: [completed(parts, parts.get(name)).number(f"engine.h2d.gen{gen}") for gen in (3, 4, 5)] for name in "xyz"
    }
    # A Gen5 GPU fills an older link as it fills its own (scaled by the model); nobody measured a Gen6 GPU on Gen6.
    assert rates == {"x": [13e9, 26e9, None], "y": [None, None, 56e9], "z": [None, None, 56e9]}


def test_figures_carried_over_and_those_of_the_part_itself_do_not_count() -> None:
    parts = catalog(gpu("a", 24e9), gpu("b", 20e9, carried_from="y"), gpu("x", None))
    assert completed(parts, parts.get("x")).number(KEY) == 24e9


def test_a_part_that_extends_another_does_not_count_its_figures_again() -> None:
    first = gpu("a", 20e9)
    second = Part("a2", "gpu", "NVIDIA a2", (), first.figures)
    parts = catalog(first, second, gpu("b", 26e9), gpu("x", None))
    assert completed(parts, parts.get("x")).number(KEY) == 23e9


def test_a_catalogue_without_a_machines_figures_has_medians_without_them() -> None:
    left_out = catalog(gpu("a", None), gpu("b", 26e9), gpu("x", None))
    assert completed(left_out, left_out.get("x")).number(KEY) == 26e9
    assert completed(left_out, left_out.get("a")).number(KEY) == 26e9


def test_a_figure_of_its_own_is_kept() -> None:
    parts = catalog(gpu("a", 24e9), gpu("b", 26e9))
    assert completed(parts, parts.get("a")).figure(KEY) is parts.get("a").figure(KEY)


def test_a_cpu_that_is_not_named_has_the_memory_of_its_generation() -> None:
    def cpu(name: str, gen: int, rate: float) -> Part:
        figures = {"pcie.gen": Figure(gen, "1", name), "memory.rate": Figure(rate, "B/s", name)}
        return Part(name, "cpu", name, (), figures)

    parts = catalog(cpu("a", 4, 50e9), cpu("b", 4, 200e9), cpu("c", 4, 210e9), cpu("d", 5, 460e9))
    figure = typical_part(parts, "cpu", 4).figure("memory.rate")
    assert (figure.value, figure.low, figure.high) == (200e9, 50e9, 210e9)
    assert typical_part(parts, "cpu", None).number("memory.rate") == pytest.approx(205e9)


def test_a_cpu_beside_another_is_none_of_those_that_work_alone() -> None:
    def cpu(name: str, sockets: float, rate: float) -> Part:
        figures = {"pcie.gen": Figure(4, "1", name), "memory.rate": Figure(rate, "B/s", name)}
        return Part(name, "cpu", name, (), {**figures, "cpu.sockets_max": Figure(sockets, "1", name)})

    parts = catalog(cpu("desktop", 1, 50e9), cpu("a", 2, 200e9), cpu("b", 8, 140e9))
    assert typical_part(parts, "cpu", 4).figure("memory.rate").low == 50e9
    figure = typical_part(parts, "cpu", 4, sockets=2).figure("memory.rate")
    assert (figure.value, figure.low) == (170e9, 140e9)
    # Where all work alone the description contradicts them: their figures are better than none.
    assert typical_part(catalog(cpu("desktop", 1, 50e9)), "cpu", 4, sockets=2).number("memory.rate") == 50e9


def test_one_socket_alone_has_no_link_to_another() -> None:
    raw = Figure(32e9, "B/s", "a")
    single = Part("x", "cpu", "x", (), {"cpu.sockets_max": Figure(1, "1", "x")})
    parts = catalog(Part("a", "cpu", "a", (), {"intersocket.raw": raw}), single)
    assert completed(parts, single).number("intersocket.raw") is None
    assert typical_part(parts, "cpu", None).number("intersocket.raw") == 32e9


def link(name: str, title: str, raw: float, goodput: float | None = None) -> Part:
    figures = {"nvlink.link_rate": Figure(raw, "B/s", name)}
    if goodput is not None:
        figures["nvlink.goodput"] = Figure(goodput, "B/s", f"a bench of {name}", basis="calibrated")
    return Part(name, "nvlink", title, (), figures)


def test_a_link_between_gpus_has_the_share_of_the_nearest_generation_of_its_family() -> None:
    def nvidia(name: str, generation: str, links: int, rate: float) -> Part:
        figures = {
            "nvlink.part": Figure(generation, "text", name), "nvlink.links": Figure(links, "1", name),
            "engine.nvlink": Figure(rate, "B/s", f"a bench of {name}", basis="calibrated"),
        }  # fmt: skip
        return Part(name, "gpu", f"NVIDIA {name}", (), figures)

    parts = catalog(
        link("nvlink2", "NVLink 2", 25e9), link("nvlink4", "NVLink 4", 25e9), link("nvlink6", "NVLink 6", 100e9),
        nvidia("v", "nvlink2", 6, 144e9), nvidia("h", "nvlink4", 18, 378e9), nvidia("i", "nvlink4", 18, 396e9),
        link("xgmi-a", "AMD link A", 60e9, 45e9), link("xgmi-b", "AMD link B", 40e9), link("c2c", "NVLink-C2C", 45e9),
    )  # fmt: skip

    def goodput(name: str) -> Figure:
        return completed(parts, parts.get(name)).figure("nvlink.goodput")

    assert goodput("nvlink2").value == pytest.approx(0.96 * 25e9)
    assert goodput("nvlink6").value == pytest.approx(0.86 * 100e9)  # of the fourth generation: 0.84 and 0.88
    assert (goodput("nvlink6").low, goodput("nvlink6").high) == pytest.approx((84e9, 88e9))
    assert goodput("xgmi-b").value == pytest.approx(0.75 * 40e9)
    assert goodput("xgmi-a").value == 45e9
    assert not goodput("c2c").known


def test_a_link_of_amds_has_the_share_of_the_one_whose_rate_is_nearest() -> None:
    parts = catalog(
        link("slow", "AMD link A", 50e9, 42e9), link("fast", "AMD link B", 64e9, 48e9),
        link("older", "AMD link C", 46e9), link("newer", "AMD link D", 77e9),
    )  # fmt: skip
    shares = {name: completed(parts, parts.get(name)).figure("nvlink.goodput") for name in ("older", "newer")}
    assert shares["older"].value == pytest.approx(0.84 * 46e9)
    assert shares["newer"].value == pytest.approx(0.75 * 77e9)


def card(name: str, gen: int, **rates: float) -> Part:
    """A GPU of Intel's with those engine figures: h2d_gen5=54e9."""
    figures = {
        f"engine.{key.replace('_', '.')}": Figure(rate, "B/s", f"a bench of {name}", basis="calibrated")
        for key, rate in rates.items()
    }
    return Part(name, "gpu", f"Intel {name}", (), {"pcie.gen": Figure(gen, "1", name), **figures})


def test_a_gpu_older_than_all_that_its_maker_measured_has_their_share_of_a_link() -> None:
    known = (card("new", 5, h2d_gen5=54e9), card("newer", 5, h2d_gen5=58e9))
    parts = catalog(*known, card("old", 4), card("oldest", 3), gpu("other", 26e9))
    old = completed(parts, parts.get("old"))
    figure = old.figure("engine.h2d.gen4")
    assert (figure.value, figure.low, figure.high, figure.basis) == (28e9, 27e9, 29e9, "typical")
    assert figure.source == "median of new, newer, of Gen5, scaled by 0.5"
    assert not old.figure("engine.h2d.gen3").known  # scaled from that of Gen4
    assert completed(parts, parts.get("oldest")).number("engine.h2d.gen3") == 14e9


def test_copies_of_both_directions_count_of_cards_whose_copies_alone_are_typical() -> None:
    known = (
        card("a", 4, h2d_gen4=27e9, d2h_gen4=28e9, duplex_gen4=44e9),
        card("b", 4, h2d_gen4=29e9, d2h_gen4=26e9, duplex_gen4=44e9), card("c", 4, duplex_gen4=52.25e9),
    )  # fmt: skip
    parts = catalog(*known, card("x", 4))
    assert both_ways_share(parts, parts.get("x")) == pytest.approx(0.8)
    parts = catalog(known[0], known[2], card("x", 4))
    assert both_ways_share(parts, parts.get("x")) == pytest.approx((0.8 + 0.95) / 2)
    assert both_ways_share(catalog(known[2], card("x", 4)), card("x", 4)) is None  # nobody's alone
