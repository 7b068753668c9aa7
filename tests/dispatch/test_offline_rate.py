"""The Offline rate of nodes, which says how many samples an Offline run of LoadGen has."""

import numpy as np
import pytest
from numpy.typing import NDArray

from lanewise.loadtest.frontend_session import MOST_TIMINGS, SECONDS, settled_rate, steady_rate


@pytest.mark.parametrize("filling", [0.0, 0.15, 2.0])
def test_the_time_in_which_queues_fill_does_not_count(filling: float) -> None:
    batches = np.repeat(np.arange(1, 101) * 4.5e-3, 128)  # an H200's, one after the other
    assert steady_rate(filling + batches) == pytest.approx(128 / 4.5e-3, rel=0.03)


@pytest.mark.parametrize(
    ("rates", "found", "runs"),
    [
        ([10e3, 25e3, 25.1e3], 25.1e3, 3),  # just started
        ([25e3, 10e3], 25e3, 2),  # other work slowed the second
        ([25e3, 25e3], 25e3, 2),
        ([1e3 * 2**n for n in range(20)], 1e3 * 2 ** (MOST_TIMINGS - 1), MOST_TIMINGS),
    ],
)
def test_a_node_is_timed_again_while_it_becomes_faster(rates: list[float], found: float, runs: int) -> None:
    left, long = list(rates), 0

    def replay(count: int) -> NDArray[np.float64]:
        nonlocal long
        rate = left[0]
        if long or count / rate >= SECONDS:  # until then it finds out how many samples that takes
            long += 1
            left.pop(0)
        times: NDArray[np.float64] = np.arange(1, count + 1) / rate
        return times

    assert settled_rate(replay) == pytest.approx(found, rel=1e-3)
    assert long == runs
