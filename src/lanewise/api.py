"""Everything a user can do, as functions: the CLI's verbs under the same names, for Python programs and notebooks.

import lanewise
system = lanewise.load_system("composable-server-gen4", {"path": 4})
print(lanewise.predict(system, "host0->gpu0, host0->gpu1").total)
"""

from __future__ import annotations

import datetime
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.catalog import Catalog, builtin, read_parts, write_parts
from lanewise.errors import InputError, Place, unknown_name
from lanewise.topology.compose import attach, detach

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.perf.flow import Flow
    from lanewise.perf.matrix import Matrix
    from lanewise.perf.predict import Prediction
    from lanewise.perf.transfers import Finished
    from lanewise.results.plan import Probe
    from lanewise.results.run import LeftOut, Run
    from lanewise.routes.matrix import Matrix as ClassMatrix
    from lanewise.routes.matrix import Peers
    from lanewise.routes.model import Route
    from lanewise.serving.steady import ServiceRate
    from lanewise.studies.calibrate import Fit
    from lanewise.studies.form import StudyForm
    from lanewise.topology.model import System

    Progress = Callable[[str], None]

__all__ = [
    "all_routes",
    "attach",
    "calibrate",
    "class_matrix",
    "detach",
    "finish_times",
    "load_catalog",
    "load_run",
    "load_study",
    "load_system",
    "matrix",
    "peers",
    "predict",
    "ready_studies",
    "ready_systems",
    "render_report",
    "route",
    "run_studies",
    "save_run",
    "serve",
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
    from lanewise.studies.form import read_study
    from lanewise.studies.ready import ready_text

    text, file = ready_text(str(ref)) if str(ref) in ready_studies() else _own(ref, "study", ready_studies())
    return read_study(text, file)


def route(system: System, src: str, dst: str, p2p: bool = True) -> Route:
    """The route that data takes from `src` to `dst`; Unreachable or UnknownName if there is none."""
    from lanewise.routes.find import route as find

    return find(system, src, dst, p2p)


def all_routes(system: System, src: str, dst: str) -> tuple[Route, ...]:
    """Every sensible route from `src` to `dst`, best first, each with its class and whether it is allowed."""
    from lanewise.routes.find import routes as find

    return find(system, src, dst)


def class_matrix(system: System, names: Sequence[str] | None = None) -> ClassMatrix:
    """The class of every pair of GPUs and NICs, as nvidia-smi topo -m shows it."""
    from lanewise.routes.matrix import class_matrix as make

    return make(system, names)


def peers(system: System) -> tuple[Peers, ...]:
    """Every pair of GPUs: whether the two can be peers, and if not, why."""
    from lanewise.routes.matrix import peers as find

    return find(system)


def predict(system: System, flows: str | Sequence[Flow], p2p: bool = True) -> Prediction:
    """The rates that flows reach together: 'gpu0->gpu4, host0->gpu1' or Flow objects."""
    from lanewise.perf.predict import predict as solve

    return solve(system, _flows(flows, p2p))


def finish_times(system: System, flows: str | Sequence[Flow], p2p: bool = True) -> tuple[Finished, ...]:
    """When each of the finite transfers ends: 'gpu0->gpu1 1 GiB, gpu2->gpu3 4 GiB @10 ms'."""
    from lanewise.perf.transfers import finish_times as solve

    return solve(system, _flows(flows, p2p))


def matrix(
    system: System,
    names: Sequence[str] | None = None,
    metric: str = "goodput",
    both_ways: bool = False,
    p2p: bool = True,
) -> Matrix:
    """A matrix over all pairs, each alone: metric goodput (B/s) or latency (s); UnknownName for another metric."""
    from lanewise.perf.matrix import bandwidth_matrix, latency_matrix

    if metric == "goodput":
        return bandwidth_matrix(system, names, both_ways, p2p)
    if metric == "latency":
        return latency_matrix(system, names, p2p)
    raise unknown_name("metric", metric, ("goodput", "latency"))


def serve(
    system: System, workload: str, mode: str = "server", division: str = "closed", host: str | None = None
) -> ServiceRate:
    """What an inference service reaches in steady state, and its limit."""
    from lanewise.serving import steady

    divisions = {"closed": steady.closed, "network": steady.network}
    if division not in divisions:
        raise unknown_name("division", division, divisions)
    return divisions[division](system, workload, mode, host)


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


def render_report(run: Run) -> str:
    """One offline HTML page of a run."""
    from lanewise.report.html import report_html

    return report_html(run)


def save_run(run: Run, path: str | Path) -> None:
    """Write a run as JSON, whole or not at all."""
    from lanewise.results.codec import run_to_json

    write_file(path, run_to_json(run))


def load_run(path: str | Path) -> Run:
    """Read a saved run; FormatError if it is not one."""
    from lanewise.results.codec import run_from_json

    return run_from_json(read_file(path), str(path))


def read_file(path: str | Path) -> str:
    """The text of a file; InputError with a hint if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "not a text file (UTF-8)", place=Place(str(path)), hint=f"byte {error.start} is not text"
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=Place(str(path)), hint="check the path") from None


def write_file(path: str | Path, text: str) -> None:
    """Write a file whole or not at all: first beside it, then renamed; InputError if that fails."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(
            f"cannot be written: {error.strerror}", place=Place(str(path)), hint="choose another path"
        ) from None


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
    import os

    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cpu": platform.machine(),
        "cores": str(os.cpu_count()),
    }


def _prefixed(say: Progress, prefix: str) -> Progress:
    return lambda text: say(prefix + text)


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
