"""Steps of training as loops print them: how long one takes, and how long of that it waits for data.

Sources: PyTorch's imagenet example and its descendants ("Time 0.661 ( 0.672) Data 0.580 ( 0.589)": now, mean), timm
("Time: 0.672s, 381.0/s (0.680s, 376.5/s) ... Data: 0.580 (0.590)"), torchvision's and DeiT's MetricLogger ("time: 0.67
data: 0.58"), MMEngine and Detectron2 ("time: 0.6720  data_time: 0.5890"). Times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from lanewise import late_re as re
from lanewise.errors import Location
from lanewise.readers.texts import figure
from lanewise.readers.tool_results import ImportedResults, ToolValue, check_rows, observation
from lanewise.results.observation import Observation

TOOL = "training loop"
_NOW = r"(\d{1,5}\.\d{1,9})"
_TIME = re.compile(
    rf"(?<![\w_])[Tt]ime:?\s{{0,3}}{_NOW}s?(?:,\s{{0,4}}[\d.]{{1,12}}/s)?(?:\s{{0,4}}\(\s{{0,4}}{_NOW})?"
)
_DATA = re.compile(rf"(?<![\w_])(?:Data|data|data_time):?\s{{0,3}}{_NOW}(?:\s{{0,4}}\(\s{{0,4}}{_NOW})?")
_STEP = re.compile(r"(?:\[\s{0,6}|iter:\s{0,3})(\d{1,8})(?=\s{0,3}/\s{0,6}\d|\s\s|\t)")
_WORKERS = re.compile(r"\s(?:-j|--(?:num[_-])?workers)[= ](\d{1,4})\b|\bnum_workers ?[=:] ?(\d{1,4})\b")
# "4.31 s/step", "2.1 it/s" (tqdm), Megatron's "elapsed time per iteration (ms): 12345.6".
_ALONE = re.compile(
    r"(?<![\w.])(?:(?P<s>\d{1,6}(?:\.\d{1,6})?) ?s/(?:step|it(?:er)?)\b|"
    r"(?P<rate>\d{1,6}(?:\.\d{1,6})?) ?(?:it|steps?)/s(?:ec)?\b|"
    r"elapsed time per iteration \(ms\): (?P<ms>\d{1,9}(?:\.\d{1,6})?))"
)
# PyTorch's benchmark of distributed training (benchmarks/distributed/ddp/benchmark.py): seconds and examples a second
# of each GPU, by percentile: "  16 GPUs --    2M/8G:  p50:  0.442s      72/s  p75: ...".
_DDP = re.compile(
    r"\s{0,8}(?P<gpus>\d{1,5}) GPUs --\s{1,12}(?P<kind>\S.{0,30}?):\s{1,8}p50:\s{1,8}(?P<s>\d[\d.]{0,9})s\s"
)
_LONGEST = 600


@dataclass
class _TrainingRun:
    """The lines of one run: seconds of steps and of waiting, and the loader processes (0: nobody says)."""

    workers: int = 0
    last: int = -1
    times: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


def is_text(lines: Sequence[str]) -> bool:
    """Whether a line says the number of a step, its time and what it waited for data, or is of PyTorch's benchmark."""
    return any(_is_step(line) or _DDP.match(line) for line in lines)


def _is_step(line: str) -> bool:
    return len(line) <= _LONGEST and all(pattern.search(line) for pattern in (_STEP, _TIME, _DATA))


def read_text(lines: list[str], file: str) -> ImportedResults:
    """A row for each run: steps a second, with what a step waits for data."""
    rows = tuple(row for run in _runs(lines, file) if (row := _row(run)) is not None)
    rows = (*rows, *_ddp_rows(lines, file))
    check_rows(rows, Location(file))
    return ImportedResults(TOOL, rows)


def _runs(lines: Sequence[str], file: str) -> Iterator[_TrainingRun]:
    """The runs of a text: another begins where other processes are asked for, or the steps begin anew."""
    run = _TrainingRun()
    for number, line in enumerate(lines, 1):
        if _is_step(line):
            step, time, data = _STEP.search(line), _TIME.search(line), _DATA.search(line)
            if step is None or time is None or data is None:
                continue
            if int(step[1]) < run.last:
                yield run
                run = _TrainingRun(run.workers)
            at = Location(file, number)
            run.last = int(step[1])
            # A mean of the run up to this step takes the place of the single steps.
            run.times = [figure(time[2], at)] if time[2] else [*run.times, figure(time[1], at)]
            run.waits = [figure(data[2], at)] if data[2] else [*run.waits, figure(data[1], at)]
        elif len(line) <= _LONGEST and (match := _WORKERS.search(line)):
            if run.times:
                yield run
            run = _TrainingRun(int(match[1] or match[2]))
    yield run


def _row(run: _TrainingRun) -> Observation | None:
    if not run.times or fmean(run.times) <= 0:
        return None
    time, wait = fmean(run.times), fmean(run.waits)
    value = ToolValue("loader->gpu0", "", "completed", "steps/s", "service")
    settings = {"workers": run.workers} if run.workers else {}
    return observation(TOOL, "training step", value, 1 / time, {"waits": f"{wait:g} of {time:g} s"}, settings)


def _ddp_rows(lines: Sequence[str], file: str) -> Iterator[Observation]:
    """The median steps a second of each number of GPUs."""
    for number, line in enumerate(lines, 1):
        if (match := _DDP.match(line)) and (seconds := figure(match["s"], Location(file, number))) > 0:
            value = ToolValue(f"training on {match['gpus']} GPUs", "", "completed", "steps/s", "service")
            yield observation(TOOL, f"training step, {match['kind']}", value, 1 / seconds, {}, {})


def read_times(lines: Sequence[str]) -> ImportedResults:
    """The last time of a step of a loop that says nothing of data: nothing to judge by itself, but read."""
    found = [match for line in lines if len(line) <= _LONGEST and (match := _ALONE.search(line))]
    if not found:
        return ImportedResults("", ())
    last = found[-1]
    amount = float(next(filter(None, last.groups())))
    per_second = amount if last["rate"] else 1 / (amount * (1e-3 if last["ms"] else 1.0)) if amount else 0.0
    value = ToolValue("loader->gpu0", "", "completed", "steps/s", "service")
    return ImportedResults(TOOL, (observation(TOOL, "training step", value, per_second, {}, {}),) if per_second else ())
