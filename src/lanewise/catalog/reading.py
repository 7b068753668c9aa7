"""Reads part files, those that ship with Lanewise and a user's own: from text to drafts, from drafts to parts.

docs/reference/catalogue.md has the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from lanewise import package_data, units
from lanewise.catalog.keys import BASES, KINDS, TEXT, check_key
from lanewise.catalog.model import Catalog, Figure, Part, check_figure, of_machines, plain_name
from lanewise.errors import Contradiction, FormatError, LanewiseError, Location, error_location
from lanewise.yaml_loader import load
from lanewise.yaml_positions import YamlNode

_PART_FIELDS = ("part", "kind", "title", "aliases", "extends", "figures", "from")
_BLOCK_FIELDS = ("source", "condition", "basis", "machines", "carried_from", "figures")
_START = "start it with `parts:`"
_SHARED_FIELDS = ("source", "condition", "note", "basis", "machines", "carried_from")
_MEASURED = ("measured", "measured_shared")  # of sockets that a machine has to itself, and of others
_FIGURE_FIELDS = ("value", "measured", "measured_shared", "low", "high", *_SHARED_FIELDS)


@dataclass(frozen=True, slots=True)
class Draft:
    """A part as its file states it, before `extends` is followed; `own` holds its figures still unread."""

    name: str
    location: Location
    kind: str
    title: str
    aliases: tuple[str, ...]
    extends: str
    own: list[tuple[str, YamlNode, Shared]]


@dataclass(frozen=True, slots=True)
class Shared:
    """What the figures of one `from` block have in common."""

    source: str = ""
    condition: str = ""
    basis: str = ""
    machines: tuple[str, ...] = ()
    carried_from: str = ""


def read_drafts(text: str, file: str) -> list[Draft]:
    """The parts of one file as drafts; InputError with file and line for anything it cannot use."""
    document = load(text, file)
    if not document.data:
        raise FormatError("the file holds no parts", location=Location(file, 1), hint=_START)
    parts = document.root.check_fields(("parts",), "the file", needed=("parts",), hint=_START)["parts"]
    return [_draft(node) for node in parts.items()]


@dataclass(slots=True)
class Resolver:
    """Turns drafts into parts; `base` gives the catalogue that `extends` may reach beyond these drafts."""

    drafts: list[Draft]
    base: Callable[[], Catalog]
    _by_name: dict[str, Draft] = field(default_factory=dict)
    _done: dict[str, Part] = field(default_factory=dict)
    _under_way: list[str] = field(default_factory=list)

    def catalog(self) -> Catalog:
        """All drafts as parts; Contradiction if a name is given twice or `extends` runs in a circle."""
        for draft in self.drafts:
            self._claim(draft)
        parts = [self._part(draft) for draft in self.drafts]
        return Catalog({part.name: part for part in parts})

    def _claim(self, draft: Draft) -> None:
        for name in (draft.name, *draft.aliases):
            owner = self._by_name.setdefault(plain_name(name), draft)
            if owner is not draft:
                cause = f"the name '{name}' is taken by part '{owner.name}' ({owner.location})"
                raise Contradiction(cause, location=draft.location, hint="rename one, or drop the alias")

    def _part(self, draft: Draft) -> Part:
        if draft.name in self._done:
            return self._done[draft.name]
        if draft.name in self._under_way:
            circle = " -> ".join([*self._under_way, draft.name])
            cause = f"parts extend each other in a circle: {circle}"
            raise Contradiction(cause, location=draft.location, hint="drop one `extends:`")
        self._under_way.append(draft.name)
        try:
            self._done[draft.name] = _build(draft, self._parent(draft))
        finally:
            self._under_way.pop()
        return self._done[draft.name]

    def _parent(self, draft: Draft) -> Part | None:
        if not draft.extends:
            return None
        sibling = self._by_name.get(plain_name(draft.extends))
        # A part that extends its own name revises the part of that name in the base.
        if sibling is not None and sibling is not draft:
            return self._part(sibling)
        with error_location(draft.location):
            return self.base().get(draft.extends)


@cache
def builtin() -> Catalog:
    """The parts that ship with Lanewise, read once from the package's own data files."""
    files = [package_data.text("parts", name, "part file") for name in package_data.names("parts")]
    return Resolver([draft for file in files for draft in read_drafts(*file)], base=lambda: Catalog({})).catalog()


