"""Reads what users name: systems, parts, studies, workloads and runs, ready ones or files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import package_data
from lanewise.api.arguments import one_or_more
from lanewise.catalog import Catalog, builtin, read_parts
from lanewise.errors import InputError, unknown_name
from lanewise.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lanewise.options.plan import PlanOptions
    from lanewise.options.system import SystemOptions
    from lanewise.results.run import Run
    from lanewise.serving.workload import Workload
    from lanewise.studies.form import StudyForm
    from lanewise.topology.model import System

_EVIDENCE = re.compile(r"^lanewise-evidence:", re.MULTILINE)
_EVALUATIONS = ("composable-server", "gpu-server-routes", "expansion-chassis", "network-division", "storage-fabric")


def ready_systems() -> list[str]:
    """Names of the system descriptions built into Lanewise, in alphabetical order.

    >>> "rack-16gpu" in lanewise.ready_systems()
    True
    """
    return list(package_data.names("systems"))


def ready_studies() -> list[str]:
    """Names of the built-in studies, the five published evaluations first.

    >>> lanewise.ready_studies()[0]
    'composable-server'
    """
    names = package_data.names("studies")
    return [name for name in _EVALUATIONS if name in names] + [name for name in names if name not in _EVALUATIONS]


def ready_workloads() -> list[str]:
    """Names of the built-in MLPerf inference workloads.

    >>> lanewise.ready_workloads()
    ['resnet50', 'bert-99', 'bert-99.9', 'retinanet', 'ssd-resnet34', '3d-unet']
    """
    from lanewise.serving.workload import workloads

    return list(workloads())


def load_catalog(parts: str | Path | Sequence[str | Path] = ()) -> Catalog:
    """The parts catalogue; entries of the YAML part files `parts`, one or several, override built-in ones, later
    files earlier ones.

    Raises InputError for a file that cannot be read, FormatError with its line for one that is not a part file, and
    UnknownName or Contradiction for what a part may not state.

    >>> lanewise.load_catalog().get("l40s").figure("engine.h2d.gen4").value / 1e9  # GB/s
    26.8
    """
    catalog = builtin()
    for path in one_or_more(parts):
        catalog = catalog.merge(read_parts(read_file(path), str(path), catalog))
    return catalog


def load_system(ref: str | Path, settings: Mapping[str, int] | None = None, catalog: Catalog | None = None) -> System:
    """A built-in system by name, or the one described in a YAML file, be it an evidence file.

    `settings` sets the description's parameters; `catalog` replaces the built-in parts catalogue. Part files that the
    description names are read too; where `catalog` has another part than the built-in one, it wins.

    Raises UnknownName for a system, part, device or parameter that does not exist, Contradiction for a parameter value
    that the description does not allow or for links that cannot be, FormatError with file and line for wrong YAML, and
    InputError for a file that cannot be read.

    >>> lanewise.load_system("composable-server-gen4", {"path": 4})
    <System composable-server-gen4 path=4 gpus=4: 11 devices, 10 links>
    """
    from lanewise.topology.read import part_files, read_system

    text, file = read_ref(ref, "systems", "system")
    stated = catalog if catalog is not None else builtin()
    if _EVIDENCE.search(text) and not settings:
        from lanewise.evidence.reading import read_machine

        return read_machine(text, file).system(stated)
    files = read_part_files(file, part_files(text, file))
    return read_system(text, file, settings or {}, with_own_parts(stated, files))


def system_of_options(options: SystemOptions) -> System:
    """The system that command-line options select: name or file, `--set` and `--parts`. Raises what load_system and
    load_catalog raise.

    >>> from lanewise.options.system import SystemOptions
    >>> lanewise.system_of_options(SystemOptions("composable-server-gen4", {"path": 4}))
    <System composable-server-gen4 path=4 gpus=4: 11 devices, 10 links>
    """
    return load_system(options.system, options.settings, load_catalog(options.parts))


def load_study(ref: str | Path) -> StudyForm:
    """A built-in study by name, or the one in a YAML file.

    Raises UnknownName for a name that is neither, FormatError or UnknownName with file and line for a wrong study, and
    InputError for a file that cannot be read.

    >>> lanewise.load_study("gpu-server-routes").title
    'Routes between the GPUs of one server'
    """
    from lanewise.studies.reading import read_study

    return read_study(*read_ref(ref, "studies", "study"))


def load_workload(ref: str | Path) -> Workload:
    """A built-in workload by name, or one of a workload file: "FILE.yaml" if it has one, else "FILE.yaml:NAME".

    Raises UnknownName for a name that does not exist, FormatError with file and line for a wrong file, and InputError
    for a file that cannot be read.

    >>> workload = lanewise.load_workload("resnet50")
    >>> workload.bytes_in, workload.bound  # B a query, s
    (150528.0, 0.015)
    """
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
    """The run that save_run or a `-o` option wrote as JSON.

    Raises InputError for a file that cannot be read and FormatError for one that is not a run.

    >>> lanewise.load_run("run.json").studies[0].name
    'gpu-server-routes'
    """
    from lanewise.results.codec import run_from_json

    return run_from_json(read_file(path), str(path))


def as_system(system: System | str | Path) -> System:
    """The system itself, or the one of that name or file; LanewiseError if it cannot be read."""
    return load_system(system) if isinstance(system, (str, Path)) else system


def run_of(run: Run | str | Path) -> Run:
    """The run itself, or the one saved in that file; FormatError if it is not one."""
    return load_run(run) if isinstance(run, (str, Path)) else run


def relative_reader(ref: str | Path) -> Callable[[str, Mapping[str, int], Catalog], System]:
    """A reader of the systems that a study names; file names are relative to the study's folder."""

    def read(name: str, settings: Mapping[str, int], catalog: Catalog) -> System:
        return load_system(relative_ref(ref, name), settings, catalog)

    return read


def relative_ref(ref: str | Path, name: str) -> str | Path:
    """A system that a study names: a built-in one, or a file relative to the study's folder."""
    folder = Path(ref).parent if Path(ref).suffix in (".yaml", ".yml") else Path()
    return name if name in ready_systems() else folder / name


def read_part_files(file: str, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Path and text of the part files that a description names; InputError for one that cannot be read."""
    files = []
    for name in names:
        path = Path(file).parent / name
        try:
            files.append((str(path), read_file(path)))
        except InputError as error:
            error.hint = f"{file} names it under parts:, where a path starts at the folder of that file"
            raise
    return tuple(files)


def overriding_parts(catalog: Catalog) -> Catalog:
    """The parts that are not built in."""
    return Catalog({name: part for name, part in catalog.parts.items() if builtin().parts.get(name) is not part})


def with_own_parts(catalog: Catalog, files: Sequence[tuple[str, str]]) -> Catalog:
    """The catalogue with the parts of the files that a description names; what is not built in overrides them."""
    if not files:
        return catalog
    merged = builtin()
    for path, text in files:
        merged = merged.merge(read_parts(text, path, merged))
    return merged.merge(overriding_parts(catalog))


def read_ref(ref: str | Path, folder: str, kind: str) -> tuple[str, str]:
    """The text and the file of what is named: a `kind` of thing that comes with Lanewise, or a file."""
    ready = package_data.names(folder)
    if str(ref) in ready:
        return package_data.text(folder, str(ref), kind)
    path = Path(ref)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        raise unknown_name(kind, str(ref), ready)
    return read_file(path), str(path)
