"""How far from what is expected a measured row is fine, by what the expectation is based on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a fine value may be outside the expected interval, `relative` to its ends (0..1), and why that much."""

    basis: str
    relative: float
    why: str


TOLERANCES = {
    tolerance.basis: tolerance
    for tolerance in (
        Tolerance("physics", 0.12, "arithmetic of the links; beyond the predicted interval"),
        Tolerance("calibrated", 0.12, "measured on the same part elsewhere; beyond the predicted interval"),
        Tolerance("carried over", 0.12, "measured on a related part, or at another generation or width"),
        Tolerance("typical", 0.12, "the median of other parts of the generation"),
        Tolerance("planning", 0.15, "constants meant for ranking paths, not measured ones"),
        Tolerance("fitted", 0.20, "fitted to one published table of one machine"),
        Tolerance("staged", 0.08, "copies through host memory, whose interval has the ranges of both stages"),
        Tolerance("SM copy", 0.40, "the figure is a copy engine's; a kernel's are 5 to 36 % slower (H200, A100, H100)"),
        Tolerance("both ways", 0.30, "both directions of a path together, beyond the predicted interval"),
        Tolerance("several flows", 0.40, "several paths at once share what is least known of a host"),
        Tolerance("CPU copy", 0.45, "a CPU's stores cross in packets of 64 B, a copy engine's in 128 to 256 B"),
        Tolerance("latency", 0.60, "depends on driver and CPU as well; published ones reach 151 % of the prediction"),
        Tolerance("collective", 0.12, "a collective library's choice and ramp, beyond the predicted interval"),
        Tolerance("blocks", 0.12, "what software costs a block on another CPU, beyond the predicted interval"),
        Tolerance("load", 0.12, "what a loader's reads cost on another CPU, beyond the predicted interval"),
        Tolerance("earlier run", 0.05, "the same machine: medians of one path repeat within 1 to 2 % (H200)"),
        Tolerance("parts", 0.20, "what parts of that name reach at best; the host is not described"),
        Tolerance("line", 0.30, "payload over a network or NFS is 70 to 97 % of the line's rate"),
        Tolerance("siblings", 0.25, "other devices of the same run; 55 % for copies through host memory"),
        Tolerance("same path", 0.25, "another row of the same path; pageable memory 80 %"),
        Tolerance("staged copy", 0.25, "peer copies through a root complex may be a little below those through memory"),
        Tolerance(
            "as posted", 0.25, "what the text itself expects of the figure, or has of it under another condition"
        ),
        Tolerance("class", 0.02, "in addition to the standard deviation among the machines"),
    )
}
