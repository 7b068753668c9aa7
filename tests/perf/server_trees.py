"""Servers made at random for the performance model: sockets, trees of switches, GPUs everywhere, known parts."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from lanewise.perf.flow import Flow
from lanewise.topology.model import Kind, System
from lanewise.topology.read import read_system

GPUS = ("k40", "a100-pcie-40gb", "l40s", "h100-nvl", "t4", "v100-pcie")
CPUS = ("ivy-bridge-ep", "skylake-sp", "rome", "sapphire-rapids")


def described(sockets: int, switches: int, gpus: int, seed: int) -> str:
    """The text of a random server; the same arguments give the same text."""
    rng = Random(seed)
    cpu = rng.choice(CPUS)
    lines = ["lanewise: 1", f"system: server-{seed}", "devices:"]
    lines += [f"  cpu{n}: {{cpu: {cpu}, numa: {n}}}" for n in range(sockets)]
    links = [f"{{from: cpu{n}, to: cpu{n + 1}, socket: 1}}" for n in range(sockets - 1)]
    above = [f"cpu{n}" for n in range(sockets)]
    for n in range(switches):
        lines.append(f"  sw{n}: {{switch: pex88096}}")
        links.append(f"{{from: {rng.choice(above)}, to: sw{n}, pcie: gen3 x{rng.choice([8, 16])}}}")
        above.append(f"sw{n}")
    for n in range(gpus):
        lines.append(f"  gpu{n}: {{gpu: {rng.choice(GPUS)}}}")
        links.append(f"{{from: {rng.choice(above)}, to: gpu{n}, pcie: gen3 x{rng.choice([4, 8, 16])}}}")
    lines += ["links:", *(f"  - {link}" for link in links)]
    lines += ["policies:", f"  peers: {rng.choice(['none', 'root-complex', 'socket', 'system'])}"]
    return "\n".join(lines) + "\n"


def flows_in(system: System, count: int, seed: int) -> list[Flow]:
    """Random flows between GPUs and host memory."""
    rng = Random(seed)
    ends = [*system.of_kind(Kind.GPU), "host0"]
    pairs = [tuple(rng.sample(ends, 2)) for _ in range(count)]
    return [Flow(a, b, weight=rng.choice([1.0, 1.0, 2.0]), p2p=rng.random() < 0.8) for a, b in pairs]


def made(sockets: int, switches: int, gpus: int, seed: int) -> System:
    """The random server itself; wide trees may ask for more lanes than a small CPU has, then it is made smaller."""
    from lanewise.errors import Contradiction

    for smaller in range(6):
        try:
            return read_system(
                described(sockets, max(0, switches - smaller), max(2, gpus - smaller), seed), "made.yaml"
            )
        except Contradiction:
            continue
    return read_system(described(2, 0, 2, 1), "made.yaml")


SERVERS = st.builds(made, st.integers(1, 2), st.integers(0, 4), st.integers(2, 7), st.integers(0, 10**6))
