"""What a service keeps of its Offline rate in the Server scenario, as published systems did.

In Offline all samples are there: batches are as large and as alike as the GPU likes, and no host waits for queries.
What Server costs beyond its queue follows from no figure of a part, so it is taken from pairs of published scores.
"""

from __future__ import annotations

from typing import NamedTuple


class ServerShare(NamedTuple):
    """Server over Offline of published `pairs` of scores: the `median`, and the share that 5 % of them are below."""

    low: float
    median: float
    pairs: int


# VALID scores of the same system in MLPerf Inference v1.1, v2.0 and v2.1, closed division, all submitters
# (github.com/mlcommons/inference_results_v1.1 to v2.1); RetinaNet with its predecessor SSD-ResNet34. The pairs, and the
# score on those of v3.0: benchmarks/runs/2026-11-23-server-over-offline.json.
SHARES = {
    "resnet50": ServerShare(0.473, 0.821, 186),
    "bert-99": ServerShare(0.610, 0.865, 163),
    "bert-99.9": ServerShare(0.593, 0.825, 154),
    "retinanet": ServerShare(0.596, 0.915, 153),
}
ANY = ServerShare(0.586, 0.850, 656)  # of all four together, for workloads that nobody publishes


def server_share(workload: str) -> ServerShare:
    """That of a workload of the name, of all together for others."""
    return SHARES.get(workload, ANY)
