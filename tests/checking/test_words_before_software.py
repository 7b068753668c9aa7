"""What a row's words and stated facts say of its cause comes before software; facts stand in a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api
from lanewise.checking.checkup import Checkup
from lanewise.errors import LanewiseError
from lanewise.readers.typed.figures import read_text
from lanewise.results.posted import GPU_TO_CARD


def typed(folder: Path, *rows: str, head: str = "") -> Checkup:
    path = folder / "rows.txt"
    path.write_text(f"lanewise-rows: 1\n{head}rows:\n" + "".join(f"  - {{{row}}}\n" for row in rows), "utf-8")
    return api.check([path])


OVER_HDR = 'flows: "host0->host1", line: HDR100'
OVER_IPOIB = 'flows: "host0->host1", value: 8 Gb/s, line: QDR, path: iperf3 over IPoIB'
DRIVE = 'flows: "nvme0->host0", path:'
CASES = {
    "distance": ("far device", "gpus: A100 80GB PCIe\nstated: {GPU to NIC: SYS}\n",
                 (f"{OVER_HDR}, memory: GPU, value: 4.1 GB/s, path: osu_bw D D",
                  f"{OVER_HDR}, value: 12.1 GB/s, path: osu_bw H H")),
    "mtu": ("mtu", "", (f"{OVER_IPOIB}, mtu: 2044",)),
    "datagram": ("mtu", "stated: {ipoib: datagram mode}\n", (OVER_IPOIB,)),
    "classes": ("far device", "gpus: GB300\n",
                tuple(f'flows: "gpu[0-1]->gpu[0-1]", value: {value} GB/s, path: all_reduce, metric: bus_bandwidth, '
                      f'ranks: 2, hosts: 2, topology: {cls}' for value, cls in ((25, "SYS"), (56, "NODE")))),
    "later": ("drive", "", (f"{DRIVE} CrystalDiskMark at first, value: 5 GB/s",
                            f"{DRIVE} CrystalDiskMark later, value: 0.1 GB/s")),
    "all": ("shared", "gpus: AMD Radeon AI PRO R9700\nstated: {cpu: AMD EPYC 9575F}\n",
            ('flows: "host0->gpu7", path: all cards both ways, value: 30 GB/s',
             'flows: "host0->gpu7", path: one card both ways, value: 50 GB/s')),
    "number": ("setting", "stated: {line: 400 Gb/s}\n",
               ('flows: "gpu0->host1", path: traffic class 224, value: 4 GB/s',
                'flows: "gpu0->host1", path: traffic class 0, value: 40 GB/s')),
    "while": ("shared", "", ('flows: "host0->host0", path: read idle, value: 45 GB/s',
                             'flows: "host0->host0", path: read while the drive streams, value: 30 GB/s')),
    "sockets": ("transport", "stated: {NCCL_IB_DISABLE: 1, other card: BlueField-3 in each host}\n",
                ('flows: "gpu0->host1", path: all_reduce, value: 1.17 GB/s, bytes: 1G, ranks: 2, hosts: 2',)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_words_of_a_row_are_among_the_first_two(name: str, tmp_path: Path):
    cause, head, rows = CASES[name]
    checkup = typed(tmp_path, *rows, head=head)
    assert verdict_of(checkup) == "slow"
    assert cause in first_causes(checkup)


def test_an_mtu_in_a_name_is_no_other_setting(tmp_path: Path):
    row = 'flows: "host0->host1", line: 10 Gb/s'
    rows = f"{row}, path: mtu 1500, value: 3 Gb/s", f"{row}, path: mtu 9000, value: 9.9 Gb/s"
    assert first_causes(typed(tmp_path, *rows))[0] == "mtu"


@pytest.mark.parametrize(
    ("stated", "cls"),
    [("{GPU to NIC: SYS}", "SYS"), ("{topo: GPU to NIC PIX}", "PIX"), ("{topo: GPU to NIC}", ""),
     ("{NUMA node of the GPUs: 0, NUMA node of the network cards: 1}", "SYS"),
     ("{NUMA node of the GPUs: 1, NUMA node of the network cards: 1}", ""),
     ("{GPU of both pods: 'NUMA 0', RDMA card of both pods: 'a virtual function, NUMA 1'}", "SYS"),
     ("{numa: GPU 0-3 on node 0 and GPU 4-7 on node 1}", ""), ("{topology: NODE}", "")],
)  # fmt: skip
def test_the_distance_of_a_gpu_and_its_card_is_read_from_words(stated: str, cls: str):
    row = '{flows: "gpu0->host1", value: 9 GB/s}'
    posted = read_text(f"lanewise-rows: 1\nstated: {stated}\nrows: [{row}]", "f").posted
    assert [each.value for each in posted.stated(GPU_TO_CARD)] == [cls] * bool(cls)
    assert bool(posted.unused) is not bool(cls)


COLLECTIVE = 'flows: "gpu0->gpu0", path: all_reduce, ranks: 2, hosts: 2'


def test_a_short_call_is_no_measure_by_a_long_one_and_slow_by_its_own_time_alone(tmp_path: Path):
    rows = [f"{COLLECTIVE}, value: 0.7 GB/s, bytes: 1M", f"{COLLECTIVE} in place, value: 1.2 GB/s, bytes: 2G"]
    rows = [row.replace("ranks: 2, hosts: 2 in place", "ranks: 2, hosts: 2") for row in rows]
    assert verdict_of(typed(tmp_path, *rows)) == "unknown"
    for micros, verdict in ((354, "unknown"), (4247, "slow")):
        short = f"{COLLECTIVE}, value: {micros} us, metric: time, bytes: 8"
        assert verdict_of(typed(tmp_path, *rows, short)) == verdict


def test_rdma_that_is_off_is_slow_only_where_a_card_has_it(tmp_path: Path):
    row = f"{COLLECTIVE}, value: 1.17 GB/s, bytes: 1G"
    for card, verdict in (("ConnectX-7", "slow"), ("two of EFA", "slow"), ("no EFA", "unknown"), ("X550", "unknown")):
        head = f"stated: {{NCCL_NET: Socket, other card: {card}}}\n"
        assert verdict_of(typed(tmp_path, row, head=head)) == verdict
    assert verdict_of(typed(tmp_path, row, head="stated: {other card: ConnectX-7}\n")) == "unknown"


def test_a_ring_of_amd_cards_is_fine_by_pcie_where_no_bridge_is_stated(tmp_path: Path):
    row = 'flows: "gpu[0-1]->gpu[0-1]", path: all_reduce, value: 23.3 GB/s, bytes: 128M'
    for bridge, verdict in (("no xGMI bridge", "ok"), ("seated", "unknown")):
        head = f"gpus: 2x AMD Instinct MI100\nstated: {{slot: gen4 x16, bridge: {bridge}}}\n"
        assert verdict_of(typed(tmp_path, row, head=head)) == verdict


OSU = "# OSU MPI-CUDA Bandwidth Test v7.5\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n" + "".join(
    f"{2**power}    {rate}\n" for power, rate in ((20, 23909.87), (21, 23967.44), (22, 23995.77))
)


def test_facts_in_a_file_of_their_own_judge_what_a_tool_printed(tmp_path: Path):
    output, facts = tmp_path / "osu.txt", tmp_path / "facts.yaml"
    output.write_text(f"$ srun --mpi=pmix -N2 ./osu_bw D D\n\n{OSU}", "utf-8")
    alone = api.check([output])
    assert verdict_of(alone) == "unknown"
    # The step has the command that writes them.
    command = alone.findings[0].step.partition("echo '")[2].partition("'")[0]
    facts.write_text(command.replace("100 Gb/s", "200 Gb/s"), "utf-8")
    assert verdict_of(api.check([output, facts])) == "ok"
    facts.write_text("lanewise-rows: 1\n", "utf-8")
    with pytest.raises(LanewiseError, match="rows"):
        api.check([output, facts])


def test_what_a_whole_machine_is_tells_no_two_rows_of_one_path_apart(tmp_path: Path):
    rates = {"tool v1": 300, "tool v2": 900}
    rows = [f'flows: "s3->ebs0", path: {name}, value: {rate} MB/s' for name, rate in rates.items()]
    assert first_causes(typed(tmp_path, *rows, head="stated: {virtual machine: true}\n"))[0] == "software"
    alone = 'flows: "host0->gpu0", value: 9.3 GB/s, host memory: pinned'
    head = "gpus: NVIDIA H100 PCIe\nstated: {virtual machine: true}\n"
    assert "virtual machine" in first_causes(typed(tmp_path, alone, head=head))


def test_what_is_stated_is_said_of_rows_that_nothing_judges(tmp_path: Path):
    row = f"{COLLECTIVE}, value: 1.17 GB/s, bytes: 1G"
    (finding,) = typed(tmp_path, row, head="stated: {NCCL_IB_DISABLE: 1}\n").findings
    assert (finding.kind, "NCCL_IB_DISABLE=1 leaves TCP sockets" in finding.title) == ("unknown", True)
    (finding,) = typed(tmp_path, row).findings
    assert "is stated" not in finding.title
