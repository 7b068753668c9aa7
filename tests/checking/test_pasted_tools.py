"""Outputs of tools with context (`pasted`), written blind to the program: those that were open while rules were written
are answered right, those held out are read."""

import pytest
from checking.pasted_cases import HELD, pasted_cases

CASES = pasted_cases()
# Answered ok, which the engineer accepts as well: what he thinks likelier is not told.
OPEN = {
    "28-ibwrite": "that a port came up at half of what the words say of its card is not compared",
    "40-fio": "that one run went through the page cache is named among other causes of the program alone",
    "38-fio": "one request at a time is not judged beside many in flight of another run",
    "56-bandwidthtest": "a tunnel that is as fast as tunnels are is called fine",
    "a-17-fio": "a cloud's volume has the rate that it is bought with: that it could be bought with more is no fault",
    "59-nvbandwidth": "the speed of a switch's uplink is not known, so that half of it is not judged",
}
CAUSES = [
    pytest.param(case, marks=pytest.mark.xfail(reason=OPEN[case.path.stem], strict=True))
    if case.path.stem in OPEN else case
    for case in CASES if case.has_a_cause
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_verdict_is_one_that_the_engineer_accepts(case):
    assert case.answer()[0] in case.verdicts


@pytest.mark.parametrize("case", CAUSES, ids=lambda case: case.path.stem)
def test_a_true_cause_is_among_the_first_two(case):
    assert case.names_a_cause(case.answer()[1])


def test_held_out_texts_are_read():
    answers = [case.answer()[0] for case in pasted_cases(HELD)]
    assert len(answers) == 60
    # Three of author A's twenty are refused, and one of B's: nobody has looked which.
    assert len([answer for answer in answers if answer.startswith("not read")]) <= 4
