"""Load tests of this machine: the largest rate that MLPerf's LoadGen calls VALID, single runs, audits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.errors import InputError, unknown_name

if TYPE_CHECKING:
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.loadgen import Tick
    from lanewise.loadtest.peak import PeakAsk, PeakResult, SearchProgress
    from lanewise.loadtest.session import BenchAsk, LoadTestSession
    from lanewise.loadtest.single_run import SingleRun
    from lanewise.loadtest.system import SystemStatistics
    from lanewise.options.loadtest import LoadTestOptions, PeakOptions, RunOptions

Say = Callable[[str], object]
TRACED = 2000  # batches of a run that a trace shows
TRYING = "trying the generator alone at twice the rate"


def loadtest_peak(
    options: PeakOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
    on_run: Callable[[LoadGenResult], None] = lambda _: None,
) -> PeakResult:
    """The largest rate (queries/s) that MLPerf's LoadGen calls VALID on this machine, found by search.

    A search that was cut off resumes with the same options and the same `options.results`. Raises CannotMeasure,
    InputError (all kinds) and MissingDependency.
    """
    from lanewise import files
    from lanewise.loadtest import state
    from lanewise.loadtest.peak import PeakAsk, find
    from lanewise.loadtest.session import opened
    from lanewise.loadtest.system import NO_STATISTICS

    search = PeakAsk(
        options.bound, options.percentile, options.within, options.most_runs, options.seconds, options.seed,
        coalesce=options.coalesce,
    )  # fmt: skip
    with _folder(options.results, options.trace, options.output) as folder, ExitStack() as stack:
        path = folder / "accounts.jsonl"
        statistics = state.read_statistics(files.read_file(path)) if path.exists() else {}
        ask = _same_copy(_session(options, options.trace, warn), statistics.values())
        say("loading")
        session = stack.enter_context(opened(ask, folder / "logs"))
        predicted = _predicted(folder, session, search, say)
        search = replace(search, prediction=predicted["qps"])
        earlier, save = stack.enter_context(_state(folder, search, session))
        lines = files.Lines(path, more=True)
        stack.callback(lines.close)

        def record(run: LoadGenResult) -> None:
            save(run)
            tally = statistics[run.role, run.load.seed] = session.statistics()
            lines.write(state.statistics_line(run, tally))
            on_run(run)

        result = find(session.runner, search, on_progress, earlier, record)
        last = result.best or next(reversed(result.search_runs), None)
        tally = statistics.get((last.role, last.load.seed), NO_STATISTICS) if last is not None else NO_STATISTICS
        setup = {**session.setup, **tally.about_copies(options.devices), "prediction": predicted["note"]}
        notes = (*result.notes, *_generator_doubt(result, folder, say))
        result = replace(result, statistics=tally, setup=setup, folder=folder, notes=notes)
        if options.trace is not None:
            files.write_file(options.trace, session.trace())
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run
        from lanewise.loadtest.result import as_samples, prediction_of

        samples = tuple(as_samples(result))
        rows = (prediction_of(samples[0], search.prediction),) if search.prediction is not None else ()
        save_run(as_measured_run(samples, rows=rows), options.output)
    return result


def _session(options: LoadTestOptions, trace: Path | None, warn: Say) -> BenchAsk:
    """The system under test that the options describe, with room for the batches that a trace shows."""
    from lanewise.loadtest.engines import EngineOptions
    from lanewise.loadtest.session import BenchAsk
    from lanewise.loadtest.system import SystemSpec

    if not options.devices:
        raise InputError("--devices names no device", hint="write --devices cpu or --devices gpu0,gpu1")
    per_batch, per_query = options.service
    system = SystemSpec(
        devices=options.devices, batch=options.batch, timeout=options.timeout, streams=options.streams,
        copy=options.copy, library=options.library, sample_bytes=options.sample_bytes, service_batch=per_batch,
        service_query=per_query, trace=0 if trace is None else TRACED,
    )  # fmt: skip
    threads = options.threads or max(1, (os.cpu_count() or 2) - 1)  # the generator needs a core
    engine = options.engine or first_engine(options.devices, warn)
    return BenchAsk(
        engine,
        options.model,
        options.precision,
        EngineOptions(mode=options.mode, threads=threads),
        system,
        options.images,
    )


def first_engine(devices: Sequence[str], warn: Say = lambda _: None) -> str:
    """The first installed engine: torch before onnxruntime on GPUs, after it on a CPU; else synthetic."""
    from importlib.util import find_spec

    order = ("onnxruntime", "torch") if devices[0] == "cpu" else ("torch", "onnxruntime")
    for name in order:
        if find_spec(name) is not None:
            return name
    packages = {"torch": "torch", "onnxruntime": "onnxruntime onnx"}[order[0]]
    # Its rate is easily taken for that of a model.
    warn(
        "note: neither onnxruntime nor torch is installed: the synthetic engine measures path and queueing with the "
        f"service time that --service states; no model runs\nhint: pip install {packages}"
    )
    return "synthetic"


def _same_copy(ask: BenchAsk, statistics: Iterable[SystemStatistics]) -> BenchAsk:
    """With the copy method that the interrupted search had found fastest: one search uses one method."""
    methods = {method for tally in statistics for method, seconds in tally.copies if seconds}
    if ask.system.copy != "auto" or len(methods) != 1:
        return ask
    return replace(ask, system=replace(ask.system, copy=methods.pop()))


def _predicted(folder: Path, session: LoadTestSession, ask: PeakAsk, say: Say) -> dict[str, Any]:
    """The peak predicted before the search from batches just timed, or what an earlier search here predicted.

    The engine's own times are written as a part file, for `--parts` and later predictions.
    """
    from lanewise import files
    from lanewise.loadtest import prediction

    path = folder / "prediction.json"
    if path.exists():
        return dict(json.loads(files.read_file(path)))
    say("timing batches")
    times, intervals = session.service_times(), session.batch_intervals()
    system = session.ask.system
    model = prediction.DeviceModel(
        ask.bound, ask.percentile, len(system.devices), system.timeout, system.streams, session.steps
    )
    try:
        peak = prediction.predict_peak(intervals, model)
        sizes = ", ".join(map(str, intervals))
        note = f"from batches of {sizes}, timed in the system at work before the search"
        data: dict[str, Any] = {"qps": peak.rate, "interval": peak.interval, "ceiling": peak.ceiling, "note": note}
    except InputError as error:
        data = {"qps": None, "note": f"none: {error.cause}"}
    data |= {"busy": _by_name(intervals), "engine": _by_name(times)}
    if session.engines:
        source = f"measured on this machine, {datetime.now().astimezone():%Y-%m-%d %H:%M}"
        files.write_file(folder / "service-times.yaml", prediction.part_file(times, source))
    files.write_file(path, json.dumps(data, indent=1) + "\n")
    return data


def _by_name(times: Mapping[int, float]) -> dict[str, float]:
    return {str(size): seconds for size, seconds in times.items()}


def _generator_doubt(result: PeakResult, folder: Path, say: Say) -> tuple[str, ...]:
    """A note where the generator by itself does not hold twice the peak, so that the peak is in doubt."""
    from lanewise.loadtest import selftest

    if result.best is None:
        return ()
    say(TRYING)
    return tuple(filter(None, [selftest.doubt(folder / "generator", result.best.load)]))


def loadtest_run(
    options: RunOptions, *, say: Say = lambda _: None, warn: Say = lambda _: None, tick: Tick | None = None
) -> SingleRun:
    """The result of one run of LoadGen, with Top-1 or an audit where `options` ask for it.

    Settings of mlperf.conf and user.conf override those of the options, but for rate, mode and seed. Raises what
    loadtest_peak raises.
    """
    from lanewise import files
    from lanewise.loadtest import selftest, single_run
    from lanewise.loadtest.load_run import LoadSpec
    from lanewise.loadtest.run_result import bound_of
    from lanewise.loadtest.session import opened

    scenario = _scenario(options.scenario or ("offline" if options.accuracy or options.audit else "server"))
    spec = LoadSpec(
        scenario, options.qps, options.seconds, options.queries, options.bound, options.percentile, options.seed,
        options.accuracy, options.coalesce,
    )  # fmt: skip
    ask, spec = single_run.checked(_session(options, options.trace, warn), spec, options.audit)
    setup = single_run.loadgen_files(ask.model, options.mlperf_conf, options.user_conf)
    with _folder(options.results, options.trace, options.output) as folder:
        say("loading")
        with opened(ask, folder / "logs", tick, setup) as session:
            result = single_run.measure(session, spec, options.audit, folder, say)
            if single_run.near_the_generator(result):
                say(TRYING)
                bound = bound_of(result.run) or spec.bound
                result = single_run.with_note(result, selftest.doubt(folder / "generator", replace(spec, bound=bound)))
            if options.trace is not None:
                files.write_file(options.trace, session.trace())
            size = session.sample_bytes
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run
        from lanewise.loadtest.run_result import as_samples

        save_run(as_measured_run(as_samples(result, size)), options.output)
    return result


def _scenario(text: str) -> str:
    """MLPerf's name of a scenario from 'server', 'single-stream', ...; UnknownName for another."""
    from lanewise.loadtest.loadgen import SCENARIOS

    known = {name.lower(): name for name in SCENARIOS}
    name = known.get(text.lower().replace("-", ""))
    if name is None:
        raise unknown_name("scenario", text, known)
    return name


