"""The JSON Schema of the description format, for editors."""

from __future__ import annotations

from typing import Any


def json_schema() -> dict[str, Any]:
    """The schema of a system description, draft 2020-12, made from the models that validate it."""
    from lanewise.topology.form import SystemForm  # here, as it imports pydantic

    schema = SystemForm.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Lanewise system description"
    return schema
