"""`lanewise serve` and `loadtest run` over RDMA as processes of a guest that has rxe0; prints a line of JSON a run.

python verbs_commands.py FOLDER; a second node is killed amid a run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dispatch.nodes import NodeProcess, over

import lanewise
from lanewise.dispatch import frontend
from lanewise.dispatch.host import ROOT
from lanewise.errors import LanewiseError

NODE = ("--engine", "synthetic", "--service", "2 ms", "--sample-bytes", "4 KiB")


def row(node: NodeProcess, folder: Path, **more: object) -> dict[str, Any]:
    """What a run over the node came to."""
    try:
        result = lanewise.loadtest_run(over([node], folder, **more))
    except LanewiseError as error:
        return {"error": str(error), "hint": error.hint}
    setup = {key: value for key, value in result.setup.items() if isinstance(value, str)}
    audit = dict(result.audit.figures) if result.audit else None
    return {"setup": setup, "audit": audit, "reasons": result.run.reasons, "queries": result.run.queries,
            "nics": sorted({one.nic for one in result.statistics.connections})}  # fmt: skip


def main(folder: Path) -> None:
    """The runs."""
    node = NodeProcess(folder, "a", NODE, host="10.9.0.1")
    checked = row(node, folder, transport="verbs", library=300, audit="payload", results=folder / "audit")
    print(json.dumps({**checked, "session": node.line(" queries over ")}), flush=True)
    print(json.dumps(row(node, folder, transport="verbs", qps=100.0, device="rxe9")), flush=True)
    print(json.dumps(row(node, folder, transport="verbs", qps=100.0, gid_index=0)), flush=True)
    own, frontend.boot_id = frontend.boot_id, lambda root=ROOT: "another host's"
    print(json.dumps(row(node, folder, qps=100.0, results=folder / "auto")), flush=True)
    frontend.boot_id = own
    patch = (
        "import os, threading\nfrom lanewise.dispatch.node import DispatchSession\nbegin = DispatchSession._begin\n"
        "def killed(self, request):\n"
        "    def watch():\n"
        "        while self._session.received < 20: threading.Event().wait(0.01)\n"
        "        os.kill(os.getpid(), 9)\n"
        "    reply = begin(self, request)\n    threading.Thread(target=watch, daemon=True).start()\n    return reply\n"
        "DispatchSession._begin = killed\n"
    )
    victim = NodeProcess(folder, "b", NODE, host="10.9.0.1", patch=patch)
    print(json.dumps(row(victim, folder, transport="verbs", scenario="server", qps=100.0, seconds=3.0,
                         results=folder / "lost")), flush=True)  # fmt: skip
    node.close()
    victim.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
