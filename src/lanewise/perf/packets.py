"""PCIe packets: raw rates, what a payload costs on the wire, and the share of a link that packets get.

Sources: PCI Express Base Specification 6.0 (transaction layer: header sizes; data link layer: sequence number and
LCRC; physical layer: framing, encoding); Neugebauer et al., "Understanding PCIe performance for end host
networking", SIGCOMM 2018 (the same sums checked by measurement).
"""

from __future__ import annotations

from lanewise.errors import InputError

TRANSFERS_PER_S = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9, 7: 128e9}
ENCODING = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256, 7: 242 / 256}
LANES = (1, 2, 4, 8, 12, 16, 32)

# Framing 4 B (STP token with the sequence number; Gen1-2: 1+2+1), LCRC 4 B, header 12 B (three words) or 16 B (four).
REQUEST_64BIT = 24.0
REQUEST_32BIT = 20.0
COMPLETION = 20.0

# SKP ordered sets and data-link packets take about 1.7 % where payloads are 256 B (pcie-bench's sums, x16).
PACKET_SHARE = 0.983

DEFAULT_PAYLOAD = 256.0
COMPLETION_BOUNDARY = 64.0  # B; the least that a root complex has (PCI Express Base Specification, 2.3.1.1)
DEFAULT_READ_REQUEST = 512.0


def raw_rate(gen: int, lanes: int) -> float:
    """Raw rate of one direction of a link in B/s after encoding; InputError for a generation that does not exist."""
    if gen not in TRANSFERS_PER_S:
        raise InputError(f"PCIe generation {gen} does not exist", hint="generations 1 to 7 are known")
    return TRANSFERS_PER_S[gen] * lanes * ENCODING[gen] / 8


def wire_bytes(payload: float, overhead: float) -> float:
    """Bytes on the wire for each byte of payload when packets carry `payload` B and cost `overhead` B each."""
    return (payload + overhead) / payload
