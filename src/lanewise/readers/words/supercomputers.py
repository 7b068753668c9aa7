"""Supercomputers that people name alone: the GPUs of a node as the driver calls them, and its network cards.

Systems whose nodes differ in these (Delta, Alps without its GH200) name none of what differs.
"""

from __future__ import annotations


def _of_a_common_word(name: str, owner: str) -> str:
    """A pattern of a name that is a word as well: of its owner, before 'node' or 'supercomputer', or alone."""
    name, kinds = f"(?:{name})", r"(?:(?:GPU|compute|accelerated|booster)[ -])?(?:nodes?|supercomputer)"
    return rf"(?:{owner})(?:'s)? {name}|(?<!-){name}(?:'s)? {kinds}|(?:\A|(?<=; )){name}(?=\s*(?:\Z|;))"


_A100_40, _A100_80, _GH200 = "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA GH200 120GB"
_MI250X, _MI300A = "AMD Instinct MI250X", "AMD Instinct MI300A"
_SLINGSHOT_11 = "4 x 200 Gb/s"
# A pattern of the name, the GPU (empty where nodes of two kinds have the name), the cards of a node.
SUPERCOMPUTERS = (
    # NERSC, "Perlmutter architecture": 1,536 nodes of A100 with 40 GB, 256 with 80 GB, four Slingshot 11 cards each.
    (r"Perlmutter\b.{0,30}\b80 ?GB?", _A100_80, _SLINGSHOT_11),
    (r"Perlmutter\b.{0,30}\b40 ?GB?", _A100_40, _SLINGSHOT_11),
    (r"Perlmutter(?!.{0,30}\b[48]0 ?GB?)(?!.{0,12}\bCPU)", "NVIDIA A100-SXM4", _SLINGSHOT_11),
    # ALCF, "Polaris machine overview": four A100 of 40 GB, two Slingshot 11 cards.
    (_of_a_common_word("Polaris", "ALCF|ANL|Argonne"), _A100_40, "2 x 200 Gb/s"),
    # OLCF, "Frontier user guide"; LUMI, "LUMI-G hardware": four MI250X, a card of 200 Gb/s at each.
    (_of_a_common_word("Frontier", "OLCF|ORNL"), _MI250X, _SLINGSHOT_11),
    (r"LUMI[ -]?G|LUMI GPU nodes?", _MI250X, _SLINGSHOT_11),
    # Pawsey, "Setonix GPU partition"; PDC, "Dardel hardware".
    (r"Setonix[ -]GPU(?: nodes?)?|Dardel[ -]GPU(?: nodes?)?", _MI250X, _SLINGSHOT_11),
    # LLNL, "Using El Capitan systems": four MI300A and four Slingshot 11 cards.
    (r"El Capitan|Tuolumne", _MI300A, _SLINGSHOT_11),
    # CINECA, "LEONARDO user guide": four custom A100 of 64 GB, two cards of two HDR100 ports.
    (_of_a_common_word("Leonardo", "CINECA") + r"|Leonardo[ -]Booster", "NVIDIA A100-SXM-64GB", "4 x 100 Gb/s"),
    # JSC, "JUWELS Booster overview" and "JUPITER technical overview".
    (r"JUWELS[ -]Booster", _A100_40, "4 x 200 Gb/s"),
    (_of_a_common_word("JUPITER", "JSC") + r"|JUPITER[ -]Booster", _GH200, "4 x 200 Gb/s"),
    # OLCF, "Summit user guide": six V100 of 16 GB, a card of two EDR ports; LLNL, "Using Sierra": four.
    (_of_a_common_word("Summit", "OLCF|ORNL"), "Tesla V100-SXM2-16GB", "2 x 100 Gb/s"),
    (_of_a_common_word("Sierra|Lassen", "LLNL"), "Tesla V100-SXM2-16GB", "2 x 100 Gb/s"),
    # ALCF, "Aurora machine overview": six Max 1550, eight Slingshot 11 cards.
    (_of_a_common_word("Aurora", "ALCF|ANL|Argonne"), "Intel Data Center GPU Max 1550", "8 x 200 Gb/s"),
    # CSCS, "Alps hardware" (nodes with GH200); Bristol, "Isambard-AI specs".
    (r"Alps\b.{0,20}\bGH200|GH200\b.{0,20}\bAlps|Daint[.]Alps|Clariden|Santis", _GH200, _SLINGSHOT_11),
    (r"Isambard[ -]?AI", _GH200, _SLINGSHOT_11),
    # BSC, "MareNostrum 5": the accelerated partition has four H100 of 64 GB and four NDR200 cards.
    (r"MareNostrum ?5(?: ACC| GPU|.{0,12}accelerated)|MN5[ -]ACC", "NVIDIA H100 64GB HBM2", "4 x 200 Gb/s"),
    # NCAR, "Derecho": its GPU nodes have four A100 of 40 GB and four Slingshot 11 cards.
    (r"Derecho(?:'s)? GPU nodes?", _A100_40, _SLINGSHOT_11),
    # NVIDIA, "DGX SuperPOD": Selene is of DGX A100, eight HDR cards for the GPUs of each.
    (_of_a_common_word("Selene", "NVIDIA"), "NVIDIA A100-SXM4", "8 x 200 Gb/s"),
)  # fmt: skip
