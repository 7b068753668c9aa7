"""Writes the API reference, api.md, from the signatures and docstrings of the public functions and their types.

python docs/reference/generate_api.py [--check]
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import lanewise
from lanewise import api
from lanewise.options.option import Option, Options, options_of

PAGE = Path(__file__).with_name("api.md")
TITLES = {
    "systems": "Systems", "routes": "Routes", "speed": "Rates and latencies", "services": "Inference services",
    "plans": "Plans", "studies": "Studies and calibration", "measured": "Measurements and checks",
    "runs": "Runs and comparisons", "loads": "Load tests of this machine", "director": "Pools and directors",
    "fleet": "Fleets and histories", "machine": "This installation", "scores": "Accuracy of predictions",
}  # fmt: skip
INTRODUCTION = """\
# API reference

Made by `make api` from the docstrings; [Python](python.md) is the introduction. All functions are attributes of
`lanewise`, so `import lanewise` is enough; types and options are in the modules named with them.

- **Units** are SI: B, s, B/s, 1/s (queries/s). Shares are 0 to 1; names that end in `_pct` are percentages.
- **Systems** are given as a `System`, the name of a built-in one or the path of a description, **runs** as a `Run` or
  the path of a saved one. Given a name or a path, a function also raises what `load_system` or `load_run` raises.
- **Errors** are subclasses of `lanewise.errors.LanewiseError`, with `cause`, `location` (file and line) and `hint`.
  FormatError, UnknownName and Contradiction are kinds of InputError.
- **Examples** run as tests, except those with a comment that says what they need. Of their files, `copies.txt` is the
  one of the README, `machine.tar.zst` a capture of a machine with two H200, `training.log` an MLPerf log of one epoch
  of 40 s, and `run.json` the saved run of `lanewise.run_studies(["gpu-server-routes"])`.
