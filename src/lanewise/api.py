"""Everything a user can do, as functions: the CLI's verbs under the same names, for Python programs and notebooks.

import lanewise
system = lanewise.load_system("composable-server-gen4", {"path": 4})
print(lanewise.predict(system, "host0->gpu0, host0->gpu1").total)

Where a function takes a system, the name of a ready one or the path of a file will do; likewise for a run.
"""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.catalog import Catalog, builtin, read_parts, write_parts
from lanewise.errors import InputError, unknown_name
from lanewise.files import read_file, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lanewise.installed import Piece
    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import Matrix
    from lanewise.perf.predict import Prediction
    from lanewise.perf.transfers import Finished
    from lanewise.planning.ask import Ask
    from lanewise.planning.layouts import Ranking
    from lanewise.planning.pins import Pinning
    from lanewise.planning.place import Placement
    from lanewise.results.compare import Comparison
    from lanewise.results.loaded import Loaded
    from lanewise.results.plan import Probe
    from lanewise.results.run import LeftOut, Run
    from lanewise.routes.matrix import Matrix as ClassMatrix
    from lanewise.routes.matrix import Peers
    from lanewise.routes.model import Route
    from lanewise.serving.load import Load
    from lanewise.serving.peak import Sought
    from lanewise.serving.steady import ServiceRate
    from lanewise.serving.workload import Workload
    from lanewise.studies.calibrate import Fit
    from lanewise.studies.form import StudyForm
    from lanewise.topology.model import System

    Progress = Callable[[str], None]

__all__ = [
    "accuracy",
    "all_routes",
    "as_run",
    "attach",
    "calibrate",
    "class_matrix",
    "compare",
    "compare_sources",
    "compare_systems",
    "detach",
    "doctor",
    "draw",
    "finish_times",
    "load_catalog",
    "load_run",
    "load_study",
    "load_system",
    "load_workload",
    "matrix",
    "new_study",
    "peak",
    "peers",
    "plan",
    "predict",
    "ready_studies",
    "ready_systems",
    "render_report",
    "route",
    "run_studies",
    "save_run",
    "serve",
    "simulate",
    "trace",
    "write_parts",
]


def ready_systems() -> list[str]:
    """Names of the systems that come with Lanewise."""
    from lanewise.topology.ready import ready_systems as names

    return names()


def ready_studies() -> list[str]:
    """Names of the studies that come with Lanewise, in the order of the mission."""
    from lanewise.studies.ready import ready_studies as names

    return names()


def load_catalog(parts: Sequence[str | Path] = ()) -> Catalog:
    """The parts catalogue with the user's own part files laid over it; InputError for a file that cannot be read."""
    catalog = builtin()
    for path in parts:
        catalog = catalog.merge(read_parts(read_file(path), str(path), catalog))
    return catalog


def load_system(ref: str | Path, settings: Mapping[str, int] | None = None, catalog: Catalog | None = None) -> System:
    """A ready system by name or a description file by path, with its parameters set; LanewiseError if it is wrong."""
    from lanewise.topology.read import read_system
    from lanewise.topology.ready import ready_text

    text, file = ready_text(str(ref)) if str(ref) in ready_systems() else _own(ref, "system", ready_systems())
    return read_system(text, file, settings or {}, catalog if catalog is not None else builtin())


def load_study(ref: str | Path) -> StudyForm:
    """A ready study by name or a study file by path; LanewiseError if it is wrong."""
    from lanewise.studies.reading import read_study
    from lanewise.studies.ready import ready_text

    text, file = ready_text(str(ref)) if str(ref) in ready_studies() else _own(ref, "study", ready_studies())
    return read_study(text, file)


def attach(system: System | str | Path, device: str, host: str, at: str | None = None) -> System:
    """The system with `device` bound to `host`; with `at`, its cable moves below that switch or CPU first."""
    from lanewise.topology.compose import attach as bind

    return bind(_system(system), device, host, at)


def detach(system: System | str | Path, device: str) -> System:
    """The system with `device` bound to no host; its cable stays."""
    from lanewise.topology.compose import detach as unbind

    return unbind(_system(system), device)


