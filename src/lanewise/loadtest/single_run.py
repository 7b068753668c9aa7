"""A single run of a load test, with Top-1 or an audit where you ask for one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lanewise.errors import InputError, unknown_name
from lanewise.loadtest import audits
from lanewise.loadtest.audits import ACCURACY_LOG, PAYLOAD, SAME_SAMPLE, Accuracy, Audit, answers, top1
from lanewise.loadtest.datasets import Dataset, NativeSamples
from lanewise.loadtest.engines.callback import BRIEF, CHECKSUMS, CLASSES
from lanewise.loadtest.load_run import OFFLINE, SERVER, LoadGenResult, LoadSpec
from lanewise.loadtest.loadgen import CARRIED, SCENARIOS, LoadGenRunner, RunnerSetup
from lanewise.loadtest.loadgen import check as check_load
from lanewise.loadtest.session import LoadTestSession
from lanewise.loadtest.system import SystemStatistics
from lanewise.options.loadtest import RunOptions

AUDITS = (SAME_SAMPLE, PAYLOAD)
# LoadGen's audit.config: the first sample again and again, as MLPerf's TEST04 does.
ONE_SAMPLE = """\
*.*.mode = 2
*.*.performance_issue_unique = 0
*.*.performance_issue_same = 1
*.*.performance_issue_same_index = 0
"""
ABOVE = 1.15  # a rate timed for a moment may be lower than that of a run; LoadGen itself sends 1.1 times as many
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class SingleRun:
    """The result of a single run; in the same-sample audit `run` sends all samples, `same_sample` one.

    `statistics` are of the system under test, `setup` names what was tested, by name and version.
    """

    run: LoadGenResult
    statistics: SystemStatistics
    setup: Mapping[str, object]
    folder: Path
    accuracy: Accuracy | None = None
    audit: Audit | None = None
    same_sample: LoadGenResult | None = None

    @property
    def passed(self) -> bool:
        """Whether the audit passed; of a run without one, whether it is VALID and did not end early. Not if a node was
        lost."""
        if self.run.losses or (self.same_sample is not None and self.same_sample.losses):
            return False
        return self.audit.passed if self.audit is not None else self.run.valid and not self.run.ended_early


def plan(options: RunOptions) -> tuple[LoadSpec, str]:
    """What LoadGen sends, and what the engine answers so that Top-1 or the audit can be computed.

    InputError for options that contradict each other.
    """
    if options.audit and options.audit not in AUDITS:
        raise unknown_name("audit", options.audit, AUDITS)
    if options.audit and options.accuracy:
        raise InputError("accuracy and an audit are two runs", hint="ask for one, then for the other")
    scenario = _scenario(options.scenario or ("offline" if options.accuracy or options.audit else "server"))
    load = LoadSpec(
        scenario, options.qps, options.seconds, options.queries, options.bound, options.percentile, options.seed,
        options.accuracy or options.audit == PAYLOAD, options.coalesce,
    )  # fmt: skip
    if options.accuracy and options.images is None:
        raise InputError("no image with a label: Top-1 is unknown", hint="give a folder: --images FOLDER")
    if scenario == SERVER and load.qps == 0.0:
        hint = "give --qps; the largest that is VALID: lanewise loadtest peak"
        raise InputError("the Server scenario needs a target above 0 queries/s", hint=hint)
    if scenario != OFFLINE or load.qps != 0.0:
        check_load(load)
    return load, CHECKSUMS if options.audit == PAYLOAD else CLASSES if options.accuracy else BRIEF


def _scenario(text: str) -> str:
    """MLPerf's name of a scenario from 'server', 'single-stream', ...; UnknownName for another."""
    scenarios = {name.lower(): name for name in SCENARIOS}
    name = scenarios.get(text.lower().replace("-", ""))
    if name is None:
        raise unknown_name("scenario", text, scenarios)
    return name


def loadgen_files(model: str, mlperf: Path | None, user: Path | None) -> RunnerSetup:
    """What LoadGen reads besides: mlperf.conf (its own unless given), then user.conf; InputError without it."""
    files = [path for path in (mlperf, user) if path is not None]
    for path in files:
        if not path.is_file():
            hint = "name one in LoadGen's format: *.Server.target_latency = 15"
            raise InputError(f"there is no file {path}", hint=hint)
    own = (CARRIED,) if mlperf is None and user is not None else ()
    name = "*" if "/" in model or model.endswith((".onnx", ".ort")) else model
    return RunnerSetup(configs=(*own, *map(str, files)), model=name)


def with_rate(session: LoadTestSession, load: LoadSpec, say: Say = lambda _: None) -> LoadSpec:
    """`load`, in the Offline scenario, unless it has a rate, with the one timed now and a little more: a run that ends
    early is not VALID."""
    if load.scenario != OFFLINE or load.qps:
        return load
    say("timing a batch")
    return replace(load, qps=ABOVE * session.offline_rate())


def measure(session: LoadTestSession, load: LoadSpec, audit: str, folder: Path, say: Say = lambda _: None) -> SingleRun:
    """Runs `load`, and what the audit needs; the logs stay below `folder`. CannotMeasure where the system fails."""
    say(_words(load))
    run, statistics = session.runner.run(load), session.statistics()
    single = SingleRun(run, statistics, session.setup_of(run, statistics), folder)
    if audit == SAME_SAMPLE:
        say(f"{_words(load)}, the same sample each time")
        same = _one_sample(session, folder).run(load)
        return replace(single, same_sample=same, audit=audits.same_sample(run, same))
    if not load.accuracy or run.folder is None:
        return single
    received = answers(run.folder / ACCURACY_LOG)
    if audit == PAYLOAD:
        return replace(single, audit=audits.payload(received, _samples(session), *_summed(session)))
    dataset = _samples(session)
    return replace(single, accuracy=top1(received, dataset.label, len(dataset), "int32"))


def _words(load: LoadSpec) -> str:
    if load.accuracy:
        return f"{load.scenario}: every sample once"
    rate = f" at {load.qps:,.0f}/s" if load.scenario in (SERVER, OFFLINE) else ""
    return f"{load.scenario}{rate} for {load.seconds:g} s"


def _one_sample(session: LoadTestSession, folder: Path) -> LoadGenRunner:
    """A runner of the same system, to which LoadGen sends one sample alone."""
    runner, config = session.runner, folder / "audit.config"
    config.write_text(ONE_SAMPLE, encoding="utf-8")
    return runner.with_setup(replace(runner.setup, audit=str(config)), folder / "logs")


def _samples(session: LoadTestSession) -> Dataset:
    """The samples as they were given to the system."""
    if session.dataset is not None:
        return session.dataset
    return NativeSamples(session.runner.setup.samples, session.options.sample_bytes)


def _summed(session: LoadTestSession) -> tuple[Callable[[bytes], bytes], ...]:
    """How the answers were summed, where the native system did it: CRC-32 of what was read back from the device."""
    return (lambda sample: zlib.crc32(sample).to_bytes(4, "little"),) if session.checksum else ()
