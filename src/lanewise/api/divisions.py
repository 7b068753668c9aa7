"""Load tests of both MLPerf divisions on the same accelerators: Network as a share of Closed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.api.loadtest import loadtest_peak
from lanewise.api.peak_prediction import PARTS, PREDICTION, closed_basis, source
from lanewise.api.search_state import result_folder

if TYPE_CHECKING:
    from lanewise.dispatch.counters import DispatchRates
    from lanewise.loadtest.divisions import DivisionsResult
    from lanewise.loadtest.load_run import LoadGenResult
    from lanewise.loadtest.peak import PeakResult, SearchProgress
    from lanewise.options.loadtest import PeakOptions
    from lanewise.options.serve import ServeOptions

Say = Callable[[str], object]


def loadtest_divisions(
    options: PeakOptions,
    *,
    say: Say = lambda _: None,
    warn: Say = lambda _: None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
    on_run: Callable[[LoadGenResult], None] = lambda _: None,
    on_result: Callable[[DivisionsResult], None] = lambda _: None,
    on_counters: Callable[[DispatchRates], object] = lambda _: None,
) -> DivisionsResult:
    """The Closed peak of this machine's devices, then the Network peak of the same, and Network as a share of Closed.

    Over `options.nodes`, processes of this host, or else over a node that is started for it on loopback. Both searches
    resume as one does. The callbacks are those of loadtest_peak.

    Raises what loadtest_peak does, and InputError for nodes on other hosts or with other devices.

    >>> from lanewise.options.loadtest import PeakOptions
    >>> options = PeakOptions(devices=("gpu0",), model="resnet50", division="both")
    >>> lanewise.loadtest_divisions(options).share.share  # needs LoadGen; minutes  # doctest: +SKIP
    """
    from lanewise.loadtest.divisions import DivisionsResult, check_nodes, closed_options, network_options

    if options.nodes:
        check_nodes(options)
    results: list[DivisionsResult] = []
    with ExitStack() as stack:
        folder = stack.enter_context(result_folder(options.results, options.trace, options.output))
        closed = loadtest_peak(
            closed_options(options, folder / "closed"), say=_prefixed(say, "Closed: "), warn=warn,
            on_progress=lambda progress: on_progress(replace(progress, division="Closed")), on_run=on_run,
        )  # fmt: skip
        networked = network_options(options, folder / "network")
        (folder / "network").mkdir(exist_ok=True)
        closed_basis(folder / "closed", folder / "network")
        if not options.nodes:
            networked = _with_child_node(options, networked, stack, say)

        def finish(network: PeakResult) -> None:  # while signals wait
            data = json.loads((folder / "network" / PREDICTION).read_text(encoding="utf-8"))
            result = DivisionsResult(closed, network, data.get("share"), folder)
            results.append(result)
            save_divisions(result, options)
            on_result(result)

        loadtest_peak(networked, say=_prefixed(say, "Network: "), warn=warn,
                      on_progress=lambda progress: on_progress(replace(progress, division="Network")), on_run=on_run,
                      on_result=finish, on_counters=on_counters)  # fmt: skip
    return results[0]


def _with_child_node(options: PeakOptions, networked: PeakOptions, stack: ExitStack, say: Say) -> PeakOptions:
    """The options of the Frontend of a node that is started with the devices and model of `options`."""
    from lanewise.api.child_node import child_node

    say("Network: starting a node")
    address, secret = stack.enter_context(child_node(lambda file: _served(options, file), _prefixed(say, "Network: ")))
    return replace(networked, nodes=(address,), secret_file=secret, child_node=True)


def _served(options: PeakOptions, secret: Path) -> ServeOptions:
    from lanewise.api.child_node import NAME
    from lanewise.options.loadtest import ModelOptions
    from lanewise.options.serve import ServeOptions

    of_model = {member.name: getattr(options, member.name) for member in fields(ModelOptions)}
    return ServeOptions(**{**of_model, "library": 1}, listen="127.0.0.1:0", name=NAME, once=True, secret_file=secret)


def save_divisions(result: DivisionsResult, options: PeakOptions) -> None:
    """Writes the part file with the software cost, and the rows of both peaks where `options` name a file."""
    from lanewise import files
    from lanewise.loadtest.divisions import divisions_samples
    from lanewise.loadtest.prediction import part_file
    from lanewise.loadtest.result import prediction_of

    times = json.loads((result.folder / "closed" / PREDICTION).read_text(encoding="utf-8"))["engine"]
    times = {int(size): float(seconds) for size, seconds in times.items()}
    network = result.network.setup
    unsure = "; not told apart from none" if (result.share.interval or (0.0, 1.0))[1] >= 1.0 else ""
    noted = f"; {result.share.note}" if result.share.note else ""
    condition = (
        f"from the peaks of both divisions: {network.get('transport')}, {network.get('connections')}, "
        f"engine {network.get('engine')}{unsure}{noted}"
    )
    # Where Network is as fast, there is no measured cost that a prediction could use.
    files.write_file(result.folder / PARTS, part_file(times, source(), result.share.software or None, condition))
    if options.output is not None:
        from lanewise.api.runs import as_measured_run, save_run

        samples = tuple(divisions_samples(result))
        peaks = [sample for sample in samples if sample.metric == "qps"]
        predictions = (result.closed.prediction, result.network.prediction)
        rows = tuple(
            prediction_of(peak, rate) for peak, rate in zip(peaks, predictions, strict=True) if rate is not None
        )
        save_run(as_measured_run(samples, rows=rows), options.output)


def _prefixed(say: Say, before: str) -> Say:
    return lambda text: say(before + text)