"""
# The types that the functions take and return, and those within them that users meet, by module.
TYPES = {
    "lanewise.topology.model": ("System", "Device", "Link"),
    "lanewise.catalog": ("Catalog", "Part", "Figure"),
    "lanewise.discovery.build": ("Discovery",),
    "lanewise.routes.model": ("Route", "Hop"),
    "lanewise.routes.matrix": ("ClassMatrix", "Peers"),
    "lanewise.perf.flow": ("Flow",),
    "lanewise.perf.predict": ("Prediction", "FlowRate"),
    "lanewise.perf.overview": ("PathOverview", "PathGroup"),
    "lanewise.perf.host_calibration": ("HostCalibration", "CalibrationStep", "HostRate"),
    "lanewise.collectives.model": ("CollectiveCurve", "CollectivePoint", "AlgorithmPeak"),
    "lanewise.blocks.pieces": ("Pieces",),
    "lanewise.blocks.software": ("BlockSoftware",),
    "lanewise.blocks.transfer": ("BlockPrediction", "BlockTransfer", "FirstToken"),
    "lanewise.weights.prediction": ("ModelLoadPrediction", "LoadPlan", "ModelLoad", "LoadStage", "WeightSource"),
    "lanewise.weights.loaders": ("WeightLoader",),
    "lanewise.perf.transfers": ("FinishedTransfer",),
    "lanewise.perf.matrix": ("RateMatrix",),
    "lanewise.evidence.score": ("AccuracyScore", "GroupScore"),
    "lanewise.evidence.prediction": ("PredictedRow",),
    "lanewise.evidence.model": ("EvidenceMachine", "EvidenceRow"),
    "lanewise.serving.workload": ("Workload",),
    "lanewise.serving.load": ("ServiceLoad",),
    "lanewise.serving.steady": ("ServiceRate",),
    "lanewise.serving.peak": ("SearchOptions",),
    "lanewise.results.network_share": ("NetworkShare",),
    "lanewise.results.service_result": ("ServiceResult", "Stage", "ResourceUtilization", "SearchRun"),
    "lanewise.api.services": ("ServicePrediction",),
    "lanewise.api.sweep": ("ScenarioRows",),
    "lanewise.api.scenarios": ("ScenarioProgress",),
    "lanewise.planning.place": ("Placement", "Candidate"),
    "lanewise.planning.pins": ("Pinning", "Pin"),
    "lanewise.planning.layouts": ("Ranking", "RankedSystem"),
    "lanewise.planning.score": ("Score", "Allocation"),
    "lanewise.studies.form": ("StudyForm",),
    "lanewise.studies.measured": ("MeasuredRun",),
    "lanewise.studies.calibrate": ("CalibrationFit",),
    "lanewise.results.run": ("Run", "StudyRun", "Conclusion", "FittedValue", "LeftOut"),
    "lanewise.results.observation": ("Observation",),
    "lanewise.results.sample": ("Sample",),
    "lanewise.results.compare": ("Comparison", "RowPair"),
    "lanewise.readers.tool_results": ("ImportedResults",),
    "lanewise.checking.checkup": ("Checkup", "Finding"),
    "lanewise.checking.verdict": ("PathResult",),
    "lanewise.checking.cause": ("Cause",),
    "lanewise.fleet.fleet_check": ("FleetCheck",),
    "lanewise.fleet.judgement": ("FleetVerdicts",),
    "lanewise.fleet.node": ("NodeVerdict", "NodeFinding", "NodeReport"),
    "lanewise.fleet.schedule": ("SurveyPhase",),
    "lanewise.results.drift": ("RowDrift", "ChangePoint"),
    "lanewise.probes.storage.session": ("StorageProgress",),
    "lanewise.probes.load.session": ("LoadProgress",),
    "lanewise.dispatch.counters": ("DispatchRates", "ConnectionCounters"),
    "lanewise.loadtest.divisions": ("DivisionsResult",),
    "lanewise.loadtest.peak": ("PeakResult", "SearchProgress"),
    "lanewise.loadtest.load_run": ("LoadGenResult",),
    "lanewise.loadtest.single_run": ("SingleRun",),
    "lanewise.loadtest.selftest": ("GeneratorCeiling",),
    "lanewise.loadtest.sweep": ("SweepResult", "SweepPoint"),
    "lanewise.loadtest.system": ("SystemStatistics",),
    "lanewise.loadtest.training": ("Training", "Span"),
    "lanewise.director.client.pool": ("RemotePool",),
    "lanewise.director.redfish.server": ("ListeningService",),
    "lanewise.pool.listing": ("PoolListing", "ListedBlock", "ListedSystem", "ServiceEvent"),
    "lanewise.pool.model": ("CompositionRequest", "PathRequirement", "Offer", "PathRate", "TenantLoss"),
    "lanewise.installed": ("Dependency",),
}
OPTIONS = {
    "lanewise.options.system": ("SystemOptions",),
    "lanewise.options.plan": ("PlanOptions",),
    "lanewise.options.predict": ("PredictOptions", "ServiceOptions"),
    "lanewise.options.workers": ("WorkerOptions",),
    "lanewise.options.sampling": ("SamplingRule",),
    "lanewise.options.measure_host": ("MeasureHostOptions",),
    "lanewise.options.measure_gpu": ("MeasureGpuOptions",),
    "lanewise.options.measure_load": ("MeasureLoadOptions",),
    "lanewise.options.measure_storage": ("MeasureStorageOptions",),
    "lanewise.options.measure_kv": ("MeasureKvOptions",),
    "lanewise.options.measure_network": ("MeasureNetworkOptions",),
    "lanewise.options.loadtest": (
        "LoadOptions",
        "PeakOptions",
        "RunOptions",
        "SweepOptions",
        "SelftestOptions",
        "TrainingOptions",
    ),
    "lanewise.options.serve": ("ServeOptions",),
    "lanewise.options.fleet": ("FleetCheckOptions",),
    "lanewise.options.director": ("DirectorAddressOptions", "ServeDirectorOptions", "BackupOptions"),
}


def groups() -> dict[str, list[str]]:
    """The public functions by group, as the docstring of the package lists them."""
    listed: dict[str, list[str]] = {}
    for line in str(lanewise.__doc__).splitlines():
        if match := re.fullmatch(r"(\w+ +| {5,})(\w+(?:, \w+)*),?", line):
            group = match[1].strip() or list(listed)[-1]
            listed.setdefault(group, []).extend(match[2].split(", "))
    return listed


def classes(table: dict[str, tuple[str, ...]]) -> Iterator[type]:
    """The classes that a table names."""
    for module, names in table.items():
        for name in names:
            yield getattr(import_module(module), name)


def annotation(text: object, function: Callable[..., Any]) -> str:
    """A type as its source says, with aliases of its module (Paths, Progress) written out and no module names."""
    words = str(text)
    for alias in re.findall(r"\b[A-Z]\w+", words):
        meaning = inspect.unwrap(function).__globals__.get(alias)
        if meaning is not None and not inspect.isclass(meaning) and type(meaning).__module__ != "typing":
            words = re.sub(rf"\b{alias}\b", str(meaning), words)
    return re.sub(r"\b[a-z_][\w.]*\.(?=[A-Z])", "", words)


def signature(name: str, function: Callable[..., Any]) -> str:
    """The call with types and defaults, on one line if it fits; the default of a callback is `...`."""
    parts, keywords_only = [], False
    called = inspect.signature(function)
    for parameter in called.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords_only:
            parts.append("*")
            keywords_only = True
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        default = "..." if inspect.isroutine(parameter.default) else repr(parameter.default)
        given = "" if parameter.default is parameter.empty else f" = {default.replace(chr(39), chr(34))}"
        parts.append(f"{star}{parameter.name}: {annotation(parameter.annotation, function)}{given}")
    result = annotation(called.return_annotation, function)
    line = f"def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= 110:
        return line
    return f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {result}: ..."


def prose(text: str) -> str:
    """Paragraphs of a docstring, each on a line of its own; pages of this folder become links."""
    lines = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return re.sub(r"docs/reference/([\w-]+\.md)", r"[\1](\1)", lines)


def function_text(name: str) -> Iterator[str]:
    """A function: its call, its docstring, its example."""
    function = getattr(api, name)
    text, _, example = inspect.getdoc(function).partition("\n\n>>> ")  # type: ignore[union-attr]
    yield f"### {name}\n\n```python\n{signature(name, function)}\n```\n\n{prose(text)}\n"
    yield "```pycon\n>>> " + re.sub(r" *# doctest:.*", "", example) + "\n```\n"


def members(kind: type) -> Iterator[str]:
    """The public properties and methods of a class that say what they give."""
    for name, member in vars(kind).items():
        function = getattr(member, "fget", getattr(member, "func", member))
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        call = "" if function is not member else f"({', '.join(list(inspect.signature(function).parameters)[1:])})"
        yield f"- `{name}{call}`: {prose(inspect.getdoc(function) or '').splitlines()[0]}"


def type_text(kind: type) -> Iterator[str]:
    """A type: where it is, what it says of itself, its fields, its properties and methods."""
    yield f"**`{kind.__name__}`** (`{kind.__module__}`). {prose(kind.__doc__ or '')}\n"
    if is_dataclass(kind):
        yield f"Fields: {', '.join(f'`{entry.name}: {entry.type}`' for entry in fields(kind) if entry.init)}.\n"
    if lines := list(members(kind)):
        yield "\n".join(lines) + "\n"


def escaped(text: object) -> str:
    """A text for a cell of a table."""
    return re.sub(r"([|*])", r"\\\1", str(text))


def options_text(kind: type) -> Iterator[str]:
    """The table of an options class: its own fields with type, unit, default and meaning."""
    bases = [base for base in kind.__mro__[1:] if base in set(classes(OPTIONS))]
    listed = {Options, object, *bases, *(ancestor for base in bases for ancestor in base.__mro__)}
    texts = [prose(part.__doc__ or "") for part in kind.__mro__ if part not in listed]
    yield f"### {kind.__name__}\n\n`{kind.__module__}`. " + "\n\n".join(texts) + "\n"
    if bases:
        yield f"The fields of {bases[0].__name__}, and:\n"
    known = {entry.name: option for entry, option in options_of(kind)} if issubclass(kind, Options) else {}
    inherited = {entry.name for base in bases for entry in fields(base)}
    yield "| field | type | unit | default | meaning |\n|---|---|---|---|---|"
    for entry in fields(kind):
        if entry.name in inherited:
            continue
        option = known.get(entry.name, Option("", ()))
        default = repr(entry.default if entry.default_factory is MISSING else entry.default_factory())
        default = "required" if default == repr(MISSING) else f"`{escaped(default)}`"
        rule = f" ({option.default_text})" if option.default_text else ""
        unit = "s" if option.metavar == "SECONDS" else {"1": "share"}.get(option.unit, option.unit)
        words = f" One of {option.metavar.replace('|', ', ')}." if re.fullmatch(r"[^A-Z]+\|.+", option.metavar) else ""
        cells = (f"`{entry.name}`", f"`{escaped(entry.type)}`", unit, default + rule, escaped(option.help) + words)
        yield f"| {' | '.join(cells)} |"
    yield ""


def page() -> str:
    """The whole page."""
    listed = groups()
    lines = [INTRODUCTION]
    for group, names in listed.items():
        links = " · ".join(f"[{name}](#{name})" for name in names)
        lines.append(f"- {TITLES[group]}: {links}")
    lines.append("- [Types](#types) · [Options](#options)\n")
    for group, names in listed.items():
        lines.append(f"## {TITLES[group]}\n")
        for name in names:
            lines += function_text(name)
    lines.append("## Types\n\nMost are frozen dataclasses; make a changed copy with `dataclasses.replace`.\n")
    for kind in classes(TYPES):
        lines += type_text(kind)
    lines.append(
        "## Options\n\nThe fields are those of the command line: `most_runs` is `--most-runs`. A value out of range "
        "raises InputError, one that is not among the choices UnknownName.\n"
    )
    for kind in classes(OPTIONS):
        lines += options_text(kind)
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
