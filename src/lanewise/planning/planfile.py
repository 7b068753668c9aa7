"""A plan file: the options of a plan in YAML, for more than a command line holds."""

from __future__ import annotations

from collections.abc import Callable

from lanewise.errors import error_location
from lanewise.planning.ask import Ask
from lanewise.planning.work import Tenant, tenant
from lanewise.serving.load import ServiceLoad
from lanewise.serving.workload import Workload, workload
from lanewise.yaml_positions import YamlNode, load

_KEYS = ("lanewise", "plan", "services", "flows", "pattern", "by", "move", "hosts", "at", "slots", "p2p")
_SERVICE = ("workload", "qps", "host", "from", "each", "mode")
_EXAMPLE = "shop: {workload: resnet50, qps: 170000}"


def read_plan(text: str, file: str, find: Callable[[str], Workload] = workload) -> Ask:
    """The options that a plan file states; InputError with file and line for anything that is no plan.

    `find` gives the workload of a name.
    """
    root = load(text, file, "docs/guides/plan.md").root
    if root["lanewise"].value != 1:
        hint = f"start it with 'lanewise: 1', then services: {{{_EXAMPLE}}}"
        raise root.error("this is no plan file", hint)
    root.fields(_KEYS, "a plan")
    hosts = _text(root["hosts"])
    return Ask(
        services=tuple(_service(entry, find) for entry in root["services"].members(_EXAMPLE).values()),
        flows=_text(root["flows"]),
        pattern=_text(root["pattern"]),
        by=_text(root["by"]),
        move=_text(root["move"]),
        hosts=None if hosts is None else [name.strip() for name in hosts.split(",")],
        at=_text(root["at"]),
        slots={port: count.integer(0) for port, count in root["slots"].members("slots: {sw0: 4}").items()},
        p2p=root["p2p"].flag(True),
    )


def _service(node: YamlNode, find: Callable[[str], Workload]) -> Tenant:
    node.fields(_SERVICE, f"service {node.name}", needed=("workload", "qps"), hint=_EXAMPLE)
    with error_location(node.key_location):
        load = ServiceLoad(
            find(node["workload"].needed()),
            node["qps"].quantity("1/s"),
            gpus=(node["host"].needed(),) if node.has("host") else (),
            frontend=node["from"].needed() if node.has("from") else None,
        )
        rate = node["each"].quantity("1/s") if node.has("each") else None
        return tenant(load, rate, node["mode"].text("server"), node.key)


def _text(node: YamlNode) -> str | None:
    """A text, or a list of texts joined by commas; None if nothing is given."""
    if not isinstance(node.value, (str, list, type(None))):
        raise node.error(f"{node.name} must be a text or a list of texts", f"for example {node.key}: 'gpu[0-3]'")
    if isinstance(node.value, list):
        return ", ".join(entry.needed() for entry in node.items())
    return node.value
