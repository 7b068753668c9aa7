"""The terminal: the same facts, whole in wide windows, and in narrow ones less but never silently."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from lanewise.perf.flow import Flow
from lanewise.perf.transfers import FinishedTransfer
from lanewise.report.screen import Screen
from lanewise.report.table import render_matrix
from lanewise.report.text.predict import render_timeline
from lanewise.report.text.route import render_classes, render_routes
from lanewise.report.text.run import render_run
from lanewise.results.run import Run
from lanewise.routes.model import Hop, Route, Via
from lanewise.topology.model import Link, LinkKind


def test_a_run_ends_in_one_screen(run: Run) -> None:
    assert render_run(run, screen=Screen(80)) == snapshot("""\
2 studies, 41 rows; 40 predict a published value: rms residual 2.6 %, 38 within
5 %, 1 beyond 10 %

study              rows  compared  rms %  worst %  conclusions that hold
composable-server    29        28    2.8    +12.5  1 of 3, 1 not evaluated
  Path length costs nothing until the shared link saturates: up to 3 GPUs on
  Gen4 every path delivers what the box without switches does; with 4 GPUs the
  longest path loses a fifth.
expansion-chassis    12        12    2.2     +3.0  1 of 1
  Host-device copies follow the host's PCIe generation, peer copies the
  chassis'.

does not hold in these rows
  composable-server: At saturation path 4 is about 20 % below path 3

1 row off by more than 10 %, the worst first
 off by  study              row
+12.5 %  composable-server  CDI v1.0 path 4, ResNet50 Server, gpus 4, path 4
not shown in 80 columns: table, metric, published, predicted, unit\
""")


def test_all_rows_are_shown_where_asked(run: Run) -> None:
    text = render_run(run, rows=True)
    assert "does not hold  At saturation path 4 is about 20 % below path 3" in text
    assert "511,458" not in text.split("319,661  *")[0].splitlines()[-1]
    assert "319,661  *" in text


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    lines = render_run(run, rows=True, screen=Screen(width)).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line.endswith(" ") for line in lines)


def test_dropped_columns_are_named(run: Run) -> None:
    assert "not shown in 60 columns:" in render_run(run, rows=True, screen=Screen(60))
    assert "not shown" not in render_run(run, rows=True)


def test_routes_show_class_nodes_and_what_forbids_them() -> None:
    hops = (Hop(Link("sw0", "gpu0", LinkKind.PCIE), down=False), Hop(Link("sw0", "gpu1", LinkKind.PCIE), down=True))
    good = Route("gpu0", "gpu1", Via.PCIE, "PIX", hops)
    bad = Route("gpu0", "gpu9", Via.PCIE, "SYS", (), allowed=False, reason="not peers")
    assert render_routes([good, bad]) == snapshot("""\
   class  via   route              allowed
1  PIX    pcie  gpu0 - sw0 - gpu1  yes
2  SYS    pcie  gpu0               no: not peers\
""")


def test_the_class_matrix_reads_like_nvidia_smi() -> None:
    text = render_classes(
        ["gpu0", "gpu1", "mlx5_0"],
        [["", "NV12", "SYS"], ["NV12", "", ""], ["SYS", "", ""]],
        {"NUMA": ["0", "0", "1"]},
    )
    assert text == snapshot("""\
           gpu0    gpu1  mlx5_0  NUMA
gpu0          X    NV12     SYS     0
gpu1       NV12       X      --     0
mlx5_0      SYS      --       X     1

X    self
NV#  that many bonded NVLinks
SYS  between NUMA nodes, over the inter-socket link
--   no route, or none allowed\
""")


def test_a_wide_matrix_breaks_into_blocks_and_loses_nothing() -> None:
    names = [f"gpu{i}" for i in range(16)]
    values = [[float(10 * i + j) for j in range(16)] for i in range(16)]
    text = render_matrix(names, names, values, "GB/s", Screen(60))
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "165.0" in text
    assert text.count("gpu15") == 2 + sum("gpu0 " in line[:6] for line in text.splitlines()) - 1


def test_a_timeline_puts_transfers_on_one_axis() -> None:
    def transfer(source: str, start: float, finish: float) -> FinishedTransfer:
        return FinishedTransfer(Flow(source, "gpu1", size=1e7), start, finish, 0.0, "", "physics", (), ())

    text = render_timeline([transfer("gpu0", 0.0, 1e-3), transfer("gpu2", 1e-3, 2e-3)], Screen(60))
    assert text == snapshot("""\
gpu0->gpu1  ████████████████████████
gpu2->gpu1                          ████████████████████████
            0 s                                         2 ms\
""")
