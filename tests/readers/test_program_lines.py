"""Lines that a program of one's own prints: size, time and rate of a copy, as certain as their arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results
from lanewise.readers.programs.lines import is_text, read_text
from lanewise.results.figure_words import OWN_PROGRAM
from lanewise.results.observation import Observation

HEAD = "Copies to an NVIDIA H200 by torch:\n"


def rows_of(*lines: str) -> tuple[Observation, ...]:
    return read_text([*lines], "f").observations


@given(
    st.integers(1, 4096),
    st.sampled_from([("kB", 1e3), ("KB", 1024.0), ("KiB", 1024.0), ("MB", 1e6), ("MiB", 2.0**20)]),
    st.sampled_from([("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]), st.floats(1, 900),
    st.sampled_from([("GB/s", 1e9), ("GiB/s", 2.0**30), ("MB/s", 1e6), ("MiB/s", 2.0**20)]),
)  # fmt: skip
def test_size_time_and_rate_that_agree_are_a_row(
    count: int, size: tuple[str, float], time: tuple[str, float], taken: float, rate: tuple[str, float]
):
    moved = count * size[1]
    speed = moved / (taken * time[1])
    line = f"H2D {count} {size[0]}: {taken:.5f} {time[0]}, {speed / rate[1]:.9f} {rate[0]}"
    if speed / rate[1] < 1e-4:  # the figure printed has no digits left
        return
    row = rows_of(line)[0]
    assert (row.flow, row.path, row.metric) == ("host0->gpu0", "host to device", "goodput")
    assert row.settings["bytes"] == pytest.approx(moved, rel=0.03)
    assert row.value == pytest.approx(speed, rel=0.04)


@pytest.mark.parametrize(
    "line",
    ["H2D 256 MB: 4.9 ms, 32.2 GB/s", "H2D: 52.2 GB/s", "iteration 3: 4.9 ms",
     "two of 256 MB took 4.9 ms", "H2D 256 MB: 0 ms, 52.2 GB/s"],
)  # fmt: skip
def test_figures_that_do_not_agree_are_no_line_of_a_program(line: str):
    assert not is_text([line])
    with pytest.raises(FormatError):
        read_results(line, "f")


@pytest.mark.parametrize(
    ("line", "flow", "path", "metric"),
    [
        ("upload to GPU1 512 MB: 72.306 ms, 7.08 GB/s", "host0->gpu1", "host to device", "goodput"),
        ("weights.bin to cuda:0 512 MB: 70.204 ms, 7.29 GB/s", "host0->gpu0", "host to device", "goodput"),
        ("D2H 256 MB: 4.9 ms, 52.2 GB/s", "gpu0->host0", "device to host", "goodput"),
        ("H2D and D2H together, sum 512 MB: 5.274 ms, 97.08 GB/s", "host0->gpu0, gpu0->host0",
         "host to device, device to host", "total"),
        ("cuda:0 -> cuda:1 1000 MB: 2.554 ms, 391.48 GB/s", "gpu0->gpu1", "peer", "goodput"),
        ("kernel on GPU1 reads GPU0's memory, 256 MB: 16.91 ms, 15.14 GB/s", "gpu0->gpu1", "peer", "goodput"),
        ("kernel reads host memory 256 MB: 5.008 ms, 51.11 GB/s", "host0->gpu0", "host to device", "goodput"),
        ("copy_ on cuda:0, 2000 MB: 0.953 ms, 2097.90 GB/s", "gpu0->gpu0", "GPU memory", "goodput"),
    ],
)  # fmt: skip
def test_the_words_of_a_line_say_what_moved(line: str, flow: str, path: str, metric: str):
    row = rows_of(line)[0]
    assert (row.flow, row.path, row.metric) == (flow, path, metric)


def test_a_line_without_words_is_of_what_the_sentence_above_says():
    head = "Copies from an NVIDIA H200 to the host by torch, pinned:"
    row = rows_of(head, "iteration 1: 256 MB: 4.902 ms, 52.23 GB/s")[0]
    assert (row.flow, row.how["host memory"]) == ("gpu0->host0", "pinned")
    assert not is_text(["Something of ours:", "256 MB: 4.902 ms, 52.23 GB/s"])


def test_of_repeated_lines_the_best_counts_and_each_size_by_itself():
    lines = ["iteration 0: H2D 256 MB: 9.902 ms, 25.85 GB/s", "iteration 1: H2D 256 MB: 4.902 ms, 52.23 GB/s",
             "iteration 2: H2D 1 MB: 0.025 ms, 40.0 GB/s"]  # fmt: skip
    found = rows_of(*lines)
    assert [(row.settings["bytes"], round(row.value or 0, -8)) for row in found] == [(256e6, 52.2e9), (1e6, 40e9)]


@pytest.mark.parametrize(
    ("name", "ranks", "factor"),
    [("all_reduce", 2, 1.0), ("all_reduce", 8, 1.75), ("all_gather", 4, 0.75), ("reduce_scatter", 8, 0.875),
     ("all_to_all", 2, 0.5)],
)  # fmt: skip
def test_bus_bandwidth_over_algorithm_bandwidth_tells_the_ranks(name: str, ranks: int, factor: float):
    line = f"{name} 256 MB: 1.000 ms, algbw 256.00 GB/s, busbw {256 * factor:.2f} GB/s"
    row = rows_of(line)[0]
    assert row.metric == "bus_bandwidth"
    assert row.settings["ranks"] == ranks
    assert row.value == pytest.approx(256e9 * factor)
    assert row.flow.count("->") == ranks


def test_ranks_on_several_hosts_are_no_ring_within_one():
    rows = rows_of("On 2 nodes of 8 H100:", "all_reduce 256 MB: 1.000 ms, algbw 256.00 GB/s, busbw 448.00 GB/s")
    assert rows[0].flow == ""


TABLES = [
    "collective,bytes,seconds,busbw_gbs\nall_gather,256000000,0.005219,24.53\n",
    "| collective | size MB | time ms | busbw GB/s |\n|---|---|---|---|\n| all_gather | 256 | 5.219 | 24.53 |\n",
    "            op      bytes   time_us  busbw_GBps\n0   all_gather  256000000    5219.0       24.53\n",
    "Result(op='all_gather', nbytes=256000000, seconds=0.005219, busbw_gbs=24.53)\n",
    '{"op": "all_gather", "bytes": 256000000, "seconds": 0.005219, "busbw_gb_per_s": 24.53}\n',
    "[rank 0] all_gather 256 MB: 5.219 ms, algbw 49.05 GB/s, busbw 24.53 GB/s\n",
    "| op: all_gather | time (ms): 5.219 | size: 256.0 MB | algbw (Gbps): 392.4 | busbw (Gbps): 196.2\n",
]


@pytest.mark.parametrize("text", TABLES)
def test_one_result_in_seven_forms_is_one_row(text: str):
    rows = rows_of("2x NVIDIA H200 with NVLink. FSDP gathers its parameters:", "", *text.splitlines())
    assert [(row.scenario, row.metric, row.settings) for row in rows] == [
        ("all_gather", "bus_bandwidth", {"bytes": 256_000_000, "ranks": 2})
    ]
    assert rows[0].value == pytest.approx(24.53e9, rel=0.001)


def test_keys_that_say_direction_and_unit_are_rates_of_their_gpu():
    text = "{'cuda:0': {'d2h_GBps': 55.08, 'h2d_GBps': 54.25},\n 'cuda:1': {'d2h_GBps': 55.04, 'h2d_GBps': 54.37}}"
    found = [(row.flow, round((row.value or 0) / 1e9, 2)) for row in rows_of(*text.splitlines())]
    assert found == [("gpu0->host0", 55.08), ("host0->gpu0", 54.25), ("gpu1->host0", 55.04), ("host0->gpu1", 54.37)]


def test_what_takes_a_time_is_a_rate_that_may_hold_more():
    row = rows_of("a 4 GB checkpoint shard takes 0.65 s to reach the GPU")[0]
    assert (row.flow, row.how["timed"]) == ("host0->gpu0", "a whole copy")
    assert row.value == pytest.approx(4e9 / 0.65)


@pytest.mark.parametrize("unit", ["Gbps", "Gb/s"])
def test_a_small_b_counts_bits(unit: str):
    assert rows_of(f"H2D 256 MB: 4.9 ms, {256 * 8 / 4.9:.2f} {unit}")[0].value == pytest.approx(256e6 / 4.9e-3)


def test_elements_may_be_of_any_type_whose_bytes_agree():
    head = "Pinned tensors to an NVIDIA H200 over PCIe:"
    assert rows_of(head, "tensor,elements,time_ms,GB/s", "users,8000000,1.214,26.36")[0].settings["bytes"] == 32_000_000
    assert not is_text([head, "tensor,elements,time_ms,GB/s", "users,8000000,1.214,99.9"])


@given(st.text("0123456789 .,:|=x_eMGB/s\"'{}hd2", max_size=80))
def test_any_text_is_read_or_left(text: str):
    for row in rows_of("copies to the GPU of ours", *text.splitlines()):
        assert row.value is not None
        assert row.value >= 0


@pytest.mark.parametrize("size", ["1e999", "1e300", "9e18"])
def test_a_size_that_nothing_has_is_none(size: str):
    assert not is_text(["copies to the GPU", "Size  s", f"{size}  3"])
    assert not is_text([f"H2D {size} B in 3 s"])


def test_a_tools_own_lines_come_first():
    text = "Device 0: NVIDIA A10\n Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
    text += "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t12.36\n"
    assert OWN_PROGRAM not in read_results(f"{text}H2D 256 MB: 4.902 ms, 52.23 GB/s\n", "f").tool
    assert read_results(f"{HEAD}H2D 256 MB: 4.902 ms, 52.23 GB/s\n", "f").tool == OWN_PROGRAM


TWO_GPUS = [
    "GPU 0 H2D 256 MB: 10.0 ms, 25.6 GB/s\nGPU 1 H2D 256 MB: 40.0 ms, 6.4 GB/s\n",
    '{"device": 0, "op": "h2d", "nbytes": 256000000, "ms": 10.0}\n'
    '{"device": 1, "op": "h2d", "nbytes": 256000000, "ms": 40.0}\n',
    "gpu,dir,bytes,ms\n0,h2d,256000000,10.0\n1,h2d,256000000,40.0\n",
    'rate_bytes_per_second{gpu="0",dir="h2d"} 2.56e10\nrate_bytes_per_second{gpu="1",dir="h2d"} 6.4e9\n',
    "gpu_id=0 h2d bytes=256000000 GBps=25.6 ms=10\ngpu_id=1 h2d bytes=256000000 GBps=6.4 ms=40\n",
    "Copies to GPU 0, pinned:\nh2d 256 MB: 10.0 ms, 25.6 GB/s\n"
    "Copies to GPU 1, pinned:\nh2d 256 MB: 40.0 ms, 6.4 GB/s\n",
    "rates:\n  gpu0:\n    h2d_gbps: 25.6\n  gpu1:\n    h2d_gbps: 6.4\n",
    "gpu0:\n  h2d:\n    gb_per_s: 25.6\ncuda:1:\n  h2d:\n    gb_per_s: 6.4\n",
    "- gpu: 0\n  size_mb: 256\n  time_ms: 10.0\n  h2d_GBps: 25.6\n"
    "- gpu: 1\n  size_mb: 256\n  time_ms: 40.0\n  h2d_GBps: 6.4\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TWO_GPUS)
def test_each_gpu_of_a_program_has_its_own_rates(text: str):
    found = {row.flow: round((row.value or 0) / 1e9, 1) for row in rows_of(*text.splitlines())}
    assert found == {"host0->gpu0": 25.6, "host0->gpu1": 6.4}


@pytest.mark.parametrize(
    "line", ["GPU 0000:01:00.0 H2D 256 MB: 10.0 ms, 25.6 GB/s", "GPU 97 % busy, H2D 256 MB: 10.0 ms, 25.6 GB/s",
             "GPU 2 x H2D 256 MB: 10.0 ms, 25.6 GB/s", "gpus=8 H2D 256 MB: 10.0 ms, 25.6 GB/s"],
)  # fmt: skip
def test_addresses_shares_and_counts_are_no_number_of_a_gpu(line: str):
    assert [row.flow for row in rows_of(line)] == ["host0->gpu0"]


@pytest.mark.parametrize(
    ("line", "memory"),
    [('{"op": "h2d", "bytes": 256000000, "ms": 10.0, "pinned": false}', "pageable"),
     ("h2d pin_memory=True 256 MB: 10.0 ms, 25.6 GB/s", "pinned"),
     ("h2d pinned=0 256 MB: 10.0 ms, 25.6 GB/s", "pageable")],
)  # fmt: skip
def test_a_switch_says_of_which_memory_a_copy_is(line: str, memory: str):
    assert rows_of(line)[0].how["host memory"] == memory


def test_a_column_of_switches_says_of_which_memory_a_copy_is():
    rows = rows_of("  dir  size_mb  pinned    ms", "  h2d    256.0    True  10.0", "  h2d    256.0   False  30.0")
    assert [row.how["host memory"] for row in rows] == ["pinned", "pageable"]


@pytest.mark.parametrize("heading", ["Two cards of ours, peer access False", "no P2P between these cards of ours"])
def test_copies_without_peer_access_are_staged(heading: str):
    row = rows_of(heading, "gpu0->gpu1 256 MB: 10.0 ms, 25.6 GB/s")[0]
    assert (row.path, row.how["p2p"]) == ("peer, staged", "off")
    assert rows_of(heading, "gpu0->gpu1 p2p=on 256 MB: 10.0 ms, 25.6 GB/s")[0].how["p2p"] == "on"


@pytest.mark.parametrize(
    "line", ["Download 70B weights: 140 GB in 1200 s (116.7 MB/s)", "Upload to S3: 5 GB in 60 s (83.3 MB/s)",
             "upload to S3 from the GPU server: 5 GB in 60 s (83.3 MB/s)"],
)  # fmt: skip
def test_what_comes_from_elsewhere_is_no_copy_of_a_gpu(line: str):
    assert not is_text([line])


@pytest.mark.parametrize(
    ("line", "flow"),
    [("x.to('cuda') 256 MB: 10.0 ms, 25.6 GB/s", "host0->gpu0"), ("y.cpu() 256 MB: 10.0 ms, 25.6 GB/s", "gpu0->host0"),
     ("tensor of 256 MB pinned -> cuda:1: 10.0 ms, 25.6 GB/s", "host0->gpu1"),
     ("H -> D 256 MB: 10.0 ms, 25.6 GB/s", "host0->gpu0")],
)  # fmt: skip
def test_arrows_and_calls_of_torch_say_which_way(line: str, flow: str):
    assert rows_of(line)[0].flow == flow


@pytest.mark.parametrize(
    "line", ["H2D: 100 iterations of 64 MB in 0.25 s = 25.6 GB/s", "H2D 64 MB x 100: 0.25 s, 25.6 GB/s",
             "H2D iters=100 64 MB: 0.25 s, 25.6 GB/s"],
)  # fmt: skip
def test_a_time_may_be_of_many_copies(line: str):
    row = rows_of(line)[0]
    assert (row.settings["bytes"], row.value) == (64_000_000, pytest.approx(25.6e9))


def test_an_object_over_several_lines_is_read_as_one():
    text = '{\n  "gpu": "NVIDIA A40",\n  "results": [\n    {\n      "op": "h2d",\n      "bytes": 256000000,\n'
    text += '      "ms": 10.0\n    },\n    {"op": "d2h", "bytes": 256000000, "ms": 12.8}\n  ]\n}\n'
    assert [(row.flow, row.value) for row in rows_of(*text.splitlines())] == [
        ("host0->gpu0", 25.6e9), ("gpu0->host0", 20e9)
    ]  # fmt: skip
    assert read_results(text, "f").posted.devices == {"gpu": "NVIDIA A40"}


@pytest.mark.parametrize(
    "text", ["torch 2.4 on NVIDIA A40\n", '{"gpu": "NVIDIA A40"}\n', "GPU 0000:65:00.0 NVIDIA A40, driver 550.54\n",
             "device=NVIDIA_A40 run=3090\n"],
)  # fmt: skip
def test_the_only_model_that_a_program_prints_is_the_gpu(text: str):
    facts = read_results(f"{text}H2D 256 MB: 10.0 ms, 25.6 GB/s\n", "f").posted
    assert facts.devices == {"gpu": "NVIDIA A40"}


@pytest.mark.parametrize(
    ("line", "label"),
    [("H2D: size=256MB time=10.0ms rate=25.6GB/s", "H2D"), ("H2D GPU1: 256 MB, 10.0 ms, 25.6 GB/s", "H2D gpu1"),
     ("[step 3] gpu0 -> cpu 256 MB in 10.0 ms (25.6 GB/s)", "gpu0 -> cpu"),
     ('{"op": "h2d", "bytes": 256000000, "ms": 10.0}', "op: h2d"), ("H2D 1,024 MB: 40 ms, 25.6 GB/s", "H2D")],
)  # fmt: skip
def test_a_row_is_called_by_its_words_alone(line: str, label: str):
    assert [row.scenario for row in rows_of(line)] == [label]


def test_a_sentence_with_a_comma_is_no_row_of_heads():
    rows = rows_of("Two cards of ours, copied from host memory one by one", "GPU 1 256 MB: 10.0 ms, 25.6 GB/s")
    assert [row.flow for row in rows] == ["host0->gpu1"]


def test_a_unit_with_its_figure_behind_is_a_key():
    assert [row.value for row in rows_of("h2d bytes=256000000 GBps=25.6 ms=10")] == [pytest.approx(25.6e9)]


@pytest.mark.parametrize(
    "text",
    ['{"device": 0, "name": "NVIDIA GeForce RTX 4090", "op": "h2d", "bytes": 256000000, "ms": 10.0}\n'
     '{"device": 1, "name": "RTX 3060", "op": "h2d", "bytes": 256000000, "ms": 20.0}\n',
     "GPU 0: NVIDIA GeForce RTX 4090\nGPU 1: RTX 3060\nH2D cuda:1 256 MB: 20 ms, 12.8 GB/s\n",
     "gpu,name,h2d [GB/s],d2h [GB/s]\n0,NVIDIA GeForce RTX 4090,25.1,25.9\n1,RTX 3060,12.8,12.9\n"],
)  # fmt: skip
def test_gpus_of_several_models_are_told_by_their_numbers(text: str):
    models = read_results(text, "f").posted.devices
    assert (models["gpu0"], models["gpu1"]) == ("NVIDIA GeForce RTX 4090", "RTX 3060")


@pytest.mark.parametrize(
    "text", ['{"op": "allreduce", "bytes": 256000000, "ms": 2.0, "world_size": 8}\n',
             "op,bytes,ms,nranks\nall_reduce,256000000,2.0,8\n", "all_reduce world_size=8 256 MB took 2.0 ms\n"],
)  # fmt: skip
def test_a_key_says_the_ranks_of_a_collective(text: str):
    row = rows_of(*text.splitlines())[0]
    assert (row.metric, row.settings["ranks"]) == ("bus_bandwidth", 8)
    assert row.value == pytest.approx(256e6 / 2e-3 * 1.75)


@pytest.mark.parametrize("key", ["world_size", "batch_size", "vocab size"])
def test_not_every_size_counts_bytes(key: str):
    assert not is_text([f"h2d {key}=8 took 2.0 ms"])


IPERF = """[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  10.9 GBytes  9.38 Gbits/sec    0             sender
[  5]   0.00-10.00  sec  10.9 GBytes  9.38 Gbits/sec                  receiver
"""
DD = """We copy from the GPU to a drive:
$ dd if=/dev/zero of=/mnt/t bs=1M count=4096 oflag=direct
4294967296 bytes (4.3 GB, 4.0 GiB) copied, 2.01 s, 2.1 GB/s
"""


def test_lines_of_a_program_beside_the_output_of_a_tool_for_networks_or_drives_are_read():
    text = f"GPU 0: NVIDIA A40\nh2d pinned 256 MB: 40 ms, 6.4 GB/s\n{IPERF}"
    assert [row.path for row in read_results(text, "f").observations] == ["network", "host to device"]
    assert [row.path for row in read_results(DD, "f").observations] == ["storage"]


BLOCKS = [
    "Size: 256 MB\nTime: 4.9 ms\nBandwidth: 52.24 GB/s",
    "transfer:\n  direction: host -> cuda:0\n  size_mb: 256\n  bandwidth_gb_s: 52.24",
    "┏━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━┓\n┃ batch ┃ size (MB) ┃ time (ms) ┃    GB/s ┃\n"
    "┡━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━┩\n│     0 │     256.0 │      4.90 │   52.24 │",
    "│ size [MiB] │   H2D [GB/s] │\n╞════════════╪══════════════╡\n│        256 │       52.240 │",
    "upload: 256,000,000 bytes, 4,900 us => 52.24 GBytes/s",
]


@pytest.mark.parametrize("text", BLOCKS)
def test_figures_below_each_other_and_in_drawn_tables_are_one_row(text: str):
    rows = rows_of("Pinned copies from the host to an NVIDIA H200 of ours:", "", *text.splitlines())
    assert [(row.flow, round((row.value or 0) / 1e9, 1)) for row in rows] == [("host0->gpu0", 52.2)]


def test_a_list_of_rates_is_no_block():
    rows = rows_of("Pinned copies from the host to each card:", "GPU0 H2D: 26.1 GB/s", "GPU1 H2D: 13.0 GB/s")
    assert not any("," in row.flow for row in rows)


def test_what_stands_beside_a_block_of_a_gpu_is_not_its():
    rows = rows_of("gpu1:", "  h2d_gbps: 25.6", "d2h_gbps: 6.4")
    assert [row.flow for row in rows] == ["host0->gpu1", "gpu0->host0"]


SEVERAL_TIMES = [
    ("Copying 1 GB to the GPU takes 180 ms with pageable memory and 42 ms with pinned memory.", [5.6, 23.8]),
    ("A card. A 1 GB upload to the GPU took pageable 180 ms, pinned 42 ms. What is wrong?", [5.6, 23.8]),
    ("copying 1 GB takes 180 ms pageable, 42 ms pinned", [5.6, 23.8]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "rates"), SEVERAL_TIMES)
def test_each_time_of_a_sentence_is_a_copy_of_its_own(line: str, rates: list[float]):
    rows = rows_of(line)
    assert [round((row.value or 0) / 1e9, 1) for row in rows] == rates
    assert [row.how["host memory"] for row in rows] == ["pageable", "pinned"]
    assert {(row.flow, row.settings["bytes"]) for row in rows} == {("host0->gpu0", 10**9)}


@pytest.mark.parametrize(
    "line",
    ["The step takes 12 ms with 1 GPU and 9 ms with 2 GPUs.", "pinned to core 3 the copy of 1 GB takes a while",
     "a call takes 3 us, copies reach 25 GB/s"],
)  # fmt: skip
def test_times_of_no_size_are_no_copies(line: str):
    assert rows_of(line) == ()
