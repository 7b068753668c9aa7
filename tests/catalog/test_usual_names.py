"""Parts are found by the names that people, drivers, nvidia-smi and lspci give them, wherever a name is looked up."""

from __future__ import annotations

import pytest

from lanewise.catalog import Part, builtin
from lanewise.discovery.identify import part_of
from lanewise.readers.words.counted_gpus import gpu_name
from lanewise.topology.model import Kind

GPUS = {
    "h100-sxm": ["H100 SXM", "h100-sxm5", "NVIDIA H100 80GB HBM3", "H100SXM5", "GH100 [H100 SXM5 80GB]"],
    "h100-pcie": ["NVIDIA H100 PCIe", "H100-PCIE-80GB"],
    "h200-sxm": ["H200", "H200 SXM5", "H200 141GB"],
    "h200-nvl": ["H200 NVL"],
    "b300": ["B300 SXM6 AC", "NVIDIA-B300-SXM6-AC"],
    "gh200-480gb": ["GH200 480GB", "GH200-480GB", "nvidia_gh200_480gb"],
    "a100-sxm-80gb": ["A100 SXM4", "NVIDIA A100-SXM4-80GB", "nvidia_a100_sxm4_80gb"],
    "a100-sxm-40gb": ["A100 40G SXM4"],
    "a100-pcie-80gb": ["NVIDIA A100 80GB PCIe"],
    "v100-sxm2": ["V100-SXM2-16GB", "Tesla V100-SXM2-32GB"],
    "v100-pcie": ["Tesla V100-PCIE-16GB"],
    "t4": ["Tesla T4"],
    "rtx-4090": ["4090", "RTX4090", "rtx_4090", "NVIDIA GeForce RTX 4090", "RTX 4090 48GB"],
    "rtx-4060-ti": ["4060 Ti"],
    "rtx-2080-ti": ["2080Ti"],
    "rtx-6000-ada": ["6000 Ada", "RTX6000 Ada", "NVIDIA RTX 6000 Ada Generation"],
    "rtx-pro-6000-blackwell-workstation": ["RTX 6000 Pro", "RTX PRO 6000 Blackwell Max-Q"],
    "rtx-pro-6000-blackwell-server": ["RTX PRO 6000 Server Edition", "RTX PRO 6000 Server"],
    "quadro-rtx-6000": ["Quadro RTX 6000"],
    "rx-7900-xtx": ["7900 XTX"],
    "rx-580": ["RX 580", "AMD Radeon RX 580"],
    "mi300x": ["MI300X OAM", "instinct_mi300x", "Aqua Vanjaram [Instinct MI300X]"],
    "arc-b580": ["B580"],
    "max-1550": ["Max 1550", "Intel Data Center GPU Max 1550"],
}
OTHERS = {
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
OPEN = ["A100", "V100", "Tesla V100 16GB", "P100", "A100 80GB", "RTX 4000", "RTX 6000", "NVIDIA RTX 6000", "8480"]
ANOTHER = [
    "A100 1g.10gb", "H200 MIG 1g.18gb", "A40-48Q", "1/2 A100 SXM4", "RTX PRO 6000 and 4090", "5700G", "RTX 1080",
    "GTX 4090", "4090 Mobile", "RTX 5090D", "A1000", "T400", "3060 8GB", "H800 PCIe", "RTX 3070",
    "Xeon 6", "Xeon 6740E", "[]", "Altra [x]", "9" * 5000, "[" * 5000,
]  # fmt: skip


def called(names: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Each name with its part."""
    return [(part, name) for part, others in names.items() for name in others]


@pytest.mark.parametrize(("part", "name"), called(GPUS | OTHERS))
def test_a_part_is_found_by_its_usual_names(part: str, name: str) -> None:
    assert builtin().get(name).name == part


@pytest.mark.parametrize(("part", "name"), called(GPUS))
def test_rows_and_dumps_find_a_gpu_by_the_same_names(part: str, name: str) -> None:
    assert builtin().gpu(gpu_name(name)) == builtin().get(part)
    if "[" not in name:
        assert part_of(Kind.GPU, None, None, f"Some Corporation GX100 [{name}] (rev a1)", builtin()) == part


@pytest.mark.parametrize("name", OPEN + ANOTHER)
def test_a_name_that_means_several_parts_or_another_one_is_none(name: str) -> None:
    assert name not in builtin()
    assert builtin().gpu(gpu_name(name)) is None


@pytest.mark.parametrize("part", builtin().parts.values(), ids=lambda part: part.name)
def test_every_part_stays_its_own_however_its_name_is_divided(part: Part) -> None:
    for name in (part.name, *part.aliases):
        for written in (name, name.upper(), name.replace("-", " "), name.replace("-", "_"), f"NVIDIA {name}"):
            assert builtin().get(written) == part
            if part.kind == "gpu" and not name.endswith("-gpu"):  # `2 GPUs` is a count of them
                assert builtin().gpu(gpu_name(written)) == part


def test_a_part_that_is_no_gpu_is_none_by_the_name_of_one() -> None:
    assert builtin().gpu("EPYC 9654") is None
