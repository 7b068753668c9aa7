"""The terminal: the same facts, whole in wide windows, and in narrow ones less but never silently."""

from __future__ import annotations

import io

import pytest

from lanewise.report.terminal import Column, Sheet, make_console, print_sheet
from lanewise.report.text import run as shown
from lanewise.report.text.matrices import Transfer, show_bandwidths, show_classes, show_timeline
from lanewise.results.compare import compare_systems
from lanewise.results.observation import Observation, Source
from lanewise.results.run import Run
from lanewise.routes.model import Hop, Route, Via
from lanewise.topology.model import Link, LinkKind


def printed(show: object, *args: object, width: int = 140, **more: object) -> str:
    out = io.StringIO()
    show(*args, console=make_console(out, width), **more)  # type: ignore[operator]
    return out.getvalue()


def test_a_run_prints_finding_conclusions_and_rows(run: Run) -> None:
    text = printed(shown.show_run, run, rows=True)
    assert text.startswith("41 rows in 2 studies")
    assert "does not    At saturation path 4 is about 20 % below path 3" in text
    assert "+12.5" in text
    assert "511,458" not in text.split("319,661 *")[0].splitlines()[-1]
    assert "319,661 *" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    text = printed(shown.show_run, run, width=width, rows=True)
    assert max(len(line) for line in text.splitlines()) <= max(width, 58)


def test_dropped_columns_are_named(run: Run) -> None:
    assert "left out at 60 columns:" in printed(shown.show_run, run, width=60, rows=True)
    assert "left out" not in printed(shown.show_run, run, width=200, rows=True)


def test_what_is_piped_has_no_colour_codes(run: Run) -> None:
    assert "\x1b" not in printed(shown.show_run, run, rows=True)


def test_no_color_is_honoured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Tty()
    sheet = Sheet([Column("a")])
    sheet.add(("x", "red"))
    print_sheet(make_console(out, 80), sheet)
    assert "\x1b[31m" not in out.getvalue()


def test_square_brackets_in_names_are_not_markup() -> None:
    row = Observation("s", "gpu[0]->gpu[1]", "rate", 1.5, "GB/s", Source.PREDICTED, limit="[red]link[/red]")
    text = printed(shown.show_predictions, [row], {"gpu[0]->gpu[1]": "PIX"})
    assert "gpu[0]->gpu[1]" in text
    assert "[red]link[/red]" in text
    assert "PIX" in text


def test_a_prediction_that_is_unknown_says_why() -> None:
    row = Observation("s", "f", "rate", None, "GB/s", Source.PREDICTED)
    assert "no reason given" in printed(shown.show_predictions, [row])


def test_routes_show_class_nodes_and_what_forbids_them() -> None:
    up = Link("sw0", "gpu0", LinkKind.PCIE)
    down = Link("sw0", "gpu1", LinkKind.PCIE)
    hops = (Hop(up, False), Hop(down, True))
    good = Route("gpu0", "gpu1", Via.PCIE, "PIX", hops)
    bad = Route("gpu0", "gpu9", Via.PCIE, "SYS", (), allowed=False, why="not peers")
    text = printed(shown.show_routes, [good, bad], [10.6, None])
    assert "gpu0 - sw0 - gpu1" in text
    assert "10.60" in text
    assert "no: not peers" in text


def test_two_systems_stand_side_by_side(run: Run) -> None:
    text = printed(shown.show_comparison, compare_systems(run, "xeon-5120t", "epyc-7452"), width=160)
    assert "xeon-5120t" in text
    assert "+95.3" in text


def test_the_class_matrix_reads_like_nvidia_smi() -> None:
    text = printed(
        show_classes,
        ["gpu0", "gpu1", "mlx5_0"],
        [["", "NV12", "SYS"], ["NV12", "", ""], ["SYS", "", ""]],
        {"NUMA": ["0", "0", "1"]},
    )
    lines = text.splitlines()
    assert lines[0].split() == ["gpu0", "gpu1", "mlx5_0", "NUMA"]
    assert lines[1].split() == ["gpu0", "X", "NV12", "SYS", "0"]
    assert lines[2].split() == ["gpu1", "NV12", "X", "--", "0"]
    assert "NV#" in text


def test_a_wide_matrix_breaks_into_blocks_and_loses_nothing() -> None:
    names = [f"gpu{i}" for i in range(16)]
    text = printed(show_bandwidths, names, [[float(10 * i + j) for j in range(16)] for i in range(16)], width=60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "165.0" in text
    assert text.count("gpu15") == 2 + sum("gpu0 " in line[:6] for line in text.splitlines()) - 1


def test_a_timeline_puts_transfers_on_one_axis() -> None:
    text = printed(show_timeline, [Transfer("a", 0.0, 1e-3, 1e7), Transfer("b", 1e-3, 2e-3, None, "upi")], width=80)
    first, second, axis = text.splitlines()
    assert first.index("█") < second.index("█")
    assert "10.00 GB/s" in first
    assert second.endswith("upi")
    assert axis.split() == ["0", "s", "2", "ms"]
