"""Load tests of this machine: the largest rate that MLPerf's LoadGen calls VALID, sweeps of it, single runs, audits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lanewise.api.dispatch_watch import DispatchWatch
from lanewise.api.peak_prediction import predicted_peak
from lanewise.api.search_state import result_folder, search_state
from lanewise.errors import CannotMeasure, InputError, unknown_name
from lanewise.signal_deferral import SignalDeferral

if TYPE_CHECKING:
    from lanewise.dispatch.counters import DispatchRates
    from lanewise.loadtest.load_run import LoadGenResult, LoadSpec
    from lanewise.loadtest.loadgen import Tick
    from lanewise.loadtest.peak import PeakResult, SearchProgress
    from lanewise.loadtest.selftest import GeneratorCeiling
    from lanewise.loadtest.session import LoadTestSession
    from lanewise.loadtest.single_run import SingleRun
    from lanewise.loadtest.sweep import SweepPoint, SweepResult
    from lanewise.loadtest.system import SystemStatistics
    from lanewise.loadtest.training import Training
    from lanewise.options.loadtest import PeakOptions, RunOptions, SelftestOptions, SweepOptions, TrainingOptions
    from lanewise.results.run import Run
    from lanewise.signal_deferral import SignalDeferral

Say = Callable[[str], object]
MUCH = 25_000.0  # queries/s of a single run from which on the generator alone is tried as well: that takes seconds
TRACED = 2000  # batches of a run that a trace shows
_POINT_FILE = "point.json"  # in the folder of a finished point of a sweep
_NOT_MEASURED = ("results", "output", "trace", "chart", "baseline", "link", "extrapolate")


def loadtest_peak(
    options: PeakOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
    on_run: Callable[[LoadGenResult], None] = lambda _: None,
    on_result: Callable[[PeakResult], None] = lambda _: None,
    on_counters: Callable[[DispatchRates], object] = lambda _: None,
) -> PeakResult:
    """The largest rate (queries/s) that MLPerf LoadGen calls VALID on this machine, found by search.

    With `options.nodes` Accelerator nodes answer; for both divisions see loadtest_divisions. A search that was
    interrupted resumes with the same options and the same `options.results`. `say` and `warn` are called with text,
    `on_progress` before and `on_run` after each run, `on_result` with the result while signals wait, and over nodes
    `on_counters` about once a second with what their connections do.

    Raises CannotMeasure if no rate can be measured, MissingDependency without LoadGen or a piece that the system under
    test needs, and InputError for options that do not fit.

    >>> from lanewise.options.loadtest import PeakOptions
    >>> lanewise.loadtest_peak(PeakOptions(devices=("gpu0",))).qps  # needs LoadGen; minutes  # doctest: +SKIP
    """
    from lanewise import files
    from lanewise.loadtest import state
    from lanewise.loadtest.divisions import check_division
    from lanewise.loadtest.peak import find
    from lanewise.loadtest.session import open_session
    from lanewise.serving.durations import check_positive

    check_division(options)
    check_positive("latency bound", options.bound)  # before anything is loaded
    deferral, saving = SignalDeferral(), ExitStack()
    watch = DispatchWatch(options.prometheus, on_counters)

    def tick(*_: int) -> None:
        deferral.act()
        watch.tick()

    with saving, result_folder(options.results, *_written(options)) as folder, ExitStack() as stack:
        path = folder / "accounts.jsonl"
        statistics_of = state.read_statistics(files.read_file(path)) if path.exists() else {}
        if not options.nodes:
            options = _same_copy(options, statistics_of.values())
        batches = 0 if options.trace is None else TRACED
        session = stack.enter_context(
            open_session(options, folder / "logs", trace=batches, tick=tick, say=say, warn=warn)
        )
        watch.watch(session)
        predicted = predicted_peak(folder, session, options, say)
        earlier, save = stack.enter_context(search_state(folder, options, predicted["qps"], session))
        lines = files.Lines(path, more=True)
        stack.callback(lines.close)

        def record(run: LoadGenResult) -> None:
            save(run)
            statistics = statistics_of[run.role, run.load.seed] = session.statistics()
            lines.write(state.statistics_line(run, statistics))
            watch.look()
            on_run(run)

        def before_run(progress: SearchProgress) -> None:
            deferral.act()
            on_progress(progress)

        # Signals act before a run and at LoadGen's ticks alone: a run that has ended by itself is recorded.
        saving.enter_context(deferral)
        result = find(session.runner, options, predicted["qps"], before_run, earlier, record)
        statistics = _statistics_of(result, statistics_of)
        setup = {**session.setup_of(result.best, statistics), "prediction": predicted["note"]}
        doubts, interrupt = _doubts(deferral, folder, result.best.load, say) if result.best is not None else ((), None)
        result = replace(result, statistics=statistics, setup=setup, folder=folder, notes=(*result.notes, *doubts))
        _save_peak(result, options, session)
        on_result(result)
        if interrupt is not None:
            raise interrupt
    return result


def _written(options: PeakOptions | RunOptions) -> tuple[Path | None, ...]:
    """The files that are written."""
    return options.trace, options.output, options.prometheus


def _statistics_of(result: PeakResult, statistics_of: Mapping[tuple[str, int], SystemStatistics]) -> SystemStatistics:
    """Where the time of the run at the peak went; without a peak, of the last run."""
    from lanewise.loadtest.system import NO_STATISTICS

    last = result.best or next(reversed(result.search_runs), None)
    return statistics_of.get((last.role, last.load.seed), NO_STATISTICS) if last else NO_STATISTICS


def _save_peak(result: PeakResult, options: PeakOptions, session: LoadTestSession) -> None:
    """Writes the trace and the run where `options` name files."""
    from lanewise import files

    if options.trace is not None:
        files.write_file(options.trace, session.trace())
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run
        from lanewise.loadtest.result import peak_samples, prediction_of

        samples = tuple(peak_samples(result))
        rows = (prediction_of(samples[0], result.prediction),) if result.prediction is not None else ()
        save_run(as_measured_run(samples, rows=rows), options.output)


def _doubts(
    deferral: SignalDeferral, folder: Path, load: LoadSpec, say: Say
) -> tuple[Sequence[str], KeyboardInterrupt | None]:
    """Whether the generator alone holds more than `load`; an interrupt of that leaves the measured result as it is."""
    from lanewise.loadtest import selftest

    try:
        return deferral.interruptible(lambda: selftest.doubts(folder, load, say)), None
    except KeyboardInterrupt as error:
        return ("interrupted before the generator's own ceiling was known",), error


def _same_copy(options: PeakOptions, statistics: Iterable[SystemStatistics]) -> PeakOptions:
    """With the copy method that the interrupted search had found fastest: one search uses one method."""
    methods = {method for run in statistics for method, seconds in run.copies if seconds}
    return replace(options, copy=methods.pop()) if options.copy == "auto" and len(methods) == 1 else options


def loadtest_run(
    options: RunOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    tick: Tick | None = None,
    on_result: Callable[[SingleRun], None] = lambda _: None,
    on_counters: Callable[[DispatchRates], object] = lambda _: None,
) -> SingleRun:
    """One run of LoadGen with its verdict and latencies, and Top-1 or an audit if `options` ask for it.

    Settings of mlperf.conf and user.conf override those of the options, except for rate, mode and seed. `say` and
    `warn` are called with text, `tick` about 20 times a second with the queries issued, answered and late, `on_result`
    with the result while signals wait.

    Raises CannotMeasure, MissingDependency and InputError as loadtest_peak does.

    >>> from lanewise.options.loadtest import RunOptions
    >>> options = RunOptions(engine="synthetic", qps=100)
    >>> lanewise.loadtest_run(options).run.valid  # needs LoadGen and an idle machine  # doctest: +SKIP
    True
    """
    from lanewise import files
    from lanewise.loadtest import single_run
    from lanewise.loadtest.divisions import check_network_options
    from lanewise.loadtest.load_run import SERVER
    from lanewise.loadtest.result import bound_of, run_samples
    from lanewise.loadtest.session import open_session

    check_network_options(options)
    spec, answer = single_run.plan(options)
    setup = single_run.loadgen_files(options.model, options.mlperf_conf, options.user_conf)
    batches = 0 if options.trace is None else TRACED
    interrupt, deferral, saving = None, SignalDeferral(), ExitStack()

    watch = DispatchWatch(options.prometheus, on_counters)

    def tick_all(issued: int, answered: int, late: int) -> None:
        deferral.act()
        watch.tick()
        if tick is not None:
            tick(issued, answered, late)

    with (
        saving,
        result_folder(options.results, *_written(options)) as folder,
        open_session(
            options,
            folder / "logs",
            answer=answer,
            trace=batches,
            tick=tick_all,
            runner_setup=setup,
            say=say,
            warn=warn,
        ) as session,
    ):
        watch.watch(session)
        spec = single_run.with_rate(session, spec, say)
        saving.enter_context(deferral)  # signals act at LoadGen's ticks alone: a run that has ended by itself is saved
        result = single_run.measure(session, spec, options.audit, folder, say)
        watch.look()
        if spec.scenario == SERVER and not spec.accuracy and spec.qps >= MUCH:
            load = replace(spec, bound=bound_of(result.run) or spec.bound)
            doubts, interrupt = _doubts(deferral, folder, load, say)
            result = replace(result, run=replace(result.run, notes=(*result.run.notes, *doubts)))
        if options.trace is not None:
            files.write_file(options.trace, session.trace())
        if options.output is not None:
            from lanewise.api.runs import as_measured_run, save_run

            save_run(as_measured_run(run_samples(result, session.options.sample_bytes)), options.output)
        on_result(result)
        if interrupt is not None:
            raise interrupt
    return result


def loadtest_selftest(
    options: SelftestOptions | None = None, *, say: Say = lambda _: None
) -> Iterator[GeneratorCeiling]:
    """For each mode, the largest rate (queries/s) that LoadGen itself issues on this host within the latency bound, as
    it is measured.

    The rate doubles from `options.start`; then bisection narrows it to `options.precision`. `say` is called with text.

    Raises MissingDependency without LoadGen, CannotMeasure if `options.start` is already too fast, UnknownName for a
    mode that does not exist, and InputError for no mode or a bound of 0.

    >>> [ceiling.qps for ceiling in lanewise.loadtest_selftest()]  # needs LoadGen; a minute  # doctest: +SKIP
    """
    from lanewise.loadtest import selftest
    from lanewise.options.loadtest import SelftestOptions

    options = options or SelftestOptions()
    for mode in options.modes:
        if mode not in selftest.MODES:
            raise unknown_name("mode", mode, selftest.MODES)
    if not options.modes or not options.bound > 0.0:
        raise InputError("a self-test needs a mode and a bound above 0", hint="--modes plain,coalesced --bound '15 ms'")

    def measure(options: SelftestOptions) -> Iterator[GeneratorCeiling]:
        with TemporaryDirectory(prefix="lanewise-selftest-") as scratch:
            runner = selftest.null_runner(options.logs or Path(scratch), options.at_once)
            yield from selftest.ceilings(runner, options, say)

    return measure(options)


def loadtest_sweep(
    options: SweepOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
) -> Iterator[SweepResult]:
    """The peak (queries/s) at each point of a sweep over GPUs, batches, streams or paths, as it is measured.

    Each point has a folder below `options.results`; a sweep that was interrupted resumes with the same options. A point
    that cannot be measured carries the reason. `say` and `warn` are called with text, `on_progress` before each run.

    Raises InputError, UnknownName, FormatError or Contradiction for options that do not fit, and MissingDependency
    without LoadGen.

    >>> from lanewise.options.loadtest import SweepOptions
    >>> options = SweepOptions(gpus=("1", "2"), devices=("gpu0", "gpu1"))
    >>> results = list(lanewise.loadtest_sweep(options))  # needs LoadGen and two GPUs; minutes  # doctest: +SKIP
    """
    from lanewise import files
    from lanewise.loadtest.sweep import points_of

    points = points_of(options)
    for path in (options.output, options.chart):
        if path is not None:
            files.check_writable(path)
    folder = options.results or Path(f"loadtest-sweep-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    return _measure_points(points, options, folder, say, {"warn": warn, "on_progress": on_progress})


def _measure_points(
    points: Sequence[SweepPoint], options: SweepOptions, folder: Path, say: Say, callbacks: dict[str, Any]
) -> Iterator[SweepResult]:
    from lanewise import files
    from lanewise.loadtest import sweep

    for number, point in enumerate(points, 1):
        path = folder / point.folder / _POINT_FILE
        key = _key(point)
        finished = sweep.from_json(files.read_file(path), point, key) if path.exists() else None
        if finished is not None:
            yield finished
            continue
        plain = replace(point.options, results=path.parent, output=None, trace=None)
        before = f"point {number} of {len(points)}, {point.name}: "
        try:
            result = loadtest_peak(plain, say=_prefixed(say, before), **callbacks)
        except CannotMeasure as error:
            yield sweep.failed(point, options.bound, str(error))
            continue
        measured = sweep.point_result(point, result)
        files.write_file(path, sweep.to_json(measured, key))
        yield measured


def _key(point: SweepPoint) -> str:
    """Everything that decides about a measurement, so that only the same point is taken from an earlier sweep."""
    values = {member.name: getattr(point.options, member.name) for member in fields(point.options)}
    return repr([(name, value) for name, value in values.items() if name not in _NOT_MEASURED] + [point.name])


def _prefixed(say: Say, before: str) -> Say:
    return lambda text: say(before + text)


def sweep_data(options: SweepOptions, results: Sequence[SweepResult]) -> dict[str, Any]:
    """A sweep as plain data for JSON or a chart: for each point queries/s, B/s and speed-up over the baseline, in SI
    units.

    `options` are those that loadtest_sweep had. Raises InputError for options that do not sweep exactly one thing, and
    UnknownName for a baseline that is no point of the sweep.

    >>> lanewise.sweep_data(options, results)["rows"][0]["qps"]  # of loadtest_sweep's example  # doctest: +SKIP
    """
    from lanewise.loadtest.sweep import as_data, axis_of, check_baseline, doubts, points_of, table

    check_baseline(options.baseline, points_of(options))
    rows = table(results, options.baseline, options.link, options.extrapolate)
    return as_data(axis_of(options)[0], rows, options.baseline, options.link, doubts(results))


def as_sweep_run(options: SweepOptions, results: Sequence[SweepResult]) -> Run:
    """A sweep as a run: the measured rows of each point and the extrapolated ones.

    `options` are those that loadtest_sweep had.

    >>> lanewise.save_run(lanewise.as_sweep_run(options, results), "sweep.json")  # as above  # doctest: +SKIP
    """
    from lanewise.api.provenance import new_run
    from lanewise.loadtest.sweep import observations, table

    rows = table(results, options.baseline, options.link, options.extrapolate)
    return new_run(rows=observations(results, rows))


def loadtest_training(options: TrainingOptions) -> Training:
    """The rate (B/s) at which a training read its data, for each span of epochs, from its MLPerf log.

    Raises InputError for a log that cannot be read or lacks the number of samples, and FormatError with the line for
    one that is not an MLPerf log.

    >>> from lanewise.options.loadtest import TrainingOptions
    >>> training = lanewise.loadtest_training(TrainingOptions(Path("training.log"), 150_528, samples=1_281_167))
    >>> round(training.median / 1e9, 2)  # GB/s
    4.82
    """
    from lanewise.files import check_writable, read_file
    from lanewise.loadtest.training import as_samples, read

    if options.output is not None:
        check_writable(options.output)
    training = read(read_file(options.log), str(options.log), options.sample_bytes, options.samples)
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run

        save_run(as_measured_run(as_samples(training, options.log.name)), options.output)
    return training
