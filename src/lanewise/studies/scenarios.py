"""Reads what runs and on which settings: the same for the rows of a table and for drawings."""

from __future__ import annotations

from lanewise.errors import error_location
from lanewise.perf.flow import parse_flows
from lanewise.results.plan import METHODS, STEADY
from lanewise.studies.form import ScenarioForm
from lanewise.yaml_positions import YamlNode

_SCENARIO = ("flows", "demand", "p2p", "service", "mode", "division", "host", "method")


def scenario(node: YamlNode) -> ScenarioForm:
    """A scenario entry; FormatError if it is neither flows that can be read nor a service."""
    if not node.given:
        raise node.error("there is no scenario to ask for", "for example scenario: {flows: gpu0->gpu1}")
    node.fields(_SCENARIO)
    if node.has("flows") == node.has("service"):
        raise node.error("a scenario is either 'flows' or a 'service'", "for example flows: gpu0->gpu1")
    for key in ("mode", "division", "host", "method") if node.has("flows") else ("demand", "p2p"):
        if node.has(key):
            raise node[key].error(f"'{key}' says nothing about {'flows' if node.has('flows') else 'a service'}")
    p2p = node["p2p"].flag(True)
    if node.has("flows"):
        with error_location(node["flows"].location):
            parse_flows(node["flows"].needed(), p2p)
    return ScenarioForm(
        flows=node["flows"].text(),
        demand=node["demand"].quantity("B/s", above=0) if node.has("demand") else None,
        p2p=p2p,
        service=node["service"].needed() if node.has("service") else "",
        mode=node["mode"].choice(("server", "offline"), "server"),
        division=node["division"].choice(("closed", "network"), "closed"),
        host=node["host"].needed() if node.has("host") else None,
        method=node["method"].choice(METHODS, STEADY),
    )


def settings(node: YamlNode) -> dict[str, int]:
    """Parameters of a system; FormatError unless each is a whole number."""
    return {name: value.integer() for name, value in node.members("set: {path: 4}").items()}
