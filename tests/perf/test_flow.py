"""The one-line notation of flows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import FormatError
from lanewise.perf.flow import parse_flows


def names(text: str) -> list[str]:
    return [flow.name for flow in parse_flows(text)]


def test_flows_are_read_in_order() -> None:
    assert names("gpu0->gpu4, host0->gpu1") == ["gpu0->gpu4", "host0->gpu1"]


def test_a_double_arrow_is_two_flows_and_a_backward_one_is_turned() -> None:
    assert names("gpu0<->gpu1, gpu2<-gpu3") == ["gpu0->gpu1", "gpu1->gpu0", "gpu3->gpu2"]


def test_one_end_and_a_range_make_a_star_and_two_ranges_make_pairs() -> None:
    assert names("host0->gpu[0-2]") == ["host0->gpu0", "host0->gpu1", "host0->gpu2"]
    assert names("gpu[0-2]->gpu[1,2,0]") == ["gpu0->gpu1", "gpu1->gpu2", "gpu2->gpu0"]


@given(st.integers(2, 9), st.sampled_from(["->", "<-", "<->"]))
def test_all_to_all_is_every_ordered_pair_once_and_none_with_itself(gpus: int, arrow: str) -> None:
    flows = names(f"gpu[0-{gpus - 1}]{arrow}gpu[0-{gpus - 1}] all-to-all")
    assert sorted(flows) == sorted(f"gpu{a}->gpu{b}" for a in range(gpus) for b in range(gpus) if a != b)


def test_all_to_all_takes_other_words_and_ranges_that_differ() -> None:
    flows = parse_flows("gpu[0-1]->gpu[0-3] 1 MiB all-to-all x2")
    assert [(flow.name, flow.size, flow.weight) for flow in flows[:2]] == [
        ("gpu0->gpu1", 2.0**20, 2.0), ("gpu0->gpu2", 2.0**20, 2.0)
    ]  # fmt: skip
    assert len(flows) == 6
    with pytest.raises(FormatError, match="goes nowhere") as caught:
        parse_flows("gpu[0-3]->gpu[0-3]")
    assert "gpu[0-3]->gpu[0-3] all-to-all" in (caught.value.hint or "")


def test_options_are_size_start_weight_cap_and_read() -> None:
    (flow,) = parse_flows("gpu0->gpu1 1 GiB @2 ms x3 cap 5 GB/s read")
    assert (flow.size, flow.start, flow.weight, flow.cap, flow.read) == (2.0**30, 0.002, 3.0, 5e9, True)
    (plain,) = parse_flows("host:1->gpu0")
    assert plain.size is None
    assert plain.src == "host:1"


def test_a_flow_waits_for_flows_by_name() -> None:
    *first, last = parse_flows("gpu[0-1]->gpu2 1 GiB as a, gpu0->gpu1 4 KiB as b, gpu2->gpu3 1 GiB after a+b @1 ms")
    assert [flow.label for flow in first] == ["a", "a", "b"]
    assert (last.after, last.start) == (("a", "b"), 0.001)


def test_a_flow_with_its_way_spelled_out_is_told_that_two_ends_are_enough() -> None:
    with pytest.raises(FormatError, match="'gpu0->nic0->nic1->gpu2' is not a flow") as caught:
        parse_flows("gpu0->nic0->nic1->gpu2")
    assert "follows from the cabling" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("gpu0->gpu1 1 GiB after a, gpu1->gpu2 1 GiB as a", "after 'a', and no flow before it has that name"),
        ("gpu0->gpu1 1 GiB as 1", "'1' is not a name of a flow"),
        ("gpu0->gpu1 1 GiB as a, gpu1->gpu2 1 GiB after a+", "'' is not a name of a flow"),
        ("", "no flow given"),
        ("gpu0", "'gpu0' is not a flow"),
        ("gpu0->gpu0", "both ends are the same"),
        ("gpu[0-1]->gpu[2-4]", "joins 2 ends to 3"),
        ("gpu0->gpu1 3 apples", "unknown unit|not a quantity"),
        ("gpu0->gpu1 -1 B", "above|zero|not a quantity"),
        ("gpu0->gpu1 x0", "above zero"),
        ("gpu0->gpu1 cap 5 ms", "not in B/s"),
    ],
)
def test_what_cannot_be_read_is_named_with_a_hint(text: str, cause: str) -> None:
    with pytest.raises(FormatError, match=cause) as caught:
        parse_flows(text)
    assert caught.value.hint


def test_more_pairs_than_anybody_reads_are_refused_before_they_are_made() -> None:
    with pytest.raises(FormatError, match=r"is 4,004,001 flows, more than 100,000") as error:
        parse_flows("gpu[0-2000]->gpu[0-2000] all-to-all")
    assert "name fewer ends" in (error.value.hint or "")
    assert len(parse_flows("gpu[0-199]->gpu[0-199] all-to-all")) == 200 * 199