@contextmanager
def _state(
    folder: Path, ask: PeakAsk, session: LoadTestSession
) -> Iterator[tuple[Sequence[LoadGenResult], Callable[[LoadGenResult], None]]]:
    """The runs that an earlier search has finished, and a function that records another."""
    from lanewise import files
    from lanewise.loadtest import state

    path = folder / "search.jsonl"
    setup = ", ".join(f"{name} {value}" for name, value in session.setup.items())
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    earlier = state.read(text, str(path), ask, setup)
    if text != (known := state.text_of(ask, earlier, setup)):
        files.write_file(path, known)  # whole or not at all: what is finished stays
    lines = files.Lines(path, more=True)
    try:
        yield earlier, lambda run: lines.write(state.line(run))
    finally:
        lines.close()


@contextmanager
def _folder(results: str | Path | None, *written: str | Path | None) -> Iterator[Path]:
    """The folder of --results, else a new one named by the time; removed again if it stays empty.

    InputError where it or one of the files `written` later cannot be.
    """
    from lanewise import files

    for path in written:
        if path is not None:
            files.check_writable(path)
    folder = Path(results) if results is not None else Path(f"loadtest-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    new = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder {folder}: {error.strerror}", hint="name another one with --results") from None
    try:
        yield folder
    finally:
        with suppress(OSError):  # a folder that is not empty is needed
            for parent in new:
                parent.rmdir()
