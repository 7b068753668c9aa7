"""From a marked document to the validated form, with errors in the words of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.errors import FormatError, LanewiseError, unknown_name
from lanewise.topology.scope import Problems
from lanewise.yaml_positions import describe

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from lanewise.topology.form import Form, SystemForm
    from lanewise.yaml_positions import Path, YamlDocument

VERSION = 1
_EXAMPLES: dict[str | int, str] = {
    "parameters": "{default: 4, min: 1, max: 8}",
    "devices": "{gpu: l40s}, with what it is and its part",
    "links": "{from: cpu0, to: gpu0, pcie: auto}",
    "domains": "{root: cpu0, devices: 'gpu[0-1]'}",
    "volumes": "{raid: 0, drives: 'ssd[0-3]'}",
}
_EXPECTED = {
    "int_type": "a whole number", "float_type": "a number", "string_type": "a text", "bool_type": "true or false",
    "list_type": "a list", "dict_type": "'name: value' lines", "model_type": "'name: value' lines",
    "string_too_short": "a text that is not empty", "too_short": "a list that is not empty",
}  # fmt: skip
_START = "start it with 'lanewise: 1' and 'system: <name>'"


def validate(document: YamlDocument) -> SystemForm:
    """The document as a SystemForm; InputError where it breaks the format, further breaches in its hint."""
    from pydantic import ValidationError  # here, so that importing the model stays cheap

    from lanewise.topology.form import SystemForm

    _check_top(document)
    try:
        return SystemForm.model_validate(_in_words_of_the_format(document))
    except ValidationError as error:
        problems = Problems()
        # A misspelt key first: what is missing is often what it was meant to be.
        details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        by_path: dict[Path, list[ErrorDetails]] = {}
        for detail in details:
            by_path.setdefault(_path(document, detail), []).append(detail)
        for path, same in by_path.items():
            problems.add(_explain(document, path, same))
    problems.raise_if_any()
    raise AssertionError("a validation error without details")


def _check_top(document: YamlDocument) -> None:
    location = document.location()
    if document.data is None:
        raise FormatError("the description is empty", location=location, hint=_START)
    if not isinstance(document.data, dict):
        raise FormatError("a description is made of 'name: value' lines", location=location, hint=_START)
    if "lanewise" not in document.data:
        hint = "put 'lanewise: 1' at its top, if this is a system description"
        raise FormatError("the format version is missing", location=location, hint=hint)
    version = document.data["lanewise"]
    if version != VERSION or isinstance(version, bool):
        hint = f"this Lanewise reads version {VERSION}: write 'lanewise: {VERSION}', or update Lanewise"
        raise FormatError(f"format version {version} is not known", location=document.location("lanewise"), hint=hint)


# Policies as kernels, BIOSes and people call them.
_POLICY_WORDS: dict[str, dict[str | bool, str | bool | None]] = {
    "iommu": {
        **dict.fromkeys(("pt", "identity"), "passthrough"),  # kernel parameters: iommu=pt, iommu.passthrough
        **dict.fromkeys(("translated", "strict", "lazy", "dma"), "translate"),  # iommu.strict, default domains
        **dict.fromkeys(("off", "no", "disabled"), "off"),
        **dict.fromkeys(("?", "unknown"), None),
    },
    "acs_redirect": {
        **dict.fromkeys(("off", "no", "disabled", "none"), False),
        "on": True,
        "yes": True,
        "enabled": True,
    },
    "peers": {False: "none", "off": "none", "no": "none", "disabled": "none"},
}


def _in_words_of_the_format(document: YamlDocument) -> dict[str, Any]:
    """The data of a description, policies in words of the format, ports and bridges as texts: bus 20 is no number."""
    data = dict(document.data)
    if isinstance(policies := data.get("policies"), dict):
        data["policies"] = {key: _policy(key, value) for key, value in policies.items()}
    if isinstance(data.get("links"), list):
        data["links"] = [
            {key: _as_written(document, index, key, value) for key, value in link.items()}
            if isinstance(link, dict) else link
            for index, link in enumerate(data["links"])
        ]  # fmt: skip
    return data


def _policy(key: str, value: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else value
    return _POLICY_WORDS.get(key, {}).get(word, value) if isinstance(word, (str, bool)) else value


def _as_written(document: YamlDocument, index: int, key: str, value: Any) -> Any:
    if key not in ("port", "bridge") or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return str(document.values["links", index, key].value)


# What manuals call a key, and what to write.
_MANUALS_WORDS = {
    **dict.fromkeys(("upi", "qpi"), "write socket: with the number of links between the two CPUs"),
    "xgmi": "write socket: between CPUs, nvlink: between GPUs, with the number of links",
    "accelerator": "write gpu: for every kind of accelerator",
    "acs": "write acs_redirect: true or false, whether peer traffic is sent up (ReqRedir of lspci -vv)",
    **dict.fromkeys(("nps", "snc", "sub_numa"), "write numa_nodes: 4 at the CPU, and numa: at its devices"),
    **dict.fromkeys(
        ("memory", "memory_rate", "memory_speed", "dimms", "channels"),
        "a part under parts: states it, which extends: the CPU's own name: memory.rate, channels x MT/s x 8 B",
    ),
}


def _path(document: YamlDocument, detail: ErrorDetails) -> Path:
    """Where the error is, without the steps that name pydantic's own types."""
    path: Path = ()
    for step in detail["loc"]:
        if (*path, step) in document.values:
            path = (*path, step)
    return (*path, detail["loc"][-1]) if detail["type"] == "missing" else path


