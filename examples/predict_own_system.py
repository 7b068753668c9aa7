"""Sixteen GPUs on four switches below three root ports: what do 56 flows get when they all run at once?

Every GPU of a switch writes to every GPU of the next switch (48 flows) while the host feeds eight (8 flows).
Expect: the links and engines that hold them down, and nothing that carries more than it can.
Runs in about a second.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import lanewise

system = lanewise.load_system(Path(__file__).with_name("own_system.yaml"))

groups = [[f"gpu{4 * switch + i}" for i in range(4)] for switch in range(4)]
peers = [f"{a}->{b}" for one, other in pairwise(groups) for a in one for b in other]
feeds = [f"host0->{gpu}" for group in groups for gpu in group[:2]]
flows = [*peers, *feeds]

found = lanewise.predict(system, ", ".join(flows))

print(f"{len(flows)} flows, {found.total / 1e9:.1f} GB/s together")
for limit, count in Counter(flow.limit for flow in found.rates).most_common():
    rates = sorted(flow.rate / 1e9 for flow in found.rates if flow.limit == limit)
    print(f"  {count:2d} flows are held by {limit}: {rates[0]:.2f} to {rates[-1]:.2f} GB/s each")

assert len(found.rates) == 56
assert all(use <= 1 + 1e-9 for use in found.utilization.values()), "something carries more than it can"
