"""The manager: the director itself, and its audit log."""

from __future__ import annotations

from importlib.metadata import version

from lanewise.director.records import Health
from lanewise.director.redfish.moments import moment
from lanewise.director.redfish.resource import Call, Json, ResourceType
from lanewise.director.redfish.resources.common import collection, status
from lanewise.director.redfish.resources.root import service_uuid
from lanewise.director.redfish.roles import Privilege
from lanewise.director.redfish.uris import FABRIC, MANAGER, ROOT, chassis, link, links, not_there, system
from lanewise.director.store.subscriptions import AuditRecord
from lanewise.units import whole

_LOG = f"{MANAGER}/LogServices/Audit"
_SHOWN = 500  # newest entries in the collection


def _manager(call: Call) -> Json:
    inventory, service = call.inventory, call.service
    return {
        "Id": "Director",
        "Name": service.settings.name,
        "ManagerType": "Service",
        "Manufacturer": "Lanewise",
        "Model": "Lanewise director",
        "FirmwareVersion": version("lanewise"),
        "UUID": service_uuid(call),
        "ServiceEntryPointUUID": service_uuid(call),
        "DateTime": moment(service.clock()),
        "DateTimeLocalOffset": "+00:00",
        "LastResetTime": moment(service.started),
        "PowerState": "On",
        "Status": status(_health(call)),
        "LogServices": link(f"{MANAGER}/LogServices"),
        "Links": {
            "ManagerForServers": links([system(name) for name in (*inventory.servers, *inventory.composed)]),
            "ManagerForChassis": links([chassis(name) for name in inventory.in_chassis]),
            "ManagerForSwitches": links([f"{FABRIC}/Switches/{name}" for name in inventory.switches]),
            "ManagerForFabrics": [link(FABRIC)],
        },
    }


def _health(call: Call) -> Health:
    worst = {block.health for block in call.view.blocks.values()}
    worst |= {composition.health for composition in call.view.compositions.values()}
    return next((one for one in (Health.CRITICAL, Health.WARNING) if one in worst), Health.OK)


def _log_service(call: Call) -> Json:
    return {
        "Id": "Audit",
        "Name": "Audit log",
        "Description": "Requests that changed something, were refused or failed to log in.",
        "ServiceEnabled": True,
        "LogEntryType": "Event",
        "OverWritePolicy": "Unknown",
        "DateTime": moment(call.service.clock()),
        "DateTimeLocalOffset": "+00:00",
        "Status": status(),
        "Entries": link(f"{_LOG}/Entries"),
    }


def _entries(call: Call) -> Json:
    records = call.service.store.audited(max(0, _newest(call) - _SHOWN), _SHOWN)
    members = [_full_entry(record) for record in reversed(records)]
    return {
        "Name": "Audit log",
        "Description": f"The newest {_SHOWN} records, newest first.",
        "Members@odata.count": len(members),
        "Members": members,
    }


def _newest(call: Call) -> int:
    """The id of the newest record, by halving, as the store reads forwards."""
    low, high = 0, 1
    while call.service.store.audited(high, 1):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if call.service.store.audited(middle, 1):
            low = middle + 1
        else:
            high = middle
    return low


def _full_entry(record: AuditRecord) -> Json:
    """A record as a member of the collection, which Redfish wants whole."""
    return {"@odata.id": f"{_LOG}/Entries/{record.id}", "@odata.type": ENTRY.odata_type, **_entry_body(record)}


def _entry(call: Call) -> Json:
    number = whole(call.names["entry"])
    entries = call.service.store.audited(number - 1, 1) if number else ()
    if not entries or entries[0].id != number:
        raise not_there(call.path)
    return _entry_body(entries[0])


def _entry_body(record: AuditRecord) -> Json:
    return {
        "Id": str(record.id),
        "Name": f"Audit record {record.id}",
        "EntryType": "Event",
        "Created": moment(record.time),
        "Severity": "OK" if record.status < 400 else "Warning",
        "Message": f"{record.account or 'nobody'} at {record.address or 'unknown'}: {record.method} {record.path}: "
        f"{record.status}{f' ({record.text})' if record.text else ''}",
        "MessageId": "ResourceEvent.1.4.ResourceChanged",
        "MessageArgs": [],
    }


ENTRY = ResourceType(f"{_LOG}/Entries/{{entry}}", "LogEntry.v1_21_0", _entry, privilege=Privilege.USERS, live=True)
_CLOCK = frozenset({"DateTime"})
TYPES = (
    collection(f"{ROOT}/Managers", "ManagerCollection", "Managers", lambda call: [MANAGER]),
    ResourceType(MANAGER, "Manager.v1_24_0", _manager, live=True, volatile=_CLOCK),
    collection(f"{MANAGER}/LogServices", "LogServiceCollection", "Logs", lambda call: [_LOG]),
    ResourceType(_LOG, "LogService.v1_9_0", _log_service, live=True, volatile=_CLOCK),
    ResourceType(f"{_LOG}/Entries", "LogEntryCollection", _entries, privilege=Privilege.USERS, live=True, slow=True),
    ENTRY,
)
