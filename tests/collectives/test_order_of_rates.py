"""Predictions of collectives over any described machine: finite, in order of size and of links."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import pytest
from collectives.collective_systems import gpu_node
from hypothesis import given
from hypothesis import strategies as st

from lanewise.collectives.curve import CollectiveModel, collective_model
from lanewise.collectives.model import Algorithm, Collective, CollectivePoint, CollectiveSettings
from lanewise.topology.read import read_system

MiB = 2.0**20
SIZES = st.floats(0, 37).map(lambda power: 2.0**power)  # 1 B to 128 GiB
COLLECTIVES = st.sampled_from(list(Collective))
CPUS = st.sampled_from(["emerald-rapids", "genoa", "rome"])
GENERATIONS, LANES = (3, 4, 5), (4, 8, 16)


@cache
def over_pcie(cpu: str, link: str, gpus: int, collective: Collective, p2p: bool | None) -> CollectiveModel:
    """Cards at root ports of one socket."""
    system = read_system(
        f"""
lanewise: 1
system: cards
devices: {{cpu0: {{cpu: {cpu}}}, "gpu[0-{gpus - 1}]": {{gpu: h100-pcie}}}}
links: [{{from: cpu0, to: "gpu[0-{gpus - 1}]", pcie: {link}}}]
""",
        "cards.yaml",
    )
    settings = CollectiveSettings(version="2.28.9", p2p=p2p)
    return collective_model(system, collective, f"gpu[0-{gpus - 1}]", settings)


@cache
def over_nvlink(part: str, links: int, collective: Collective, algorithm: Algorithm | None) -> CollectiveModel:
    """Four GPUs of a node with switches."""
    settings = CollectiveSettings(version="2.28.9", algorithm=algorithm)
    return collective_model(gpu_node(part, links), collective, "gpu[0-3]", settings)


def is_sound(point: CollectivePoint) -> bool:
    """Whether a prediction is a number within its interval."""
    return 0 < point.time < math.inf and 0 < point.low <= point.bus_bandwidth <= point.high < math.inf


@given(CPUS, st.sampled_from([2, 4]), COLLECTIVES, st.sampled_from([None, False, True]), SIZES)
def test_faster_or_wider_links_make_no_collective_of_one_protocol_slower(
    cpu: str, gpus: int, collective: Collective, p2p: bool | None, size: float
) -> None:
    gens = [gen for gen in GENERATIONS if gen < 5 or cpu in ("emerald-rapids", "genoa")]
    by_lanes = [[over_pcie(cpu, f"gen{gen} x{lanes}", gpus, collective, p2p).point(size) for lanes in LANES]
                for gen in gens]  # fmt: skip
    for row in (*by_lanes, *map(list, zip(*by_lanes, strict=True))):
        assert all(map(is_sound, row))
        for one, other in pairwise(row):
            # NCCL chooses a protocol by its own plan, which may cost: LL in place of Simple at 32 KiB over Gen3 x8.
            same = one.protocol is other.protocol
            assert one.bus_bandwidth <= 1.001 * other.bus_bandwidth or not same


@given(COLLECTIVES, st.sampled_from([None, Algorithm.RING, Algorithm.NVLS]), SIZES, st.integers(1, 40))
def test_larger_messages_take_longer_unless_nccl_gives_them_more_channels(
    collective: Collective, algorithm: Algorithm | None, size: float, step: int
) -> None:
    models = [over_nvlink("h100-sxm", 18, collective, algorithm), over_pcie("genoa", "gen5 x16", 4, collective, None)]
    for model in models:
        one, other = model.point(size), model.point(size * (1 + step / 40))
        assert is_sound(one)
        same = (one.algorithm, one.protocol, one.channels) == (other.algorithm, other.protocol, other.channels)
        assert one.time <= other.time * (1 + 1e-9) or not same


@pytest.mark.parametrize("collective", [Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
def test_buffers_beyond_a_cache_cost_by_how_far_they_exceed_it(collective: Collective) -> None:
    # 42 MiB of a cache, 64 MiB of buffers once a message has 32 MiB: in between ever more of them.
    model = over_pcie("emerald-rapids", "gen5 x16", 4, collective, False)
    peaks = [model.peaks_of(size * MiB)[Algorithm.RING].bus_bandwidth for size in range(1, 65)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] == peaks[20]
    assert peaks[31] == peaks[63] == model.peaks[Algorithm.RING].bus_bandwidth
    assert all(one / other < 1.05 for one, other in pairwise(peaks))  # no step
    assert peaks[24] > peaks[31]
