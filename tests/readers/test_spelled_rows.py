"""Figures typed in as people write them: names of ends, words behind a value, keys by other names."""

from __future__ import annotations

from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import LanewiseError
from lanewise.readers.typed.figures import read_text
from lanewise.results.observation import Observation


def rows(row: str, head: str = "") -> tuple[Observation, ...]:
    return read_text(f"lanewise-rows: 1\n{head}rows:\n  - {{{row}}}\n", "figures.yaml").observations


@pytest.mark.parametrize(
    ("written", "flow"),
    [
        ("GPU 0 -> GPU 3", "gpu0->gpu3"), ("cuda:0->cuda:1", "gpu0->gpu1"), ("CPU->gpu2", "host0->gpu2"),
        ("RAM -> GPU0", "host0->gpu0"), ("system memory->gpu0", "host0->gpu0"), ("gpu1 → host", "gpu1->host0"),
        ("gpu0 to gpu1", "gpu0->gpu1"), ("host0 => gpu0", "host0->gpu0"), ("H2D", "host0->gpu0"),
        ("DtoH of GPU 5", "gpu5->host0"), ("device->host", "gpu0->host0"), ("gpu0 memory", "gpu0->gpu0"),
        ("gpu1 ↔ gpu2", "gpu1->gpu2, gpu2->gpu1"), ("host0->gpu[0..1]", "host0->gpu0, host0->gpu1"),
        ("2 GPUs", "gpu0->gpu1, gpu1->gpu0"), ("cpu1->gpu0", "cpu1->gpu0"), ("cpu0->cpu1", "host0:0->host0:1"),
        # what is no name of these
        ("cpu-node->gpu0", "cpu-node->gpu0"), ("hostA->hostB", "hostA->hostB"), ("nvme0n1->host0", "nvme0n1->host0"),
        ("device1->server", "device1->server"), ("host0:1->gpu0", "host0:1->gpu0"),
        ("device->nas", "device->nas"), ("device0 to device1", "gpu0->gpu1"),
    ],
)  # fmt: skip
def test_ends_have_the_names_that_rows_have(written: str, flow: str):
    [row] = rows(f'flows: "{written}", value: 9 GB/s')
    assert row.flow == flow


@pytest.mark.parametrize(
    ("flows", "value", "metric", "count"),
    [
        ("host0->gpu[0-3]", "9 GB/s per GPU", "goodput", 4), ("host0->gpu[0-3]", "9 GB/s each", "goodput", 4),
        ("host0->gpu[0-3]", "9 GB/s (total)", "total", 1), ("gpu0->gpu1", "9 GB/s bidirectional", "total", 1),
        ("gpu0->gpu1", "9 GB/s both ways", "total", 1), ("gpu0<->gpu1", "9 GB/s each way", "goodput", 2),
        ("host0->gpu0", "9 GB/s", "goodput", 1),
    ],
)  # fmt: skip
def test_words_behind_a_value_say_of_which_flows_it_is(flows: str, value: str, metric: str, count: int):
    found = rows(f'flows: "{flows}", value: {value}')
    assert {(row.metric, row.value) for row in found} == {(metric, 9e9)}
    assert len(found) == count


@pytest.mark.parametrize(
    ("row", "usual"),
    [
        ('flow: "host0->gpu0", bandwidth: 9 GB/s', 'flows: "host0->gpu0", value: 9 GB/s'),
        ('flows: "host0->gpu0", value: 9 GB/s, pinned: yes',
         'flows: "host0->gpu0", value: 9 GB/s, host memory: pinned'),
        ('flows: "host0->gpu0", value: 9 GB/s, pinned: false',
         'flows: "host0->gpu0", value: 9 GB/s, host memory: pageable'),
        ('flows: "host0->host1", value: 9 Gb/s, link speed: 10G',
         'flows: "host0->host1", value: 9 Gb/s, line: 10 Gb/s'),
        ('flows: "nvme0->host0", value: 3 GB/s, drive: Samsung 990 PRO',
         'flows: "nvme0->host0", value: 3 GB/s, device: Samsung 990 PRO'),
        ('flows: "gpu[0-3]", value: 9 GB/s, metric: bus bandwidth, collective: AllReduce',
         'flows: "gpu[0-3]->gpu[0-3]", value: 9 GB/s, metric: bus_bandwidth, path: all_reduce'),
    ],
)  # fmt: skip
def test_a_row_in_other_words_is_the_same_row(row: str, usual: str):
    assert rows(row) == rows(usual)


def test_a_rate_by_the_name_of_its_metric_has_that_metric():
    [row] = rows('flow: "8 GPUs", algbw: 270 GB/s, collective: allreduce, size: 8G')
    assert (row.metric, row.value, row.scenario) == ("bus_bandwidth", 270e9 * 2 * 7 / 8, "all_reduce")
    [row] = rows('flow: "8 GPUs", busbw: 470 GB/s, collective: allreduce')
    assert (row.metric, row.value) == ("bus_bandwidth", 470e9)


