"""Sweeps of a prediction over parameters of a system: every combination of their values, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.api.loading import load_catalog, load_workload
from lanewise.api.scenarios import Scenario, ScenarioProgress, run_scenarios, scenario_key
from lanewise.api.system_source import SystemSource, system_source
from lanewise.engines.choice import open_engine
from lanewise.errors import InputError, LanewiseError
from lanewise.options.option import parameter_values
from lanewise.options.workers import WorkerOptions
from lanewise.results.observation import Basis, Observation, Source

if TYPE_CHECKING:
    from lanewise.api.scenario_store import ScenarioStore
    from lanewise.options.predict import PredictOptions, ServiceOptions
    from lanewise.options.system import SystemOptions
    from lanewise.results.network_share import NetworkShare
    from lanewise.serving.workload import Workload
    from lanewise.topology.model import System

_FEW = 4  # with more flows the slowest and the total say enough
TOTAL, SLOWEST = "all together", "slowest"


@dataclass(frozen=True, slots=True)
class SweptPrediction:
    """What is predicted in every scenario: flows, or a service; and of which system."""

    source: SystemSource
    settings: Mapping[str, int]
    options: PredictOptions
    service: ServiceOptions
    workload: Workload | None = None


@dataclass(frozen=True, slots=True)
class ScenarioRows:
    """The rows of one combination of `settings`: its rates, or one without a value whose note says why."""

    settings: Mapping[str, int]
    rows: tuple[Observation, ...]


def swept_values(sweeps: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Parameters and their values, from 'path=1..4' and 'gpus=1,2'; InputError for one that is named twice."""
    values: dict[str, tuple[int, ...]] = {}
    for text in sweeps:
        name, numbers = parameter_values(text)
        if name in values:
            raise InputError(f"--sweep names {name} twice", hint=f"write its values in one list: {name}=1,2,4")
        values[name] = tuple(dict.fromkeys(numbers))
    return values


def predict_sweep(
    system: SystemOptions,
    options: PredictOptions,
    service: ServiceOptions,
    engine: WorkerOptions | None = None,
    progress: Callable[[ScenarioProgress], None] = lambda _: None,
) -> Iterator[ScenarioRows]:
    """The prediction for every combination of the values of `options.sweep`, as they finish.

    `engine` says where they run and which folder keeps them; `progress` is called after each batch. A combination that
    cannot be predicted has a row without a value, whose note says why.

    Raises UnknownName for a system or parameter that does not exist, FormatError for values that are none, InputError
    for a folder of another sweep, EngineFailure where the engine cannot be reached or ends.

    >>> from lanewise.options.predict import PredictOptions, ServiceOptions
    >>> from lanewise.options.system import SystemOptions
    >>> options = PredictOptions(flows="host0->gpu0", sweep=("path=1..2", "gpus=1,2"))
    >>> answers = lanewise.predict_sweep(SystemOptions("composable-server-gen4"), options, ServiceOptions())
    >>> [dict(answer.settings) for answer in answers][-1]
    {'path': 2, 'gpus': 2}
    """
    chosen = engine or WorkerOptions()
    source = system_source(system.system, load_catalog(system.parts))
    workload = load_workload(options.service) if options.service is not None else None
    swept = SweptPrediction(source, system.settings, options, service, workload)
    scenarios = _scenarios(swept)
    source.system({**system.settings, **scenarios[0].item[1]})  # what is wrong with all of them shows at once
    with open_store(chosen.results, list(scenarios[0].item[1])) as store, open_engine(chosen.on) as workers:
        for _, answer in run_scenarios(scenarios, predict_scenario, workers, store, progress):
            if isinstance(answer, LanewiseError):
                raise answer
            yield answer


def combinations(sweeps: Sequence[str]) -> Iterator[dict[str, int]]:
    """Every combination of the values of a sweep, the last parameter the fastest."""
    values = swept_values(sweeps)
    for numbers in product(*values.values()):
        yield dict(zip(values, numbers, strict=True))


def predict_scenario(item: tuple[SweptPrediction, dict[str, int]]) -> ScenarioRows:
    """The rows of one combination; called in workers."""
    swept, settings = item
    try:
        system = swept.source.system({**swept.settings, **settings})
        rows = _flow_rows(system, swept, settings) if swept.workload is None else _service_rows(system, swept, settings)
    except LanewiseError as error:
        rows = (_row("", settings, TOTAL, "goodput", None, "GB/s", note=str(error)),)
    return ScenarioRows(settings, rows)


