"""The part of `lanewise predict --service` that simulates: at a rate, or searching for the peak."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanewise.cli import terminal
from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lanewise import _native
    from lanewise.results.search_run import SearchRun
    from lanewise.results.service_result import ServiceResult
    from lanewise.serving.load import ServiceLoad
    from lanewise.serving.simulation import Simulation
    from lanewise.topology.model import System

TRACED = 10_000  # samples in a trace, under 1 kB each


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a service under load, as given."""

    qps: Annotated[float | None, typer.Option(metavar="RATE", help="Does the service hold at that rate?")] = None
    peak: Annotated[bool, typer.Option("--peak", help="The largest rate that keeps the service's latency bound.")] = (
        False
    )
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="server|offline|single-stream|multi-stream", help="MLPerf's scenario; server unless given."
        ),
    ] = None
    division: Annotated[
        str | None, typer.Option(metavar="closed|network", help="Where queries come from; closed unless given.")
    ] = None
    frontend: Annotated[str | None, typer.Option(metavar="HOST", help="The host that sends them over the network.")] = (
        None
    )
    host: Annotated[str | None, typer.Option(help="The host whose GPUs serve.")] = None
    gpus: Annotated[str | None, typer.Option(metavar="gpu[0-3]", help="The GPUs that serve.")] = None
    batch: Annotated[int | None, typer.Option(metavar="N", help="Largest batch; the workload's unless given.")] = None
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a query waits for its batch to fill: '1 ms'.")
    ] = None
    copies: Annotated[
        str | None, typer.Option(metavar="gathered|per-query", help="A batch copied in one go, or query by query.")
    ] = None
    dispatch: Annotated[
        str | None,
        typer.Option(metavar="least|round-robin|random", help="How queries spread where GPUs share no queue."),
    ] = None
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="'WORKLOAD QPS on gpu[4-7]'", help="Another service beside it; may be repeated."),
    ] = None
    background: Annotated[
        str | None,
        typer.Option(metavar="FLOWS", help="Traffic beside it: 'ssd0->gpu0, gpu1->host0 4 GiB every 10 s'."),
    ] = None
    seconds: Annotated[float | None, typer.Option(help="Simulated seconds at --qps; offline: of samples.")] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the random arrivals; 1 unless given.")] = None
    precision: Annotated[float | None, typer.Option(metavar="SHARE", help="Of --peak; 0.0025 unless given.")] = None
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the first queries as a trace for ui.perfetto.dev.")
    ] = None
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the simulation as one HTML page.")] = None

    @property
    def simulated(self) -> bool:
        """Whether a simulation is asked for, not only the steady state."""
        alone = self.mode in ("single-stream", "multi-stream")
        return self.peak or self.qps is not None or alone or (self.mode == "offline" and bool(self.needs_simulation))

    @property
    def needs_simulation(self) -> list[str]:
        """Options given that mean nothing to the steady state."""
        names = ("gpus", "batch", "timeout", "copies", "dispatch", "beside", "background", "seconds", "seed",
                 "precision", "trace", "report", "frontend")  # fmt: skip
        return [f"--{name}" for name in names if getattr(self, name) is not None]


def answer(system: System, service: str, asked: Asked, as_json: bool) -> None:
    """Simulate, show, and write what was asked for."""
    if asked.peak and asked.qps is not None:
        raise InputError("--peak and --qps cannot be asked together", hint="--qps asks whether one rate holds")
    if asked.precision is not None and not asked.peak:
        hint = "ask with --peak" if asked.mode in (None, "server") else "leave it out"
        raise InputError("--precision says nothing about one rate", hint=hint)
    if asked.seconds is not None and asked.peak:
        raise InputError("--seconds says nothing about --peak", hint="the search chooses how long its runs last")
    found, simulation, outcome = _run(system, _load(system, service, asked), asked)
    terminal.done()
    if asked.trace is not None:
        _write_trace(asked.trace, simulation, outcome)
    if asked.report is not None:
        _write_report(asked.report, found)
    if as_json:
        terminal.out_json(_plain(found))
        return
    from lanewise.report.text.service import render_services

    terminal.print_text(render_services, found)


