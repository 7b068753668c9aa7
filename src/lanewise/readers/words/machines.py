"""Servers, cloud instances and supercomputers that are known by name: their GPUs, and the network cards for these.

Sources: NVIDIA's user guides of the DGX systems; AWS's tables of accelerated instances (networkInfo), Google Cloud's
"GPU machine types", Azure's pages of the ND and NC series, Oracle's "compute shapes".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lanewise import late_re as re
from lanewise.readers.words.supercomputers import SUPERCOMPUTERS


@dataclass(frozen=True, slots=True)
class NamedMachine:
    """A machine's GPU as its driver calls it, and its network `cards`, '8 x 400 Gb/s'; empty if none are its own."""

    gpu: str
    cards: str = ""


def _eight_at(cloud: str, gpu: str) -> str:
    """A pattern of eight GPUs of a name among the words of a machine that is of a cloud: 'GCP ; 8x NVIDIA B200'."""
    return rf"(?:{cloud})\b[^;]{{0,24}};[^;]{{0,24}}\b8 ?[x×*] ?(?:NVIDIA )?{gpu}\b"


_V100, _A100, _A100_40 = "Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB"
_OF_40_GB = r"[ ,(]{1,3}(?:40|320) ?GB?"  # of each GPU, or of all eight
# A machine that is not this one: like a DGX H100, unlike our DGX A100, DGX-class.
_BEFORE_OTHERS = re.compile(
    r"\b(?:not|no|non|like|unlike|similar to|comparable (?:to|with)|than|without|instead of|vs\.?|versus|based on|"
    r"moved from|migrated from|replaced|replaces|was)[ -](?:(?:an?|the|our|any|another|old)[ -])*$", re.IGNORECASE,
)  # fmt: skip
_AFTER_OTHERS = re.compile(r"[ -](?:like|class|style|type|clones?|equivalent)\b", re.IGNORECASE)
_H100, _H200, _B200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200"
_MACHINES = tuple(
    (re.compile(rf"(?<![A-Za-z0-9])(?:{name})(?![A-Za-z0-9])", re.IGNORECASE), NamedMachine(*known))
    for name, *known in (
        (r"DGX(?:-?2H?| 2H?(?=\s*(?:[,;()]|$)))", "Tesla V100-SXM3-32GB", "8 x 100 Gb/s"), (  # not DGX 2 nodes
            r"DGX[ -]?1\b.{0,12}V100", _V100, "4 x 100 Gb/s"),
        (rf"DGX[ -]A100{_OF_40_GB}", _A100_40, "8 x 200 Gb/s"), (rf"DGX[ -]A100(?!{_OF_40_GB})", _A100, "8 x 200 Gb/s"),
        (r"DGX[ -]H100", _H100, "8 x 400 Gb/s"),
        (r"DGX[ -]H200", _H200, "8 x 400 Gb/s"), (r"DGX[ -]B200", _B200, "8 x 400 Gb/s"),
        (r"DGX[ -]B300", "NVIDIA B300", "8 x 800 Gb/s"), (r"DGX[ -]Sparks?|GB10", "NVIDIA GB10", "1 x 200 Gb/s"),
        (rf"HGX[ -]A100{_OF_40_GB}|DGX[ -]Station[ -]A100[ ,(]{{1,3}}(?:40|160) ?GB?", _A100_40),
        (rf"HGX[ -]A100(?!{_OF_40_GB})|A100[ -]HGX|DGX[ -]Station[ -]A100(?![ ,(]{{1,3}}(?:40|160) ?GB?)", _A100),
        (r"HGX[ -]A800|A800[ -]HGX", "NVIDIA A800-SXM4-80GB"),
        (r"HGX[ -]H100|H100[ -]HGX", _H100), (r"HGX[ -]H800|H800[ -]HGX", "NVIDIA H800 SXM"),
        (r"HGX[ -]H200|H200[ -]HGX", _H200), (r"HGX[ -]H20|H20[ -]HGX", "NVIDIA H20"),
        (r"HGX[ -]B200|B200[ -]HGX", _B200), (r"HGX[ -]B300|B300[ -]HGX", "NVIDIA B300"),
        (r"p3dn\.24xlarge", _V100, "1 x 100 Gb/s"), (r"p3\.(?:2|8|16)xlarge", "Tesla V100-SXM2-16GB"),
        (r"p4d\.24xlarge", "NVIDIA A100-SXM4-40GB", "4 x 100 Gb/s"), (r"p4de\.24xlarge", _A100, "4 x 100 Gb/s"),
        (r"p5\.48xlarge", _H100, "32 x 100 Gb/s"), (r"p5e\.48xlarge", _H200, "32 x 100 Gb/s"),
        (r"p5en\.48xlarge", _H200, "16 x 200 Gb/s"), (r"p6-b200\.48xlarge", _B200, "8 x 400 Gb/s"),
        (r"g4dn\.\d*(?:xlarge|metal)", "Tesla T4"), (r"g5\.\d*xlarge", "NVIDIA A10G"), (r"g6\.\d*xlarge", "NVIDIA L4"),
        (r"g6e\.\d*xlarge", "NVIDIA L40S"), (r"a2-highgpu-\d+g|a2-megagpu-16g", "NVIDIA A100-SXM4-40GB"),
        (r"a2-ultragpu-\dg", _A100), (r"g2-standard-\d+", "NVIDIA L4"),
        (r"a3-highgpu-8g", _H100, "4 x 200 Gb/s"), (r"a3-megagpu-8g", _H100, "8 x 200 Gb/s"),
        (r"a3-ultragpu-8g", _H200, "8 x 400 Gb/s"), (r"a4-highgpu-8g", _B200, "8 x 400 Gb/s"),
        (r"ND40rs_v2", _V100, "1 x 100 Gb/s"), (r"ND96asr(?:_A100)?(?:_v4)?", "NVIDIA A100-SXM4-40GB", "8 x 200 Gb/s"),
        (r"ND96amsr(?:_A100)?(?:_v4)?", _A100, "8 x 200 Gb/s"), (r"ND96isr_H100_v5", _H100, "8 x 400 Gb/s"),
        (r"ND96isr_H200_v5", _H200, "8 x 400 Gb/s"), (r"NC\d+ads_A100_v4", "NVIDIA A100 80GB PCIe"),
        (r"BM\.GPU4\.8", "NVIDIA A100-SXM4-40GB"), (r"BM\.GPU\.A100-v2\.8", _A100),
        (r"BM\.GPU\.H100\.8", _H100, "16 x 200 Gb/s"), (r"BM\.GPU\.H200\.8", _H200, "8 x 400 Gb/s"),
        *SUPERCOMPUTERS,
        # Whole instances of a cloud that has one kind of them with eight such GPUs.
        (_eight_at(r"GCP|Google(?: Cloud)?", "B200"), _B200, "8 x 400 Gb/s"),
        (_eight_at(r"GCP|Google(?: Cloud)?", "H200"), _H200, "8 x 400 Gb/s"),
        (_eight_at(r"AWS|Amazon", "B200"), _B200, "8 x 400 Gb/s"),
        (_eight_at("Azure", "H100"), _H100, "8 x 400 Gb/s"), (_eight_at("Azure", "H200"), _H200, "8 x 400 Gb/s"),
        (_eight_at("OCI|Oracle", "H200"), _H200, "8 x 400 Gb/s"),
    )
)  # fmt: skip


