"""Many machines checked together: the survey, its plan, and its answer as data."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lanewise.api.provenance import command, new_run, now, version
from lanewise.errors import EngineFailure, InputError
from lanewise.fleet.survey import NodeConnections, Survey, SurveyRequest
from lanewise.options.fleet import FleetCheckOptions

if TYPE_CHECKING:
    from lanewise.fleet.fleet_check import FleetCheck
    from lanewise.fleet.judgement import Past
    from lanewise.fleet.node import NodeReport
    from lanewise.fleet.schedule import SurveyPhase
    from lanewise.results.run import Run


class _Closing(NodeConnections, Protocol):
    def close(self) -> None: ...


def check_fleet(options: FleetCheckOptions, say: Callable[[str], object] = lambda _: None) -> FleetCheck:
    """One verdict for each node of a fleet: measured alone, all together and in pairs over the network.

    Each node is compared with the model, with its siblings and with its own past; a lost node is a finding. `say` gets
    a line after each step. A Ctrl-C ends the survey, and what was measured by then is judged.

    Raises InputError for nodes or options that do not fit, EngineFailure where Ray or Slurm cannot be reached, and
    MissingDependency without Ray for --on ray://.

    >>> from lanewise.options.fleet import FleetCheckOptions
    >>> result = lanewise.check_fleet(FleetCheckOptions(on="local:4"))  # measures  # doctest: +SKIP
    >>> [str(node.state) for node in result.verdicts.nodes]  # doctest: +SKIP
    ['ok', 'ok', 'ok', 'ok']
    """
    from lanewise.api.history import read_history
    from lanewise.fleet.fleet_check import FleetCheck

    request = _request(options)
    kept = read_history(options.history) if options.history else {}
    start = time.monotonic()
    interrupted = False
    with _connections(options) as connections:
        survey = Survey(connections, request, past_of(connections.addresses, kept))
        try:
            say(_bound(_phases(options, len(connections.addresses)), len(connections.addresses)))
            for line in survey.run():
                say(line)
        except KeyboardInterrupt:
            interrupted = True
    notes = ["interrupted: what was measured by then is judged"] if interrupted else []
    verdicts = survey.verdicts(notes)
    seconds = time.monotonic() - start
    result = FleetCheck(
        verdicts, survey.reports_with_network(), tuple(survey.phases), survey.rounds, seconds, interrupted
    )
    if options.history:
        _keep(result.reports.values(), options.history)
    return result


def plan_fleet(options: FleetCheckOptions) -> tuple[tuple[str, ...], tuple[SurveyPhase, ...]]:
    """The nodes, and the phases with the longest time that each can take; nothing is measured.

    Raises what check_fleet raises.

    >>> from lanewise.options.fleet import FleetCheckOptions
    >>> nodes, phases = lanewise.plan_fleet(FleetCheckOptions(on="local:4"))
    >>> [(phase.name, phase.steps) for phase in phases]
    [('facts', 1), ('alone', 2), ('together', 2), ('network', 6)]
    """
    names = _names(options)
    return names, _phases(options, len(names))


def fleet_data(result: FleetCheck) -> dict[str, Any]:
    """A fleet check as plain data for JSON, figures in SI units (docs/reference/fleet-json.md).

    >>> data = lanewise.fleet_data(result)  # needs a fleet  # doctest: +SKIP
    >>> data["counts"]["ok"]  # doctest: +SKIP
    4
    """
    from lanewise.report.fleet_json import fleet_json

    return {**fleet_json(result), "created": now(), "version": version(), "command": command()}


def fleet_metrics(result: FleetCheck) -> str:
    """A fleet check as text for node_exporter's textfile collector.

    >>> Path("fleet.prom").write_text(lanewise.fleet_metrics(result))  # needs a fleet  # doctest: +SKIP
    """
    from lanewise.report.fleet_json import fleet_prometheus

    return fleet_prometheus(result, round(time.time(), 3))


def fleet_junit(result: FleetCheck) -> str:
    """A fleet check as JUnit XML: a test case a node, failed where it is lost, at fault or slow, skipped where it was
    not judged.

    >>> Path("fleet.xml").write_text(lanewise.fleet_junit(result))  # needs a fleet  # doctest: +SKIP
    """
    from lanewise.report.fleet_junit import fleet_junit as junit

    return junit(result)


def fleet_page(result: FleetCheck) -> str:
    """A fleet check as one HTML page that needs no network: the heat map, the worst node first, and each finding.

    >>> Path("fleet.html").write_text(lanewise.fleet_page(result))  # needs a fleet  # doctest: +SKIP
    """
    from lanewise.report.fleet_page import fleet_html

    return fleet_html(result, now(), version(), command())


def _phases(options: FleetCheckOptions, nodes: int) -> tuple[SurveyPhase, ...]:
    from lanewise.fleet.schedule import survey_phases

    return survey_phases(
        nodes, drive=bool(options.drive), shared=bool(options.shared), network=not options.no_network,
        rounds=options.rounds, patience=options.patience,
    )  # fmt: skip


def _bound(phases: tuple[SurveyPhase, ...], nodes: int) -> str:
    from lanewise.fleet.schedule import most_seconds
    from lanewise.report.text.fleet import duration
    from lanewise.report.words import plural

    return f"{plural(nodes, 'node')}, at most {duration(most_seconds(phases))} (--plan shows the phases)"


def _request(options: FleetCheckOptions) -> SurveyRequest:
    from lanewise.api.loading import load_system
    from lanewise.control.handshake import new_secret
    from lanewise.files import read_file

    system = options.system or ""
    if system:
        load_system(system)  # refuses what is none before anything is measured
        system = read_file(system) if Path(system).is_file() else system
    return SurveyRequest(
        drive=options.drive, shared=options.shared, network=not options.no_network, transport=options.transport,
        rounds=options.rounds, seed=options.seed, busy=options.busy, system=system, secret=new_secret(),
        patience=options.patience,
    )  # fmt: skip


@contextmanager
def _connections(options: FleetCheckOptions) -> Iterator[NodeConnections]:
    """The nodes, reached; they end with the block."""
    from lanewise.engines.choice import parse_engine

    kind, workers, address = parse_engine(options.on)
    if kind == "ray":
        from lanewise.api.fleet_agent import NodeAgent
        from lanewise.engines.ray_engine import RayEngine
        from lanewise.fleet.ray_actors import RayConnections

        names = () if address else tuple(_addresses(options))
        with RayEngine(address, workers) as engine, _closing(RayConnections(engine, NodeAgent, names)) as connections:
            yield connections
        return
    from lanewise.fleet.processes import ProcessConnections

    addresses = _addresses(options)
    commands = {name: _command(options, name) for name in addresses}
    with _closing(ProcessConnections(commands, addresses, version())) as connections:
        yield connections


@contextmanager
def _closing(connections: _Closing) -> Iterator[NodeConnections]:
    try:
        yield connections
    finally:
        connections.close()


def _command(options: FleetCheckOptions, name: str) -> list[str]:
    """The command that starts the agent of a node."""
    import sys

    from lanewise.fleet.processes import SRUN, SSH, node_command

    if options.on is not None:
        code = "import sys; from lanewise.cli.main import main; sys.exit(main())"
        return [sys.executable, "-P", "-c", code, "fleet", "agent", name]
    return node_command(options.via or (SRUN if options.srun else SSH), name, options.program)


def _names(options: FleetCheckOptions) -> tuple[str, ...]:
    from lanewise.engines.choice import parse_engine

    address = parse_engine(options.on)[2]
    if not address:
        return tuple(_addresses(options))
    from lanewise.engines.ray_engine import RayEngine
    from lanewise.fleet.ray_actors import named_nodes

    with RayEngine(address, 1) as engine:
        return tuple(named_nodes(engine.ray.nodes()))


def _addresses(options: FleetCheckOptions) -> dict[str, str]:
    """The names of the nodes and the address of each; InputError for a name that comes twice."""
    if options.on is not None:
        from lanewise.engines.choice import parse_engine

        kind, count, _ = parse_engine(options.on)
        return {f"{kind}{number}": "127.0.0.1" for number in range(count)}
    words = _slurm_nodes() if options.srun else options.hosts
    addresses: dict[str, str] = {}
    for word in words:
        name, _, address = word.partition("=")
        if not name or name.startswith("-") or name in addresses:
            cause = f"{name} is named twice" if name in addresses else f"'{word}' is no name of a host"
            raise InputError(cause, hint="write --hosts node1,node2,node3")
        addresses[name] = address or name.rpartition("@")[2]
    return addresses


def _slurm_nodes() -> Sequence[str]:
    """The nodes of the allocation, by scontrol."""
    names = os.environ.get("SLURM_JOB_NODELIST", "")
    if not names:
        raise InputError("--srun outside an allocation: SLURM_JOB_NODELIST is not set",
                         hint="run it within salloc or sbatch, or name the nodes with --hosts")  # fmt: skip
    try:
        done = subprocess.run(["scontrol", "show", "hostnames", names], capture_output=True, text=True, check=False)
    except OSError as error:
        raise EngineFailure(f"scontrol cannot be started: {error.strerror}", hint="--hosts names the nodes") from None
    if done.returncode or not done.stdout.split():
        raise EngineFailure(f"scontrol show hostnames: {done.stderr.strip()}", hint="--hosts names the nodes")
    return done.stdout.split()


def past_of(names: Iterable[str], history: Mapping[str, Sequence[tuple[str, Run]]]) -> Past:
    """The measured rows of these nodes' runs in a history, which has each under the name of its folder."""
    from lanewise.api.history import machine_folder
    from lanewise.results.compare import rows_of
    from lanewise.results.observation import Source

    return {name: [(file, rows_of(run, Source.MEASURED)) for file, run in history.get(machine_folder(name), ())]
            for name in names}  # fmt: skip


def _keep(reports: Iterable[NodeReport], address: str) -> None:
    """Add each node's rows to the history."""
    from dataclasses import replace

    from lanewise.api.history import add_to_history

    for report in reports:
        if report.rows:
            run = replace(new_run(rows=report.rows), machine_facts=report.facts)
            add_to_history(run, address, report.name)
