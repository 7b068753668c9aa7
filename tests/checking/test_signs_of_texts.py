"""Classes of faults and of healthy outputs that forty texts of an engineer showed, as variants of one's own."""

import pytest
from checking.thread_list import first_causes, verdict_of

from lanewise import api

STREAM = "Function    Best Rate MB/s  Avg time     Min time\nTriad:          {}     0.11     0.11\n"
SPDK = (
    "One {drive}, 7 GB/s by its label.\n"
    "# spdk_nvme_perf -q 64 -o 4096 -w randread -r 'trtype:PCIe traddr:0000:86:00.0'\n"
    "Device Information                     :       IOPS      MiB/s    Average        min        max\n"
    "PCIE (0000:86:00.0) NSID 1 from core  0:  {count}.00    {rate}     183.51      56.02    1411.17\n"
)
BUS = (
    "Device: 0, NVIDIA RTX A5000, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0\n"
    "Host/Device Bandwidth Matrix (GB/s), memory=Pinned\n Dir\\D     0 \n D2H    {0} \n H2D    {0} \n"
    "\tConfigured Memory Speed: 2400 MT/s\n\tSize: 32 GB\n\tSize: No Module Installed\n"
)


@pytest.fixture
def answer(tmp_path):
    def check(text):
        path = tmp_path / "text.txt"
        path.write_text(text, encoding="utf-8")
        checkup = api.check([path])
        return verdict_of(checkup), first_causes(checkup)

    return check


def two_gpus(second):
    run = " Device {}: Tesla V100-PCIE-16GB\n Device to Device Bandwidth, 1 Device(s)\n"
    run += "   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
    return f"{run.format(0)}   32000000\t\t\t740.0\n\n{run.format(1)}   32000000\t\t\t{second}\n"


@pytest.mark.parametrize(("second", "verdict"), [(731.0, "ok"), (210.0, "slow")])
def test_memory_of_a_gpu_far_below_that_of_its_like_is_slow(answer, second, verdict):
    assert answer(two_gpus(second))[0] == verdict


def test_lowered_clocks_are_the_cause_of_slow_gpu_memory(answer):
    verdict, causes = answer(two_gpus(210.0) + "        HW Thermal Slowdown           : Active\n")
    assert (verdict, causes[0]) == ("slow", "throttling")


def test_copies_that_fill_the_modules_of_the_host_are_limited_by_them(answer):
    assert answer(BUS.format(17.5))[1][0] == "memory channels"


@pytest.mark.parametrize(("far", "verdict"), [(60204.9, "slow"), (165000.0, "unknown")])
def test_memory_of_the_other_node_by_command_is_slow_beside_near_memory(answer, far, verdict):
    near = "$ numactl -N 0 -m 0 ./stream\n" + STREAM.format(171118.3)
    found, causes = answer(f"{near}$ numactl -N 0 -m 1 ./stream\n{STREAM.format(far)}")
    assert found == verdict
    assert verdict != "slow" or causes[0] == "far NUMA node"


@pytest.mark.parametrize(("late", "verdict"), [(48.3, "slow"), (17.5, "unknown")])
def test_of_two_runs_of_sockperf_one_may_be_late(answer, late, verdict):
    run = "sockperf: == version #3.10 ==\nsockperf: Summary: Latency is {0} usec\n"
    run += "sockperf: ---> percentile 50.000 = {0}\n"
    found, causes = answer(f"== rack A\n{run.format(9.1)}== rack B\n{run.format(late)}rx-usecs:\t40\n")
    assert found == verdict
    assert verdict != "slow" or causes[0] == "setting"


def test_tests_of_qperf_are_not_compared_with_each_other(answer):
    assert answer("rc_lat:\n    latency  =  1.9 us\ntcp_lat:\n    latency  =  14 us\n")[0] == "unknown"


@pytest.mark.parametrize(("lost", "verdict"), [("0/906 (0%)", "ok"), ("400/906 (44%)", "unknown")])
def test_udp_at_the_rate_that_iperf_chose_is_fine_if_all_of_it_arrived(answer, lost, verdict):
    line = f"[  5]   0.00-10.01  sec  1.25 MBytes  1.05 Mbits/sec  0.006 ms  {lost}  receiver\n"
    head = "$ iperf3 -c 10.0.0.1 -u\n[ ID] Interval  Transfer  Bitrate  Jitter  Lost/Total Datagrams\n"
    assert answer(f"{head}{line}")[0] == verdict


@pytest.mark.parametrize(
    ("drive", "count", "verdict"),
    [("P5510", 690000, "ok"), ("PM1733", 1400000, "ok"), ("PM1733", 90000, "unknown"), ("ABC123", 690000, "unknown")],
)
def test_small_reads_are_compared_with_those_that_the_drive_is_rated_at(answer, drive, count, verdict):
    assert answer(SPDK.format(drive=drive, count=count, rate=round(count * 4096 / 2**20, 2)))[0] == verdict


@pytest.mark.parametrize(
    ("link", "rate", "verdict"), [("1.5", 131.0, "slow"), ("1.5", 60.0, "unknown"), ("6.0", 131.0, "unknown")]
)
def test_reads_that_fill_a_lesser_sata_link_are_slow(answer, link, rate, verdict):
    state = f"SATA Version is:  SATA 3.2, 6.0 Gb/s (current: {link} Gb/s)\n"
    text = f"/dev/sdb:\n Timing buffered disk reads: 410 MB in  3.01 seconds = {rate} MB/sec\n{state}"
    found, causes = answer(text)
    assert found == verdict
    assert verdict != "slow" or causes[0] == "link"


PERFORMANCE = """==============NVSMI LOG==============
Attached GPUs                             : 8
GPU 00000000:1B:00.0
    Performance State                     : P0
    Clocks Event Reasons
        SW Power Cap                      : {software}
        HW Slowdown                       : {hardware}
            HW Power Brake Slowdown       : {hardware}
"""


def test_clocks_that_the_board_holds_down_are_a_fault_and_those_of_a_power_cap_are_not(answer):
    assert answer(PERFORMANCE.format(software="Not Active", hardware="Active")) == ("fault", ["throttling"])
    assert answer(PERFORMANCE.format(software="Active", hardware="Not Active"))[0] != "fault"


def test_a_fabric_manager_of_another_version_is_a_fault(answer):
    line = "nv-fabricmanager[2211]: fabric manager NVIDIA GPU driver interface version 570.172.08 {}\n"
    assert answer(line.format("don't match with driver version 570.195.03."))[0] == "fault"


MATRIX = """GPU0	GPU1	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	NODE	0-31	0		N/A
GPU1	NODE	 X 	0-31	0		N/A

Device: 0, NVIDIA A100 80GB PCIe, pciBusID: 1, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA A100 80GB PCIe, pciBusID: 25, pciDeviceID: 0, pciDomainID:0
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   2.61   {us}
     1   {us}   2.60
"""


def test_peers_that_answer_sooner_than_a_copy_through_host_memory_are_not_too_fast(answer):
    assert answer(MATRIX.format(us="2.69"))[0] in ("ok", "unknown")
