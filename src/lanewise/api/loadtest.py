"""Load tests of this machine: the largest rate that MLPerf's LoadGen calls VALID, single runs, audits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanewise.files import Lines
    from lanewise.loadtest.load_run import LoadSpec
    from lanewise.loadtest.loadgen import Tick
    from lanewise.loadtest.peak import Done, PeakAsk, PeakResult, SearchProgress
    from lanewise.loadtest.session import BenchAsk, LoadTestSession
    from lanewise.loadtest.single_run import SingleRun
    from lanewise.loadtest.system import SystemStatistics
    from lanewise.results.observation import Observation
    from lanewise.results.sample import Sample

Say = Callable[[str], object]
TRACED = 2000  # batches of a run that a trace shows
TRYING = "trying the generator alone at twice the rate"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found, where the last run's time went, what was tested, and the folder with the logs."""

    found: PeakResult
    account: SystemStatistics
    about: dict[str, object]
    folder: Path

    def data(self) -> dict[str, Any]:
        """For other programs, SI units."""
        from lanewise.loadtest.result import as_data

        return as_data(self.found, self.account, self.about, self.folder)

    def samples(self) -> tuple[Sample, ...]:
        """What was measured."""
        from lanewise.loadtest.result import as_samples

        return tuple(as_samples(self.found, self.account, self.about))

    def beside(self) -> tuple[Observation, ...]:
        """The prediction of the peak, made before, as a row beside them; nothing if there was none."""
        from lanewise.loadtest.result import expected

        asked = self.found.ask.prediction
        return (expected(self.samples()[0], asked),) if asked is not None else ()


def loadtest_peak(
    ask: BenchAsk,
    *,
    results: str | Path | None = None,
    trace: str | Path | None = None,
    output: str | Path | None = None,
    say: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
    on_run: Callable[[Done], None] = lambda _: None,
    **settings: Any,
) -> Answer:
    """Search the peak of a system under test; `settings` are those of loadtest.peak.PeakAsk, `results` gets the logs.

    A search that was cut off goes on where it stood when asked the same way with the same `results`. `trace` gets the
    last run for Perfetto, `output` the run file. CannotMeasure, InputError (all kinds), MissingDependency.
    """
    from lanewise import files
    from lanewise.loadtest import state
    from lanewise.loadtest.peak import PeakAsk, find
    from lanewise.loadtest.session import opened
    from lanewise.loadtest.system import NOTHING

    plain = PeakAsk(**settings)  # refuses what cannot be asked before anything is loaded
    with _folder(results, trace, output) as folder, ExitStack() as held:
        say("loading")
        path = folder / "accounts.jsonl"
        accounts = state.accounts(files.read_file(path)) if path.exists() else {}
        session = held.enter_context(opened(_as_before(_traced(ask, trace), accounts.values()), folder / "logs"))
        before = _predicted(folder, session, plain, say)
        asked = replace(plain, prediction=before["qps"])
        with _state(folder, asked, session) as (earlier, kept):
            lines = files.Lines(path, more=True)
            held.callback(lines.close)

            def ran(run: Done) -> None:
                kept(run)
                account = accounts[run.kind, run.outcome.load.seed] = session.account()
                lines.write(state.account_line(run, account))
                on_run(run)

            found = find(session.runner, asked, on_progress, earlier, ran)
            found = _beside_the_generator(found, folder, say)
            told = found.outcome or (found.trials[-1] if found.trials else None)
            account = accounts.get(("search", told.load.seed), NOTHING) if told is not None else NOTHING
            about = {**session.about, **account.about_copies(ask.system.devices), "prediction": before["note"]}
            answer = Answer(found, account, about, folder)
            if trace is not None:
                files.write_file(trace, session.trace())
    if output is not None:
        from lanewise.api.runs import as_measured_run, save_run

        save_run(as_measured_run(answer.samples(), rows=answer.beside()), output)
    return answer


def _as_before(ask: BenchAsk, accounts: Iterable[SystemStatistics]) -> BenchAsk:
    """With the way to copy that a search which goes on had found fastest: its runs should not be of two ways."""
    ways = {way for account in accounts for way, tried in account.copies if tried}
    if ask.system.copy != "auto" or len(ways) != 1:
        return ask
    return replace(ask, system=replace(ask.system, copy=ways.pop()))


