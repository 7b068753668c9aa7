"""What a figure, a part and a catalogue are; nothing here touches a file."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypedDict

from lanewise.catalog.cpu_models import generation_of
from lanewise.catalog.drive_models import drive_series
from lanewise.catalog.gpu_names import driver_name, words_of
from lanewise.catalog.keys import BASES, KINDS, TEXT, check_key
from lanewise.errors import Contradiction, FormatError, unknown_name

NOT_THERE = "not in the catalogue"
OR = " or "  # between the names of parts of which nobody knows which it is
# Manuals leave these words out.
_MAKERS = ("nvidia", "geforce", "tesla", "amd", "instinct", "mellanox", "broadcom", "plx")
# lspci ends a line with the name that people use: MT2910 Family [ConnectX-7], GH100 [H100 SXM5 80GB].
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
# What divides or bounds something: nothing can run at 0 B/s or over 0 lanes. A time may be zero.
_NEVER_ZERO_UNITS = ("B", "B/s", "T/s", "1/s")
_NEVER_ZERO = ("pcie.gen", "pcie.lanes", "pcie.tags", "switch.window_tags")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in SI (B, s, B/s, T/s, a plain number) or a word, its source and the condition it holds under.

    `value` None means unknown, and then `source` says why. `low` and `high` are the range of credible measurements
    around it; `carried_from` is the part that it was measured on, where that is another one of the same chip.
    `machines` names the machines of the evidence that it was measured on, `measured` what each of them showed where the
    value is the median of several; `inherited` is the figure of the extended part that it replaces.
    `measured_shared` is what machines showed whose socket had other tenants: `on_shared_socket` gives what holds there.
    """

    value: float | str | None
    unit: str
    source: str
    condition: str = ""
    basis: str = "physics"
    machines: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    carried_from: str = ""
    inherited: Figure | None = field(default=None, repr=False, compare=False)
    measured: tuple[tuple[str, float], ...] = ()
    measured_shared: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            object.__setattr__(self, "value", float(self.value))

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def on_shared_socket(self) -> Figure:
        """What holds where other tenants use the socket too: the median of such machines, if any were measured."""
        if not self.measured_shared:
            return self
        value = statistics.median(value for _, value in self.measured_shared)
        return replace(self, value=value, condition=f"{self.condition}; with other tenants on the socket".lstrip("; "))

    def without_machine(self, machine: str) -> Figure:
        """What would be stated if nobody had measured that machine: the median of the other machines that the figure
        comes from, the word that the others showed too, else the inherited figure, or that it is unknown.
        """
        if machine not in self.machines:
            return self
        others, shared = (
            tuple(pair for pair in pairs if pair[0] != machine) for pairs in (self.measured, self.measured_shared)
        )
        if others or shared:
            return replace(self, **of_machines(others, shared))
        if isinstance(self.value, str) and len(self.machines) > 1:
            return replace(self, machines=tuple(name for name in self.machines if name != machine))
        if self.inherited is not None:
            return self.inherited.without_machine(machine)
        return Figure(None, self.unit, f"left out: measured on {machine}")


class MeasuredFields(TypedDict):
    """The fields of a Figure that follow from its `measured` and `measured_shared`."""

    value: float
    machines: tuple[str, ...]
    low: float
    high: float
    measured: tuple[tuple[str, float], ...]
    measured_shared: tuple[tuple[str, float], ...]


