"""Systems made at random: trees of switches below the CPUs of several hosts, joined by fabric links."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from lanewise.topology.model import System
from lanewise.topology.read import read_system


def described(hosts: int, switches: int, seed: int) -> str:
    """The text of a random system; the same arguments give the same text."""
    rng = Random(seed)
    cpus = [f"cpu{n}" for n in range(hosts * rng.randint(1, 2))]
    lines = [
        "lanewise: 1",
        f"system: made-{seed}",
        f"hosts: [{', '.join(f'h{n}' for n in range(hosts))}]",
        "devices:",
    ]
    numa = rng.random() < 0.3
    for number, cpu in enumerate(cpus):
        extra = f", numa: {rng.randint(0, 9)}" if numa else rng.choice(["", ", numa_nodes: 2"])
        part = rng.choice(["null", "genoa"])
        lines.append(f"  {cpu}: {{cpu: {part}, host: h{number % hosts}{extra}}}")
    links = []
    above = list(cpus)
    for number in range(switches):
        name = f"sw{number}"
        lines.append(f"  {name}: {{switch: {rng.choice(['null', 'pax-gen4'])}}}")
        if rng.random() < 0.75:
            links.append(_cable(rng, up := rng.choice(above), name))
            links += [_cable(rng, rng.choice(cpus), name)] if up in cpus and rng.random() < 0.3 else []
        above.append(name)
    for _ in range(rng.randint(0, 3)) if switches > 1 else ():
        one, other = rng.sample(range(switches), 2)
        links.append(f"{{from: sw{one}, to: sw{other}, fabric: {_speed(rng)}}}")
    for number in range(rng.randint(1, 6)):
        host = rng.choice(["", "", ", host: null"])
        kind, part = rng.choice([("gpu", "null"), ("gpu", "t4"), ("ssd", "null"), ("nic", "null")])
        lines.append(f"  d{number}: {{{kind}: {part}{host}}}")
        ends = [rng.choice(above), f"d{number}"]
        rng.shuffle(ends)
        links.append(_cable(rng, *ends))
    rng.shuffle(links)
    lines += ["links:", *(f"  - {link}" for link in links)]
    if rng.random() < 0.3:
        lines += [
            "policies:",
            f"  peers: {rng.choice(['none', 'system'])}",
            f"  acs_redirect: {rng.choice(['true', 'false'])}",
        ]
    return "\n".join(lines) + "\n"


def _speed(rng: Random) -> str:
    return rng.choice(["gen3 x8", "gen3 x4", "gen? x?", "gen1 x1"])


def _cable(rng: Random, one: str, other: str) -> str:
    extra = rng.choice(["", "", ", max_payload: 256 B", ", length: 0.3 m", ", rate: 3.7 GB/s"])
    if "cpu" in one + other and rng.random() < 0.3:
        extra += rng.choice([f", port: p{rng.randint(0, 10**9)}", ", bridge: b0"])
    return f"{{from: {one}, to: {other}, pcie: {_speed(rng)}{extra}}}"


def made(hosts: int, switches: int, seed: int) -> System:
    """The random system itself."""
    return read_system(described(hosts, switches, seed), "made.yaml")


SYSTEMS = st.builds(made, st.integers(1, 3), st.integers(0, 5), st.integers(0, 10**6))
