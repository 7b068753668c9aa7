"""What DeepEP's tests count as their rate over RDMA."""

from __future__ import annotations

from lanewise import late_re as re
from lanewise.results.observation import Observation

_DEEP_EP = re.compile(r"\bdeep_?ep\b|\btest_internode\b", re.IGNORECASE)
# Its kernels between hosts are of eight ranks a host (NUM_MAX_NVL_PEERS in csrc/kernels/configs.cuh), and each prints
# the bytes of its own tokens over the time: 43 to 58 GB/s with a card of 400 Gb/s each (its README, H800).
RANKS_OF_EXPERTS = 8


def is_of_experts(row: Observation) -> bool:
    """Whether a row is the rate over RDMA of one rank that DeepEP's test between hosts prints."""
    return row.path == "network" and _DEEP_EP.search(row.scenario) is not None


def kept_by_experts(row: Observation) -> float:
    """How many times its line such a rate may be: what a rank sends to its own host counts as well; 1 for other rows.

    Of h hosts tokens go to each alike (`num_rdma_token_sent` in tests/test_internode.py counts all of them).
    """
    hosts = max(2, row.settings.get("hosts", 2))
    return hosts / (hosts - 1) if is_of_experts(row) else 1.0