def read_parts(text: str, file: str, base: Catalog | None = None) -> Catalog:
    """The parts of one file; `extends` may name any part of `base` (or that ships); InputError with line."""
    return Resolver(read_drafts(text, file), base=builtin if base is None else lambda: base).catalog()


def parts_of(node: YamlNode, base: Catalog) -> Catalog:
    """The parts of a list that stands in another file; `extends` may name any part of `base`; InputError with line."""
    return Resolver([_draft(entry) for entry in node.items()], base=lambda: base).catalog()


def _draft(node: YamlNode) -> Draft:
    node.check_fields(_PART_FIELDS, "a part")
    if not node["part"].given:
        raise node.error("a part has no name", "start it with `- part: <name>`")
    name = node["part"].as_written()
    extends = node["extends"].as_written() if node["extends"].present else ""
    if not extends and not node["kind"].present:
        raise node.error(f"part '{name}' has no kind", f"add `kind:`, one of {', '.join(KINDS)}")
    return Draft(
        name=name,
        location=node["part"].location,
        kind=node["kind"].choice(KINDS, kind="kind of part") if node["kind"].present else "",
        title=node["title"].as_written() if node["title"].present else "",
        aliases=tuple(alias.as_written() for alias in node["aliases"].items()),
        extends=extends,
        own=_own_figures(node),
    )


def _own_figures(node: YamlNode) -> list[tuple[str, YamlNode, Shared]]:
    own = [(key, figure, Shared()) for key, figure in node["figures"].members().items()]
    for block in node["from"].items():
        block.check_fields(_BLOCK_FIELDS, "a `from` block", needed=("source", "figures"))
        shared = _shared(block, Shared())
        own += [(key, figure, shared) for key, figure in block["figures"].members().items()]
    first: dict[str, YamlNode] = {}
    for key, figure, _ in own:
        if first.setdefault(key, figure) is not figure:
            cause = f"figure '{key}' is given twice in this part, first in line {first[key].location.line}"
            raise Contradiction(cause, location=figure.location, hint="keep one of the two")
    return own


def _shared(node: YamlNode, above: Shared) -> Shared:
    """`above` with what this block or figure states itself."""
    condition = node["condition"].as_written() if node["condition"].present else above.condition
    if node["note"].present:  # narrows the block's condition, where `condition:` replaces it
        condition = "; ".join(filter(None, (condition, node["note"].as_written())))
    return Shared(
        source=node["source"].as_written() if node["source"].present else above.source,
        condition=condition,
        basis=node["basis"].choice(BASES) if node["basis"].present else above.basis,
        machines=_machines(node["machines"]) if node["machines"].present else above.machines,
        carried_from=node["carried_from"].as_written() if node["carried_from"].present else above.carried_from,
    )


def _machines(node: YamlNode) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.as_written() for entry in node.items("machines: [rtx4090-rome]")))


_SHARES = ("memory.dma_reads", "memory.dma_writes")


def _build(draft: Draft, parent: Part | None) -> Part:
    kind = draft.kind or (parent.kind if parent else "")
    if parent and parent.kind != kind:
        cause = f"part '{draft.name}' is a {kind} but extends '{parent.name}', a {parent.kind}"
        raise Contradiction(cause, location=draft.location, hint="drop `kind:`, or extend another part")
    inherited = _inherited(draft, parent) if parent else {}
    figures = dict(inherited)
    for key, node, shared in draft.own:
        try:
            figures[key] = _figure(kind, key, node, shared)
        except LanewiseError as error:  # not error_location: a location for every figure costs start time
            error.location = error.location or node.location
            raise
    for key, _, _ in draft.own if parent else ():
        if figures[key].machines and parent and _alike(key, parent, figures):
            figures[key] = replace(figures[key], inherited=inherited.get(key))
    # Revising a part of the same name keeps what it is called; a new part takes figures only.
    same = parent if parent and plain_name(parent.name) == plain_name(draft.name) else None
    aliases = draft.aliases or (same.aliases if same else ())
    title = draft.title or (parent.title if parent else draft.name)
    return Part(same.name if same else draft.name, kind, title, aliases, figures)


