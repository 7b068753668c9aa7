"""Parts are found by the names that people, nvidia-smi and lspci give them."""

from __future__ import annotations

import pytest

from lanewise.catalog import builtin

NAMES = {
    "h100-sxm": ["H100 SXM", "h100-sxm5", "NVIDIA H100 80GB HBM3", "H100SXM5", "GH100 [H100 SXM5 80GB]"],
    "h200-sxm": ["H200", "H200 SXM5", "H200 141GB"],
    "a100-sxm-80gb": ["A100 SXM4", "NVIDIA A100-SXM4-80GB"],
    "rtx-4090": ["RTX4090", "rtx_4090", "NVIDIA GeForce RTX 4090"],
    "rtx-pro-6000-blackwell-server": ["RTX PRO 6000 Server Edition"],
    "genoa": ["EPYC 9654", "epyc_9654", "EPYC Genoa", "Bergamo", "Genoa-X"],
    "milan": ["AMD EPYC Milan", "Milan-X", "Trento"],
    "sapphire-rapids": ["Xeon Platinum 8480+", "Xeon 8480+", "Intel(R) Xeon(R) Platinum 8480+"],
    "ice-lake-sp": ["Ice Lake", "Xeon 8358"],
    "core-12-to-14": ["i9-13900K", "Core i9-13900K"],
    "grace": ["Grace CPU"],
    "connectx-7-ndr": ["CX7", "CX-7", "Mellanox Technologies MT2910 Family [ConnectX-7]"],
    "samsung-pm9a3": ["PM9A3", "Samsung PM9A3"],
    "solidigm-p5336": ["D5-P5336"],
    "pex8747": ["PLX 8747", "PEX 8747"],
}


@pytest.mark.parametrize(("part", "name"), [(part, name) for part, names in NAMES.items() for name in names])
def test_a_part_is_found_by_its_usual_names(part: str, name: str) -> None:
    assert builtin().get(name).name == part


@pytest.mark.parametrize("name", ["A100", "Xeon 6", "Xeon 6740E", "8480", "RTX 3070", "V100S", "[]", "Altra [x]"])
def test_a_name_that_means_several_parts_or_another_one_is_none(name: str) -> None:
    assert name not in builtin()
