"""What the web page shows: the fabric with who has what, its drawing, what-if changes, and the changes made so far."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lanewise.director.redfish.etags import json_text
from lanewise.director.redfish.json_body import RequestForm
from lanewise.director.redfish.messages import refusal
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.offers import KIND_WORDS, gigabytes, rate_json, requirement_json
from lanewise.director.redfish.resource import Call, Json, Reply, ResourceType, TextDocument, WriteMethod
from lanewise.director.redfish.resources.devices import lane_gbps, part_title
from lanewise.director.redfish.roles import Privilege
from lanewise.director.redfish.uris import OEM, not_there
from lanewise.pool.model import CompositionState, PathRate, Pool
from lanewise.pool.what_if import ChangeKind, PoolChange, active_flows, changed, predicted_rates

_SVG = "image/svg+xml;charset=utf-8"
_MOST_SHOWN = 200
Word = Annotated[str, Field(min_length=1, max_length=200)]


class ChangeForm(RequestForm):
    """One change that is not made; see pool.what_if.PoolChange."""

    Action: Literal["compose", "attach", "detach", "release"]
    Composition: Word
    Server: Annotated[str, Field(max_length=200)] = ""
    Blocks: Annotated[list[Word], Field(max_length=64)] = Field(default=[])


class WhatIfForm(RequestForm):
    """Changes, one after the other."""

    Changes: Annotated[list[ChangeForm], Field(max_length=64)]


def _fabric(call: Call) -> Json:
    inventory = call.inventory
    pool, records = inventory.pool, call.view.blocks
    return {
        "Version": call.view.version,
        "System": inventory.system.name,
        "Title": inventory.system.title,
        "Servers": list(inventory.servers),
        "Devices": [
            {
                "Name": one.name,
                "Kind": KIND_WORDS.get(one.kind, str(one.kind).upper()),
                "Part": one.part,
                "Title": part_title(inventory, one),
                "Server": one.host,
                "Block": one.name in pool.blocks,
                "State": str(pool.blocks[one.name].state) if one.name in pool.blocks else None,
                "Composition": pool.blocks[one.name].holder if one.name in pool.blocks else None,
                "Reservation": pool.blocks[one.name].reservation if one.name in pool.blocks else None,
                "Note": records[one.name].note if one.name in records else "",
            }
            for one in inventory.system.devices.values()
        ],
        "Links": [
            {
                "A": one.a,
                "B": one.b,
                "Kind": str(one.kind),
                "Gen": one.gen,
                "Lanes": one.lanes,
                "RawGbps": lane_gbps(one),
            }
            for one in inventory.system.links
        ],
        "Compositions": [
            {
                "Name": one.name,
                "Server": one.server,
                "Blocks": list(one.blocks),
                "State": str(one.state),
                "Paths": [requirement_json(need) for need in one.requirements],
                "Rates": {rate.device: gigabytes(rate.rate) for rate in call.service.rates(call.view, one.name)},
            }
            for one in inventory.composed.values()
        ],
    }


def _document(call: Call) -> TextDocument:
    return TextDocument(json_text(_fabric(call)))


def _drawing(call: Call) -> TextDocument:
    return TextDocument(call.service.drawn(call.view).encode(), _SVG)


def _what_if(call: Call) -> Reply:
    """Drawing and rates after changes that are not made, with the rates of today."""
    draw = call.service.draw
    if draw is None:
        raise not_there(call.path)
    form: WhatIfForm = call.body
    changes = [PoolChange(ChangeKind(one.Action), one.Composition, tuple(one.Blocks), one.Server)
               for one in form.Changes]  # fmt: skip
    for name in (block for one in changes for block in one.blocks):
        if name not in call.inventory.pool.blocks:
            raise refusal(400, "Composition.ResourceBlockNotFound", name[:80], prop="Changes")
    after = changed(call.view.pool, changes)
    today = {rate.device: rate.rate for rates in _today(call).values() for rate in rates}
    return Reply(200, {
        "Version": call.view.version,
        "Svg": draw(after.system, active_flows(after)),
        "Compositions": [_composition(after, name, rates, today) for name, rates in predicted_rates(after).items()],
    })  # fmt: skip


def _today(call: Call) -> dict[str, tuple[PathRate, ...]]:
    return {name: call.service.rates(call.view, name) for name in call.inventory.composed}


def _composition(pool: Pool, name: str, rates: tuple[PathRate, ...], today: dict[str, float]) -> Json:
    owner = pool.compositions[name]
    before = {rate.device: gigabytes(today[rate.device]) for rate in rates if rate.device in today}
    return {
        "Name": name,
        "Server": owner.server,
        "Blocks": list(owner.blocks),
        "Rates": [{**rate_json(rate), "TodayGBps": before.get(rate.device)} for rate in rates],
    }


def _history(call: Call) -> TextDocument:
    """The newest changes of the pool first, as an undo needs them."""
    known, servers = call.view.pool.compositions, call.service.store.servers()
    rows = [
        {
            "Task": task.name,
            "Action": str(task.action),
            "Composition": task.composition,
            "Server": servers.get(task.composition),
            "Exists": task.composition in known and known[task.composition].state is not CompositionState.RELEASED,
            "Blocks": list(task.blocks),
            "State": str(task.state),
            "Percent": task.percent,
            "Messages": list(task.messages),
            "Problem": task.problem.cause if task.problem else None,
            "Client": task.client,
            "Time": moment(task.created),
        }
        for task in call.service.director.tasks()[-_MOST_SHOWN:]
    ]
    return TextDocument(json_text({"Changes": rows[::-1]}))


TYPES = (
    ResourceType(f"{OEM}/Fabric", document=_document, slow=True),
    ResourceType(f"{OEM}/Drawing", document=_drawing, slow=True),
    ResourceType(f"{OEM}/History", document=_history, slow=True, live=True),
    ResourceType(
        f"{OEM}/WhatIf",
        writes={"POST": WriteMethod(_what_if, WhatIfForm, privilege=Privilege.LOGIN, action="WhatIf", alone=False)},
    ),
)
