"""Logs of serving software and ucx_perftest, as they are posted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_display_units import shown

from lanewise.errors import LanewiseError
from lanewise.readers.kinds import read_results
from lanewise.results.observation import Observation

RULE = "+--------------+--------------+------------------------------+---------------------+-----------------------+"
HEAD = "|              |              |       overhead (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |"
STAGE = "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |"
BANDWIDTH = f"""\
$ ucx_perftest -t tag_bw -m cuda -n 1000 -s 1048576 node1
{RULE}
{HEAD}
{RULE}
{STAGE}
{RULE}
[thread 0]               622      0.240  1668.561  1668.561    46821.78   46821.78         599         599
Final:                  1000      0.240  1675.942  1671.351    46615.58   46743.62         597         598
"""
LATENCY = """\
| API:          protocol layer                                                                             |
| Test:         tag match latency                                                                          |
| Send memory:  host                                                                                       |
| Recv memory:  host                                                                                       |
| Message size: 8                                                                                          |
|              |              |        latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
[thread 0]             31045     15.993    16.106    16.106     1776.36    1776.36       62088       62088
"""
VLLM = (
    "(EngineCore_DP0 pid=7) INFO 11-22 10:00:00 [metrics.py:100] KV Transfer metrics: Num successful transfers=4, "
    "Avg xfer time (ms)=7.894, P90 xfer time (ms)=9.1, Avg post time (ms)=1.5, P90 post time (ms)=2.0, "
    "Avg MB per transfer=64.0, Throughput (MB/s)=8107.5, Avg number of descriptors=512.0"
)
LMCACHE = (
    "(EngineCore_DP0 pid=1021360) [2025-10-08 06:08:21,759] LMCache INFO: Stored 3866 out of total 3866 tokens. size: "
    "0.5309 gb, cost 11.9537 ms, throughput: 44.4144 GB/s; offload_time: 11.9294 ms, put_time: 0.0243 ms",
    "[2025-10-08 06:08:21,854] LMCache INFO: Retrieved 10010 out of 10010 required tokens (from 10010 total tokens). "
    "size: 1.3747 gb, cost 33.4281 ms, throughput: 41.1230 GB/s; (cache_engine.py:509:lmcache.v1.cache_engine)",
)
LOADS = (
    "INFO 11-22 10:00:00 [default_loader.py:262] Loading weights took 15.11 seconds",
    "INFO 11-22 10:00:03 [gpu_model_runner.py:1801] Model loading took 14.9889 GiB and 3.5 seconds",
)


def rows(text: str) -> list[Observation]:
    return list(read_results(text, "f").observations)


@pytest.mark.parametrize("wrapper", ["{}", "[1,0]<stdout>:{}", "2026-11-23T10:00:00.123Z {}"])
def test_ucx_perftest_says_its_last_row(wrapper: str) -> None:
    text = "\n".join(wrapper.format(line) for line in (BANDWIDTH + LATENCY).splitlines())
    bandwidth, latency = rows(text)
    assert (bandwidth.flow, bandwidth.scenario, bandwidth.settings["bytes"]) == ("gpu0->host1", "ucx tag_bw", 1 << 20)
    assert bandwidth.value == pytest.approx(46743.62 * 2**20)
    assert (latency.metric, shown(latency), latency.flow) == ("latency_mean", 16.106, "host0->host1")
    (local,) = rows(BANDWIDTH.replace("node1", "localhost"))
    assert (local.flow, local.path) == ("gpu0->gpu1", "peer")


def test_transfers_of_vllm_have_pieces_and_what_their_rate_is() -> None:
    results = read_results(VLLM, "f")
    rate, time, post = results.observations
    assert rate.value == pytest.approx(8107.5 * 2**20)
    assert (time.value, post.value) == (pytest.approx(7.894e-3), pytest.approx(1.5e-3))
    assert rate.settings == {"blocks": 512, "bytes": 131072}
    assert results.notes[0] == "KV transfers of 512 pieces: posting takes 19 % of the time, 2.9 us a piece"
    assert "overlap" in results.notes[1]
    (waiting, _) = read_results(VLLM.replace("time (ms)=1.5", "time (ms)=5.5"), "f").notes
    assert "larger blocks" in waiting


def test_caches_of_lmcache_go_to_host_memory_and_back() -> None:
    stored, retrieved = rows("\n".join(LMCACHE))
    assert (stored.flow, retrieved.flow) == ("gpu0->host0", "host0->gpu0")
    assert stored.value == pytest.approx(44.4144 * 2**30, rel=1e-3)
    assert retrieved.value == pytest.approx(41.123 * 2**30, rel=1e-3)


def test_loads_of_vllm_have_seconds_and_a_rate_where_the_size_is_said() -> None:
    weights, whole, rate = rows("\n".join(LOADS))
    assert (weights.metric, weights.value, whole.value) == ("makespan", 15.11, 3.5)
    assert rate.value == pytest.approx(14.9889 * 2**30 / 3.5)


@settings(max_examples=40)
@given(st.sampled_from([BANDWIDTH + LATENCY, VLLM, "\n".join(LMCACHE), "\n".join(LOADS)]), st.data())
def test_texts_that_break_off_or_have_other_letters_are_read_or_refused(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    torn = text[:place] + data.draw(st.text("0123456789.e-|= \n\x00", max_size=8)) + text[place + 4 :]
    try:
        values = [row.value for row in rows(torn)]
    except LanewiseError:
        return
    assert all(value is not None and value >= 0 for value in values)
