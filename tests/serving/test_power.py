"""GPUs at a power limit: what they serve, what is said of it, and what a description may state."""

from __future__ import annotations

import pytest

import lanewise
from lanewise.errors import Contradiction, FormatError, InputError
from lanewise.serving.power import EXPONENTS, LEAST, MOST
from lanewise.serving.times import gpu_part
from lanewise.topology.read import read_system
from lanewise.topology.write import write_system

TEXT = """lanewise: 1
system: limited
devices:
  cpu0: {cpu: epyc-7742}
  gpu0: {gpu: a100-pcie-80gb, power_limit: 195 W}
  gpu1: {gpu: a100-pcie-80gb}
links:
  - {from: cpu0, to: "gpu[0-1]", pcie: gen4 x16}
"""


def test_rates_fall_less_than_the_power_and_the_limit_is_kept() -> None:
    system = read_system(TEXT, "limited.yaml")
    free, limited = (gpu_part(system, gpu).figure("service.resnet50.offline") for gpu in ("gpu1", "gpu0"))
    assert isinstance(free.value, float)
    share = (195 / 300) ** EXPONENTS["resnet50"]
    assert limited.value == pytest.approx(share * free.value)
    assert limited.low == pytest.approx((195 / 300) ** MOST * free.value)
    assert limited.high == pytest.approx((195 / 300) ** LEAST * free.value)
    assert limited.basis == "typical"
    assert "195 W of 300 W" in limited.source
    # Published at 195 W: 256,083 QPS of eight, 0.803 of 319,091 without a limit.
    assert share == pytest.approx(0.803, rel=0.01)
    assert read_system(write_system(system), "again.yaml").device("gpu0").power_limit == 195.0


def test_a_limited_gpu_lowers_the_service() -> None:
    both, free = (lanewise.serve(read_system(text, "x.yaml"), "resnet50", "offline").qps
                  for text in (TEXT, TEXT.replace(", power_limit: 195 W", "")))  # fmt: skip
    assert both == pytest.approx(free * (1 + (195 / 300) ** EXPONENTS["resnet50"]) / 2, rel=1e-6)


def test_an_unknown_full_power_leaves_the_rate_and_says_so() -> None:
    system = read_system(TEXT.replace("a100-pcie-80gb, power", "a30, power"), "x.yaml")
    figure = gpu_part(system, "gpu0").figure("service.resnet50.offline")
    assert figure.basis == "typical"
    assert "not known" in figure.source


@pytest.mark.parametrize(
    ("text", "error", "cause"),
    [
        (TEXT.replace("195 W", "195"), FormatError, "power"),
        (TEXT.replace("195 W", "0 W"), FormatError, "power"),
        (TEXT.replace("195 W", "2 GB"), FormatError, "not in W"),
        (TEXT.replace("epyc-7742}", "epyc-7742, power_limit: 100 W}"), Contradiction, "no GPU"),
    ],
)
def test_a_limit_that_is_none_is_an_error_with_its_line(text: str, error: type[InputError], cause: str) -> None:
    with pytest.raises(error, match=cause) as caught:
        read_system(text, "x.yaml")
    assert "x.yaml:" in str(caught.value)


def test_a_limit_above_what_the_board_has_is_an_error() -> None:
    system = read_system(TEXT.replace("195 W", "400 W"), "x.yaml")
    with pytest.raises(Contradiction, match="above the 300 W"):
        gpu_part(system, "gpu0")
