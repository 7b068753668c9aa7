"""What the web page draws: the fabric with who has what, in one document."""

from __future__ import annotations

from lanewise.director.redfish.etags import json_text
from lanewise.director.redfish.offers import KIND_WORDS, gigabytes, requirement_json
from lanewise.director.redfish.resource import Call, Json, ResourceType
from lanewise.director.redfish.resources.devices import lane_gbps, part_title
from lanewise.director.redfish.uris import OEM


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


def _document(call: Call) -> tuple[str, bytes]:
    return "application/json;charset=utf-8", json_text(_fabric(call))


TYPES = (ResourceType(f"{OEM}/Fabric", document=_document, slow=True),)
