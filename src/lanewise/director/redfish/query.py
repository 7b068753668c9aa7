"""Query parameters of GET: $filter, $skip, $top, only, $expand, $select, in the order in which Redfish applies them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

from lanewise.director.redfish.filter import Predicate, parse_filter
from lanewise.director.redfish.messages import refusal
from lanewise.errors import printable, shorten
from lanewise.units import whole

Json = dict[str, Any]
Fetch = Callable[[str], Json | None]

MOST_LEVELS = 6
MOST_EXPANDED = 4000  # resources in one answer
_LONGEST = 4000
_EXPAND = re.compile(r"(?P<kind>[*.~])(?:\(\$levels=(?P<levels>\d{1,3})\))?")
_PAGED = ("$filter", "$top", "$skip", "only")


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The query parameters of one request."""

    expand: str = ""
    levels: int = 0
    select: tuple[tuple[str, ...], ...] = ()
    filter: Predicate | None = None
    filter_text: str = ""
    top: int | None = None
    skip: int = 0
    only: bool = False

    @property
    def any(self) -> bool:
        """Whether anything differs from a plain GET."""
        return self != QueryOptions()

    @property
    def costly(self) -> bool:
        """Whether other resources must be read."""
        return bool(self.expand or self.filter)


def parse_query(text: str, *, collection: bool) -> QueryOptions:
    """The options of a query string; RedfishError for a wrong or unknown one (unknown without '$': ignored)."""
    if not text:
        return QueryOptions()
    if len(text) > _LONGEST:
        raise refusal(400, "Base.QueryNotSupported")
    known: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
        if name.startswith("$") and name not in ("$expand", "$select", "$filter", "$top", "$skip"):
            raise refusal(501, "Base.QueryParameterUnsupported", shorten(printable(name)))
        if name in known:
            raise refusal(400, "Base.QueryCombinationInvalid")
        if name.startswith("$") or name == "only":
            known[name] = value
    if not collection and any(name in known for name in _PAGED):
        raise refusal(400, "Base.QueryNotSupportedOnResource")
    if "only" in known and (len(known) > 1 or known["only"]):
        key = "Base.QueryParameterValueFormatError" if known["only"] else "Base.QueryCombinationInvalid"
        raise refusal(400, key, *((shorten(printable(known["only"])), "only") if known["only"] else ()))
    kind, levels = _expansion(known.get("$expand"))
    return QueryOptions(
        kind,
        levels,
        _selection(known.get("$select")),
        parse_filter(known["$filter"]) if "$filter" in known else None,
        known.get("$filter", ""),
        _count(known.get("$top"), "$top"),
        _count(known.get("$skip"), "$skip") or 0,
        "only" in known,
    )


def _expansion(text: str | None) -> tuple[str, int]:
    if text is None:
        return "", 0
    match = _EXPAND.fullmatch(text.strip())
    if match is None:
        raise refusal(400, "Base.QueryParameterValueFormatError", shorten(printable(text)), "$expand")
    levels = int(match["levels"] or 1)
    if not 1 <= levels <= MOST_LEVELS:
        raise refusal(400, "Base.QueryParameterOutOfRange", str(levels), "$expand", f"1 to {MOST_LEVELS} levels")
    return match["kind"], levels


def _selection(text: str | None) -> tuple[tuple[str, ...], ...]:
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    if not all(re.fullmatch(r"[\w@.#/]{1,200}", name) for name in names):
        raise refusal(400, "Base.QueryParameterValueFormatError", shorten(printable(text)), "$select")
    return tuple(tuple(name.split("/")) for name in names)


def _count(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    value = whole(text)
    if value is None:
        raise refusal(400, "Base.QueryParameterValueTypeError", shorten(printable(text)), name)
    return value


def apply_query(data: Json, options: QueryOptions, fetch: Fetch) -> Json:
    """The object with the options applied; `fetch` reads another resource, None if the caller may not."""
    if options.only:
        members = data["Members"]
        return (fetch(members[0]["@odata.id"]) or data) if len(members) == 1 else data
    if options.filter or options.skip or options.top is not None:
        data = _page(data, options, fetch)
    if options.expand:
        budget = [MOST_EXPANDED]
        data = _expand(data, options.expand, options.levels, fetch, budget)
    return _select(data, options.select) if options.select else data


def _page(data: Json, options: QueryOptions, fetch: Fetch) -> Json:
    members = data["Members"]
    if options.filter:
        predicate = options.filter
        members = [one for one in members if (full := fetch(one["@odata.id"])) is not None and predicate(full)]
    shown = members[options.skip :]
    page = {**data, "Members@odata.count": len(members), "Members": shown}
    if options.top is not None and len(shown) > options.top:
        page["Members"] = shown[: options.top]
        terms = [f"$skip={options.skip + options.top}", f"$top={options.top}"]
        if options.filter_text:
            terms.append(f"$filter={quote(options.filter_text)}")
        if options.top:
            page["Members@odata.nextLink"] = f"{data['@odata.id']}?{'&'.join(terms)}"
    return page


def _expand(data: Json, kind: str, levels: int, fetch: Fetch, budget: list[int]) -> Json:
    def walk(value: Any, under_links: bool) -> Any:
        if isinstance(value, list):
            return [walk(entry, under_links) for entry in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"@odata.id"}:
            return reference(value) if kind == "*" or under_links == (kind == "~") else value
        return {name: part(name, entry, under_links) for name, entry in value.items()}

    def part(name: str, entry: Any, under_links: bool) -> Any:
        if name.startswith("@") or name == "Actions":
            return entry
        return walk(entry, under_links or name == "Links")

    def reference(value: Json) -> Json:
        budget[0] -= 1
        if budget[0] < 0:
            raise refusal(507, "Base.ResourceExhaustion", "an answer this large", hint="Expand fewer levels.")
        full = fetch(value["@odata.id"])
        if full is None:
            return value
        return full if levels == 1 else _expand(full, kind, levels - 1, fetch, budget)

    return {name: part(name, entry, False) for name, entry in data.items()}


def _select(data: Json, paths: tuple[tuple[str, ...], ...]) -> Json:
    wanted: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        wanted.setdefault(path[0], []).append(path[1:])
    kept: Json = {}
    for name, value in data.items():
        if name in ("@odata.id", "@odata.type", "@odata.context", "@odata.etag"):
            kept[name] = value
        elif name in wanted:
            deeper = tuple(path for path in wanted[name] if path)
            whole_value = len(deeper) < len(wanted[name])
            kept[name] = value if whole_value else _select_below(value, deeper)
    return kept


def _select_below(value: Any, paths: tuple[tuple[str, ...], ...]) -> Any:
    if isinstance(value, list):
        return [_select_below(entry, paths) for entry in value]
    return _select(value, paths) if isinstance(value, dict) else value