def _inherited(draft: Draft, parent: Part) -> dict[str, Figure]:
    """The figures of the extended part: those measured on it are carried over, unless both are the same thing.

    They are if this part has the same name, or differs in what may be peers alone (a patched driver).
    """
    if plain_name(parent.name) == plain_name(draft.name) or all(key.startswith("peer.") for key, _, _ in draft.own):
        return dict(parent.figures)
    return {
        key: replace(figure, carried_from=parent.name)
        if figure.basis == "calibrated" and figure.known and not figure.carried_from
        else figure
        for key, figure in parent.figures.items()
    }


def _alike(key: str, parent: Part, figures: Mapping[str, Figure]) -> bool:
    """Whether a measured figure of the parent would hold here too: the specifications that it depends on are equal.

    Shares of the memory's rate depend on none: they scale with it.
    """
    if key in _SHARES:
        return True
    group = "nvlink." if key in ("engine.nvlink", "engine.c2c_h2d", "engine.c2c_d2h") else f"{key.partition('.')[0]}."
    stated = {name: figure.value for name, figure in parent.figures.items()
              if figure.basis == "physics" and not figure.machines}  # fmt: skip
    return all(figures[name].value == value for name, value in stated.items() if name.startswith(group))


def _figure(kind: str, key: str, node: YamlNode, shared: Shared) -> Figure:
    unit = check_key(kind, key).unit
    low = high = None
    if node.is_map and any(node[field].present for field in _MEASURED):
        return _measured(kind, key, node, shared)
    if node.is_map:
        hint = "write `value: null` and why in `source:` if it is unknown"
        node.check_fields(_FIGURE_FIELDS, f"figure '{key}'", needed=("value",), hint=hint)
        low, high = (_range_end(node[end], unit) for end in ("low", "high"))
        node, shared = node["value"], _shared(node, shared)
    figure = Figure(
        _value(node, unit), unit, shared.source, shared.condition, shared.basis or "physics", shared.machines,
        low, high, shared.carried_from,
    )  # fmt: skip
    check_figure(kind, key, figure)
    return figure


def _measured(kind: str, key: str, node: YamlNode, shared: Shared) -> Figure:
    """A figure that several machines showed: the median, and their range."""
    hint = "`measured:` and `measured_shared:` stand in place of `value:`, `low:`, `high:` and `machines:`"
    node.check_fields((*_MEASURED, *_SHARED_FIELDS), f"figure '{key}'", hint=hint)
    unit = check_key(kind, key).unit
    whole, tenants = (_numbers(key, node[field], unit) if node[field].present else () for field in _MEASURED)
    common = _shared(node, shared)
    figure = Figure(
        unit=unit, source=common.source, condition=common.condition, basis=common.basis or "physics",
        carried_from=common.carried_from, **of_machines(whole, tenants),
    )  # fmt: skip
    check_figure(kind, key, figure)
    return figure


def _numbers(key: str, node: YamlNode, unit: str) -> tuple[tuple[str, float], ...]:
    values = {name: _value(entry, unit) for name, entry in node.members().items()}
    numbers = tuple((name, value) for name, value in values.items() if isinstance(value, float))
    if not numbers or len(numbers) < len(values):
        raise node.error(f"'{key}' is not a number on each machine", "write `{<machine>: <number>, ...}`")
    return numbers


def _range_end(node: YamlNode, unit: str) -> float | None:
    value = _value(node, unit) if node.present else None
    if isinstance(value, str):
        raise node.error("a word has no range", "leave `low:` and `high:` out")
    return value


def _value(node: YamlNode, unit: str) -> float | str | None:
    if not node.given:
        return None
    if unit == TEXT:
        return node.as_written()
    needs_unit = unit in units.NATURAL
    example = f"{node.value} {units.NATURAL[unit]}" if needs_unit else ""
    return node.quantity(unit, bare=not needs_unit, example=example)
