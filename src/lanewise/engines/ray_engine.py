"""Ray as an engine: a Ray of this machine on loopback, or one that is reached at ray://HOST:PORT.

Ray schedules, sends lost tasks again and starts new workers; here is only what the seam needs on top.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from lanewise.engines.wheel import FIRST, project_wheel
from lanewise.engines.wheel_first import prefer_wheel
from lanewise.engines.work import (
    RETRIES,
    BatchResult,
    EngineNode,
    WorkBatch,
    WorkerLoss,
    installed_version,
    lost,
    run_batch,
)
from lanewise.errors import EngineFailure, InputError, import_extra
from lanewise.signal_deferral import SignalDeferral

_REACH = 5.0  # s until an address that does not answer is given up
_COUNT_AGAIN = 5.0  # s
_INTERRUPTIBLE = 0.2  # s that a call of Ray may wait for work before Ctrl-C is looked at
_LEAVE = 3.0  # s that a cluster has for saying goodbye
_OBJECT_STORE = 100 * 2**20  # B; results travel inline, and Ray would take 30 % of the memory
# What nobody reads of a Ray that ends with the command: events of tasks, metrics, statistics of its event loops.
_QUIET = {"task_events_report_interval_ms": 0, "enable_metrics_collection": False, "event_stats": False}
# Ray's switch for machines without a cluster: its nodes then listen on loopback alone. (Ray 2.60 replaces a stated
# 127.0.0.1 by an address that other machines reach.) It is read when Ray is imported.
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


class RayEngine:
    """Ray's workers, one CPU each: `workers` on this machine, or all of the cluster at `address`.

    Workers of a cluster get this installation of Lanewise as a wheel; what it requires has to be installed there.
    """

    def __init__(self, address: str = "", workers: int = 1) -> None:
        self._folder = tempfile.mkdtemp(prefix="lanewise-")
        self._version, self._local = installed_version(), not address
        self.losses: list[WorkerLoss] = []
        self._running: dict[Any, tuple[WorkBatch, int]] = {}  # with how many workers it has cost
        self._workers, self._counted = 1, float("-inf")
        try:
            self._ray = _import_ray(loopback=not address)
            options = self._cluster(address) if address else self._own(workers)
            self._connect(address, options)
        except BaseException:
            self.close()
            raise
        self._task = self._ray.remote(run_batch)

    @property
    def ray(self) -> Any:
        """Ray itself, connected: for actors, which are no batches."""
        return self._ray

    @property
    def workers(self) -> int:
        """The CPUs of all nodes, as they were a few seconds ago: nodes come and go."""
        if time.monotonic() - self._counted >= _COUNT_AGAIN:
            with self._reached():
                self._workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            self._counted = time.monotonic()
        return self._workers

    def nodes(self) -> tuple[EngineNode, ...]:
        """The nodes that are alive, by Ray's id."""
        with self._reached():
            alive = [(node, node["Resources"]) for node in self._ray.nodes() if node["Alive"]]
        return tuple(
            EngineNode(node["NodeID"], node["NodeManagerAddress"], int(has.get("CPU", 0)), int(has.get("GPU", 0)))
            for node, has in alive
        )

    def submit(self, batch: WorkBatch) -> None:
        """Take a batch."""
        self._send(batch, 0)

    def _send(self, batch: WorkBatch, losses: int) -> None:
        # Ray would send it again by itself, and tell nobody that it has lost a worker.
        options: dict[str, Any] = {"max_retries": 0, "num_cpus": 1, "num_gpus": batch.gpus}
        if batch.node:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(batch.node, soft=False)
        with self._reached():
            task = self._task.options(**options).remote(pickle.dumps(batch), self._version)
        self._running[task] = (batch, losses)

    def next_result(self, timeout: float | None = None) -> BatchResult | None:
        """The next batch that finishes."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while self._running:
            left = max(0.0, end - time.monotonic())
            with self._reached():
                finished, _ = self._ray.wait(list(self._running), num_returns=1, timeout=min(left, _INTERRUPTIBLE))
            result = self._result(finished[0]) if finished else None
            if result is not None or (not finished and left <= _INTERRUPTIBLE):
                return result
        return None

    def cancel(self) -> None:
        """Drop every batch; what has been sent still runs, a batch a worker or two, unless `close` comes before."""
        # Ray 2.60 may abort this process when a task is cancelled that is just finishing, and waits for a cluster that
        # does not answer.
        self._running.clear()

    def close(self) -> None:
        """Disconnect; a Ray of this machine ends."""
        self._running.clear()
        with SignalDeferral():
            if hasattr(self, "_ray"):
                self._shutdown()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _shutdown(self) -> None:
        """Disconnect, or end the Ray of this machine."""
        # Ray's client waits until the cluster has done all that it was sent, such as starting workers, or for ever.
        client = None if self._local else self._ray.util.client.ray.get_context().client_worker
        goodbye = threading.Timer(_LEAVE, client.channel.close) if client is not None else None
        if goodbye is not None:
            goodbye.daemon = True
            goodbye.start()
        self._ray.shutdown()
        if goodbye is not None:
            goodbye.cancel()

    def _own(self, workers: int) -> dict[str, Any]:
        return {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _OBJECT_STORE,
                "_temp_dir": self._folder, "_system_config": _QUIET}  # fmt: skip

    def _cluster(self, address: str) -> dict[str, Any]:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _REACH).close()
        except OSError as error:
            cause = f"no Ray at {address}: {error.strerror or error}"
            hint = "start one: ray start --head --block ..., as docs/guides/ten-thousand-scenarios.md says"
            raise EngineFailure(cause, hint=hint) from None
        # Ray's clients leave `worker_process_setup_hook` out; this is what it becomes for other drivers.
        hook = {self._ray._private.ray_constants.WORKER_PROCESS_SETUP_HOOK_ENV_VAR: f"{FIRST}.{prefer_wheel.__name__}"}
        wheel = str(project_wheel(self._folder))
        return {"address": address, "runtime_env": {"py_modules": [wheel], "env_vars": hook}}

    def _connect(self, address: str, options: dict[str, Any]) -> None:
        """Start or reach Ray; it replaces the handler of SIGTERM, which stays the program's own here."""
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with self._deferral():
                self._ray.init(**options, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception as error:  # whatever goes wrong in a cluster
            hint = "the nodes need the same versions of Python and Ray as this machine: python -V, ray --version"
            raise EngineFailure(f"Ray {f'at {address} ' if address else ''}does not start: {what_failed(error)}",
                                hint=hint) from None  # fmt: skip
        finally:
            with suppress(ValueError):  # not in the main thread, where Ray replaces nothing
                signal.signal(signal.SIGTERM, handler)

    def _result(self, task: Any) -> BatchResult | None:
        """That of a finished task; None where its worker was lost and the batch is sent again."""
        batch, losses = self._running.pop(task)
        failures = self._ray.exceptions
        try:
            with self._deferral():
                return BatchResult(batch, *self._ray.get(task))
        except failures.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except (failures.WorkerCrashedError, failures.NodeDiedError, failures.OutOfMemoryError) as error:
            why, again = str(error).strip().splitlines()[0].partition(". ")[0], losses < RETRIES
            worker = "a node of Ray" if isinstance(error, failures.NodeDiedError) else "a worker of Ray"
            self.losses.append(WorkerLoss(worker, why, batch, again))
            if not again:
                return lost(batch, why)
            self._send(batch, losses + 1)
            return None
        except failures.RaySystemError as error:  # not even run_batch could be loaded there
            cause = f"Ray's workers have no Lanewise {self._version}: {str(error).strip().splitlines()[0]}"
            raise EngineFailure(cause, hint="start Ray with the Python that has this Lanewise") from None
        except failures.RuntimeEnvSetupError as error:
            cause = f"Ray's nodes cannot install the wheel of Lanewise: {str(error).strip().splitlines()[-1]}"
            raise EngineFailure(cause, hint="the nodes need pip, for the same platform as this machine") from None
        except (failures.RayError, ConnectionError) as error:
            raise _gone(error) from None

    def _deferral(self) -> AbstractContextManager[object]:
        """Within a Ray of this machine an interrupt waits for some seconds, as it may abort this process there.

        Ray's client is Python, and the cluster behind it may take longer to answer than anybody waits.
        """
        return SignalDeferral() if self._local else nullcontext()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """EngineFailure where Ray does not answer."""
        try:
            with self._deferral():
                yield
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise _gone(error) from None


def _import_ray(loopback: bool) -> Any:
    """Ray, without reports of use; InputError where it would open ports to other machines although `loopback`."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if loopback:
        os.environ[_LOOPBACK] = "0"
        # Nobody else uses this Ray: work that reserves no GPUs sees all of them (before Ray 2.60 it saw none).
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not loopback and Path.home().joinpath(".ray", "auth_token").exists():
        # Ray 2.60 starts clusters with tokens; its client shows this one only if told to, and else waits in vain.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    ray = import_extra("ray", "ray", "--on ray needs Ray")
    if loopback and not ip_address(ray.util.get_node_ip_address()).is_loopback:
        raise InputError("Ray was imported before and would listen on every network", hint=f"set {_LOOPBACK}=0 first")
    # It tells of every lost worker on stdout, in the midst of our data, and has no option for that.
    ray._private.worker.print_to_stdstream = lambda *_, **__: None
    return ray


def _gone(error: Exception) -> EngineFailure:
    return EngineFailure(
        f"Ray has ended: {what_failed(error)}",
        hint="run the same command again: what is finished is kept where a file was named",
    )


def what_failed(error: Exception) -> str:
    """The line that says what failed: of a heading with a traceback below, as Ray's server sends, the last."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1] if lines[0].endswith(":") else lines[0]
