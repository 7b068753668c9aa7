"""Reads what users name: systems, parts, studies, workloads and runs, ready ones or files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import package_data
from lanewise.catalog import builtin, read_parts
from lanewise.errors import unknown_name
from lanewise.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.catalog import Catalog
    from lanewise.options.plan import PlanOptions
    from lanewise.options.system import SystemOptions
    from lanewise.results.run import Run
    from lanewise.serving.workload import Workload
    from lanewise.studies.form import StudyForm
    from lanewise.topology.model import System

_EVALUATIONS = ("composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric")


def ready_systems() -> list[str]:
    """Names of the systems that come with Lanewise."""
    return list(package_data.names("systems"))


def ready_studies() -> list[str]:
    """Names of the studies that come with Lanewise, the five published evaluations first."""
    names = package_data.names("studies")
    return [name for name in _EVALUATIONS if name in names] + [name for name in names if name not in _EVALUATIONS]


def ready_workloads() -> list[str]:
    """Names of the workloads that come with Lanewise."""
    from lanewise.serving.workload import workloads

    return list(workloads())


def load_catalog(parts: Sequence[str | Path] = ()) -> Catalog:
    """The parts catalogue with the user's own part files laid over it; InputError for a file that cannot be read."""
    catalog = builtin()
    for path in parts:
        catalog = catalog.merge(read_parts(read_file(path), str(path), catalog))
    return catalog


def load_system(ref: str | Path, settings: Mapping[str, int] | None = None, catalog: Catalog | None = None) -> System:
    """A ready system by name or a description file by path, with its parameters set; LanewiseError if it is wrong."""
    from lanewise.topology.read import read_system

    text, file = _read(ref, "systems", "system")
    return read_system(text, file, settings or {}, catalog if catalog is not None else builtin())


def system_of_options(options: SystemOptions) -> System:
    """The system that options name, with its parameters set, over the catalogue with the user's parts."""
    return load_system(options.system, options.settings, load_catalog(options.parts))


def swept_systems(options: SystemOptions, sweep: str) -> tuple[str, dict[int, System]]:
    """A parameter's name and the system for each of its values, from 'path=1..4' or 'path=1,2,4'."""
    from lanewise.options.option import parameter_values

    name, values = parameter_values(sweep)
    catalog = load_catalog(options.parts)
    return name, {value: load_system(options.system, {**options.settings, name: value}, catalog) for value in values}


def load_study(ref: str | Path) -> StudyForm:
    """A ready study by name or a study file by path; LanewiseError if it is wrong."""
    from lanewise.studies.reading import read_study

    return read_study(*_read(ref, "studies", "study"))


def load_workload(ref: str | Path) -> Workload:
    """A ready workload by name, or the one in a workload file (FILE, or FILE:NAME); LanewiseError if it is wrong."""
    from lanewise.serving.workload import one_workload, read_workloads, workload

    file, _, name = str(ref).partition(".yaml:")
    if not name and not str(ref).endswith((".yaml", ".yml")):
        return workload(str(ref))
    path = f"{file}.yaml" if name else file
    return one_workload(read_workloads(read_file(path), path), path, name or None)


def load_plan(path: str | Path) -> PlanOptions:
    """What a plan file asks for; InputError with file and line for anything that is no plan."""
    from lanewise.planning.answer import read_plan

    return read_plan(read_file(path), str(path), load_workload)


def load_run(path: str | Path) -> Run:
    """Read a saved run; FormatError if it is not one."""
    from lanewise.results.codec import run_from_json

    return run_from_json(read_file(path), str(path))


def as_system(system: System | str | Path) -> System:
    """The system itself, or the one of that name or file; LanewiseError if it cannot be read."""
    return load_system(system) if isinstance(system, (str, Path)) else system


def run_of(run: Run | str | Path) -> Run:
    """The run itself, or the one saved in that file; FormatError if it is not one."""
    return load_run(run) if isinstance(run, (str, Path)) else run


def relative_reader(ref: str | Path) -> Callable[[str, Mapping[str, int], Catalog], System]:
    """System files named in a study are found beside the study."""
    folder = Path(ref).parent if Path(ref).suffix in (".yaml", ".yml") else Path()

    def read(name: str, settings: Mapping[str, int], catalog: Catalog) -> System:
        is_user_file = name not in ready_systems()
        return load_system(folder / name if is_user_file else name, settings, catalog)

    return read


def _read(ref: str | Path, folder: str, kind: str) -> tuple[str, str]:
    """The text and the file of what is named: a `kind` of thing that comes with Lanewise, or a file."""
    ready = package_data.names(folder)
    if str(ref) in ready:
        return package_data.text(folder, str(ref), kind)
    path = Path(ref)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        raise unknown_name(kind, str(ref), ready)
    return read_file(path), str(path)