def _explain(document: YamlDocument, path: Path, details: list[ErrorDetails]) -> LanewiseError:
    node, kind = document.at(path), details[0]["type"]
    if kind == "missing":
        cause = f"{_owner(path[:-1])} has no '{path[-1]}'"
        hint = f"add '{path[-1]}:', {_description(path)}"
        return FormatError(cause, location=document.key_location(*path[:-1]), hint=hint)
    if kind == "extra_forbidden":
        form, _ = _form(path)
        keys = [field.alias or name for name, field in form.model_fields.items()]
        unknown = unknown_name("key", str(path[-1]), keys, node.key_location)
        unknown.cause += f" in {_owner(path[:-1])}"
        if node.value is None and " " in str(path[-1]):  # {gpu: one, two words}
            unknown.hint = f'a text with a comma needs quotes: "..., {path[-1]}"'
        unknown.hint = _MANUALS_WORDS.get(str(path[-1]).lower(), unknown.hint)
        return unknown
    subject = f"'{path[-1]}'" if path and isinstance(path[-1], str) else _owner(path)
    expected = dict.fromkeys(word for detail in details if (word := _expected(detail)))
    cause = f"{subject} must be {' or '.join(expected) or 'something else'}, not {describe(node.value)}"
    if len(path) == 2 and path[0] in _EXAMPLES:
        hint = f"write {path[1]}: {_EXAMPLES[path[0]]}" if isinstance(path[1], str) else f"write - {_EXAMPLES[path[0]]}"
    else:
        hint = f"it is {_description(path)}"
    return FormatError(cause, location=node.location, hint=hint)


def _expected(detail: ErrorDetails) -> str:
    """What would have been right, in words."""
    if detail["type"] == "literal_error":
        return str(detail["ctx"]["expected"]).removesuffix(" or False")
    return _EXPECTED.get(detail["type"], "")


def _form(path: Path) -> tuple[type[Form], int]:
    """The form that holds the field at `path`, and how many steps lead to it."""
    from lanewise.topology import form

    inner: dict[str | int, type[Form]] = {
        "parameters": form.ParameterForm,
        "devices": form.DeviceForm,
        "links": form.LinkForm,
        "domains": form.DomainForm,
        "volumes": form.VolumeForm,
    }
    if len(path) > 2 and path[0] in inner:
        return inner[path[0]], 2
    if len(path) > 1 and path[0] == "policies":
        return form.PoliciesForm, 1
    return form.SystemForm, 0


def _description(path: Path) -> str:
    """What the format says about the field at `path`, '' where it has none."""
    form, steps = _form(path)
    descriptions = {field.alias or name: field.description for name, field in form.model_fields.items()}
    return descriptions.get(str(path[steps])) or "" if len(path) > steps else ""


def _owner(path: Path) -> str:
    """What a message calls the entry at `path`: 'a link', "device 'gpu0'"."""
    if not path:
        return "the description"
    if path[0] == "policies":
        return "policies"
    if len(path) == 1:
        return f"'{path[0]}'"
    kind = str(path[0]).removesuffix("s")
    return f"a {kind}" if isinstance(path[1], int) else f"{kind} '{path[1]}'"
