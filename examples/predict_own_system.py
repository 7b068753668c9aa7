"""Sixteen GPUs on four switches below three root ports: what do 56 flows get when they all run at once?

Expect: every flow with its rate, and the links that are full. Each GPU of a switch writes to every GPU of the next
switch at once (48 flows), while host memory feeds eight GPUs (8 flows); the uplinks of the switches are the limit.
Runs in about a second.
"""

from collections import Counter
from pathlib import Path

import lanewise

system = lanewise.load_system(Path(__file__).with_name("own_system.yaml"))

groups = [[f"gpu{4 * switch + i}" for i in range(4)] for switch in range(4)]
peers = [f"{a}->{b}" for one, other in zip(groups[:-1], groups[1:], strict=True) for a in one for b in other]
feeds = [f"host0:{i // 4}->{gpu}" for i, gpu in enumerate(["gpu0", "gpu1", "gpu4", "gpu5", "gpu8", "gpu9", "gpu12", "gpu13"])]
flows = [*peers, *feeds]

found = lanewise.predict(system, ", ".join(flows))

print(f"{len(flows)} flows, {found.total / 1e9:.1f} GB/s together")
for limit, count in Counter(flow.limit for flow in found.flows).most_common():
    rates = sorted(flow.rate / 1e9 for flow in found.flows if flow.limit == limit)
    print(f"  {count:2d} flows are held by {limit}: {rates[0]:.2f} to {rates[-1]:.2f} GB/s each")

assert len(found.flows) == 56
assert all(use <= 1 + 1e-9 for use in found.use.values()), "no link carries more than it can"
