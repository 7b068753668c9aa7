"""Which rows are the same row: the identity of a value, and the one join of rows by it (decision 16)."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from lanewise.results.observation import Observation
    from lanewise.results.sample import Sample

    Row: TypeAlias = Observation | Sample

RowT = TypeVar("RowT", bound="Observation | Sample")

# The fields that tell what a value is of, and where it is stated.
FIELDS = ("study", "system", "table", "scenario", "flow", "metric", "path", "settings")
# The keys of `how` that say which thing was measured. All others say what was observed meanwhile: clocks, the link
# under load, whether data was verified.
METHOD = (
    "flows", "engine", "kernel", "mode", "p2p", "NUMA node", "NUMA node there", "host memory", "transport",
    "completions", "device", "pattern", "flush", "phase",
)  # fmt: skip
# Where a value is stated, not what it is of: to be ignored where rows of different files or tables are joined.
CONTEXT = ("study", "system", "table")
_SHARE = re.compile(r" \(\d+ %\)")


# Path of a service in the Closed division, whose queries come from the memory of the accelerators' own host.
SERVICE = "service"

# What two rows share if they are the same row: the values of FIELDS, settings as sorted (name, number), then (key of
# METHOD, text) of the keys that the row states; one that the caller ignores is empty. The unit does not count, as a
# metric has one dimension. Nor do source, value and note.
Identity: TypeAlias = "tuple[Hashable, ...]"


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of the same row in the order of the left side, and the rows that only one side has."""

    pairs: tuple[tuple[Observation, Observation], ...]
    only_left: tuple[Observation, ...]
    only_right: tuple[Observation, ...]


def service_path(division: str) -> str:
    """The `path` of a row of a service: 'service' in the Closed division, 'service, network' in the Network division.

    Nothing else tells a Network row from the Closed row of the same accelerators.
    """
    division = division.lower() or "closed"
    return SERVICE if division == "closed" else f"{SERVICE}, {division}"


def identity(
    row: Row, ignore: Collection[str] = (), reduce: Mapping[str, Callable[[Row], Hashable]] | None = None
) -> Identity:
    """The identity of a row, without the FIELDS and keys of METHOD in `ignore`; 'method' ignores all of METHOD.

    `reduce` replaces the value of a field or key by what its function returns for the row.
    """
    functions = reduce or {}

    def value(name: str) -> Hashable:
        if name in ignore:
            return ""
        return functions[name](row) if name in functions else _value(row, name)

    # A row states few of the keys; what it does not state is empty.
    stated = () if "method" in ignore else [key for key in METHOD if key in row.how or key in functions]
    method = tuple((key, text) for key in stated if (text := value(key)) != "")
    return (*[value(name) for name in FIELDS], method)


def group(
    rows: Iterable[RowT], ignore: Collection[str] = (), reduce: Mapping[str, Callable[[Row], Hashable]] | None = None
) -> dict[Identity, list[RowT]]:
    """The rows by identity, identities in the order in which they first appear."""
    groups: dict[Identity, list[RowT]] = {}
    for row in rows:
        groups.setdefault(identity(row, ignore, reduce), []).append(row)
    return groups


def join(
    left: Iterable[Observation], right: Iterable[Observation], ignore: Collection[str] = (), relax: Sequence[str] = ()
) -> Join:
    """Pairs of rows with the same identity; rows that share one are paired in their order.

    The fields in `ignore` never count. What is left over is joined again without the first field of `relax`, then
    without the first two, and so on.
    """
    left, right = tuple(left), tuple(right)
    pairs: dict[int, int] = {}
    for end in range(len(relax) + 1):
        fields = {*ignore, *relax[:end]}
        paired = set(pairs.values())
        waiting: dict[Identity, list[int]] = defaultdict(list)
        for index in reversed(range(len(right))):
            if index not in paired:
                waiting[identity(right[index], fields)].append(index)
        for index, row in enumerate(left):
            if index not in pairs and (same := waiting.get(identity(row, fields))):
                pairs[index] = same.pop()
    paired = set(pairs.values())
    return Join(
        tuple((left[i], right[j]) for i, j in sorted(pairs.items())),
        tuple(row for index, row in enumerate(left) if index not in pairs),
        tuple(row for index, row in enumerate(right) if index not in paired),
    )


def _value(row: Row, name: str) -> Hashable:
    if name == "settings":
        return tuple(sorted(row.settings.items()))
    if name in FIELDS:
        return str(getattr(row, name, ""))
    text = row.how.get(name, "")
    if name == "flows":
        return "" if text == row.flow else text  # alone, whether the row says so or not
    # Pages on nodes 0 and 1 are the same memory whatever their shares are.
    return _SHARE.sub("", text) if name.startswith("NUMA node") else text
