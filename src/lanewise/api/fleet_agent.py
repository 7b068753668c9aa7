"""The side of a fleet check that runs on each node: answers jobs with what the measuring verbs and `check` say here."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lanewise.errors import CannotMeasure, LanewiseError
from lanewise.fleet.node import ALONE, BOOT, DRIVE, FACTS, NETWORK, SHARED_ALONE, SHARED_TOGETHER, TOGETHER, NodeReport
from lanewise.fleet.processes import GREETING
from lanewise.fleet.survey import LISTEN, NodeJob
from lanewise.options.sampling import SamplingRule

if TYPE_CHECKING:
    from lanewise.results.sample import Sample

# Three samples that agree within 2 %, as a quick check takes them.
_QUICK = SamplingRule(least=3, most=5, width=0.02)
_PAIR: dict[str, Any] = {"sizes": (1 << 20,), "connections": (4,), "seconds": 0.25, "both_ways": True, "rule": _QUICK}
_LISTENER = "from lanewise.api.fleet_agent import serve_listener; serve_listener()"
_SHARED_READ: dict[str, Any] = {"modes": "direct", "size": 1_000_000_000, "runs": 3}


class NodeAgent:
    """One node's answers; `name` is what the survey calls it. It holds the listener of its network tests.

    CannotMeasure where the survey's `driver_version` of Lanewise is another one than this.
    """

    def __init__(self, name: str, driver_version: str = "") -> None:
        from lanewise.api.provenance import version

        if driver_version not in ("", version()):
            cause = f"it has Lanewise {version()}, the survey has {driver_version}"
            raise CannotMeasure(cause, hint="install the same version")
        self.name = name
        self._listener: subprocess.Popen[str] | None = None
        self._steps: dict[str, Callable[[Mapping[str, str]], NodeReport]] = {
            FACTS: self._facts, ALONE: self._alone, TOGETHER: self._together, LISTEN: self._listen,
            NETWORK: self._network, DRIVE: self._storage, SHARED_ALONE: self._storage,
            SHARED_TOGETHER: self._storage,
        }  # fmt: skip

    def answer(self, job: NodeJob) -> NodeReport:
        """What this node answers; what cannot be measured here is a note."""
        try:
            return self._steps[job.do](job.values)
        except LanewiseError as error:
            return NodeReport(self.name, notes=(f"{job.do} not measured: {error.cause}",))

    def close(self) -> None:
        """End the listener."""
        if self._listener is not None:
            self._listener.kill()
            self._listener.communicate()
            self._listener = None

    def _facts(self, values: Mapping[str, str]) -> NodeReport:
        from lanewise.api.provenance import machine
        from lanewise.dispatch.host import boot_id

        gpus = _gpus()
        busy = "; ".join(f"gpu{number} is busy: {gpu['busy']}" for number, gpu in enumerate(gpus) if gpu["busy"])
        facts = {**machine(), BOOT: boot_id()}
        return NodeReport(self.name, facts, tuple(gpu["name"] for gpu in gpus), busy=busy)

    def _alone(self, values: Mapping[str, str]) -> NodeReport:
        """Memory of the host and copies of GPUs, one path at a time, judged by the model."""
        from lanewise.api.checking import check, quick_samples
        from lanewise.fleet.model_findings import judged_rows, model_findings

        notes: list[str] = []
        samples = list(quick_samples(notes))
        with _system(values) as system:
            checkup = check((), system, samples=samples, notes=notes)
        rows = (*(result.row for result in checkup.results), *checkup.left_aside)
        known = tuple(note for note in checkup.notes if "left aside" not in note)
        return NodeReport(
            self.name, rows=rows, findings=model_findings(checkup), judged=judged_rows(checkup), notes=known
        )

    def _together(self, values: Mapping[str, str]) -> NodeReport:
        """Copies from the host to all GPUs at once; of a node without GPUs, of host memory by all cores."""
        from lanewise.api.measure import measure_gpu, measure_host

        gpus = len(_gpus())
        if gpus:
            flows = ", ".join(f"host0->gpu{number}" for number in range(gpus))
            return self._report(measure_gpu(flows, rule=_QUICK))
        cores = len(os.sched_getaffinity(0))
        return self._report(measure_host(("copy",), threads=(cores,), rule=_QUICK))

    def _listen(self, values: Mapping[str, str]) -> NodeReport:
        self.close()
        task = json.dumps([os.getpid(), f"{_own_address(values['address'])}:0", values["secret"]])
        self._listener = subprocess.Popen(
            [sys.executable, "-P", "-c", _LISTENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._listener.stdin is not None
        assert self._listener.stdout is not None
        with suppress(BrokenPipeError):
            self._listener.stdin.write(f"{task}\n")
            self._listener.stdin.flush()
        words = self._listener.stdout.readline().split()  # listening on HOST port PORT; ...
        port = words[words.index("port") + 1].rstrip(";") if "port" in words else ""
        if not port.isdigit():
            raise CannotMeasure(" ".join(words) or "the listener ended", hint="lanewise measure network --listen")
        return NodeReport(self.name, facts={"port": port})

    def _network(self, values: Mapping[str, str]) -> NodeReport:
        from lanewise.api.measure import measure_network

        os.environ["LANEWISE_SECRET"] = values["secret"]
        report = self._report(measure_network(values["address"], transport=values["transport"], **_PAIR))
        return replace(report, rows=tuple(row for row in report.rows if row.metric == "goodput"))

    def _storage(self, values: Mapping[str, str]) -> NodeReport:
        """Direct reads of a file or device; in a folder, of a test file that is removed again."""
        from lanewise.api.measure import measure_storage

        path = values["path"]
        make: dict[str, Any] = {"make": 1_000_000_000} if Path(path).is_dir() else {}
        report = self._report(measure_storage(path, **_SHARED_READ, **make))
        # The name of a test file is another on each node.
        rows = (replace(row, flow=f"vol0->{row.flow.partition('->')[2]}") for row in report.rows)
        return replace(report, rows=tuple(row for row in rows if row.metric == "goodput"))

    def _report(self, samples: Iterable[Sample]) -> NodeReport:
        from lanewise.results.sample import summarise

        return NodeReport(self.name, rows=summarise(samples))


def serve_agent(name: str, requests: IO[str], answers: IO[str]) -> None:
    """Answer each line of `requests`, a NodeJob in JSON, by a line with a NodeReport, until the survey leaves."""
    from lanewise.api.provenance import version
    from lanewise.results.codec import decode, encode

    agent = NodeAgent(name)
    print(json.dumps({GREETING: version()}), file=answers, flush=True)
    try:
        for line in requests:
            report = agent.answer(decode(NodeJob, json.loads(line), "job", "the survey"))
            print(json.dumps(encode(report, "report"), allow_nan=False), file=answers, flush=True)
    finally:
        agent.close()


def serve_listener() -> None:
    """The program of a node's listener: the first line of stdin has its parent, its address and the secret."""
    from lanewise.api.child_node import die_with
    from lanewise.api.measure import listen_network

    parent, address, secret = json.loads(sys.stdin.readline())
    die_with(parent)
    os.environ["LANEWISE_SECRET"] = secret
    try:
        listen_network(address, say=lambda text: print(text, flush=True))
    except LanewiseError as error:
        print(error.cause, flush=True)


@contextmanager
def _system(values: Mapping[str, str]) -> Iterator[str | None]:
    """The system of a job's values for `check`: a name, or the text of a description as a file; None without one."""
    text = values.get("system", "")
    if "\n" not in text:
        yield text or None
        return
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name


def _own_address(address: str) -> str:
    """Where to listen: at an address in digits; at all for a name, which may lead to loopback on its own machine."""
    try:
        return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return "0.0.0.0"


def _gpus() -> list[dict[str, Any]]:
    """The GPUs that NVML shows: their names, and what keeps each busy ('' is nothing); none without a driver."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no driver, no library
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        return [{"name": _words(pynvml.nvmlDeviceGetName(handle)), "busy": _busy(pynvml, handle)} for handle in handles]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _busy(nvml: Any, handle: Any) -> str:
    """Processes that compute on a GPU, or its utilisation above 5 %."""
    with suppress(nvml.NVMLError):
        if processes := len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)):
            return f"{processes} process{'es' if processes > 1 else ''}"
    with suppress(nvml.NVMLError):
        if (use := nvml.nvmlDeviceGetUtilizationRates(handle).gpu) > 5:
            return f"{use} % used"
    return ""


def _words(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
