"""Runs loads through LoadGen, natively: no Python stands in the way of a query."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise import units
from lanewise.dispatch.host import available_memory
from lanewise.errors import CannotMeasure, InputError, LanewiseError, MissingDependency
from lanewise.installed import loadgen_missing
from lanewise.loadtest import detail_log, interference
from lanewise.loadtest.load_run import (
    MULTI_STREAM,
    OFFLINE,
    SERVER,
    SINGLE_STREAM,
    LoadGenResult,
    LoadSpec,
    check_memory,
)  # fmt: skip

if TYPE_CHECKING:
    from lanewise._loadgen import LoadGenRun, Settings
    from lanewise._native import SystemUnderTest

SCENARIOS = (SERVER, OFFLINE, SINGLE_STREAM, MULTI_STREAM)
ROOM = 2**18  # bytes; the logs of a run without an accuracy log take less
# LoadGen ends these two so, whatever became of the run.
LOG_ENDS = {
    "mlperf_log_summary.txt": (b"during test.\n", b"See detailed log.\n"),
    "mlperf_log_accuracy.json": (b"\n]\n",),
}
CARRIED = ""  # in `configs`: the mlperf.conf that LoadGen carries
Tick = Callable[[int, int, int], object]


@dataclass(frozen=True, slots=True)
class RunnerSetup:
    """What holds for all runs of a runner.

    `samples` are in the dataset, `resident` of them in memory at a time. `configs` are files in LoadGen's format
    (mlperf.conf, user.conf; CARRIED is LoadGen's own), read for `model`; a later file wins. They override a LoadSpec,
    except its rate, mode and seed (0: the files'). `audit` is LoadGen's audit.config. `direct`: answers that come
    within the issuing call skip the answering thread.
    """

    samples: int = 1024
    resident: int = 1024
    configs: tuple[str, ...] = ()
    model: str = "*"
    audit: str = ""
    end_hopeless: bool = True
    direct: bool = True


class LoadGenRunner:
    """Runs one load after the other on a system that stays loaded; the logs of each run lie in a folder of its own.

    `tick(issued, answered, late)` is called some 20 times a second while a run goes on.
    """

    def __init__(
        self, system: SystemUnderTest, folder: Path, setup: RunnerSetup | None = None, tick: Tick | None = None
    ) -> None:
        needs_loadgen()
        self.system = system
        self.setup = setup or RunnerSetup()
        self.tick = tick
        self._folder = folder
        if self.setup.samples < 1 or self.setup.resident < 1:
            raise InputError("a dataset without samples", hint="give one sample or more")

    def run(self, load: LoadSpec) -> LoadGenResult:
        """CannotMeasure where the system failed, or memory or the disk of the logs is too small.

        What KeyboardInterrupt cuts off keeps its logs.
        """
        check(load)
        check_memory(load, available_memory())
        folder = next_folder(self._folder, load)
        check_room(folder)
        before = interference.cpu_usage(nodes=self.local_nodes)
        counts = self._drive(self._settings(load, folder))
        after = interference.cpu_usage(nodes=self.local_nodes)
        result = outcome(load, read_logs(folder, load.accuracy), counts, folder)
        return replace(result, interference=after.interference_since(before) if before and after else None)

    def with_setup(self, setup: RunnerSetup, folder: Path) -> LoadGenRunner:
        """The same runner with another setup, and another folder for its logs."""
        other = copy(self)
        other.setup, other._folder = setup, folder
        return other

    @property
    def local_nodes(self) -> tuple[int, ...]:
        """The process numbers of nodes on this host, whose CPU time is the load test's own."""
        return ()

    def _drive(self, settings: Settings) -> LoadGenRun:
        from lanewise import _loadgen
        from lanewise._native import ProbeFailure

        try:
            return _loadgen.run_load(self.system, settings, self.tick)
        except ProbeFailure as failure:
            cause, hint = failure.args
            raise CannotMeasure(cause, hint=f"{hint}; logs: {settings.folder}") from None
        except LanewiseError:
            raise
        except (RuntimeError, MemoryError) as error:
            hint = f"see what is installed: lanewise doctor; logs: {settings.folder}"
            raise CannotMeasure(f"the load test failed: {error}", hint=hint) from None

    def _settings(self, load: LoadSpec, folder: Path) -> Settings:
        from lanewise._loadgen import Mode, Settings

        settings, setup = Settings(), self.setup
        settings.scenario, settings.qps, settings.bound = load.scenario, load.qps, load.bound
        settings.mode = Mode.ACCURACY if load.accuracy else Mode.PERFORMANCE
        settings.percentile, settings.seconds, settings.queries = load.percentile, load.seconds, load.queries
        settings.samples, settings.seed, settings.coalesce = load.samples, load.seed, load.coalesce
        settings.sample_count, settings.performance_sample_count = setup.samples, min(setup.resident, setup.samples)
        settings.folder, settings.configs, settings.model = str(folder), list(setup.configs), setup.model
        settings.audit, settings.end_hopeless, settings.direct = setup.audit, setup.end_hopeless, setup.direct
        return settings


def needs_loadgen() -> None:
    """MissingDependency with the reason where Lanewise was built without LoadGen."""
    if missing := loadgen_missing():
        raise MissingDependency(
            f"load tests need MLCommons LoadGen, which Lanewise was built without: {missing}",
            hint="install Lanewise again where PyPI can be reached, or with LANEWISE_LOADGEN_SDIST=FILE",
        )


def check(load: LoadSpec) -> None:
    """InputError for a load that cannot be run."""
    if load.scenario not in SCENARIOS:
        raise InputError(f"unknown scenario '{load.scenario}'", hint=f"known: {', '.join(SCENARIOS)}")
    if load.scenario in (SERVER, OFFLINE) and not (0.0 < load.qps < math.inf):
        raise InputError(f"a target of {load.qps:g} queries/s", hint="give a rate above 0")
    if not (0.0 < load.bound < math.inf) or not 0.0 < load.percentile < 1.0:
        cause = f"a bound of {load.bound:g} s for a share of {load.percentile:g}"
        raise InputError(cause, hint="such as 0.015 s for 0.99")
    if not (0.0 < load.seconds < math.inf) or load.queries < 1 or load.samples < 1:
        cause = f"a run of {load.seconds:g} s, {load.queries} queries and {load.samples} samples"
        raise InputError(cause, hint="give numbers above 0")
    if not 0 <= load.seed < 2**64:
        raise InputError(f"a seed of {load.seed}", hint="give a whole number from 0 to 2^64 - 1")


def next_folder(root: Path, load: LoadSpec) -> Path:
    """A new folder below `root` for the logs of a run, numbered in the order of the runs; InputError if none can be."""
    rate = f"-{load.qps:.6g}" if load.qps else ""
    mode = "-accuracy" if load.accuracy else ""
    try:
        root.mkdir(parents=True, exist_ok=True)
        numbers = [int(entry.name[:4]) for entry in root.iterdir() if entry.name[:4].isdecimal()]
        folder = root / f"{max(numbers, default=0) + 1:04d}-{load.scenario.lower()}{rate}{mode}-seed{load.seed}"
        folder.mkdir()
    except OSError as error:
        raise InputError(f"no folder for logs below {root}: {error.strerror}", hint="name another folder") from None
    return folder


def check_room(folder: Path) -> None:
    """CannotMeasure where the disk of `folder` has no room for the logs of a run."""
    if _free_bytes(folder) < ROOM:
        raise _disk_error(f"no room for LoadGen's logs in {folder}", folder)


def read_logs(folder: Path, accuracy: bool) -> detail_log.DetailLog:
    """The detail log of a finished run; CannotMeasure where one of its logs has no end: LoadGen ignores a full disk."""
    path = folder / detail_log.NAME
    log = detail_log.parse(path.read_text(encoding="utf-8"), str(path))
    short = [] if log.has_end(accuracy) else [path.name]
    short += [name for name, end in LOG_ENDS.items() if not (folder / name).read_bytes().endswith(end)]
    if short:
        raise _disk_error(f"LoadGen's logs in {folder} are incomplete ({', '.join(short)})", folder)
    return log


def _disk_error(cause: str, folder: Path) -> CannotMeasure:
    disk = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.is_mount())
    free = units.size(_free_bytes(folder))
    return CannotMeasure(f"{cause}: {free} free on the disk of {disk}", hint="make room there, or name another folder")


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def outcome(load: LoadSpec, log: detail_log.DetailLog, counts: LoadGenRun, folder: Path) -> LoadGenResult:
    """The result in LoadGen's log; of a run that was ended early, that of our own counters. CannotMeasure for a run
    without a verdict: the system failed."""
    reasons, notes = list(log.reasons), []
    early = counts.hopeless and not log.judged
    cut = not log.judged and (not load.accuracy or any(error.startswith(detail_log.ENDED_EARLY) for error in reasons))
    if cut and not early:  # its rate and latency say nothing about the system
        why = "; ".join(reasons) or "it wrote no reason"
        cause = f"LoadGen gave no verdict after {counts.answered:,} queries: {why}"
        raise CannotMeasure(cause, hint=f"try again; logs: {folder}")
    if early:
        reasons = [f"ended early: {counts.late} of {counts.issued} queries were late, more than a valid run can have"]
    seconds = counts.seconds
    counted = counts.answered / seconds if seconds > 0.0 else 0.0
    if load.coalesce:
        notes.append("queries due together were handed over in one call (coalesced)")
    if log.settings.get("performance_issue_same"):
        notes.append("the same sample every time (audit)")
    samples = load.scenario in (OFFLINE, MULTI_STREAM) or not log.judged
    return LoadGenResult(
        load, log.valid or (load.accuracy and not reasons), tuple(reasons), counts.answered if samples else log.queries,
        seconds, log.rate if log.rate is not None else counted, log.latency if log.judged else counts.latency,
        log.late if log.judged else counts.late, counts.lag, early, folder, log.settings, tuple(notes),
        still=counts.still,
    )  # fmt: skip
