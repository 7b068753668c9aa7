"""Pools for races and kills: servers that all reach every GPU of a few boxes."""

from __future__ import annotations

from functools import cache

from lanewise.topology.model import System
from lanewise.topology.read import read_system

BOX = 8


@cache
def rack(servers: int, gpus: int) -> System:
    """So many servers with one CPU each at one switch, and GPUs, all free, in boxes of eight below it."""
    boxes = -(-gpus // BOX)
    links = [
        f'  - {{from: box{box}, to: "gpu[{box * BOX}-{min(gpus, (box + 1) * BOX) - 1}]", pcie: gen4 x16}}'
        for box in range(boxes)
    ]
    text = f"""
lanewise: 1
system: rack-{servers}-{gpus}
hosts: [{", ".join(f"host{number}" for number in range(servers))}]
devices:
{chr(10).join(f"  cpu{number}: {{cpu: xeon-gold-6454s, host: host{number}}}" for number in range(servers))}
{chr(10).join(f"  hba{number}: {{adapter: cdi-gen4-host-adapter, host: host{number}}}" for number in range(servers))}
  fabric: {{switch: cdi-gen4-fabric-switch}}
  "box[0-{boxes - 1}]": {{switch: cdi-gen4-fabric-switch}}
  "gpu[0-{gpus - 1}]": {{gpu: l40s, host: null}}
links:
{chr(10).join(f"  - {{from: cpu{number}, to: hba{number}, pcie: gen4 x16}}" for number in range(servers))}
  - {{from: "hba[0-{servers - 1}]", to: fabric, fabric: gen4 x16}}
  - {{from: fabric, to: "box[0-{boxes - 1}]", fabric: gen4 x16}}
{chr(10).join(links)}
"""
    return read_system(text, "rack.yaml")
