"""Why a node was lost, and the step that fits: by how the connection to it ended."""

from __future__ import annotations

import re

from lanewise.fleet.node import CONTACT, NodeFinding

_CONTROLLER = "its management controller (ipmitool, Redfish): console, power; then lanewise doctor there"
# What the failure says, the cause, the step; the first that fits. `lost` is a node of which nothing more is known.
_LOSSES = (
    (r"it has Lanewise", "version", "install the same Lanewise there as here: lanewise --version on both"),
    (r"cannot be started", "command", "this machine lacks that program: install it, or name another with --via"),
    (r"exit code 127|command not found|No such file", "program",
     "name the path of lanewise there with --program, or install it there"),
    (r"facts: .*(exit code 255|ssh: )", "unreachable",
     "ssh -o BatchMode=yes {node} true, which needs a key and a known host; else " + _CONTROLLER),
    (r"exit code 255|ssh: ", "disconnected", "ssh {node} uptime: did it restart? last -x; else " + _CONTROLLER),
    (r"srun: ", "slurm", "scontrol show node {node}: its state and reason"),
    (r"answer cannot be read", "answer", "ssh {node} true must print nothing: look at the login scripts there"),
    (r"by signal 9|exit code 137|memory", "killed", "dmesg -T | grep -iE 'oom|killed' there; lanewise doctor there"),
    (r"node has died|node .*(died|dead)", "node of Ray", "ray status on the head: is it listed? Else " + _CONTROLLER),
    (r"[Aa]ctor", "actor of Ray", "ray logs on that node: the worker's last lines; lanewise doctor there"),
    (r"its process ended", "agent", "lanewise fleet agent {node} < /dev/null there shows the error; lanewise doctor"),
    (r"no answer", "lost", "is it overloaded? uptime there, and --patience 2 doubles all limits; else " + _CONTROLLER),
)  # fmt: skip


def lost_finding(node: str, failure: str) -> NodeFinding:
    """The finding on a node that is lost, as `failure` says."""
    for pattern, cause, step in _LOSSES:
        if re.search(pattern, failure):
            return NodeFinding(CONTACT, "lost", cause, "", failure, step.replace("{node}", node))
    return NodeFinding(CONTACT, "lost", "lost", "", failure, _CONTROLLER)
