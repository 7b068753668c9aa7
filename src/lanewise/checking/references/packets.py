"""What a line carries of small messages: of packets that were counted by their size, of others all of its rate."""

from __future__ import annotations

from collections.abc import Iterator

from lanewise.checking.references.lines import FINE_SHARE, line_of_network
from lanewise.checking.references.parts import Reference
from lanewise.results.observation import Observation
from lanewise.results.posted import PostedFacts

# Around each frame Ethernet has 8 B of preamble and 12 B of gap; a frame has 64 B at least, with 14 B of header and 4
# of checksum (IEEE 802.3, 3.1 and 4.4.2): 14.88 million of them a second at 10 Gb/s. InfiniBand's headers take more.
_AROUND, _LEAST_FRAME = 20, 64
# People round to three digits: 14.9 Mpps.
_ROUNDED = 1.01


def counts_packets(row: Observation) -> bool:
    """Whether a row's value was typed in as packets a second."""
    return row.path == "network" and row.how.get("counted") == "packets"


def of_packets(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """The packets of a size a second that the line carries; where nobody states a size, of the smallest."""
    line, text = line_of_network(row, posted)
    if not line or not counts_packets(row):
        return
    size = row.settings.get("bytes", 0)
    most = line / (max(size, _LEAST_FRAME) + _AROUND)
    limit = f"{most / 1e6:.4g} million packets of {size or _LEAST_FRAME} B a second on the line of {text}"
    fine = FINE_SHARE * most if size else most
    scale = size or 1
    yield Reference("line", most * scale, fine * scale, 0.0, _ROUNDED * most * scale, limit, "IEEE 802.3", bool(size))


def of_small_messages_on_a_line(row: Observation, posted: PostedFacts) -> Iterator[Reference]:
    """The line of messages so small that less of it is no fault: they may fill it, and nothing exceeds it."""
    line, text = line_of_network(row, posted)
    alone = row.path == "network" and row.metric == "goodput" and row.how.get("flows", row.flow).count("->") == 1
    if line and alone and not counts_packets(row):
        yield Reference("line", line, FINE_SHARE * line, 0.0, line, f"the line of {text}", "as stated")
