"""Drives by what lists name them, files that are read twice, dcgmproftester, training loops, reports of one load."""

import pytest

from lanewise.readers.kinds import read_plain, read_posted, read_results

LSBLK = """$ lsblk -d -o {heads}
{rows}
"""
DD = (
    "# dd if={path} of=/dev/null bs=4M{flag}\n5120+0 records in\n5120+0 records out\n"
    "21474836480 bytes (21 GB, 20 GiB) copied, {s} s, {rate} GB/s\n"
)


@pytest.mark.parametrize(
    ("heads", "rows", "drives"),
    [
        ("NAME,MODEL,TRAN,ROTA",
         "NAME MODEL                     TRAN ROTA\nsda  Samsung SSD 870 EVO 2TB   sata    0",
         {"sda": "Samsung SSD 870 EVO 2TB, SATA SSD"}),
        ("NAME,SIZE,TYPE,MODEL",
         "NAME      SIZE TYPE MODEL\nnvme0n1   3.5T disk KIOXIA KCD6XLUL3T84\n`-nvme0n1p1 1G part \n"
         "sdb      14.6T disk ST16000NM001G-2KK103",
         {"nvme0": "KIOXIA KCD6XLUL3T84", "sdb": "ST16000NM001G-2KK103"}),
        ("NAME,MODEL,SIZE,ROTA,TRAN",
         "NAME MODEL            SIZE ROTA TRAN\n"
         "sda  ST8000NM0055-1RM 7.3T    1 sas \nvda                    40G    1      ",
         {"sda": "ST8000NM0055-1RM, hard disk"}),
        ("NAME,SIZE", "NAME SIZE\nsda  1.8T", {}),
    ],
)  # fmt: skip
def test_lsblk_names_drives_whatever_its_columns(heads, rows, drives):
    assert dict(read_posted(LSBLK.format(heads=heads, rows=rows), "l.txt").posted.devices) == drives


def test_smartctl_names_the_drive_of_its_command():
    text = (
        "# smartctl -i /dev/sdc\nDevice Model:     CT1000MX500SSD1\nRotation Rate:    Solid State Device\n"
        "SATA Version is:  SATA 3.3, 6.0 Gb/s (current: 6.0 Gb/s)\n"
    )
    assert dict(read_posted(text, "s.txt").posted.devices) == {"sdc": "CT1000MX500SSD1, SATA SSD"}


def copies(*runs, between=""):
    return read_results(
        between.join(DD.format(path="/data/a.tar", flag=flag, s=s, rate=rate) for flag, s, rate in runs), "d.txt"
    )


def test_a_file_that_is_read_again_much_faster_comes_from_the_page_cache():
    result = copies(("", 8.3, 2.6), ("", 1.75, 12.3))
    assert [row.value for row in result.observations] == [2.6e9]
    assert "page cache" in result.notes[0]


@pytest.mark.parametrize(
    ("second", "between"),
    [
        (("", 8.0, 2.7), ""),
        ((" iflag=direct", 4.0, 5.4), ""),
        (("", 4.0, 5.4), "# echo 3 > /proc/sys/vm/drop_caches\n"),
    ],
)  # fmt: skip
def test_a_second_read_of_the_drive_is_kept(second, between):
    result = copies(("", 8.3, 2.6), second, between=between)
    assert len(result.observations) == 2
    assert not result.notes


def test_dcgmproftester_says_payload_direction_and_link():
    line = (
        "Worker {gpu}:0[{field}]: Pcie{way}Bytes generated 1.20e+04/{rate} (1.2e+04/{rate}). "
        "dcgm 26391.7 MiB/sec (83.8% speed-of-light), PCIE version/lanes: 4/16.\n"
    )
    text = line.format(gpu=3, field=1010, way="Rx", rate="1.20e+04") + line.format(
        gpu=3, field=1010, way="Rx", rate="2.52e+04"
    ) + line.format(gpu=3, field=1009, way="Tx", rate="2.61e+04")  # fmt: skip
    rows = read_results("Skipping UnWatchFields()\n" + text, "p.txt").observations
    assert [(row.flow, row.value, row.how["link under load"]) for row in rows] == [
        ("host0->gpu3", pytest.approx(25.2e9), "Gen4 x16"), ("gpu3->host0", pytest.approx(26.1e9), "Gen4 x16"),
    ]  # fmt: skip


DIAG = """+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
| {test:25} | {result:46} |
{more}"""
WIDTH = """| Warning: GPU1             | GPU 1 is running at PCI link width 8X, which   |
|                           | is below the minimum allowed link generation   |
|                           | of 16 (parameter 'min_pci_width') Please check |
"""


