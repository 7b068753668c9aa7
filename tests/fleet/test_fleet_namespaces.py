"""A fleet check of four nodes in network namespaces, one behind a slow link: it is named. `make guests` runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cli_binary import BINARY
from dispatch.namespaces import NoNamespaces, fabric

pytestmark = pytest.mark.guest
RATES = ("200mbit", "200mbit", "50mbit", "200mbit")


def test_the_node_behind_a_slow_link_is_named(tmp_path: Path) -> None:
    try:
        with fabric(*RATES) as links:
            names = [links.inside(number)[-1] for number in range(4)]
            hosts = ",".join(f"{name}={links.host(number)}" for number, name in enumerate(names))
            words = ["--hosts", hosts, "--via", "ip netns exec {host}", "--program", str(BINARY)]
            done = subprocess.run(
                [BINARY, "fleet", "check", *words, "--json", tmp_path / "fleet.json"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
    except NoNamespaces as lack:
        pytest.skip(f"no network namespaces here: {lack}")
    assert done.returncode == 1, done.stderr
    nodes = json.loads((tmp_path / "fleet.json").read_text())["nodes"]
    # Four checks at once on one machine may find its memory slow; the network is shaped, so it is what it is.
    causes = {node["node"]: {finding["cause"] for finding in node["findings"]} for node in nodes}
    assert {name for name, found in causes.items() if "network" in found} == {names[2]}
