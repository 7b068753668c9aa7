"""References that need no part's name: what every drive or card of a kind exceeds, both ways of a card, and several
drives or flows at once beside one alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lanewise.checking.named.abilities import raw_rate
from lanewise.checking.references.cards import of_card
from lanewise.checking.references.parts import Reference, of_another_row
from lanewise.checking.references.paths import flows_of_drives, is_alone, of_each_alone
from lanewise.checking.references.rails import of_fewer_rails
from lanewise.results.observation import Observation

# The least bus of a drive in use: ATA's PIO mode 4 has 16.7 MB/s, an SD card's default mode 12.5 MB/s (ATA-2, SD
# physical layer). A third leaves room for the media of old cards and sticks.
_LEAST_BUS, _OF_BUS = 12.5e6, 0.4
# The least link of an NVMe drive or PCIe card is a lane of Gen1; FPGAs that got 0.35 of their wires were slow
# (Xilinx/dma_ip_drivers#293, `card_references`).
_LEAST_LINK, _OF_LINK = (1, 1), 0.4
# PCIe is symmetric. Cards are written at 0.59 and read at 0.76 of their wires at their worst (`card_references`); an
# engine that waits for reads has half again.
_OF_OTHER_WAY = 0.3
# Several at once share what one alone had: together they are not below it but for what sharing costs.
_OF_ONE = 0.75
_LEAST_LONG = 128 * 2**10
_SEQUENTIAL = ("hdparm",)
# A device itself, not a file system or volume over a network.
_DEVICE = re.compile(r"^(?:nvme|sd[a-z]|hd[a-z]|mmcblk|ssd|hdd|emmc)\w*$", re.IGNORECASE)


def of_other_rows(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """What rows of several and of one flow say of each other, and what every device of the row's kind exceeds."""
    yield from of_each_alone(row, rows)
    yield from of_its_kind(row)
    yield from of_other_way(row, rows)
    yield from of_drives_sharing(row, rows)
    yield from of_drives_at_once(row, rows)
    yield from of_fewer_rails(row, rows)


def of_its_kind(row: Observation) -> Iterator[Reference]:
    """What no drive, NVMe drive or PCIe card in use stays below with long transfers, whatever its model."""
    if row.metric != "goodput" or row.how.get("flows", row.flow).count("->") != 1:
        return
    link = raw_rate(*_LEAST_LINK)
    if of_card(row) and row.settings.get("bytes", _LEAST_LONG) >= _LEAST_LONG:
        yield _least(_OF_LINK * link, link, "one lane of Gen1, the least link of a card")
    drive = next((end for end in _ends(row) if _DEVICE.match(end)), "")
    if row.path != "storage" or not drive or not row.flow.startswith(drive):
        return
    if row.how.get("tool") in _SEQUENTIAL or _is_long(row):
        nvme = drive.lower().startswith("nvme")
        if nvme:
            yield _least(_OF_LINK * link, link, "one lane of Gen1, the least link of an NVMe drive")
        yield _least(_OF_BUS * _LEAST_BUS, _LEAST_BUS, "the least bus of a drive")


def _is_long(row: Observation) -> bool:
    """Whether a read is of long pieces in order, as far as the row says."""
    pattern = f"{row.how.get('pattern', '')} {row.scenario}"
    return row.settings.get("bytes", 0) >= _LEAST_LONG and re.search(r"rand|rnd", pattern, re.IGNORECASE) is None


def _least(slow: float, nominal: float, limit: str) -> Reference:
    return Reference("parts", nominal, slow, slow, None, limit, "its specification", own=False)


def of_other_way(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """One direction of a PCIe card that is no GPU beside the other: the link carries as much both ways."""
    if not of_card(row) or row.metric != "goodput":
        return
    back = "->".join(reversed([end.strip() for end in row.flow.split("->")]))
    like = [
        each.value for each in rows
        if each.flow.replace(" ", "") == back and each.metric == row.metric and each.value
        and each.settings == row.settings and each.how.get("mode") == row.how.get("mode")
    ]  # fmt: skip
    if like:
        yield of_another_row(max(like), _OF_OTHER_WAY, "the other direction")


def of_drives_sharing(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """Long requests of each of several drives at once: all together they get what one alone got, or more."""
    flows = flows_of_drives(row)
    if row.metric != "goodput" or not flows:
        return
    alone = [
        each.value for each in rows
        if each.path == row.path and each.metric == row.metric and is_alone(each, flows)
        and each.value and each.settings == row.settings and each.how.get("mode") == row.how.get("mode")
    ]  # fmt: skip
    if alone:
        yield of_another_row(max(alone) / len(flows), _OF_ONE, f"one alone, shared by {len(flows)}")


def of_drives_at_once(row: Observation, rows: Sequence[Observation]) -> Iterator[Reference]:
    """A file read by dd beside raw drives that it read at once: a file system over drives is no slower than one."""
    end = row.flow.split("->")[0]
    if row.how.get("tool") != "dd" or row.flow.startswith("host") or _DEVICE.match(end):
        return
    like = [
        each.value for each in rows
        if each.how.get("tool") == "dd" and each.scenario.endswith("at once")
        and _DEVICE.match(each.flow.split("->")[0])
        and each.value and each.settings == row.settings and each.how.get("mode") == row.how.get("mode")
    ]  # fmt: skip
    if like:
        yield of_another_row(min(like), _OF_ONE, "one of the drives that were read at once")


def _ends(row: Observation) -> list[str]:
    return [end.strip() for end in row.flow.split("->")]
