"""What has no meaning is refused with a cause and a hint."""

import math

import pytest
from sharing.timelines import Transfer, run

from lanewise import _native
from lanewise.errors import InputError
from lanewise.perf.sharing import SolverFlow, finish_times, share

LINK = SolverFlow(((0, 1.0),))


@pytest.mark.parametrize(
    ("capacities", "classes", "cause"),
    [
        ([0.0], [LINK], "resource 0 has capacity 0; it must be positive"),
        ([-1.0], [LINK], "resource 0 has capacity -1"),
        ([math.nan], [LINK], "resource 0 has capacity nan"),
        ([math.inf], [LINK], "resource 0 has capacity inf"),
        ([1.0], [SolverFlow(())], "flow class 0 is unbounded: it uses no resource and has no cap"),
        ([1.0], [LINK, SolverFlow(((0, 0.0),))], "flow class 1 is unbounded"),
        ([1.0], [SolverFlow(((1, 1.0),))], "flow class 0 uses resource 1, but there are 1"),
        ([1.0], [SolverFlow(((-1, 1.0),))], "flow class 0 uses resource -1"),
        ([1.0], [SolverFlow(((0, -1.0),))], "loads resource 0 with coefficient -1"),
        ([1.0], [SolverFlow(((0, math.nan),))], "loads resource 0 with coefficient nan"),
        ([1.0], [SolverFlow(((0, 1.0),), weight=0.0)], "flow class 0 has weight 0"),
        ([1.0], [SolverFlow(((0, 1.0),), cap=0.0)], "flow class 0 has cap 0"),
        ([1.0], [SolverFlow(((0, 1.0),), cap=math.nan)], "flow class 0 has cap nan"),
        ([1.0], [SolverFlow(((0, 1.0),), count=0)], "flow class 0 has a count of 0"),
    ],
)
def test_systems_without_meaning(capacities, classes, cause):
    with pytest.raises(InputError) as caught:
        share(capacities, classes)
    assert cause in caught.value.cause
    assert caught.value.hint


@pytest.mark.parametrize(
    ("transfer", "cause"),
    [
        (Transfer(0, -1.0), "transfer 1 has a size of -1 B"),
        (Transfer(0, math.nan), "transfer 1 has a size of nan B"),
        (Transfer(0, math.inf), "transfer 1 has a size of inf B"),
        (Transfer(0, 1.0, -0.5), "transfer 1 starts at -0.5 s"),
        (Transfer(0, 1.0, math.inf), "transfer 1 starts at inf s"),
        (Transfer(1, 1.0), "transfer 1 is of flow class 1, but there are 1"),
        (Transfer(-1, 1.0), "transfer 1 is of flow class -1"),
        (Transfer(0, 1.0, after=(2,)), "a dependency names a transfer that does not exist"),
        (Transfer(0, 1.0, after=(1,)), "some transfers wait for each other"),
    ],
)
def test_transfers_without_meaning(transfer, cause):
    with pytest.raises(InputError) as caught:
        run([1.0], [LINK], [Transfer(0, 1.0), transfer])
    assert cause in caught.value.cause
    assert caught.value.hint


def test_columns_of_different_length():
    with pytest.raises(InputError, match="differ in number"):
        finish_times([1.0], [LINK], [0, 0], [1.0], [0.0, 0.0])


@pytest.mark.parametrize("index", [0.5, 2.0**40])
def test_classes_of_transfers_that_are_no_indices(index):
    with pytest.raises(InputError, match="whole numbers"):
        finish_times([1.0], [LINK], [index], [1.0], [0.0])


def test_stepping_back_or_past_an_end():
    engine = _native.FlowEngine(_native.Network([1.0], [[(0, 1.0)]], [1.0], [math.inf]))
    engine.add(0, 1.0, 0)
    with pytest.raises(_native.BadInput, match="ends at 1 s"):
        engine.advance_to(1.5)
    engine.advance_to(0.5)
    with pytest.raises(_native.BadInput, match="cannot go back"):
        engine.advance_to(0.25)
    with pytest.raises(_native.BadInput, match="flow class 3"):
        engine.add(3, 1.0, 1)
