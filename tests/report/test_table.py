"""Tables on the terminal: they fit, words stay whole, and what is left out is named."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lanewise.report.screen import Screen, colours
from lanewise.report.table import Column, Footnotes, Table, TableCell, cell_text, number_columns, render_table

FLOWS = Table(
    [
        Column("flow", wrap=True),
        *number_columns("rate", unit="GB/s"),
        Column("limit", wrap=True),
        Column("basis", drop_order=2),
    ],
    [
        ("gpu0->gpu1", "26.2", "read window of hop1", "calibrated"),
        ("host0->gpu4", TableCell("7.5", "far"), "sw0 to gpu4", "physics"),
    ],
)


def test_a_pipe_gets_every_column_on_one_line_a_row() -> None:
    assert render_table(FLOWS) == snapshot("""\
             rate
flow         GB/s  limit                basis
gpu0->gpu1   26.2  read window of hop1  calibrated
host0->gpu4   7.5  sw0 to gpu4          physics\
""")


def test_a_narrow_terminal_drops_columns_and_names_them() -> None:
    assert render_table(FLOWS, Screen(40)) == snapshot("""\
             rate
flow         GB/s  limit
gpu0->gpu1   26.2  read window of hop1
host0->gpu4   7.5  sw0 to gpu4
not shown in 40 columns: basis\
""")


def test_texts_wrap_between_words() -> None:
    assert render_table(FLOWS, Screen(30)) == snapshot("""\
             rate
flow         GB/s  limit
gpu0->gpu1   26.2  read window
                   of hop1
host0->gpu4   7.5  sw0 to gpu4
not shown in 30 columns: basis\
""")


def test_a_word_too_long_for_its_column_breaks_after_punctuation() -> None:
    table = Table([Column("flow", wrap=True)], [("host0->gpu0,host0->gpu1,host0->gpu2",)])
    assert render_table(table, Screen(20)) == snapshot("""\
flow
host0->gpu0,host0->
gpu1,host0->gpu2\
""")


def test_an_empty_column_is_left_out() -> None:
    assert render_table(Table([Column("a"), Column("note")], [("x", "")])) == "a\nx"


def test_colour_marks_what_is_far_off_and_no_color_means_no_codes() -> None:
    assert "\033[1;31m7.5\033[0m" in render_table(FLOWS, Screen(80, colour=True))
    assert "\033" not in render_table(FLOWS, Screen(80))


@given(
    st.lists(st.tuples(st.text("abc ->,_", max_size=60), st.text("0123.", max_size=8), st.text("xyz ", max_size=90)),
             min_size=1, max_size=5),
    st.integers(30, 200),
)  # fmt: skip
def test_any_table_fits_loses_no_word_and_ends_no_line_in_a_blank(rows: list[tuple[str, ...]], width: int) -> None:
    table = Table([Column("name", wrap=True), Column("n", number=True), Column("note", wrap=True)], list(rows))
    lines = render_table(table, Screen(width)).split("\n")
    assert max(map(len, lines)) <= width
    assert not any(line.endswith(" ") for line in lines)
    written = "".join("".join(lines).split())
    for row in rows:
        for cell in row:
            assert all(letter in written for letter in "".join(cell_text(cell).split()))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours(Terminal())
    assert not colours(io.StringIO())


def test_a_pipe_has_no_width_unless_columns_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Screen.of(io.StringIO()) == Screen(None)
    monkeypatch.setenv("COLUMNS", "72")
    assert Screen.of(Terminal()).width == 72


def test_footnotes_number_a_text_once_and_hang() -> None:
    notes = Footnotes()
    assert (notes.mark(["a long text of several words", "b"]), notes.mark(["b"])) == ("[1] [2]", "[2]")
    assert notes.render(Screen(24)) == snapshot("""\
[1] a long text of
    several words
[2] b\
""")


def test_facts_hang_below_their_text() -> None:
    facts = [("limit", "read window of hop1 at 512 B requests"), ("basis", "physics")]
    assert Screen(40).facts(facts, 2) == snapshot("""\
  limit  read window of hop1 at 512 B
         requests
  basis  physics\
""")