def test_a_warning_of_dcgmi_diag_that_names_a_link_stands_for_its_failed_test():
    facts = read_results(DIAG.format(test="pcie", result="Fail", more=WIDTH), "g.txt").posted
    assert [(each.key, each.value) for each in facts.statements] == [("link width", "GPU 1 x8 of x16")]


def test_other_failures_of_dcgmi_diag_stay_what_they_are_and_passing_is_no_fault():
    facts = read_results(DIAG.format(test="memory", result="Fail", more=""), "g.txt").posted
    assert [each.key for each in facts.statements] == ["failed test"]
    passed = read_results(DIAG.format(test="memory", result="Pass", more=""), "g.txt")
    assert passed.posted.statements == ()
    assert passed.notes


@pytest.mark.parametrize(
    ("line", "rate", "waits"),
    [
        ("Epoch: [0][ 100/5005]\tTime  0.661 ( 0.672)\tData  0.580 ( 0.589)\tLoss 6.9 (7.0)",
         1 / 0.672, "0.589 of 0.672 s"),
        ("Train: 0 [  50/1251 (  4%)]  Loss: 6.94 (6.95)  "
         "Time: 0.372s,  381.00/s  (0.380s,  376.5/s)  Data: 0.010 (0.012)",
         1 / 0.38, "0.012 of 0.38 s"),
        ("Epoch: [0]  [ 100/5004]  eta: 0:30:11  lr: 0.1  time: 0.500  data: 0.400  max mem: 9311", 2, "0.4 of 0.5 s"),
        ("d2.utils.events:  eta: 1:02:11  iter: 199  total_loss: 1.63  "
         "time: 0.5000  last_time: 0.9  data_time: 0.2500",
         2, "0.25 of 0.5 s"),
    ],
)  # fmt: skip
def test_steps_say_what_they_wait_for_data(line, rate, waits):
    (row,) = read_results(line, "t.txt").observations
    assert (row.value, row.how["waits"]) == (pytest.approx(rate), waits)


def test_runs_of_a_loop_are_told_apart_by_their_processes():
    step = "Epoch: [0][{}/500]\tTime  0.6 ( 0.6)\tData  {} ( {})\n"
    text = "$ python main.py -j 2 /data\n" + step.format(10, 0.5, 0.5) + step.format(20, 0.5, 0.5)
    text += "$ python main.py --workers 16 /data\n" + step.format(10, 0.01, 0.01)
    rows = read_results(text, "t.txt").observations
    assert [row.settings["workers"] for row in rows] == [2, 16]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("step 100: loss 3.2, 4.0 s/step", 0.25),
        ("30%| 3/10 [00:01<00:02, 2.5it/s]", 2.5),
        ("iteration 100/ 500 | elapsed time per iteration (ms): 2000.0 |", 0.5),
    ],
)  # fmt: skip
def test_a_loop_that_only_says_its_speed_is_read(text, rate):
    assert [row.value for row in read_plain(text, "t.txt").observations] == [pytest.approx(rate)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: Replay Errors: 2\n\t Link 7: Recovery Errors: 12\n",
         ["link 7 of gpu3: 12 recovery errors"]),
        ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n\t Link 1: CRC Errors: 3\n", []),
        ("    gpuId 1:\n        U U U U D D U U U U U U\n", ["2 links of gpu1 are down"]),
        ("    gpuId 1:\n        D D D D D D D D D D D D\n    gpuId 2:\n        U U U U X X _ _\n", []),
    ],
)  # fmt: skip
def test_nvlinks_that_recover_or_are_down(text, found):
    facts = read_posted(text, "n.txt").posted
    assert [each.value for each in facts.stated("NVLink errors")] == found


def test_ethtool_shows_a_port_below_its_own_speed():
    text = "\tSupported link modes:   1000baseT/Full\n\t                        10000baseT/Full\n\tSpeed: {}Mb/s\n"
    assert [each.value for each in read_posted(text.format(1000), "e.txt").posted.stated("port speed")] == [
        "1 Gb/s of 10 Gb/s"
    ]
    assert not read_posted(text.format(10000), "e.txt").posted.stated("port speed")


def test_ranks_that_are_left_out_are_counted_by_the_last_number():
    head = "#  Rank {} Group  0 Pid {} on  host{:02} device  {} [0x1b] NVIDIA H100 80GB HBM3\n"
    text = head.format(0, 9, 1, 0) + head.format(1, 10, 1, 1) + "...\n" + head.format(31, 77, 4, 7)
    columns = "time   algbw   busbw #wrong     " * 2
    text += f"#       size         count      type   redop    root     {columns}\n"
    text += "  1073741824  2097152  float  sum  -1   7064.9  151.98  294.46  0   7111.6  150.99  292.54  0\n"
    (row, *_) = read_results(text, "c.txt").observations
    assert (row.settings["hosts"], row.settings["ranks"], row.scenario) == (4, 32, "all_reduce")
