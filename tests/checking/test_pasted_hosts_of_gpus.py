"""What the held-out texts of author A showed: collectives over hosts, ports, bridges, cut matrices, other backends."""

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api

_RANKS = "\n".join(
    f"#  Rank {8 * host + gpu} Group  0 Pid {20000 + gpu} on node{host} device  {gpu} [0x1b] NVIDIA H100 80GB HBM3"
    for host in range(2) for gpu in range(8)
)  # fmt: skip
_HEADS = "#       size         count      type   redop    root     time   algbw   busbw #wrong"


def _answer(folder, text):
    path = folder / "pasted.txt"
    path.write_text(text, encoding="utf-8")
    checkup = api.check([path])
    return verdict_of(checkup), first_causes(checkup)


def _all_to_all(rate, cards):
    row = f"  4294967296      33554432     float    none      -1    74675   {rate * 16 / 15:.2f}   {rate:.2f}      0"
    return f"{cards}\n# Collective test starting: alltoall_perf\n{_RANKS}\n{_HEADS}\n{row}\n"


@pytest.mark.parametrize(
    ("rate", "cards", "verdict"),
    [
        # Of 16 pieces 8 cross the line of 50 GB/s a rank: at most 93.8 GB/s of bus bandwidth.
        (80.0, "8x CX7 NDR per node", "ok"),
        (30.0, "8x CX7 NDR per node", "slow"),
        (40.0, "a3-megagpu-8g x2", "ok"),
        (40.0, "two nodes", "unknown"),
    ],
)
def test_all_to_all_is_judged_by_the_share_of_pieces_that_cross_hosts(rate, cards, verdict, tmp_path):
    assert _answer(tmp_path, _all_to_all(rate, cards))[0] == verdict


def _rails(rates):
    row = "   1073741824      67108864     float     sum      -1    44293   {0:.2f}   {0:.2f}      0"
    tables = "".join(f"== rail mlx5_{at}\n{row.format(rate)}\n" for at, rate in enumerate(rates))
    ports = "".join(f"CA 'mlx5_{at}'\n\t\tRate: {100 if rate < 20 else 200}\n" for at, rate in enumerate(rates))
    return f"sendrecv_perf over each rail\n{tables}\n{ports}"


@pytest.mark.parametrize(("rates", "verdict"), [((24.1, 24.0, 12.1, 24.2), "slow"), ((24.1, 24.0, 23.9), "unknown")])
def test_tables_without_heads_are_told_apart_and_the_slower_port_is_named(rates, verdict, tmp_path):
    answer, causes = _answer(tmp_path, _rails(rates))
    assert answer == verdict
    assert ("link" in causes) is (verdict == "slow")


_MATRIX = "        GPU0    GPU1    GPU2    CPU Affinity\nGPU0     X      NV1     NV1     0-19\n"
_DDP = "  16 GPUs --    2M/8G:  p50:  0.442s      72/s  p75:  0.443s      72/s\n"


def test_a_matrix_that_somebody_cut_is_left_aside(tmp_path):
    assert _answer(tmp_path, f"{_MATRIX}[... rest cut]\n\n{_DDP}")[0] == "unknown"


@pytest.mark.parametrize(("backend", "verdict"), [("gloo", "slow"), ("nccl", "unknown")])
def test_gloo_between_gpus_of_boards_is_slow_by_its_name(backend, verdict, tmp_path):
    row = "all_reduce   1.0 GiB   avg 1018.73 ms   algbw 1.05 GB/s   busbw 1.98 GB/s"
    text = f"world_size=16 backend={backend} device=NVIDIA H100 80GB HBM3 iters=10\n{row}\n"
    answer, causes = _answer(tmp_path, text)
    assert answer == verdict
    assert (causes[:1] == ["software"]) is (verdict == "slow")


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("one NVLink bridge between GPU 0 and GPU 1", "slow"),
        ("no NVLink bridge between GPU 0 and GPU 1", "ok"),
        ("NVLink bridge for 3-4 slots", "ok"),
    ],
)
def test_a_bridge_that_words_state_is_what_its_pair_is_judged_by(words, verdict, tmp_path):
    text = (
        f"2x A100 80GB PCIe, {words}\n\n[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
        "Device: 0, NVIDIA A100 80GB PCIe, pciBusID: 1, pciDeviceID: 0, pciDomainID:0\n"
        "Device: 1, NVIDIA A100 80GB PCIe, pciBusID: 25, pciDeviceID: 0, pciDomainID:0\n"
        "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
        "   D\\D     0      1 \n     0 1590.66 22.41 \n     1  22.43 1604.03 \n"
    )
    assert _answer(tmp_path, text)[0] == verdict