def _predicted(folder: Path, session: LoadTestSession, asked: PeakAsk, say: Say) -> dict[str, Any]:
    """The peak predicted before the search from what batches just took, or what an earlier search here predicted.

    The engine's own times are kept as a part file, for `--parts` and later predictions.
    """
    from lanewise import files
    from lanewise.errors import InputError
    from lanewise.loadtest import prediction

    kept = folder / "prediction.json"
    if kept.exists():
        return dict(json.loads(files.read_file(kept)))
    say("measuring what batches take")
    times, busy = session.service_times(), session.busy_times()
    system = session.ask.system
    alone = prediction.DeviceModel(
        asked.bound, asked.percentile, len(system.devices), system.timeout, system.streams, session.steps
    )
    try:
        made = prediction.predict_peak(busy, alone)
        told: dict[str, Any] = {"qps": made.qps, "interval": made.interval, "ceiling": made.ceiling}
        told["note"] = f"from batches of {', '.join(map(str, busy))}, timed in the system at work before the search"
    except InputError as error:
        told = {"qps": None, "note": f"none: {error.cause}"}
    told |= {"busy": _by_name(busy), "engine": _by_name(times)}
    if session.engines:
        source = f"measured on this machine, {datetime.now().astimezone():%Y-%m-%d %H:%M}"
        files.write_file(folder / "service-times.yaml", prediction.part_file(times, source))
    files.write_file(kept, json.dumps(told, indent=1) + "\n")
    return told


def _by_name(times: Mapping[int, float]) -> dict[str, float]:
    return {str(size): took for size, took in times.items()}


def _beside_the_generator(found: PeakResult, folder: Path, say: Say) -> PeakResult:
    """The same with a note where the generator by itself does not hold twice that rate, and so is in doubt."""
    from lanewise.loadtest import selftest

    if found.outcome is None:
        return found
    say(TRYING)
    doubt = selftest.doubt(folder / "generator", found.outcome.load)
    return replace(found, notes=(*found.notes, doubt)) if doubt else found


def loadtest_run(
    ask: BenchAsk,
    load: LoadSpec,
    *,
    audit: str = "",
    mlperf_conf: str | Path | None = None,
    user_conf: str | Path | None = None,
    results: str | Path | None = None,
    trace: str | Path | None = None,
    output: str | Path | None = None,
    say: Say = lambda _: None,
    tick: Tick | None = None,
) -> SingleRun:
    """One run of LoadGen, with Top-1 if `load.accuracy`, or an `audit`: same-sample, payload.

    An Offline rate of 0 is guessed from the time of a full batch. Settings of mlperf.conf and user.conf stand above
    those of `load`, but for rate, mode and seed. `results` gets LoadGen's logs, `trace` the (last) run for Perfetto,
    `output` the run file. Errors as loadtest_peak.
    """
    from lanewise import files
    from lanewise.loadtest import selftest, single_run
    from lanewise.loadtest.run_result import bound_of
    from lanewise.loadtest.session import opened

    ask, load = single_run.checked(ask, load, audit)
    setup = single_run.loadgen_files(
        ask.model, *(None if path is None else Path(path) for path in (mlperf_conf, user_conf))
    )
    with _folder(results, trace, output) as folder:
        say("loading")
        with opened(_traced(ask, trace), folder / "logs", tick, setup) as session:
            found = single_run.measure(session, load, audit, folder, say)
            if single_run.near_the_generator(found):
                say(TRYING)
                held_to = replace(load, bound=bound_of(found.outcome) or load.bound)
                found = single_run.with_note(found, selftest.doubt(folder / "generator", held_to))
            if trace is not None:
                files.write_file(trace, session.trace())
            size = session.sample_bytes
    if output is not None:
        from lanewise.api.runs import as_measured_run, save_run
        from lanewise.loadtest.run_result import as_samples

        save_run(as_measured_run(as_samples(found, size)), output)
    return found


def _traced(ask: BenchAsk, trace: str | Path | None) -> BenchAsk:
    """With room for the batches that a trace shows."""
    return ask if trace is None else replace(ask, system=replace(ask.system, trace=ask.system.trace or TRACED))


@contextmanager
def _state(
    folder: Path, asked: PeakAsk, session: LoadTestSession
) -> Iterator[tuple[Sequence[Done], Callable[[Done], None]]]:
    """The runs that an earlier search has finished, and what keeps another."""
    from lanewise import files
    from lanewise.loadtest import state

    path = folder / "search.jsonl"
    called = ", ".join(f"{name} {value}" for name, value in session.about.items())
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    earlier = state.read(text, str(path), asked, called)
    if text != (known := state.text_of(asked, earlier, called)):
        files.write_file(path, known)  # whole or not at all: what is finished stays
    lines: Lines = files.Lines(path, more=True)
    try:
        yield earlier, lambda run: lines.write(state.line(run))
    finally:
        lines.close()


@contextmanager
def _folder(results: str | Path | None, *written: str | Path | None) -> Iterator[Path]:
    """The folder asked for, else a new one here by the time; taken away again if nothing came into it.

    InputError where it or one of the files `written` later cannot be.
    """
    from lanewise import files
    from lanewise.errors import InputError

    for path in written:
        if path is not None:
            files.check_writable(path)
    made = Path(results) if results is not None else Path(f"loadtest-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    new = [folder for folder in (made, *made.parents) if not folder.exists()]
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"no folder {made}: {error.strerror}", hint="name another one with --results") from None
    try:
        yield made
    finally:
        with suppress(OSError):  # one is not empty: then it is needed
            for folder in new:
                folder.rmdir()


__all__ = ["Answer", "loadtest_peak", "loadtest_run"]
