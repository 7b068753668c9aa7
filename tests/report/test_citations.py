"""What a value rests on says everything that it said before, once."""

from __future__ import annotations

import pytest

from lanewise.report.words import shortened


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "p a.b = 256, so it is (x; y); p a.c = 128 B, so it is (x; y)",
            "p a.b = 256 and a.c = 128 B, so it is (x; y)",
        ),
        (
            "p a = 24,576 B (s); p b = 1 (s); p c = 2 (s); q d = 4 (s)",
            "p a = 24,576 B, b = 1 and c = 2 (s); q d = 4 (s)",
        ),
        ("p a = 1, old; new (s); p b = 2, old; new (s)", "p a = 1 and b = 2, old; new (s)"),
        ("p a = 1 (s); p b = 2 (t)", "p a = 1 (s); p b = 2 (t)"),
        ("p a = 1, so (s); p b = 2, not so (s)", "p a = 1, so (s); p b = 2, not so (s)"),
        ("p a = 1 (s); q a = 1 (s)", "p a = 1 (s); q a = 1 (s)"),
        ("p a = 1 (s); q c = 3 (t); p b = 2 (s)", "p a = 1 (s); q c = 3 (t); p b = 2 (s)"),
        ("stated with the service", "stated with the service"),
        ("one; one; a = 1", "one; one; a = 1"),
        ("", ""),
    ],
)
def test_figures_of_one_part_share_their_condition_and_source(text: str, short: str) -> None:
    assert shortened(text) == short
