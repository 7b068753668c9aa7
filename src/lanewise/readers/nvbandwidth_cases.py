"""What each cell of nvbandwidth's cases is, by the flows that its source code starts (versions 0.4 to 0.8).

The arrows in its headings say otherwise for peers: `GPU(row) -> GPU(column)` of a read case moves data from the column
to the row, and `GPU(row) <- GPU(column)` of a write case from the row to the column.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.readers.form import ToolValue

ENGINES = {"ce": "copy engine", "sm": "SM"}


def engine_of(case: str) -> str:
    """`copy engine` or `SM`, by the end of the name."""
    return ENGINES.get(case.rsplit("_", 1)[-1], "copy engine")


def is_square(case: str) -> bool:
    """Whether the matrix of a case has a row for each GPU, not one alone."""
    return case.startswith("device_to_device")


def cell_of(case: str, part: str, row: int, column: int, count: int) -> ToolValue | None:
    """What a cell is; `part` is Read1, Write2, Total or nothing, `count` the number of GPUs; None for another case."""
    kind = case.removesuffix("_ce").removesuffix("_sm")
    make = _KINDS.get(kind)
    return make(case, part, row, column, count) if make is not None else None


def _host(case: str, _part: str, _row: int, gpu: int, count: int) -> ToolValue:
    """Between host and one GPU, with the other way or all other GPUs beside it; the first flow is the measured one."""
    up = case.startswith(("host_to_device", "host_to_all"))
    peers = [peer for peer in range(count) if peer != gpu] if "all" in case else []
    flows = []
    for index in (gpu, *peers):
        both = [f"host0->gpu{index}", f"gpu{index}->host0"]
        flows += (both if up else both[::-1])[: 2 if "bidirectional" in case else 1]
    split = case.endswith("_sm") and "_bidirectional" in case
    note = "half of what one kernel moved both ways" if split else ""
    return ToolValue(flows[0], ", ".join(flows), path="host to device" if up else "device to host", note=note)


def _peer(case: str, part: str, row: int, column: int, _count: int) -> ToolValue:
    """Between two GPUs: read cases pull into the row's GPU, write cases push out of it; second parts go back."""
    read = "_read_" in case
    forward, back = f"gpu{row}->gpu{column}", f"gpu{column}->gpu{row}"
    if "bidirectional" not in case:
        flow = back if read else forward
        return ToolValue(flow, _flows(read, flow), path="peer")
    if part == "Total" or (not part and case.endswith("_sm")):
        return ToolValue(
            f"{forward}, {back}", _flows(read, forward, back), "total", path="peer", note="the sum of both ways"
        )
    # Parts with a 1 go from the column to the row in both; before there were parts, the row's own copy was measured.
    flow = back if part.endswith("1") or (read and not part) else forward
    return ToolValue(flow, _flows(read, flow, forward if flow == back else back), path="peer")


def _star(case: str, _part: str, _row: int, gpu: int, count: int) -> ToolValue:
    """Between one GPU and all others at once: into it or out of it, as the others' or its own engines do it."""
    read, out = "_read_" in case, case.startswith(("one_to_all_write", "all_to_one_read"))
    peers = [peer for peer in range(count) if peer != gpu]
    flows = [f"gpu{gpu}->gpu{peer}" if out else f"gpu{peer}->gpu{gpu}" for peer in peers]
    return ToolValue(", ".join(flows), _flows(read, *flows), "total", path="peer")


def _chase(case: str, _part: str, row: int, column: int, _count: int) -> ToolValue:
    """A kernel follows pointers: GPU of the column in host memory, or GPU of the row in memory of the column's."""
    if case.startswith("host"):
        flow, path, read = f"host0->gpu{column}", "host to device", False
    else:
        flow, path, read = f"gpu{column}->gpu{row}", "peer", True
    return ToolValue(flow, _flows(read, flow), "chase_latency", "ns", path)


def _local(_case: str, _part: str, _row: int, gpu: int, _count: int) -> ToolValue:
    return ToolValue(f"gpu{gpu}->gpu{gpu}", "", path="GPU memory", note="payload copied within the GPU, counted once")


def _flows(read: bool, *flows: str) -> str:
    return ", ".join(f"{flow} read" if read else flow for flow in flows)


_KINDS: dict[str, Callable[[str, str, int, int, int], ToolValue]] = {
    **{
        f"{way}{both}_memcpy": _host
        for way in ("host_to_device", "device_to_host", "host_to_all", "all_to_host")
        for both in ("", "_bidirectional")
    },
    **{f"device_to_device{both}_memcpy_{op}": _peer for both in ("", "_bidirectional") for op in ("read", "write")},
    **{f"{way}_{op}": _star for way in ("all_to_one", "one_to_all") for op in ("read", "write")},
    "host_device_latency": _chase,
    "device_to_device_latency": _chase,
    "device_local_copy": _local,
}
