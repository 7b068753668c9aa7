"""From a part file's text to drafts, from drafts to parts; docs/reference/catalogue.md has the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lanewise import units
from lanewise.catalog.keys import BASES, KINDS, TEXT, check_key
from lanewise.catalog.model import Catalog, Figure, Part, check_figure, plain_name
from lanewise.catalog.nodes import Spot, compose, placed
from lanewise.errors import Contradiction, FormatError, LanewiseError, Location, unknown_name

_PART_FIELDS = ("part", "kind", "title", "aliases", "extends", "figures", "from")
_BLOCK_FIELDS = ("source", "condition", "basis", "figures")
_FIGURE_FIELDS = ("value", "source", "condition", "note", "basis")


@dataclass(frozen=True, slots=True)
class Draft:
    """A part as its file states it, before `extends` is followed; `own` holds its figures still unread."""

    name: str
    location: Location
    kind: str
    title: str
    aliases: tuple[str, ...]
    extends: str
    own: list[tuple[str, Spot, Shared]]


@dataclass(frozen=True, slots=True)
class Shared:
    """What the figures of one `from` block have in common."""

    source: str = ""
    condition: str = ""
    basis: str = ""


def read_drafts(text: str, file: str) -> list[Draft]:
    """The parts of one file as drafts; InputError with file and line for anything it cannot use."""
    top = compose(text, file).fields("the file", ("parts",))
    if "parts" not in top:
        raise FormatError("the file holds no parts", location=Location(file, 1), hint="start it with `parts:`")
    return [_draft(spot) for spot in top["parts"].items("parts")]


@dataclass(slots=True)
class Resolver:
    """Turns drafts into parts; `base` gives the catalogue that `extends` may reach beyond these drafts."""

    drafts: list[Draft]
    base: Callable[[], Catalog]
    _by_name: dict[str, Draft] = field(default_factory=dict)
    _done: dict[str, Part] = field(default_factory=dict)
    _under_way: list[str] = field(default_factory=list)

    def catalog(self) -> Catalog:
        """All drafts as parts; Contradiction if a name stands twice or `extends` runs in a circle."""
        for draft in self.drafts:
            self._claim(draft)
        parts = [self._part(draft) for draft in self.drafts]
        return Catalog({part.name: part for part in parts})

    def _claim(self, draft: Draft) -> None:
        for name in (draft.name, *draft.aliases):
            other = self._by_name.setdefault(plain_name(name), draft)
            if other is not draft:
                cause = f"the name '{name}' is taken by part '{other.name}' ({other.location})"
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
        try:
            return self.base().get(draft.extends)
        except LanewiseError as error:
            raise placed(error, draft.location) from None


def _draft(spot: Spot) -> Draft:
    fields = spot.fields("a part", _PART_FIELDS)
    if "part" not in fields:
        raise FormatError("a part has no name", location=spot.location, hint="start it with `- part: <name>`")
    name = fields["part"].text("part")
    extends = fields["extends"].text("extends") if "extends" in fields else ""
    return Draft(
        name=name,
        location=fields["part"].location,
        kind=_kind(fields, name, spot.location, extends),
        title=fields["title"].text("title") if "title" in fields else "",
        aliases=tuple(alias.text("an alias") for alias in fields["aliases"].items("aliases"))
        if "aliases" in fields
        else (),
        extends=extends,
        own=_own_figures(fields),
    )


def _kind(fields: dict[str, Spot], name: str, location: Location, extends: str) -> str:
    if "kind" not in fields:
        if extends:
            return ""
        hint = f"add `kind:`, one of {', '.join(KINDS)}"
        raise FormatError(f"part '{name}' has no kind", location=location, hint=hint)
    kind = fields["kind"].text("kind")
    if kind not in KINDS:
        raise unknown_name("kind of part", kind, KINDS, fields["kind"].location)
    return kind


def _own_figures(fields: dict[str, Spot]) -> list[tuple[str, Spot, Shared]]:
    own: list[tuple[str, Spot, Shared]] = []
    if "figures" in fields:
        own += [(key, spot, Shared()) for key, spot in fields["figures"].fields("figures").items()]
    if "from" in fields:
        for block in fields["from"].items("from"):
            own += _block(block)
    seen: dict[str, Spot] = {}
    for key, spot, _ in own:
        if key in seen:
            cause = f"figure '{key}' stands twice in this part, first in line {seen[key].location.line}"
            raise Contradiction(cause, location=spot.location, hint="keep one of the two")
        seen[key] = spot
    return own


def _block(spot: Spot) -> list[tuple[str, Spot, Shared]]:
    fields = spot.fields("a `from` block", _BLOCK_FIELDS)
    if "source" not in fields:
        raise FormatError("a `from` block has no source", location=spot.location, hint="add `source:`")
    if "figures" not in fields:
        raise FormatError("a `from` block has no figures", location=spot.location, hint="add `figures:`")
    shared = _shared(fields, Shared())
    return [(key, value, shared) for key, value in fields["figures"].fields("figures").items()]


def _shared(fields: dict[str, Spot], above: Shared) -> Shared:
    """`above` with what these fields say themselves."""
    basis = fields["basis"].text("basis") if "basis" in fields else above.basis
    if basis and basis not in BASES:
        raise unknown_name("basis", basis, BASES, fields["basis"].location)
    condition = fields["condition"].text("condition") if "condition" in fields else above.condition
    if "note" in fields:  # narrows the block's condition, where `condition:` replaces it
        condition = "; ".join(filter(None, (condition, fields["note"].text("note"))))
    return Shared(
        source=fields["source"].text("source") if "source" in fields else above.source,
        condition=condition,
        basis=basis,
    )


def _build(draft: Draft, parent: Part | None) -> Part:
    kind = draft.kind or (parent.kind if parent else "")
    if parent and parent.kind != kind:
        cause = f"part '{draft.name}' is a {kind} but extends '{parent.name}', a {parent.kind}"
        raise Contradiction(cause, location=draft.location, hint="drop `kind:`, or extend another part")
    figures = dict(parent.figures) if parent else {}
    for key, spot, shared in draft.own:
        figures[key] = _figure(kind, key, spot, shared)
    # Revising a part of the same name keeps what it is called; a new part takes figures only.
    same = parent if parent and plain_name(parent.name) == plain_name(draft.name) else None
    aliases = draft.aliases or (same.aliases if same else ())
    title = draft.title or (parent.title if parent else draft.name)
    return Part(same.name if same else draft.name, kind, title, aliases, figures)


def _figure(kind: str, key: str, spot: Spot, shared: Shared) -> Figure:
    try:
        unit = check_key(kind, key).unit
        value_spot = spot
        if spot.is_map:
            fields = spot.fields(f"figure '{key}'", _FIGURE_FIELDS)
            if "value" not in fields:
                hint = "write `value: null` and why in `source:` if it is unknown"
                raise FormatError(f"figure '{key}' has no value", location=spot.location, hint=hint)
            value_spot, shared = fields["value"], _shared(fields, shared)
        value = _value(value_spot, unit, key)
        figure = Figure(value, unit, shared.source, shared.condition, shared.basis or "physics")
        check_figure(kind, key, figure)
    except LanewiseError as error:
        raise placed(error, spot.location) from None
    return figure


def _value(spot: Spot, unit: str, key: str) -> float | str | None:
    if spot.is_null:
        return None
    words = spot.text(f"the value of '{key}'")
    if unit == TEXT:
        return words
    if unit in ("B", "B/s", "s", "T/s") and _is_number(words):
        hint = f"write the unit: {words} {units.NATURAL[unit]}"
        raise FormatError(f"'{key}' = {words} has no unit", location=spot.location, hint=hint)
    try:
        return units.parse(words, unit)
    except LanewiseError as error:
        error.cause = f"'{key}': {error.cause}"
        raise placed(error, spot.location) from None


def _is_number(words: str) -> bool:
    try:
        return float(words) != 0
    except ValueError:
        return False
