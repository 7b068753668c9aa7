"""The load generator's own ceiling on two cores beside that of bare LoadGen, and what a busy Python thread costs.

    python benchmarks/loadgen_ceiling.py [--cores 0,1] [--seconds 5] [--parts rates,beside] [--out FILE.json]

A system that answers at once; p99 of 15 ms from the scheduled time, LoadGen's VALID (early stopping included). `through
a thread` is the way of a real system's answers, `within the call` leaves LoadGen's own cost. Bare LoadGen is
benchmarks/bare_loadgen.cpp, a process for each run, linked with the library of the build tree; all searches advance by
turns, run by run, so that what else the host does hits all alike. The memory is checked before each run. Runs of 2 s
are too short where the hypervisor takes slices of 20 ms: one is 1 % of them. About half an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import kept

from lanewise import _loadgen, _native
from lanewise.dispatch.host import available_memory
from lanewise.errors import CannotMeasure
from lanewise.loadtest import detail_log, load_run
from lanewise.loadtest.load_run import LoadGenResult, LoadRunner, LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner, RunnerSetup
from lanewise.loadtest.selftest import MODES, GeneratorCeiling, ceilings, null_runner
from lanewise.options.loadtest import SelftestOptions

WAYS = {"through a thread": "thread", "within the call": "call"}  # of answers, as bare_loadgen.cpp calls them
TRIES = 3
BESIDE_PYTHON = 50_000.0  # queries/s
Key = tuple[str, str]  # ours or bare, and the way of answers

RATES = f"""Largest rate that is VALID with p99 <= 15 ms on a system that answers at once, beside bare LoadGen's; up to
{TRIES} runs a rate. The targets, 1 M plain and 2 M coalesced, were set on a machine where LoadGen itself reached 1.2 to
1.3 M and 2.45 M: a ratio of 0.8."""
BESIDE = f"""At {BESIDE_PYTHON:,.0f} queries/s, the run with the least p99 of {TRIES} (target: p99 < 1 ms). Busy Python
is a thread of the same process beside ours, a process beside bare LoadGen."""


@dataclass(frozen=True)
class Bare:
    """Runs loads in LoadGen's own process; it does not tell how late queries were issued."""

    program: Path
    way: str
    folder: Path

    def run(self, load: LoadSpec) -> LoadGenResult:
        """CannotMeasure where the memory is short or the program failed."""
        load_run.check_memory(load, available_memory())
        mode = "coalesced" if load.coalesce else "plain"
        numbers = (load.qps, load.seconds, load.queries, load.bound, load.percentile, load.seed)
        command = [str(self.program), *map(str, numbers), mode, self.way, str(self.folder)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise CannotMeasure(f"bare LoadGen ended with {done.returncode}")
        log = detail_log.parse((self.folder / detail_log.NAME).read_text(encoding="utf-8"))
        return LoadGenResult(
            load, log.valid, log.reasons, log.queries, load.seconds, log.rate or 0.0, log.latency, log.late
        )


def build_bare(folder: Path) -> Path:
    """Compiles bare_loadgen.cpp against the LoadGen that Lanewise was built with."""
    (library,) = (kept.ROOT / "build").glob("*/native/loadgen/libmlcommons_loadgen.a")
    (headers,) = library.parent.glob("source/mlcommons_loadgen-*/")
    source, program = Path(__file__).with_name("bare_loadgen.cpp"), folder / "bare_loadgen"
    command = ["c++", "-O3", "-std=c++17", f"-I{headers}", source, library, "-pthread", "-o", program]
    subprocess.run([str(each) for each in command], check=True)
    return program


class Unknown(Exception):
    """A search needs the outcome of a load that was not run yet."""


@dataclass
class Replay:
    """Gives a search the outcomes that there are, and stops it at the first that is missing."""

    known: dict[LoadSpec, LoadGenResult | CannotMeasure] = field(default_factory=dict)

    def run(self, load: LoadSpec) -> LoadGenResult:
        """Unknown(load) where it was not run."""
        if load not in self.known:
            raise Unknown(load)
        found = self.known[load]
        if isinstance(found, CannotMeasure):
            raise found
        return found


def search(runners: Mapping[Key, LoadRunner], options: SelftestOptions) -> dict[Key, kept.Record]:
    """Every runner's ceiling by the self-test's rule, with all rates tried; one run of each by turns."""
    replays = {key: Replay() for key in runners}
    found: dict[Key, GeneratorCeiling] = {}
    while len(found) < len(runners):
        for key in (key for key in runners if key not in found):
            try:
                (found[key],) = ceilings(replays[key], options)
            except Unknown as missing:
                (load,) = missing.args
                replays[key].known[load] = outcome = tried(runners[key], load)
                verdict = outcome if isinstance(outcome, CannotMeasure) else "VALID" if outcome.valid else "not valid"
                print(f"{options.modes[0]}, {', '.join(key)}: {load.qps:,.0f} queries/s {verdict}", file=sys.stderr)
    return {key: told(each, replays[key]) for key, each in found.items()}


def tried(runner: LoadRunner, load: LoadSpec) -> LoadGenResult | CannotMeasure:
    """What a run gave, or why there is none."""
    try:
        return runner.run(load)
    except CannotMeasure as error:
        return error


def rates(folder: Path, program: Path, seconds: float) -> list[kept.Record]:
    """The ceilings of both modes and both ways of answers, ours and bare LoadGen's."""
    runners: dict[Key, LoadRunner] = {}
    for way, name in WAYS.items():
        runners["ours", way] = null_runner(folder, at_once=name == "call")
        runners["bare", way] = Bare(program, name, folder)
    rows = []
    for mode in MODES:
        found = search(runners, SelftestOptions((mode,), start=100_000.0, seconds=seconds, tries=TRIES))
        rows += [{"answers": way, "mode": mode, "ratio": found["ours", way]["qps"] / found["bare", way]["qps"],
                  **{who: found[who, way] for who in ("ours", "bare")}} for way in WAYS]  # fmt: skip
    return rows


def told(ceiling: GeneratorCeiling, replay: Replay) -> kept.Record:
    """A ceiling as JSON can hold it, and what each run gave."""
    runs = [{"qps": load.qps, "seed": load.seed, "valid": each.valid, "p99": each.latency.get("p99")}
            for load, each in replay.known.items() if isinstance(each, LoadGenResult)]  # fmt: skip
    return asdict(ceiling) | {"tried": runs}


@contextmanager
def spinning(who: str) -> Iterator[None]:
    """Python that never rests: a thread of this process beside ours, a process beside bare LoadGen."""
    if who == "bare":
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
            try:
                yield
            finally:
                process.kill()
        return
    stop = threading.Event()
    thread = threading.Thread(target=spin, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def spin(stop: threading.Event) -> None:
    """Works until it is told to stop."""
    while not stop.is_set():
        pass


def beside_python(folder: Path, program: Path, seconds: float) -> list[kept.Record]:
    """Latencies at 50 k queries/s with and without busy Python, all cases by turns; the run with the least p99 each."""
    runs: dict[tuple[bool, str, str], list[LoadGenResult]] = {
        (busy, way, who): [] for busy in (False, True) for way in WAYS for who in ("ours", "bare")
    }
    for seed in range(1, TRIES + 1):
        for (busy, way, who), done in runs.items():
            setup = RunnerSetup(direct=way == "within the call", end_hopeless=False)
            bare = Bare(program, WAYS[way], folder)
            runner: LoadRunner = bare if who == "bare" else LoadGenRunner(_native.NullSystem(), folder, setup)
            load = LoadSpec(qps=BESIDE_PYTHON, seconds=seconds, seed=seed)
            if busy:
                with spinning(who):
                    done.append(runner.run(load))
            else:
                done.append(runner.run(load))
    return [{"busy Python": busy, "answers": way, "who": who, **best(done)} for (busy, way, who), done in runs.items()]


def best(runs: list[LoadGenResult]) -> kept.Record:
    """The run with the least p99, and the p99 of all."""
    least = min(runs, key=lambda each: each.latency["p99"])
    return {"p50": least.latency["p50"], "p99": least.latency["p99"], "lag p99": least.lag.get("p99"),
            "p99 of all runs": [each.latency["p99"] for each in runs]}  # fmt: skip


def page(record: kept.Record) -> str:
    """The tables that were asked for."""
    lines = kept.heading("The load generator's own ceiling", record)
    lines += [f"LoadGen {record['loadgen']}; cores {record['cores used']}; runs of {record['run_s']:g} s.", ""]
    if "ceilings" in record:
        lines += [
            RATES, "",
            "| answers | mode | ours, 1/s | bare, 1/s | ratio | p99 ours, ms | p99 bare, ms | lag p99 ours, ms |",
            "|---|---|---|---|---|---|---|---|", *map(ceiling_row, record["ceilings"]), "",
        ]  # fmt: skip
    if "beside python" in record:
        lines += [
            BESIDE, "", "| busy Python | answers | who | p50, us | p99, us | lag p99, us | p99 of all runs, us |",
            "|---|---|---|---|---|---|---|", *map(beside_row, record["beside python"]), "",
        ]  # fmt: skip
    return "\n".join(lines)


def ceiling_row(each: kept.Record) -> str:
    """One line of the first table."""
    ours, bare = each["ours"], each["bare"]
    late = (f"{1e3 * value:.2f}" for value in (ours["latency"]["p99"], bare["latency"]["p99"], ours["lag"]["p99"]))
    cells = [each["answers"], each["mode"], f"{ours['qps']:,.0f}", f"{bare['qps']:,.0f}", f"{each['ratio']:.2f}", *late]
    return f"| {' | '.join(cells)} |"


def beside_row(each: kept.Record) -> str:
    """One line of the second table."""
    times = ("" if each[what] is None else f"{1e6 * each[what]:.0f}" for what in ("p50", "p99", "lag p99"))
    runs = ", ".join(f"{1e6 * value:.0f}" for value in each["p99 of all runs"])
    cells = ["yes" if each["busy Python"] else "no", each["answers"], each["who"], *times, runs]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Runs everything and keeps it."""
    parser = kept.options(__doc__, "loadgen-ceiling")
    parser.add_argument("--cores", default="0,1", help="cores to stay on")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run")
    parser.add_argument("--parts", default="rates,beside", help="rates: the ceilings; beside: busy Python")
    asked = parser.parse_args()
    cores = [int(core) for core in asked.cores.split(",")]
    os.sched_setaffinity(0, cores)
    record = kept.begin(asked) | {"loadgen": _loadgen.VERSION, "compiler": kept.first_line("c++", "--version"),
                                  "cores used": cores, "run_s": asked.seconds}  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = build_bare(folder)
        if "beside" in asked.parts:
            record["beside python"] = beside_python(folder, program, asked.seconds)
        if "rates" in asked.parts:
            record["ceilings"] = rates(folder, program, asked.seconds)
    kept.keep(record, page, asked.out)


if __name__ == "__main__":
    main()
