"""No control character of a file reaches the terminal, and none breaks a page, a drawing or a description."""

from __future__ import annotations

import io
import json
import os
import xml.etree.ElementTree as ElementTree

import pytest

import lanewise
from lanewise.cli import terminal
from lanewise.report.draw import draw
from lanewise.report.html import report_html
from lanewise.results.codec import run_to_json
from lanewise.results.observation import Observation, Source
from lanewise.results.outline import outline
from lanewise.results.run import Run

# Of C0, DEL, C1, line ends of other systems, bidirectional controls, halves of a letter.
HOSTILE = [*map(chr, range(9)), "\v", "\f", "\r", "\x0e", "\x1b", "\x1f", "\x7f", "\x85", "\x9b", "\x9d", "\u2028"]
HOSTILE += ["\u061c", "\u200e", "\u202e", "\u2066", "\u2069", "\udcff", "\ud800"]
NAME = "a" + "".join(HOSTILE) + "\x1b[31mred\x1b[0m\x1b]0;title\x07z"


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def hidden(text: str) -> list[str]:
    """The control characters in a text."""
    return [letter for letter in text if letter in HOSTILE]


def run() -> Run:
    row = Observation(NAME, "gpu0->gpu1", "goodput", 1e9, "GB/s", Source.MEASURED, how={"tool": NAME}, note=NAME)
    return Run((), "", "1", rows=(row,))


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(run_to_json(run()))))
    return path


@pytest.mark.parametrize("colour", ["never", "always"])
@pytest.mark.parametrize("verb", [("compare",), ("check", "--from"), ("report",)])
def test_names_of_a_run_reach_no_stream_with_their_controls(lanewise, run_file, verb, colour):
    done = lanewise(*verb, run_file, *([run_file] if verb[0] == "compare" else []), "--color", colour)
    text = done.stdout + done.stderr
    own = text.replace("\033[0m", "").replace("\033[1m", "").replace("\033[2m", "").replace("\033[31m", "")
    own = own.replace("\033[1;31m", "").replace("\033[32m", "").replace("\033[1;32m", "").replace("\033[33m", "")
    assert hidden(own) == []
    assert "\033[31mred" not in text
    assert "Traceback" not in text


def test_an_error_that_quotes_a_file_is_two_plain_lines(lanewise, tmp_path):
    (tmp_path / "s.yaml").write_text(json.dumps({"lanewise": 1, "system": "x\nerror: \x1b[2J\x9b", "\u202e": 1}))
    (tmp_path / "p.txt").write_text("P2P=Enabled Latency \x1b]0;x\x07Matrix (us)\n 0 1\n0 \x1b[2J\x9b 1\n")
    for arguments in (("predict", "s.yaml"), ("check", "--from", "p.txt"), ("predict", "\x1b[2J\x9b.yaml")):
        done = lanewise(*arguments)
        assert done.returncode == 2
        assert hidden(done.stderr.replace("\n", "")) == []
        assert done.stderr.count("\nerror:") == 0


def test_what_goes_to_a_terminal_keeps_its_own_colours_alone(monkeypatch):
    from lanewise.report.screen import Screen

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stdout, stderr = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(terminal, "_silenced", [])
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((500, 24)))
    terminal.print_text(lambda screen: f"{screen.style(NAME, 'bold')} {NAME}\tx\ny")
    text = stdout.getvalue()
    assert text.startswith("\033[1ma")
    assert text.count("\033") == 2
    assert text.endswith("\tx\ny\n")
    terminal.note(NAME)
    terminal.status(NAME)
    terminal.print_error(f"error: {NAME}")
    assert stderr.getvalue().replace("\r\033[K", "").count("\033") == 3
    assert Screen(colour=True).style("x", "red") == "\033[31mx\033[0m"


def test_json_on_the_terminal_escapes_what_it_does_not_print(capsys):
    terminal.show("-", lambda: {"name": NAME}, lambda screen: "")
    text = capsys.readouterr().out
    assert hidden(text) == []
    assert json.loads(text) == {"name": NAME}


def test_a_page_is_free_of_them(run_file):
    page = report_html(run(), title=NAME)
    assert hidden(page.replace("\r", "")) == []
    page.encode()


def test_a_drawing_is_xml():
    from dataclasses import replace

    system = lanewise.load_system("composable-server-gen4")
    svg = draw(outline(replace(system, name=NAME)))
    assert hidden(svg) == []
    ElementTree.fromstring(svg)


def test_a_name_in_a_dump_writes_no_line_of_a_description(tmp_path):
    gpu = "type='PCIDev' pci_busid='0000:01:00.0' pci_type='0302 [10de:2330]'"
    name = "<info name='PCIDevice' value='a&#10;settings: {x: 1}&#9;&#133;&#155;b'/>"
    path = tmp_path / "m.xml"
    path.write_text(f"<topology><object type='Machine'><object {gpu}>{name}</object></object></topology>")
    text = lanewise.discover(path).text()
    assert "\nsettings" not in text
    assert hidden(text) == []
    (tmp_path / "m.yaml").write_text(text)
    assert lanewise.load_system(tmp_path / "m.yaml").devices
