"""Every kind of error: exit code 2, nothing on stdout, and two lines: what is wrong where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

SYSTEM = """\
lanewise: 1
system: small
devices:
  cpu0: {cpu: xeon-gold-6454s}
  sw0: {switch: pex88096}
  "gpu[0-1]": {gpu: a100-pcie-40gb}
links:
  - {from: cpu0, to: sw0, pcie: gen4 x16}
  - {from: sw0, to: "gpu[0-1]", pcie: gen4 x16}
"""


def broken(tmp_path: Path, old: str, new: str) -> str:
    assert old in SYSTEM
    (tmp_path / "small.yaml").write_text(SYSTEM.replace(old, new))
    return "small.yaml"


def complaint(lanewise, *arguments: str) -> str:
    done = lanewise(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    return done.stderr


def test_an_unknown_part_names_its_line_and_the_nearest_parts(lanewise, tmp_path):
    path = broken(tmp_path, "a100-pcie-40gb", "a100-pcie-4gb")
    assert complaint(lanewise, "system", "show", path) == snapshot("""\
error: small.yaml:6: unknown gpu part 'a100-pcie-4gb'
hint:  did you mean a100-pcie-40gb or a100-pcie-80gb? If it is another part: null, or lanewise parts template gpu
""")


def test_a_link_to_nowhere(lanewise, tmp_path):
    path = broken(tmp_path, "{from: cpu0, to: sw0,", "{from: cpu0, to: sw1,")
    assert complaint(lanewise, "system", "show", path) == snapshot("""\
error: small.yaml:8: unknown device 'sw1'
hint:  did you mean sw0?
""")


def test_a_cycle_of_pcie_links(lanewise, tmp_path):
    ring = "  - {from: sw0, to: sw1, pcie: gen4 x8}\n  - {from: sw1, to: sw0, pcie: gen4 x8}\n"
    (tmp_path / "small.yaml").write_text(SYSTEM.replace("  sw0:", "  sw1: {switch: pex88096}\n  sw0:") + ring)
    assert complaint(lanewise, "system", "show", "small.yaml") == snapshot("""\
error: small.yaml:12: PCIe links run in a circle: sw1 - sw0 - sw1
hint:  write a switch for each uplink, and if 'sw0' joins them inside: fabric: gen5 x16, rate: 252 GB/s
""")


def test_zero_lanes(lanewise, tmp_path):
    path = broken(tmp_path, "{from: cpu0, to: sw0, pcie: gen4 x16}", "{from: cpu0, to: sw0, pcie: gen4 x0}")
    assert complaint(lanewise, "system", "show", path) == snapshot("""\
error: small.yaml:8: a PCIe link cannot have 0 lanes
hint:  lanes are 1, 2, 4, 8, 16
""")


def test_a_policy_that_contradicts_itself(lanewise, tmp_path):
    (tmp_path / "small.yaml").write_text(SYSTEM + "policies: {peer_scope: none, cross_domain_p2p: true}\n")
    assert complaint(lanewise, "system", "show", "small.yaml") == snapshot("""\
error: small.yaml:10: unknown key 'peer_scope' in policies
hint:  did you mean peers?
""")


def test_a_wrong_key_in_a_system(lanewise, tmp_path):
    path = broken(tmp_path, "links:", "link:")
    assert complaint(lanewise, "system", "show", path) == snapshot("""\
error: small.yaml:7: unknown key 'link' in the description
hint:  did you mean links?
""")


def test_an_empty_study(lanewise, tmp_path):
    (tmp_path / "empty.yaml").write_text("")
    assert complaint(lanewise, "study", "run", "empty.yaml") == snapshot("""\
error: empty.yaml: empty study
hint:  start one with: lanewise study new NAME
""")


def test_a_pair_that_no_way_joins(lanewise):
    done = complaint(lanewise, "route", "composable-server-two-hosts", "host0", "gpu5")
    assert done == snapshot("""\
error: composable-server-two-hosts.yaml:18: gpu5 is bound to no host
hint:  attach it: lanewise system attach composable-server-two-hosts gpu5 HOST
""")


def test_a_truncated_run(lanewise, tmp_path):
    (tmp_path / "run.json").write_text('{"schema": "lanewise.run/1", "studies": [')
    assert complaint(lanewise, "report", "run.json") == snapshot("""\
error: run.json:1: the file ends in the middle of a run
hint:  the write was cut short; write it again with the command that made it
""")


def test_a_run_that_is_something_else(lanewise, tmp_path):
    (tmp_path / "run.json").write_text('{"name": "other"}\n')
    assert complaint(lanewise, "compare", "run.json", "run.json") == snapshot("""\
error: run.json: not a run that this version reads: it names no schema
hint:  give a file written by lanewise, with "schema": "lanewise.run/2"
""")


def test_an_unknown_verb(lanewise):
    assert complaint(lanewise, "predicct") == snapshot("""\
error: unknown verb 'predicct'
hint:  did you mean predict or director? see lanewise --help
""")


def test_an_unknown_option(lanewise):
    stderr = complaint(lanewise, "doctor", "--colour")
    assert "no such option: --colour" in stderr.lower()
    assert stderr.endswith("hint:  see lanewise doctor --help\n")


def test_a_missing_argument(lanewise):
    assert complaint(lanewise, "route") == snapshot("""\
error: missing argument 'SYSTEM'
hint:  write lanewise route SYSTEM [FROM] [TO]; see lanewise route --help
""")


def test_a_missing_file(lanewise):
    assert complaint(lanewise, "predict", "nowhere.yaml", "--flows", "a->b") == snapshot("""\
