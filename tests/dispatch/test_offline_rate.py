"""The Offline rate of nodes, which says how many samples an Offline run of LoadGen has."""

import numpy as np
import pytest

from lanewise.loadtest.frontend_session import steady_rate


@pytest.mark.parametrize("filling", [0.0, 0.15, 2.0])
def test_the_time_in_which_queues_fill_does_not_count(filling: float) -> None:
    batches = np.repeat(np.arange(1, 101) * 4.5e-3, 128)  # an H200's, one after the other
    assert steady_rate(filling + batches) == pytest.approx(128 / 4.5e-3, rel=0.03)
