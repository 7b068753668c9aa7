"""Outputs of tools in logs, launchers' tags, terminals and pages give the rows that they give alone."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.errors import FormatError
from lanewise.readers.kinds import read_results
from lanewise.readers.wrappings import bared, unwrapped

DATA = Path(__file__).parent / "data"
OUTPUTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.txt"))} | {
    "dd": "$ dd if=/dev/nvme0n1 of=/dev/null bs=1M count=1000\n1048576000 bytes (1.0 GB) copied, 0.5 s, 2.1 GB/s\n"
    "1000+0 records in\n1000+0 records out\n",
    "qperf": "tcp_bw:\n    bw  =  1.17 GB/sec\ntcp_lat:\n    latency  =  23.4 us\n",
    "STREAM": "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
    "Copy:          150000.0     0.02     0.01     0.03\nTriad:         160000.0     0.02     0.01     0.03\n",
}  # fmt: skip
# What comes before each line.
TAGS = {
    "quote": "> ", "mail": ">> ", "patch": "+", "pane": "\u2502 ", "no width": "\u200b", "title": "\x1b]0;a@b: ~\x07",
    "colour": "\x1b[0;32m", "caret": "^[[0;32m", "erased": "\x1b[K",
    "container": "2026-11-02T10:00:00.000000001Z stdout F ", "CI": "2026-11-02T10:00:00.0000000Z ",
    "pod": "[pod/launcher-x7k2p/launcher] ", "compose": "worker-1  | ", "srun": "0: ", "srun aligned": " 12: ",
    "mpirun": "[1,0]<stdout>:", "prterun": "[prterun-node1-123@1,0]<stdout>: ", "hydra": "[0] ", "pdsh": "node1: ",
    "pdsh domain": "gpu-01.cluster.local: ", "torchrun": "[default0]:", "ray": "(Worker pid=1234, ip=10.0.0.1) ",
    "journal": "Nov 02 10:00:00 node1 bench[1234]: ", "ts": "Nov 02 10:00:00 ", "dmesg": "[Mon Nov  2 10:00:00 2026] ",
    "clock": "[10:00:00] ", "logger": "2026-11-02 10:00:00,123 - INFO - ", "root": "INFO:root:", "level": "[INFO] ",
}  # fmt: skip
PAGES = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CRCRLF": lambda text: text.replace("\n", "\r\r\n"),
    "blanks that do not break": lambda text: text.replace(" ", "\u00a0"),
    "blanks of other widths": lambda text: text.replace("  ", "\u202f\u2003"),
    "tabs": lambda text: text.expandtabs(),
    "entities": lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    "HTML": lambda text: f"<pre><code>{text}</code></pre>",
    "fence": lambda text: f"```text\n{text}\n```\n",
    "Jira": lambda text: f"{{noformat}}\n{text}\n{{noformat}}",
    "Markdown": lambda text: text.replace("_", "\\_").replace("#", "\\#"),
    "prompts": lambda text: f"a@b:~/x$ ./bench\n{text}\na@b:~/x$ ",
    "indented": lambda text: "".join(f"    {line}\n" for line in text.split("\n")),
    "numbered": lambda text: "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(text.split("\n"), 1)),
    "JSON": lambda text: json.dumps({"stdout": text}),
    "Ansible": lambda text: json.dumps({"stdout_lines": text.split("\n")}, indent=4),
    "same": lambda text: text,
}
# Lines alike are read by what is above them: with a blank line between each there is no telling what belongs together.
DOUBLED_OTHERWISE = ("osu-bw",)


def tagged(text: str, tag: str) -> str:
    return "\n".join(tag + line for line in text.split("\n"))


@settings(deadline=None)
@given(st.sampled_from(sorted(OUTPUTS)), st.sampled_from(sorted(TAGS)), st.sampled_from(sorted(PAGES)))
def test_what_is_around_an_output_changes_no_row(name, tag, page):
    text = OUTPUTS[name]
    wrapped = PAGES[page](tagged(text, TAGS[tag])) if page in ("CRLF", "fence", "HTML", "entities", "same") else None
    for form in filter(None, (wrapped, PAGES[page](text), tagged(text, TAGS[tag]))):
        assert read_results(form, name).observations == read_results(text, name).observations


@pytest.mark.parametrize("name", sorted(set(OUTPUTS) - set(DOUBLED_OTHERWISE)))
def test_a_blank_line_after_each_changes_no_row(name):
    doubled = OUTPUTS[name].replace("\n", "\n\n")
    assert read_results(doubled, name).observations == read_results(OUTPUTS[name], name).observations


@pytest.mark.parametrize("tag", sorted(TAGS))
@pytest.mark.parametrize("name", ["nvbandwidth-0.8", "nccl-tests", "fio-3", "ib_write_bw"])
def test_each_tag_comes_off_each_of_these(name, tag):
    assert read_results(tagged(OUTPUTS[name], TAGS[tag]), name).observations == read_results(
        OUTPUTS[name], name
    ).observations


def test_labels_enumerations_and_first_figures_are_no_tags():
    same = ["H2D: 12.4 GB/s", "H2D: 12.5 GB/s", "H2D: 12.6 GB/s", "H2D: 12.5 GB/s", "H2D: 12.4 GB/s"]
    assert bared(same) == same
    assert list(unwrapped(["0: NVIDIA A100", "1: NVIDIA A100", "2: NVIDIA A100"])) == []
    assert bared([f"Nov 02 10:00:0{n} 4096 1 0.29" for n in range(3)]) == ["4096 1 0.29"] * 3


def test_a_note_says_where_lines_are_not_the_files():
    found = read_results(PAGES["JSON"](OUTPUTS["nccl-tests"]), "run.json")
    assert "run.json: line numbers are those of the text without what is around it" in found.notes


def test_a_wrapped_text_of_no_tool_stays_refused():
    with pytest.raises(FormatError, match="no results of a tool"):
        read_results(tagged("hello\nworld\nand more\nof it\nstill", "0: "), "x")
