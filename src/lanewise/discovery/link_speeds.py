"""What a PCIe link can do, and what is said of it where a dump does not show that."""

from __future__ import annotations

from lanewise.catalog import Part
from lanewise.discovery.cards import ids
from lanewise.discovery.draft import DraftDevice
from lanewise.discovery.facts import MACHINE, MachineFacts
from lanewise.discovery.pci_ids import is_tunnel, is_virtual_port
from lanewise.topology.model import Kind

LinkSpeed = tuple[int | None, int | None, int | None, str, bool]
# GB/s of one lane, by generation, as hwloc computes them.
_LANE = {1: 0.25, 2: 0.5, 3: 0.9846, 4: 1.9692, 5: 3.9385, 6: 7.563}


def link_speed(
    merged: MachineFacts, node: DraftDevice, bdf: str, port: str, part: Part | None, above: Part | None
) -> LinkSpeed:
    """Generation, lanes, payload in use, a note where {} stands for the device, and whether it tells a fault.

    None is unknown. `part` is that of the device, `above` that of the other end. A link is at fault with fewer lanes
    than both ends have, or with a lower generation under load; of one end alone its lanes in use are taken. A device
    that the dump shows nothing of, as one off the bus, can no more than its part.
    """
    ends = [end for end in (port, bdf) if end]
    most = [_most(merged, ends, key, bdf, part) for key in ("gen", "lanes")]
    now = [_least(merged, ends, f"{key}_now") for key in ("gen", "lanes")]
    payload = _least(merged, ends, "payload")
    if 1 in (most[0], now[0]) and any(is_tunnel(*ids(end, merged)) for end in ends):
        text = (
            "the link to {} is a Thunderbolt or USB4 tunnel, whose speed is not what its ports state; unknown"
            " (at 40 Gb/s write gen3 x4, max_payload: 128 B)"
        )
        return None, None, payload, text, False
    under_load = merged.value(MACHINE, "under_load") is True
    slower, narrower = (
        best is not None and current is not None and current < best for best, current in zip(most, now, strict=True)
    )
    both = len(ends) == 2 and all(merged.number(end, "lanes") is not None for end in ends)
    fault = both and (narrower or (slower and under_load))
    note = _now_note(most, now, under_load, fault, narrower) if slower or narrower else ""
    if narrower and not both:
        most[1] = now[1]
    wanting = [key for key, value in zip(("generation", "width"), most, strict=True) if value is None]
    if wanting and None not in now:
        most = [best if best is not None else current for best, current in zip(most, now, strict=True)]
        note = f"{' and '.join(wanting)} of the link to {{}} as it was; what it can do is not in the dumps"
    elif wanting and (speed := merged.value(bdf, "speed_now")):
        fitting = _fitting(float(str(speed)), node.kind, part)
        most = list(fitting or most)
        rate = f"{float(str(speed)):.2f} GB/s"
        end = f"; {_speed_text(most)} is assumed" if fitting else ", which is no whole link's; its speed is unknown"
        note = f"the link to {{}} had {rate} when the dump was made{end}"
    elif wanting and part is not None and node.kind is not Kind.SWITCH:
        gens = [gen for end in (part, above) if end and (gen := _figure(end, "pcie.gen"))]
        best = [min(gens, default=None), _figure(part, "pcie.lanes")]
        most = [value if value is not None else figure for value, figure in zip(most, best, strict=True)]
        note = f"no {' and '.join(wanting)} in the dumps for the link to {{}}; what {part.name} can is assumed"
    elif wanting:
        note = f"{' and '.join(wanting)} of the link to {{}} unknown"
    return most[0], most[1], payload, note, fault


def port_of_link(port: str, merged: MachineFacts) -> str:
    """The port at the upper end of a link, empty where a hypervisor makes it up: its figures are not the link's."""
    return "" if is_virtual_port(*ids(port, merged)) else port


def _least(merged: MachineFacts, ends: list[str], key: str) -> int | None:
    return min((value for end in ends if (value := merged.number(end, key)) is not None), default=None)


def _most(merged: MachineFacts, ends: list[str], key: str, bdf: str, part: Part | None) -> int | None:
    """The highest value that all ends support; the part's in place of a device's that is not in the dump."""
    least = _least(merged, ends, key)
    figure = _figure(part, f"pcie.{key}") if part and least is not None and merged.number(bdf, key) is None else None
    return min(least, figure) if least is not None and figure is not None else least


def _now_note(most: list[int | None], now: list[int | None], under_load: bool, fault: bool, narrower: bool) -> str:
    """What is said of a link that ran below its best: an idle one may drop its rate, but keeps its lanes."""
    open_end = "; the other end is not in the dumps" if narrower or under_load else "; idle links train down"
    excuse = "" if fault else open_end
    when = "under load" if under_load else "when the dump was made"
    return f"the link to {{}} ran at {_speed_text(now)} {when}, at most {_speed_text(most)}{excuse}"


def _speed_text(speed: list[int | None]) -> str:
    gen, lanes = speed
    return f"Gen{gen or '?'} x{lanes or '?'}"


def _fitting(speed: float, kind: Kind, part: Part | None) -> tuple[int, int] | None:
    """A generation and width of that bandwidth: with the part's own width if it fits, else the oldest generation."""
    every = ((gen, lanes, rate * lanes) for gen, rate in _LANE.items() for lanes in (1, 2, 4, 8, 16))
    able = [(gen, lanes) for gen, lanes, rate in every if abs(rate / speed - 1) < 0.005]
    own = _figure(part, "pcie.lanes") if part else None
    usual = own or (4 if kind is Kind.SSD else None)
    return min(able, key=lambda option: (option[1] != usual, option[0]), default=None)


def _figure(part: Part, key: str) -> int | None:
    value = part.number(key)
    return None if value is None else int(value)