def draw(system: System | str | Path, flows: str | Sequence[Flow] | None = None) -> str:
    """A system as SVG; with flows, their load on every link and the first six routes."""
    from lanewise.report.draw import draw as svg
    from lanewise.results.outline import outline

    loaded = _system(system)
    if flows is None:
        return svg(outline(loaded))
    found = predict(loaded, flows)
    routes = [(each.flow.name, each.routes[0].nodes) for each in found.flows[:6]]
    return svg(outline(loaded, found.loads, found.link_use, routes))


def route(system: System | str | Path, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes from `src` to `dst`; Unreachable or UnknownName if there is none."""
    from lanewise.routes.find import route as find

    return find(_system(system), src, dst, p2p)


def all_routes(system: System | str | Path, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route from `src` to `dst`, best first, each with its class and whether it is allowed."""
    from lanewise.routes.find import routes as find

    return find(_system(system), src, dst)


def class_matrix(system: System | str | Path, names: Sequence[str] | None = None) -> ClassMatrix:
    """The class of every pair of GPUs and NICs, as nvidia-smi topo -m shows it."""
    from lanewise.routes.matrix import class_matrix as make

    return make(_system(system), names)


def peers(system: System | str | Path) -> tuple[Peers, ...]:
    """Every pair of GPUs: whether the two can be peers, and if not, why."""
    from lanewise.routes.matrix import peers as find

    return find(_system(system))


def predict(system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True) -> Prediction:
    """The rates that flows reach together: 'gpu0->gpu4, host0->gpu1' or Flow objects; InputError for finite ones."""
    from lanewise.perf.predict import predict as solve

    asked = _flows(flows, p2p)
    for flow in asked:
        if flow.size is not None:
            raise InputError(
                f"{flow.name} has a size, and rates are those of flows without an end",
                hint="leave the size out, or ask finish_times when each transfer ends",
            )
        if flow.start:
            raise InputError(
                f"{flow.name} has a start but no size",
                hint="leave the start out, or give every flow a size: gpu0->gpu1 1 GiB @10 ms",
            )
    return solve(_system(system), asked)


def finish_times(
    system: System | str | Path, flows: str | Sequence[Flow], p2p: bool = True
) -> tuple[Finished, ...]:
    """When each of the finite transfers ends: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."""
    from lanewise.perf.transfers import finish_times as solve

    return solve(_system(system), _flows(flows, p2p))


def matrix(
    system: System | str | Path,
    names: Sequence[str] | None = None,
    metric: str = "goodput",
    both_ways: bool = False,
    p2p: bool = True,
) -> Matrix:
    """A matrix over all pairs, each alone: metric goodput (B/s) or latency (s); UnknownName for another metric."""
    from lanewise.perf.matrix import bandwidth_matrix, latency_matrix

    if metric == "goodput":
        return bandwidth_matrix(_system(system), names, both_ways, p2p)
    if metric == "latency" and both_ways:
        raise InputError("a latency is one way: both ways have no sum", hint="leave both ways out, or ask for goodput")
    if metric == "latency":
        return latency_matrix(_system(system), names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def serve(
    system: System | str | Path, workload: str, mode: str = "server", division: str = "closed", host: str | None = None
) -> ServiceRate:
    """What an inference service reaches in steady state, and its limit."""
    from lanewise.serving import steady

    divisions = {"closed": steady.closed, "network": steady.network}
    if division not in divisions:
        raise unknown_name("division", division, divisions)
    return divisions[division](_system(system), workload, mode, host)


def plan(
    systems: System | str | Path | Sequence[System | str | Path], ask: Ask | None = None, **asked: Any
) -> Placement | Ranking | Pinning:
    """Rank several systems, place devices of one, or pin its cards (pin="nic"); keywords are the fields of Ask.

    lanewise.plan("composable-server-two-hosts", services=["resnet50 170000 QPS each 43367 QPS"]); InputError for what
    cannot be planned.
    """
    from lanewise.planning.ask import Ask, answer

    several = systems if isinstance(systems, Sequence) and not isinstance(systems, str) else [systems]
    return answer([_system(each) for each in several], ask or Ask(**asked))


def load_workload(ref: str | Path) -> Workload:
    """A ready workload by name, or the one in a workload file (FILE, or FILE:NAME); LanewiseError if it is wrong."""
    from lanewise.serving.workload import one_workload, read_workloads, workload

    file, _, name = str(ref).partition(".yaml:")
    if not name and not str(ref).endswith((".yaml", ".yml")):
        return workload(str(ref))
    path = f"{file}.yaml" if name else file
    return one_workload(read_workloads(read_file(path), path), path, name or None)


def simulate(
    system: System | str | Path,
    services: str | Load | Sequence[str | Load],
    background: str | Sequence[Flow] = (),
    seconds: float | None = None,
    seed: int = 1,
) -> tuple[Loaded, ...]:
    """Services under load, by event simulation: 'resnet50 150000 QPS on gpu[0-3]' or Load objects, with what runs
    beside them; InputError for what cannot be answered.
    """
    from lanewise.serving.peak import simulate as run

    return run(_system(system), _loads(services), _flows(background, True) if background else (), seconds, seed)[0]


def peak(
    system: System | str | Path,
    service: str | Load,
    beside: str | Load | Sequence[str | Load] = (),
    background: str | Sequence[Flow] = (),
    sought: Sought | None = None,
) -> Loaded:
    """The largest rate of a service that keeps its latency bound, by event simulation, beside services at their rates.

    lanewise.peak("composable-server-gen4", "resnet50"); InputError for what cannot be answered.
    """
    from lanewise.serving.peak import Sought, seek

    flows = _flows(background, True) if background else ()
    return seek(_system(system), _loads(service)[0], _loads(beside), flows, sought or Sought())[0][0]


def trace(
    system: System | str | Path,
    services: str | Load | Sequence[str | Load],
    background: str | Sequence[Flow] = (),
    samples: int = 10_000,
    seconds: float | None = None,
    seed: int = 1,
) -> str:
    """The first samples of simulated services as Trace Event JSON, which ui.perfetto.dev opens."""
    from lanewise.serving.peak import simulate as run
    from lanewise.serving.trace import perfetto

    flows = _flows(background, True) if background else ()
    _, simulation, outcome = run(_system(system), _loads(services), flows, seconds, seed, samples)
    return perfetto(simulation, outcome)


def run_studies(
    refs: Sequence[str | Path] = (),
    say: Progress = lambda _: None,
    catalog: Catalog | None = None,
    probe: Probe | None = None,
) -> Run:
    """Run studies (all ready ones if none is named) and return everything they found."""
    from lanewise.probes.model import ModelProbe
    from lanewise.results.run import Run
    from lanewise.studies.runner import run_study

    parts = catalog if catalog is not None else builtin()
    made = []
    for ref in refs or ready_studies():
        say(str(ref))
        form = load_study(ref)
        reader = _relative_reader(ref)
        made.append(run_study(form, probe or ModelProbe(), parts, reader, _prefixed(say, f"{ref}: ")))
    return Run(tuple(made), _now(), version(), " ".join(["lanewise", *sys.argv[1:]]), machine())


def calibrate(
    refs: Sequence[str | Path],
    unknowns: Sequence[str],
    tables: Sequence[str] = (),
    say: Progress = lambda _: None,
    catalog: Catalog | None = None,
) -> tuple[Fit, tuple[LeftOut, ...]]:
    """Fit unknown figures ('l40s service.resnet50.server 10000..100000 QPS') to the published rows of studies.

    Gives the fit and its leave-one-group-out residuals; InputError if the observations do not suffice.
    """
    from lanewise.probes.model import ModelProbe
    from lanewise.studies.fitting import calibrate_to_studies, parse_unknown

    parts = catalog if catalog is not None else builtin()
    forms = [(load_study(ref), _relative_reader(ref)) for ref in refs]
    return calibrate_to_studies(forms, [parse_unknown(text) for text in unknowns], tables, parts, ModelProbe(), say)


def new_study(name: str) -> tuple[str, str]:
    """The texts of a commented study and of its system, to be kept as NAME.yaml and NAME-system.yaml.

    InputError for a name that cannot be one.
    """
    from lanewise.studies.starter import starter

    return starter(name)


def compare(
    run_a: Run | str | Path, run_b: Run | str | Path, names: tuple[str, str] = ("left", "right")
) -> Comparison:
    """Two runs side by side, called by those names: what both answer, and what only one does."""
    from lanewise.results.compare import compare_runs

    return compare_runs(_run(run_a), _run(run_b), names)


def compare_sources(run: Run | str | Path, left: str = "published", right: str = "predicted") -> Comparison:
    """Two sources of one run side by side: published, predicted, measured, extrapolated; UnknownName for another."""
    from lanewise.results import compare as lay
    from lanewise.results.observation import Source

    for name in (left, right):
        if name not in list(Source):
            raise unknown_name("source", name, [str(source) for source in Source])
    return lay.compare_sources(_run(run), Source(left), Source(right))


def compare_systems(run: Run | str | Path, left: str, right: str) -> Comparison:
    """Two systems of one run that answer the same rows, side by side; UnknownName for one that is not in the run.

    Where rows are called after their systems, the rows of a table and metric are matched in their order.
    """
    from lanewise.results import compare as lay
    from lanewise.results.observation import Source

    loaded = _run(run)
    known = {row.system for study in loaded.studies for row in study.rows}
    for name in (left, right):
        if name not in known:
            raise unknown_name("system of this run", name, known)
    found = lay.compare_systems(loaded, left, right)
    if found.pairs:
        return found
    rows = lay.rows_of(loaded, Source.PREDICTED)
    one, other = ([row for row in rows if row.system == name] for name in (left, right))
    return lay.compare(one, other, (left, right), frozenset({"system", "scenario"}))


def accuracy(run: Run | str | Path) -> str:
    """The residuals of a run as a Markdown page."""
    from lanewise.report.accuracy import accuracy_page

    return accuracy_page(_run(run))


def doctor() -> tuple[Piece, ...]:
    """Every piece that Lanewise uses or will use: whether it is here, and what its absence costs."""
    from lanewise.installed import pieces

    return pieces()


def render_report(run: Run | str | Path) -> str:
    """One offline HTML page of a run."""
    from lanewise.report.html import report_html

    return report_html(_run(run))


def as_run(services: Sequence[Loaded]) -> Run:
    """Simulated services as a run, to be saved, compared or rendered."""
    from lanewise.results.run import Run

    return Run((), _now(), version(), " ".join(["lanewise", *sys.argv[1:]]), machine(), services=tuple(services))


def save_run(run: Run, path: str | Path) -> None:
    """Write a run as JSON, whole or not at all."""
    from lanewise.results.codec import run_to_json

    write_file(path, run_to_json(run))


def load_run(path: str | Path) -> Run:
    """Read a saved run; FormatError if it is not one."""
    from lanewise.results.codec import run_from_json

    return run_from_json(read_file(path), str(path))


def version() -> str:
    """The version of Lanewise."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    try:
        return of("lanewise")
    except PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, str]:
    """What this machine is, for the record beside results: no names, no addresses."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cpu": platform.machine(),
        "cores": str(os.cpu_count()),
    }


def _prefixed(say: Progress, prefix: str) -> Progress:
    return lambda text: say(prefix + text)


def _system(system: System | str | Path) -> System:
    return load_system(system) if isinstance(system, (str, Path)) else system


def _run(run: Run | str | Path) -> Run:
    return load_run(run) if isinstance(run, (str, Path)) else run


def _loads(services: str | Load | Sequence[str | Load]) -> list[Load]:
    from lanewise.serving.load import Load, parse_load

    several = [services] if isinstance(services, (str, Load)) else services
    return [each if isinstance(each, Load) else parse_load(each, load_workload) for each in several]


def _flows(flows: str | Sequence[Flow], p2p: bool) -> Sequence[Flow]:
    from lanewise.perf.flow import parse_flows

    return parse_flows(flows, p2p) if isinstance(flows, str) else flows


def _relative_reader(ref: str | Path) -> Callable[[str, Mapping[str, int], Catalog], System]:
    """System files named in a study are found beside the study."""
    folder = Path(ref).parent if Path(ref).suffix in (".yaml", ".yml") else Path()

    def read(name: str, settings: Mapping[str, int], catalog: Catalog) -> System:
        own = name not in ready_systems()
        return load_system(folder / name if own else name, settings, catalog)

    return read


def _own(ref: str | Path, kind: str, ready: Sequence[str]) -> tuple[str, str]:
    path = Path(ref)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        raise unknown_name(kind, str(ref), ready)
    return read_file(path), str(path)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
