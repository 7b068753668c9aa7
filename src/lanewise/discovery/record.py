"""The record in a capture of when and how it was made: capture.json."""

from __future__ import annotations

import json

from lanewise.discovery.facts import MACHINE, DumpFacts, FactCollector
from lanewise.errors import FormatError, Location

KIND = "capture"


def as_text(version: str, date: str, kernel: str, under_load: bool | None) -> bytes:
    """The record: the version of Lanewise, the date, the kernel, and whether copies ran meanwhile (None: unknown)."""
    data = {"lanewise": version, "made": date, "kernel": kernel, "under_load": under_load}
    return json.dumps(data, indent=1).encode() + b"\n"


def read_record(text: str, file: str) -> DumpFacts:
    """The facts of such a record; FormatError if it is none."""
    facts = FactCollector(file, KIND)
    try:
        data = json.loads(text)
    except ValueError as error:
        cause = f"its capture.json is no JSON: {error}"
        raise FormatError(cause, location=Location(file), hint="write the capture again") from None
    if not isinstance(data, dict):
        raise FormatError("its capture.json holds no record", location=Location(file), hint="write the capture again")
    for key, kind in (("under_load", bool), ("made", str), ("kernel", str)):
        value = data.get(key)
        facts.say(MACHINE, key, value if isinstance(value, kind) else None, "capture.json")
    return facts.collected()
