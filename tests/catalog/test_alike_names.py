"""What a hint offers for a name that nothing has: names with its words before names with its letters."""

from __future__ import annotations

import pytest

from lanewise.errors import unknown_name

PARTS = (
    "a10", "a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm-80gb", "mi100", "mi300x", "rtx-3090", "rtx-4090",
    "rtx-4090-p2p", "rtx-5090", "rtx-a4000", "rtx-a5000", "rtx-pro-6000-blackwell-server",
    "rtx-pro-6000-blackwell-workstation",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("A100", "a100-pcie-40gb or a100-pcie-80gb or a100-sxm-80gb"),
        ("A100 80GB", "a100-pcie-80gb or a100-sxm-80gb"),
        ("PRO 6000", "rtx-pro-6000-blackwell-server or rtx-pro-6000-blackwell-workstation"),
        ("4090", "rtx-4090 or rtx-4090-p2p"),
        ("MI300", "mi300x or mi100"),
        ("RTX A4500", "rtx-a5000 or rtx-a4000 or rtx-5090"),
    ],
)
def test_names_with_the_same_words_are_offered_first(name: str, offered: str) -> None:
    assert unknown_name("gpu part", name, PARTS).hint == f"did you mean {offered}?"