def _run(
    system: System, load: ServiceLoad, asked: Asked
) -> tuple[tuple[ServiceResult, ...], Simulation, _native.Outcome]:
    from lanewise import api
    from lanewise.perf.flow import parse_flows
    from lanewise.serving.load import check_run, parse_load
    from lanewise.serving.peak import PRECISION, SearchOptions, simulate, simulate_peak

    beside = [parse_load(text, api.load_workload) for text in asked.beside or ()]
    flows = parse_flows(asked.background) if asked.background else ()
    traced = TRACED if asked.trace is not None else 0
    seed = 1 if asked.seed is None else asked.seed
    sought = SearchOptions(PRECISION if asked.precision is None else asked.precision, seed, on_run=_tell)
    check_run(asked.seconds, seed, sought.most_runs if asked.peak else 1)
    if not asked.peak:
        terminal.status("simulating")
        return simulate(system, [load, *beside], flows, asked.seconds, seed, traced)
    found, simulation, outcome = simulate_peak(system, load, beside, flows, sought, traced)
    return found, simulation, outcome


def _load(system: System, service: str, asked: Asked) -> ServiceLoad:
    from lanewise import api, units
    from lanewise.serving.load import SCENARIOS, ServiceLoad, check, check_dispatch, gpus_of, on

    if asked.mode is not None and asked.mode not in SCENARIOS:
        raise unknown_name("scenario", asked.mode, SCENARIOS)
    if asked.mode not in (None, "server") and asked.qps is not None:
        raise InputError(f"--qps says nothing about the {asked.mode} scenario", hint="ask for it without --qps")
    divisions = ("closed", "network")
    if asked.division is not None and asked.division not in divisions:
        raise unknown_name("division", asked.division, divisions)
    if asked.frontend is not None and asked.division == "closed":
        raise InputError("--frontend says nothing about the closed division", hint="ask with --division network")
    networked = asked.division == "network" or asked.frontend is not None
    load = ServiceLoad(
        api.load_workload(service), qps=asked.qps or 0.0, scenario=asked.mode or "server", host=asked.host,
        frontend=(asked.frontend or "frontend") if networked else None, batch=asked.batch,
        timeout=None if asked.timeout is None else units.parse(asked.timeout, "s"),
        copies=asked.copies or "gathered", dispatch=asked.dispatch or "least",
    )  # fmt: skip
    if asked.peak and load.scenario == "server":
        load = replace(load, qps=1.0)
    if asked.gpus is not None:
        load = on(load, asked.gpus)
    check(load)
    if asked.dispatch is not None:
        check_dispatch(system, load, gpus_of(system, load))
    return load


def _tell(run: SearchRun) -> None:
    from lanewise import units

    verdict = "VALID" if run.valid else "INVALID"
    latency = "cut short" if run.hopeless else units.readable(run.latency, "s")
    terminal.status(f"{units.show(run.rate, 'QPS', 6)}: {verdict} ({latency})")


def _write_trace(path: Path, simulation: Simulation, outcome: _native.Outcome) -> None:
    from lanewise.files import write_file
    from lanewise.serving.trace import perfetto

    write_file(path, perfetto(simulation, outcome))
    terminal.note(f"wrote {path} (open it at ui.perfetto.dev)")


def _write_report(path: Path, found: Sequence[ServiceResult]) -> None:
    from lanewise import api
    from lanewise.files import write_file

    write_file(path, api.render_report(api.as_run(found)))
    terminal.note(f"wrote {path}")


def _plain(found: Sequence[ServiceResult]) -> Any:
    from lanewise.results.codec import encode

    made = [encode(each, each.name) for each in found]
    return made[0] if len(made) == 1 else made
