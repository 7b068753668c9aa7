"""A director killed by SIGKILL between two steps of its driver: the next one knows what was answered, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from director.director_kills import kill_round


@pytest.mark.parametrize("point", [5, 12, 33, 58])
def test_nothing_is_lost_or_torn_by_a_kill(database: Path, point: int) -> None:
    result = kill_round(str(database), database.with_name("fabric.json"), point, point=point)
    assert result.faults == []
    assert result.open  # an operation was under way
