"""Questions that somebody else typed in again from their words, by the guide alone, are judged as they should be.

`typed_again/known-*.json`: the known questions of 2026-11, `kept-*.json`: kept ones; people who had not seen the
program (benchmarks/runs/2026-11-28-check-typed-again.md and -2.md). `blind-21.json`, `blind-22.json`: the second
typists of those blind batches. What is still wrong is listed with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checking.thread_list import verdict_of

from lanewise import api
from lanewise.errors import LanewiseError

FOLDER = Path(__file__).parent / "typed_again"
# What is judged wrongly as yet, whoever typed it, and why.
WRONG = {
    "nanonccl1-tcp": "no line is stated for the slow row, and the other is fine",
    "i9triad-onechannel": "`channels: 1` is a word of the typist's own, which explains the lower row",
    "vllmascend6966-unbound": "'with one flag' is no known condition",
    "sophgo34-sdcard": "no figure of such a card's bus",
    "exo2295-ring": "two programs whose names share no word",
    "plxr9700-3-chainb": "half of what the other pair gets: another switch may lie between, and the ring has no size",
    "alcf2-staged": "one latency, of which the rest of the question is missing",
    "rome4090-stock": "rings through host memory of that host are not known, so that 4.1 GB/s may be all",
    "fourh100-1-39": "the GPU's name leaves open whether it has NVLinks",
    "tinyperf-a6000": "the time of a short call from Python is not known",
    "l20d1-remote": "'NUMA node: remote' is no node, and nothing says what all eight should get",
    "c612-3090-ordered": "neither slot nor CPU is stated",
    "xestrata2-malloc": "pageable memory is fine by what one core copies",
    "ROCm-legacy-rocm-build-2499-9": "memory of the other socket has 0.56 of the near one, which is slow elsewhere",
    "Spiderpool-documentation-13": "no line is stated",
    "deepseek-ai-DeepEP-16-21": "the GPU is not named: 160 of 900 GB/s is slow unless its NVLinks were cut",
    "NVIDIA-gdrcopy-221-31": "neither GPU nor lanes are stated",
    "NVIDIA-nccl-1130-35": "what joins the GPUs is not stated",
    "dgxa1001-pageable": "pageable memory is fine by what one core copies",
    "optane8-sizes": "nothing says what requests of such sizes should reach",
    "llama28863-two-cards": "65 % of what one card has is neither slow nor fine, and two are compared with nothing",
    "tf42566-tpu-v3": "'more than 900 GB/s' was typed as 900",
    "mpich7494-pvc": "45 of the 53 GB/s wanted is fine by what the GPU's link gives",
    "rocm-rx480-ivybridge": "what copies back a host of that age gives such cards is not known",
    "mi300a-blit-half": "one other GPU's set of copies was typed, and three must agree",
    "kvnuma1-cross": "no line is stated",
    "pinned5090-replay": "pageable memory is fine by what one core copies",
    "p2p3090e2-stock": "held out: not looked at",
    "mlxnicd1-sink": "held out: not looked at",
    "lumiosu1-eessi": "held out: not looked at",
    "rccl1129a-two": "held out: not looked at",
    "ikp2p1-both": "P2P off is judged as such: that a patched driver would allow it on these cards is not known",
    "mlcgold-interleaved": "51 % of all channels is neither slow nor fine, and a family names no CPU",
    "mmapsum-german": "the drive is not named: one of SATA would give that",
    "h20kv-nixl": "held out: not looked at",
    "efarail1-cross": "held out: not looked at",
    "slingshot-write98": "held out: not looked at",
}


def questions() -> list[tuple[str, dict[str, Any]]]:
    """Each question with the file that it is in."""
    texts = sorted(FOLDER.glob("*.json"))
    return [(path.stem, question) for path in texts for question in json.loads(path.read_text(encoding="utf-8"))]


def verdict(rows: str, folder: Path) -> str:
    """What `check` says of rows, as a whole; 'refused' if it cannot read them."""
    path = folder / "typed.txt"
    path.write_text(rows, encoding="utf-8")
    try:
        return verdict_of(api.check([path], None))
    except LanewiseError:
        return "refused"


@pytest.mark.parametrize(("typist", "question"), questions(), ids=lambda each: each if isinstance(each, str) else "")
def test_other_typists_get_the_verdict_that_is_right(
    typist: str, question: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if (reason := WRONG.get(question["question"])) is not None:
        request.applymarker(pytest.mark.xfail(reason=f"{typist}: {reason}", strict=True))
    assert verdict(question["rows"], tmp_path) in question["verdicts"]
