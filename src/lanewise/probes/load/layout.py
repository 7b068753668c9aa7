"""Which bytes of which file go to which target, and the reads that fetch them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.probes.load.header import StoredTensor

PAGE = 4096
Chunk = tuple[int, int, int, int, int]  # file, offset, bytes, target, place in it


@dataclass(frozen=True, slots=True)
class LoadLayout:
    """The reads of a load, the bytes of each target with the pages around, and the names of its tensors by file."""

    chunks: tuple[Chunk, ...]
    sizes: tuple[int, ...]
    names: tuple[tuple[tuple[int, str], ...], ...]
    data: int  # bytes of the tensors, each as often as it is loaded


def layout(files: Sequence[Sequence[StoredTensor]], targets: int, io: int, replicated: bool) -> LoadLayout:
    """Each target gets all tensors, or a run of whole ones of about 1/n of the bytes; each read is of `io` B at most.

    Reads begin at whole pages of the file and end at the end of a run of tensors, and nothing overlaps.
    """
    total = sum(tensor.end - tensor.start for tensors in files for tensor in tensors)
    chunks: list[Chunk] = []
    sizes: list[int] = []
    names: list[tuple[tuple[int, str], ...]] = []
    for target in range(targets):
        at, chosen = 0, []
        before = 0
        for file, tensors in enumerate(files):
            mine = []
            for tensor in tensors:
                middle = before + (tensor.end - tensor.start) / 2
                if replicated or int(middle * targets / total) == target:
                    mine.append(tensor)
                before += tensor.end - tensor.start
            if mine:
                start, end = mine[0].start // PAGE * PAGE, mine[-1].end
                chunks += [
                    (file, offset, min(io, end - offset), target, at + offset - start)
                    for offset in range(start, end, io)
                ]
                at += -(-(end - start) // PAGE) * PAGE
                chosen += [(file, tensor.name) for tensor in mine]
        sizes.append(max(PAGE, at))
        names.append(tuple(chosen))
    return LoadLayout(_in_turns(chunks, targets), tuple(sizes), tuple(names), total * (targets if replicated else 1))


def _in_turns(chunks: Sequence[Chunk], targets: int) -> tuple[Chunk, ...]:
    """One read for each target after the other, so that all links work at the same time."""
    if targets == 1:
        return tuple(chunks)
    queues = [[chunk for chunk in chunks if chunk[3] == target] for target in range(targets)]
    longest = max(map(len, queues))
    return tuple(queue[i] for i in range(longest) for queue in queues if i < len(queue))