# Every name has one of these words: a line without any, as most lines of logs, need not be searched for each name.
_WORDS = (
    "dgx", "hgx", "gb10", "xlarge", "metal", "highgpu", "megagpu", "ultragpu", "g2-standard", "nd40", "nd96", "_a100_",
    "bm.gpu", "gcp", "google", "aws", "amazon", "azure", "oci", "oracle", "perlmutter", "polaris", "frontier", "lumi",
    "setonix", "dardel", "el capitan", "tuolumne", "leonardo", "juwels", "jupiter", "summit", "sierra", "lassen",
    "aurora", "alps", "daint", "clariden", "santis", "isambard", "marenostrum", "mn5", "derecho", "selene",
)  # fmt: skip


def machines_in(text: str) -> Iterator[NamedMachine]:
    """The known machines that a text names, but for those that it says something else is not, or is like."""
    lower = text.lower()
    if not any(word in lower for word in _WORDS):
        return
    for name, machine in _MACHINES:
        match = name.search(text)
        if match and not _BEFORE_OTHERS.search(text[: match.start()]) and not _AFTER_OTHERS.match(text, match.end()):
            yield machine


def only_machine(text: str) -> NamedMachine | None:
    """The known machine that a text names, None if it names none or several."""
    found = dict.fromkeys(machines_in(text))
    return next(iter(found)) if len(found) == 1 else None