def test_a_value_is_never_taken_from_two_keys():
    [row] = rows('flows: "host0->gpu0", value: 9 GB/s, bandwidth: 10 GB/s')
    assert (row.value, row.scenario) == (9e9, "bandwidth=10 GB/s")
    with pytest.raises(LanewiseError):
        rows('flows: "host0->gpu0", measured: 9 GB/s, bandwidth: 10 GB/s')


def test_gpus_named_by_rows_and_facts_that_all_rows_share_are_the_machines():
    text = """lanewise-rows: 1
rows:
  - {flows: "GPU 0->host", value: 9 GB/s, gpu: RTX 4090, cpu: EPYC 7302, iommu: on}
  - {flows: "GPU 1->host", value: 9 GB/s, gpu: RTX 3090, cpu: EPYC 7302, iommu: off}
"""
    posted = read_text(text, "figures.yaml").posted
    assert posted.devices == {"gpu0": "NVIDIA GeForce RTX 4090", "gpu1": "NVIDIA GeForce RTX 3090"}
    assert [(each.key, each.value) for each in posted.statements] == [("cpu", "EPYC 7302")]


def test_a_device_on_the_way_is_no_gpu():
    posted = read_text(
        'lanewise-rows: 1\nrows:\n  - {flows: "host0->gpu0", value: 9 GB/s, device: ConnectX-7}\n', "f"
    ).posted
    assert posted.devices == {}


@pytest.mark.parametrize("p2p", ["maybe", "3"])
def test_other_words_of_a_flag_are_refused(p2p: str):
    with pytest.raises(LanewiseError) as caught:
        rows(f'flows: "gpu0->gpu1", value: 9 GB/s, p2p: {p2p}')
    assert "true or false" in caught.value.cause


@pytest.mark.parametrize(
    ("flows", "cause"),
    [("0 GPUs", "'0 GPUs' is not a flow"), ("99999999999 GPUs", "'99999999999 GPUs' is not a flow"),
     ("999999999 GPUs", "has too many names"), ("gpu[0..99999999]", "has too many names"),
     ("1 GPUs", "goes nowhere")],
)  # fmt: skip
def test_numbers_of_gpus_that_no_machine_has_are_refused_as_they_are_written(flows: str, cause: str):
    with pytest.raises(LanewiseError) as caught:
        rows(f'flows: "{flows}", value: 9 GB/s')
    assert cause in caught.value.cause
    assert caught.value.location is not None


def test_more_gpus_than_three_digits_are_one_number():
    [row] = rows('flows: "1024 GPUs", value: 9 GB/s')
    assert row.settings["ranks"] == 1024


def test_a_switch_is_no_name_of_a_tool_or_drive():
    [row] = rows('flows: "host0->gpu0", value: 9 GB/s, test: true, drive: false')
    assert row.scenario == "test=true drive=false"
    assert "device" not in row.how


_ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40),
    st.lists(st.text(max_size=5), max_size=2), st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.sampled_from(["9 GB/s", "0 us", "1e30 GB/s", "gpu0->gpu1", "8 GPUs", "H2D", "all_reduce", "64 MiB", "Gen3 x4"]),
)  # fmt: skip
_KEYS = st.sampled_from(["flows", "value", "of", "p2p", "pinned", "path", "gpu", "metric", "bytes", "ranks", "hosts",
                         "line", "slot", "device", "expected", "size", "cpu", "memory", "5"])  # fmt: skip


@given(st.dictionaries(_KEYS, _ODD), st.dictionaries(st.sampled_from(["gpus", "gpu", "stated", "title"]), _ODD))
def test_whatever_is_typed_is_read_or_refused_with_its_place(row: dict[str, object], head: dict[str, object]):
    usual: dict[str, object] = {"flows": "host0->gpu0", "value": "9 GB/s"}
    text = yaml.safe_dump({"lanewise-rows": 1, **head, "rows": [usual | row]}, allow_unicode=True)
    place, values = None, []
    try:
        values = [each.value for each in read_text(text, "figures.yaml").observations]
    except LanewiseError as error:
        place = error.location
    assert values or place is not None
    assert all(value is not None and 0 <= value < float("inf") for value in values)


@pytest.mark.parametrize("piece", ["5x", "5 x ", "2*", "gpu0->", "a", "0", " ", "1,", "GPU ", "[0", "both ways "])
@pytest.mark.parametrize("key", ["flows", "value", "line", "slot", "path", "gpu", "bytes", "size", "xpmem"])
def test_long_values_of_one_piece_are_read_or_refused(piece: str, key: str):
    values = {"flows": "host0->gpu0", "value": "9 GB/s", key: piece * (20_000 // len(piece))}
    with suppress(LanewiseError):
        read_text(yaml.safe_dump({"lanewise-rows": 1, "rows": [values]}), "figures.yaml")
