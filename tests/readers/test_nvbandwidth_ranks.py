"""The GPUs that several processes of nvbandwidth list."""

from __future__ import annotations

from lanewise.readers.tools.gpus.nvbandwidth import _names

RANKS = ["Process 0 (host-a): device 0: NVIDIA H100 80GB HBM3 (00000000:19:00)",
         "Process 1 (host-b): device 0: NVIDIA H200 (00000000:19:00)"]  # fmt: skip


def test_ranks_have_their_own_names_in_the_output_of_two_runs_too():
    assert _names(RANKS) == {"gpu0": "NVIDIA H100 80GB HBM3", "gpu1": "NVIDIA H200"}
    assert _names(RANKS * 2) == _names(RANKS)