def of_machines(measured: tuple[tuple[str, float], ...], shared: tuple[tuple[str, float], ...] = ()) -> MeasuredFields:
    """The value, machines and range of a figure that these machines showed; of `shared` sockets the best if no other.

    What a tenant gets of a socket is no more than what the whole socket has.
    """
    pairs = (*measured, *shared)
    values = [value for _, value in pairs]
    return MeasuredFields(
        value=statistics.median(value for _, value in measured) if measured else max(values),
        machines=tuple(name for name, _ in pairs), low=min(values), high=max(values),
        measured=measured, measured_shared=shared,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that can be bought: its names and its figures by key."""

    name: str
    kind: str
    title: str
    aliases: tuple[str, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of part", self.kind, KINDS)
        if not all(text.strip() for text in (self.name, self.title, *self.aliases)):
            raise FormatError(f"a name, alias or title of part '{self.name}' is blank")
        for key, figure in self.figures.items():
            check_figure(self.kind, key, figure)
        ordered = {key: self.figures[key] for key in sorted(self.figures)}
        object.__setattr__(self, "figures", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[type[Part], tuple[str, str, str, tuple[str, ...], dict[str, Figure]]]:
        # A mapping proxy cannot be pickled, and parts travel to worker processes.
        return Part, (self.name, self.kind, self.title, self.aliases, dict(self.figures))

    def figure(self, key: str) -> Figure:
        """The figure `key`, unknown if the part does not state it; UnknownName if this kind never has it."""
        figure = self.figures.get(key)
        return figure if figure is not None else _unknown_figure(self.kind, key)

    def number(self, key: str) -> float | None:
        """The SI value of `key`, None if unknown; UnknownName as `figure`, FormatError if it is a word."""
        value = self.figure(key).value
        if isinstance(value, str):
            raise FormatError(f"'{key}' of part '{self.name}' is the word '{value}', not a number")
        return value

    def text(self, key: str) -> str | None:
        """The word of `key`, None if unknown; UnknownName as `figure`, FormatError if it is a number."""
        value = self.figure(key).value
        if isinstance(value, float):
            raise FormatError(f"'{key}' of part '{self.name}' is a number, not a word")
        return value

    @property
    def on_shared_socket(self) -> Part:
        """The part as it is where other tenants use its socket too; itself where no figure differs."""
        figures = {key: figure.on_shared_socket for key, figure in self.figures.items() if figure.measured_shared}
        return replace(self, figures={**self.figures, **figures}) if figures else self

    def with_figure(self, key: str, figure: Figure) -> Part:
        """A copy that states `key` as `figure`; UnknownName or FormatError if it may not."""
        return replace(self, figures={**self.figures, key: figure})


@dataclass(frozen=True, slots=True, repr=False)
class Catalog:
    """Parts by name, found by name, alias or title in any case, CPUs and drives by model, GPUs by their usual names;
    Contradiction if two share a name.

    `completed` keeps what catalog.typical and catalog.alternatives make of its parts, `best_reads` what perf.best_copy does, `_otherwise` the
    names by their letters once one is looked for.
    """

    parts: Mapping[str, Part] = field(default_factory=dict, hash=False)
    _index: Mapping[str, str] = field(init=False, repr=False, compare=False)
    completed: dict[object, Part] = field(init=False, repr=False, compare=False, default_factory=dict)
    best_reads: dict[object, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    _otherwise: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(dict(sorted(self.parts.items()))))
        object.__setattr__(self, "_index", _index_names(self.parts))

    def __reduce__(self) -> tuple[Callable[..., Catalog], tuple[dict[str, Part]]]:
        return Catalog, (dict(self.parts),)

    def __repr__(self) -> str:
        return f"<Catalog of {len(self.parts)} parts>"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._canonical(name) is not None or self._one_of(name) is not None)

    def get(self, name: str) -> Part:
        """The part of that name, alias or model of a CPU ("EPYC 9554"); UnknownName with the closest names if none."""
        part = self.parts.get(name) or self._one_of(name)
        if part is not None:
            return part
        canonical = self._canonical(name)
        if canonical is None:
            raise unknown_name("part", name, self._index)
        return self.parts[canonical]

    def _one_of(self, name: str) -> Part | None:
        """What stands for "a or b", two or more parts of one kind by their own names; None for other names."""
        parts = [self.parts[each] for each in name.split(OR) if each in self.parts] if OR in name else []
        if len(parts) < 2 or len(parts) <= name.count(OR) or len({part.kind for part in parts}) > 1:
            return None
        from lanewise.catalog.alternatives import either  # it needs this module

        if name not in self.completed:
            self.completed[name] = either(parts)
        return self.completed[name]

    def gpu(self, name: str) -> Part | None:
        """The GPU that a driver, a tool or its owner calls so; None if none or several could be."""
        part = self.get(name) if name in self else None
        return part if part is not None and part.kind == "gpu" else None

    def _canonical(self, name: str) -> str | None:
        known = self._by_name(name) or self._index.get(generation_of(name) or "")
        known = known or self._by_gpu_name(driver_name(name)) or self._index.get(drive_series(name) or "")
        bracketed = (self._canonical(words) for words in _BRACKETS.findall(name) if known is None)
        return known or next((part for part in bracketed if part), None)

    def _by_name(self, name: str) -> str | None:
        plain = plain_name(name)
        known = self._index.get(plain) or self._index.get(without_maker(plain))
        return known or self._names_written_otherwise().get(letters(plain))

    def _names_written_otherwise(self) -> dict[str, str]:
        if not self._otherwise:
            self._otherwise.update(_written_otherwise(tuple(self._index.items()), self._titles()))
        return self._otherwise

    def _by_gpu_name(self, name: str) -> str | None:
        return self._by_name(name) or _by_words(self._titles("gpu")).get(words_of(name))

    def _titles(self, kind: str | None = None) -> tuple[tuple[str, str], ...]:
        parts = (self.parts[name] for name in self.names(kind))
        return tuple((part.title.partition(",")[0], part.name) for part in parts)

    def names(self, kind: str | None = None) -> list[str]:
        """The names of all parts, or of one kind, sorted; UnknownName for a kind that does not exist."""
        if kind is not None and kind not in KINDS:
            raise unknown_name("kind of part", kind, KINDS)
        return [name for name, part in self.parts.items() if kind in (None, part.kind)]

    def without_machine(self, machine: str) -> Catalog:
        """A copy without the figures that were measured on that machine: inherited ones in their place, or unknown."""
        revised = {}
        for name, part in self.parts.items():
            others = {
                key: figure.without_machine(machine)
                for key, figure in part.figures.items()
                if machine in figure.machines
            }
            if others:
                revised[name] = replace(part, figures={**part.figures, **others})
        return Catalog({**self.parts, **revised}) if revised else self

    def with_part(self, part: Part) -> Catalog:
        """A copy with `part` added or replaced; Contradiction if another part has one of its names."""
        return Catalog({**self.parts, part.name: part})

    def merge(self, other: Catalog) -> Catalog:
        """Both together; where both have a name, `other` wins; Contradiction if an alias is taken."""
        return Catalog({**self.parts, **other.parts})


@lru_cache(maxsize=1024)
def _unknown_figure(kind: str, key: str) -> Figure:
    return Figure(None, check_key(kind, key).unit, NOT_THERE)


def check_figure(kind: str, name: str, figure: Figure) -> None:
    """UnknownName or FormatError unless a part of this kind may have `figure` under the key `name`."""
    key = check_key(kind, name)
    if figure.unit != key.unit:
        raise FormatError(f"'{name}' is in {figure.unit}, it must be in {key.unit}")
    if figure.basis not in BASES:
        raise unknown_name("basis", figure.basis, BASES)
    if not figure.source.strip():
        raise FormatError(f"'{name}' has no source", hint="add `source:` and say where the value is from")
    if figure.condition and not figure.condition.strip():
        raise FormatError(f"the condition of '{name}' is blank", hint="leave `condition:` out")
    if figure.value is not None:
        _check_value(name, key.unit, figure.value, key.choices)
    _check_range(name, key.unit, figure)


def _check_range(name: str, unit: str, figure: Figure) -> None:
    ends = [end for end in (figure.low, figure.high) if end is not None]
    if ends and not isinstance(figure.value, float):
        raise FormatError(f"'{name}' has a range but no number", hint="state `value:`, or leave `low:` and `high:` out")
    for end in ends:
        _check_value(name, unit, end, ())
        if isinstance(figure.value, float) and not (figure.low or 0.0) <= figure.value <= (figure.high or math.inf):
            cause = f"the range of '{name}' does not hold its value"
            raise FormatError(cause, hint="`low:` is at most the value, `high:` at least")


def _check_value(name: str, unit: str, value: float | str, choices: tuple[str, ...]) -> None:
    if unit == TEXT:
        if not isinstance(value, str) or not value.strip():
            raise FormatError(f"'{name}' must be a word, not {value!r}")
        if choices and value not in choices:
            hint = f"one of: {', '.join(choices)}; if it is none, leave it out"
            raise FormatError(f"'{name}' cannot be '{value}'", hint=hint)
        return
    if isinstance(value, (str, bool)) or not math.isfinite(value) or value < 0:
        cause = f"'{name}' must be a number that is finite and not negative, not {value!r}"
        raise FormatError(cause, hint="write null and say why in `source:` if it is unknown")
    if value == 0 and (unit in _NEVER_ZERO_UNITS or name in _NEVER_ZERO):
        raise FormatError(f"'{name}' cannot be 0", hint="write null and say why in `source:` if it is unknown")


@lru_cache(maxsize=4096)  # every change of a figure makes the index of names again
def plain_name(name: str) -> str:
    """A name as it is looked up: in one case, without outer blanks, and with - for a blank within."""
    return "-".join(name.casefold().split())


@lru_cache(maxsize=4096)
def without_maker(name: str) -> str:
    """A plain name without the words before it that name its maker or series: a100-80gb-pcie."""
    words = name.split("-")
    while len(words) > 1 and words[0] in _MAKERS:
        words = words[1:]
    return "-".join(words)


@lru_cache(maxsize=4096)
def letters(name: str) -> str:
    """A name without its maker and whatever divides its words: PEX 8764 and pex8764 are one."""
    return re.sub(r"[^a-z0-9+]+", "", without_maker(plain_name(name).replace("_", "-")))


@lru_cache(maxsize=16)
def _written_otherwise(names: tuple[tuple[str, str], ...], titles: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Parts by the letters of their names, else of their titles in full; without those that several parts share."""
    by_letters: dict[str, str] = {}
    for source in (titles, names):  # a name goes before another part's title: RTX4090 is no card with another driver
        owners: dict[str, set[str]] = {}
        for written, owner in source:
            owners.setdefault(letters(written), set()).add(owner)
        by_letters |= {letters: next(iter(parts)) if len(parts) == 1 else "" for letters, parts in owners.items()}
    return {letters: part for letters, part in by_letters.items() if part}


@lru_cache(maxsize=16)
def _by_words(titles: tuple[tuple[str, str], ...]) -> dict[frozenset[str], str]:
    """Parts by the words of their titles, without those that several parts share."""
    owners: dict[frozenset[str], set[str]] = {}
    for title, part in titles:
        owners.setdefault(words_of(title), set()).add(part)
    return {words: next(iter(parts)) for words, parts in owners.items() if len(parts) == 1}


def _index_names(parts: Mapping[str, Part]) -> dict[str, str]:
    index: dict[str, str] = {}
    for key, part in parts.items():
        if key != part.name:
            raise Contradiction(f"part '{part.name}' is filed under '{key}'")
        for name in (part.name, *part.aliases):
            owner = index.setdefault(plain_name(name), part.name)
            if owner != part.name:
                raise Contradiction(
                    f"parts '{owner}' and '{part.name}' are both called '{name}'",
                    hint="rename one, or drop the alias",
                )
    for name, owner in list(index.items()):
        index.setdefault(without_maker(name), owner)
    return index