def _scenarios(swept: SweptPrediction) -> list[Scenario]:
    options = [str(part) for part in (asdict(swept.options) | {"sweep": ()}, asdict(swept.service), swept.workload)]
    common = scenario_key(swept.source.content(), dict(swept.settings), options)
    every = combinations(swept.options.sweep)
    return [Scenario((swept, settings), scenario_key(common, settings)) for settings in every]


def _flow_rows(system: System, swept: SweptPrediction, settings: Mapping[str, int]) -> tuple[Observation, ...]:
    from lanewise.api.systems import predict
    from lanewise.perf.resources import weakest

    options = swept.options
    prediction = predict(system, str(options.flows), not options.no_p2p, options.schedule)
    slow = min(prediction.rates, key=lambda rate: rate.rate)
    shown = prediction.rates if len(prediction.rates) <= _FEW else (slow,)
    names = [rate.flow.name if len(prediction.rates) <= _FEW else SLOWEST for rate in shown]
    rows = [
        _row(system.name, settings, name, "goodput", None if rate.why_unknown else rate.rate, "GB/s", low=rate.low,
             high=rate.high, limit=rate.limit, basis=Basis(rate.basis), rests_on=rate.rests_on,
             note=rate.why_unknown or rate.doubt)
        for name, rate in zip(names, shown, strict=True)
    ]  # fmt: skip
    if len(prediction.rates) > 1:
        basis = Basis(weakest([rate.basis for rate in prediction.rates]))
        total = None if prediction.why_unknown else prediction.total
        rows.append(_row(system.name, settings, TOTAL, "goodput", total, "GB/s", low=prediction.total_low,
                         high=prediction.total_high, limit=slow.limit, basis=basis,
                         note=prediction.why_unknown))  # fmt: skip
    return tuple(rows)


def _service_rows(system: System, swept: SweptPrediction, settings: Mapping[str, int]) -> tuple[Observation, ...]:
    from lanewise.api.services import predict_service, serve
    from lanewise.report.services import latency_of_bound, verdict

    options, workload = swept.service, swept.workload
    assert workload is not None
    if not options.peak and options.qps is None:
        steady = serve(system, workload, options.mode, options.division or "closed", options.host)
        rest = {"limit": steady.limit, "basis": Basis(steady.basis), "rests_on": steady.rests_on}
        assumed = f"{network.note} (hint: {network.hint})" if (network := steady.network) and network.note else ""
        return (_row(system.name, settings, workload.name, "qps", steady.qps, "QPS", **rest, note=assumed),
                _row(system.name, settings, workload.name, "goodput", steady.goodput, "GB/s", **rest),
                *_share_rows(system.name, settings, workload.name, steady.network))  # fmt: skip
    result = predict_service(system, workload, options).results[0]
    low, high = result.peak or (None, None)
    rest = {"limit": result.limit, "basis": Basis(result.basis), "rests_on": result.rests_on}
    return (
        _row(system.name, settings, workload.name, "qps", result.qps, "QPS", low=low, high=high, **rest,
             note=f"{verdict(result)}, {latency_of_bound(result)}"),
        _row(system.name, settings, workload.name, "latency", result.latency, "ms", **rest),
        *_share_rows(system.name, settings, workload.name, result.network),
    )  # fmt: skip


def _share_rows(
    system: str, settings: Mapping[str, int], name: str, network: NetworkShare | None
) -> Iterator[Observation]:
    """How much of the Closed division's rate the Network division has, where both are known."""
    if network is not None and network.share is not None:
        yield _row(system, settings, name, "share of Closed", network.share, "%")


def _row(
    system: str, settings: Mapping[str, int], flow: str, metric: str, value: float | None, unit: str, **rest: Any
) -> Observation:
    return Observation(
        scenario="", flow=flow, metric=metric, value=value, display_unit=unit, source=Source.PREDICTED, system=system,
        settings=settings, **rest,
    )  # fmt: skip


@contextmanager
def open_store(folder: Path | None, parameters: Sequence[str]) -> Iterator[ScenarioStore[ScenarioRows] | None]:
    """The folder of finished scenarios with a column for each parameter; None without a folder."""
    if folder is None:
        yield None
        return
    from lanewise.api.scenario_store import OBSERVATION_COLUMNS, ScenarioStore, row_columns

    taken = {"scenario", "record", *OBSERVATION_COLUMNS}
    names = {name: f"{name}_" if name in taken else name for name in parameters}

    def rows(answer: ScenarioRows) -> list[dict[str, Any]]:
        values = {names[name]: value for name, value in answer.settings.items()}
        return [{**values, **row_columns(row)} for row in answer.rows]

    columns = {**dict.fromkeys(names.values(), "int64"), **OBSERVATION_COLUMNS}
    with ScenarioStore(folder, ScenarioRows, columns, rows) as store:
        yield store