error: nowhere.yaml: cannot be read: No such file or directory
hint:  check the path
""")


def test_a_folder_where_a_file_is_needed(lanewise, tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    assert complaint(lanewise, "system", "show", "folder.yaml") == snapshot("""\
error: folder.yaml: cannot be read: Is a directory
hint:  check the path
""")


def test_a_folder_where_a_report_should_go_is_refused_before_the_study_runs(lanewise, tmp_path):
    (tmp_path / "out").mkdir()
    assert complaint(lanewise, "study", "run", "all", "-o", "out") == snapshot("""\
error: out: is a folder, not a file
hint:  for example out/report.html
""")


def test_a_binary_file(lanewise, tmp_path):
    (tmp_path / "small.yaml").write_bytes(b"\xff\xfe\x00lanewise")
    assert complaint(lanewise, "system", "show", "small.yaml") == snapshot("""\
error: small.yaml: not a text file (UTF-8)
hint:  byte 0 is not text
""")


def test_yaml_that_is_none(lanewise, tmp_path):
    (tmp_path / "small.yaml").write_text("lanewise: 1\nsystem: [\n")
    assert complaint(lanewise, "system", "show", "small.yaml") == snapshot("""\
error: small.yaml:2: not YAML: did not find expected node content
hint:  the file ends too early, as if cut off: close what is open, or get the whole file
""")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("predict", "rack-16gpu", "--no-p2p"), "nothing to predict with --no-p2p"),
        (("predict", "rack-16gpu", "--flows", "gpu0"), "'gpu0' is not a flow"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu99"), "unknown device of rack-16gpu 'gpu99'"),
        (
            ("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--matrix", "goodput"),
            "--flows and --matrix exclude each other",
        ),
        (("predict", "rack-16gpu", "--matrix", "speed"), "unknown metric 'speed'"),
        (("predict", "rack-16gpu", "--service", "resnet51"), "unknown workload 'resnet51'"),
        (("predict", "rack-16gpu", "--service", "resnet50", "--mode", "fast"), "unknown --mode 'fast'"),
        (
            ("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--set", "path"),
            "'path' does not set a parameter",
        ),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--set", "path=x"), "'x' is not a whole number"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--parts", "no.yaml"), "no.yaml: cannot be read"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1 @10 ms"), "gpu0->gpu1 has a start but no size"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--both-ways"), "--both-ways has no effect with --flows"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--host", "host0"), "--host has no effect with --flows"),
        (("predict", "rack-16gpu", "--flows", "gpu0->gpu1", "--mode", "server"), "--mode has no effect with --flows"),
        (("predict", "rack-16gpu", "--matrix", "goodput", "--division", "closed"), "--division has no effect with"),
        (("predict", "rack-16gpu", "--service", "resnet50", "--devices", "gpu0"), "--devices has no effect with"),
        (("predict", "rack-16gpu", "--service", "resnet50", "--no-p2p"), "--no-p2p has no effect with --service"),
        (("predict", "rack-16gpu", "--matrix", "latency", "--both-ways"), "a latency is one way"),
        (("system", "draw", "rack-16gpu", "--flows", "gpu0->gpu1 1 GiB"), "gpu0->gpu1 has a size"),
        (("system", "draw", "rack-16gpu", "-o", "no/such.svg"), "no/such.svg: there is no folder"),
        (("study", "run", "all", "-o", "no/such.html"), "no/such.html: there is no folder"),
        (("system", "attach", "rack-16gpu", "gpu0", "host0"), "'gpu0' is already bound to host0"),
        (("route", "rack-16gpu", "gpu0"), "a route from gpu0 needs an end"),
        (("route", "rack-16"), "unknown system 'rack-16'"),
        (("study", "run", "composable"), "unknown study 'composable'"),
        (("study", "new", "a/b"), "'a/b' cannot name a study"),
        (("parts", "show", "l41"), "unknown part 'l41'"),
        (("parts", "list", "--kind", "fpga"), "unknown kind of part 'fpga'"),
        (("compare", "a.json"), "nothing to compare with"),
        (("calibrate", "composable-server", "--fit", "l40s"), "'l40s' is not an unknown to fit"),
        (("system", "detach", "rack-16gpu", "sw0"), "'sw0' is a switch and cannot be detached"),
    ],
)
def test_bad_input_says_its_cause_and_a_hint(lanewise, arguments, cause):
    stderr = complaint(lanewise, *arguments)
    assert cause in stderr
    assert "\nhint:  " in stderr


def test_a_device_bound_to_no_host_names_the_file_to_attach_it_in(lanewise, tmp_path):
    path = broken(tmp_path, "{gpu: a100-pcie-40gb}", "{gpu: a100-pcie-40gb, host: null}")
    assert complaint(lanewise, "route", path, "host0", "gpu1") == snapshot("""\
error: small.yaml:6: gpu1 is bound to no host
hint:  attach it: lanewise system attach small.yaml gpu1 HOST
""")


def test_a_study_whose_system_is_missing_says_where_the_study_names_it(lanewise, tmp_path):
    (tmp_path / "s.yaml").write_text("""\
lanewise: 1
study: s
systems:
  mine: nope.yaml
tables:
  - name: copies
    system: mine
    metric: goodput
    unit: GB/s
    rows:
      - {label: one, scenario: {flows: "gpu0->gpu1"}, published: 25}
""")
    done = lanewise("study", "run", "s.yaml")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [
        "error: s.yaml:4: nope.yaml: cannot be read: No such file or directory",
        "hint:  check the path",
    ]


def test_a_part_file_is_not_overwritten(lanewise, tmp_path):
    (tmp_path / "mine.yaml").write_text("parts: []\n")
    assert complaint(lanewise, "parts", "template", "nic", "-o", "mine.yaml") == snapshot("""\
error: mine.yaml: exists already and is not overwritten
hint:  choose another name
""")
    assert (tmp_path / "mine.yaml").read_text() == "parts: []\n"
