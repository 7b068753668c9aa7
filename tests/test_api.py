"""What the package offers to Python programs, beyond what the command line shows."""

from __future__ import annotations

import errno
import importlib
import json
import os
import pkgutil
import re
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest

import lanewise
from lanewise import api, files
from lanewise.errors import InputError, UnknownName
from lanewise.signal_deferral import SignalDeferral

RUN = """\
lanewise: 1
study: own
systems: {mine: rack-16gpu}
tables:
  - name: copies
    system: mine
    metric: goodput
    unit: GB/s
    rows:
      - {label: one, scenario: {flows: "gpu0->gpu1"}, published: 25}
"""


def test_the_package_its_help_and_the_reference_name_every_function():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    for name in api.__all__:
        assert name in dir(lanewise)
        assert re.search(rf"\b{name}\b", lanewise.__doc__ or "")
        assert f"### {name}\n" in page


def test_no_module_takes_the_place_of_a_function():
    for module in pkgutil.iter_modules(api.__path__, "lanewise.api."):
        importlib.import_module(module.name)
    assert {name for name in api.__all__ if not callable(getattr(api, name))} == set()


def test_a_system_may_be_named_instead_of_loaded():
    loaded = lanewise.load_system("rack-16gpu")
    flows = "gpu0->gpu4"
    assert lanewise.predict("rack-16gpu", flows).total == lanewise.predict(loaded, flows).total
    assert lanewise.route("rack-16gpu", "gpu0", "gpu4").nodes == lanewise.route(loaded, "gpu0", "gpu4").nodes
    assert lanewise.matrix("rack-16gpu", ["gpu0", "gpu1"]).cells == lanewise.matrix(loaded, ["gpu0", "gpu1"]).cells
    with pytest.raises(UnknownName, match="rack-17gpu"):
        lanewise.peers("rack-17gpu")


def test_a_system_shows_itself_on_one_short_line():
    assert re.fullmatch(
        r"<System composable-server-gen4 path=4 gpus=4: \d+ devices, \d+ links>",
        repr(lanewise.load_system("composable-server-gen4", {"path": 4})),
    )


@pytest.mark.parametrize(("flows", "cause"), [("gpu0->gpu1 1 GiB", "has a size"), ("gpu0->gpu1 @10 ms", "no size")])
def test_rates_of_finite_transfers_are_refused(flows, cause):
    with pytest.raises(InputError, match=cause) as caught:
        lanewise.predict("rack-16gpu", flows)
    assert caught.value.hint


def test_a_latency_has_no_sum_of_both_ways():
    with pytest.raises(InputError, match="one way"):
        lanewise.matrix("rack-16gpu", metric="latency", both_ways=True)


def test_a_drawing_with_and_without_flows_is_svg():
    assert lanewise.draw("rack-16gpu").startswith("<svg")
    assert "gpu0" in lanewise.draw("rack-16gpu", "gpu0->gpu4")


def test_doctor_gives_every_piece():
    pieces = lanewise.doctor()
    assert pieces[0].piece == "native core"
    assert pieces[0].found
    assert all(piece.without_it for piece in pieces)


@pytest.mark.skipif(sys.platform != "linux", reason="names libraries of Linux")
def test_doctor_looks_where_measuring_looks(monkeypatch):
    monkeypatch.setenv("LANEWISE_CUDA_DRIVER", "libc.so.6")
    monkeypatch.setenv("LANEWISE_CUFILE", "libno-such-cufile.so")
    found = {piece.piece: piece.found for piece in lanewise.doctor()}
    assert found["CUDA driver"]
    assert not found["cuFile"]


def test_a_new_study_runs_and_its_run_can_be_compared(tmp_path):
    study, system = lanewise.new_study("mine")
    (tmp_path / "mine.yaml").write_text(study)
    (tmp_path / "mine-system.yaml").write_text(system)
    assert lanewise.run_studies([tmp_path / "mine.yaml"]).studies[0].name == "mine"
    with pytest.raises(InputError, match="cannot name a study"):
        lanewise.new_study("a/b")


def test_runs_are_compared_and_judged_from_memory_and_from_files(tmp_path):
    (tmp_path / "own.yaml").write_text(RUN)
    run = lanewise.run_studies([tmp_path / "own.yaml"])
    lanewise.save_run(run, tmp_path / "own.json")
    for one in (run, str(tmp_path / "own.json")):
        assert [pair.difference_pct for pair in lanewise.compare(one, run).pairs] == [0.0]
        assert lanewise.compare_sources(one, "published", "predicted").pairs[0].left.value == 25e9
        assert "| own | 1 | 1 |" in lanewise.study_accuracy(one)
    with pytest.raises(UnknownName, match="source"):
        lanewise.compare_sources(run, "guessed")


def test_writing_follows_a_link_and_keeps_it(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    files.write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["a.txt"]


def test_writing_through_a_fifo_leaves_it_one(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.append(fifo.read_text()), daemon=True)
    reader.start()
    files.write_file(fifo, "text")
    reader.join(timeout=300)
    assert seen == ["text"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(InputError, match="there is no folder") as caught:
        files.write_file(tmp_path / "out" / "a.txt", "text")
    assert "mkdir -p" in caught.value.hint
    assert not (tmp_path / "out").exists()


@pytest.fixture
def interruptible():
    """Ctrl-C is a KeyboardInterrupt, though a shell's job in the background ignores it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, earlier)


def test_a_signal_waits_until_the_result_is_saved(interruptible):
    steps: list[str] = []

    def measure():
        steps.append("measured")
        signal.raise_signal(signal.SIGINT)
        steps.append("not reached")

    def measure_and_save():
        with SignalDeferral() as deferral:
            with pytest.raises(KeyboardInterrupt):
                deferral.interruptible(measure)
            for _ in range(2):  # `timeout` sends it twice
                signal.raise_signal(signal.SIGINT)
            steps.append("saved")

    with pytest.raises(KeyboardInterrupt):
        measure_and_save()
    assert steps == ["measured", "saved"]


def test_a_later_second_signal_does_not_wait(interruptible, monkeypatch):
    monkeypatch.setattr("lanewise.signal_deferral._PATIENCE", -1.0)
    steps: list[str] = []

    def save():
        with SignalDeferral():
            signal.raise_signal(signal.SIGINT)
            steps.append("hangs")
            signal.raise_signal(signal.SIGINT)
            steps.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        save()
    assert steps == ["hangs"]


def test_an_item_that_was_yielded_is_kept_whenever_the_signal_comes(interruptible):
    def source():
        yield 1
        yield 2

    items: list[int] = []
    seen: list[str] = []

    def collect():
        with SignalDeferral() as deferral:
            for item in deferral.collect(source(), items):
                signal.raise_signal(signal.SIGINT)  # acts when the source would run again
                seen.append(f"{item} written")

    with pytest.raises(KeyboardInterrupt):
        collect()
    assert (items, seen) == ([1], ["1 written"])


def test_a_file_is_written_in_a_thread_too(tmp_path):
    thread = threading.Thread(target=files.write_file, args=(tmp_path / "a.txt", "text"))
    thread.start()
    thread.join(timeout=300)
    assert (tmp_path / "a.txt").read_text() == "text"


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        files.write_file(tmp_path / "a.txt", "text")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_name_that_is_no_text_is_written_as_an_escape_and_loses_no_result(tmp_path):
    files.write_file(tmp_path / "a.json", f'"{os.fsdecode(bytes([0xFF]))}"')
    assert json.loads((tmp_path / "a.json").read_text()) == "\udcff"


PEERS = """\
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 600.00  20.00
     1  20.00 600.00
"""


def test_one_file_may_be_named_in_place_of_a_list(tmp_path: Path):
    peers, run, study = tmp_path / "peers.txt", tmp_path / "run.json", tmp_path / "own.yaml"
    peers.write_text(PEERS)
    study.write_text(RUN)
    for ref in (str(peers), peers):
        assert lanewise.check(ref) == lanewise.check([ref])
        assert lanewise.read_results(ref) == lanewise.read_results([ref])
    lanewise.save_run(lanewise.as_checked_run(lanewise.check(peers)), run)
    assert lanewise.check(peers, expect=run) == lanewise.check([peers], expect=[run])
    assert lanewise.run_studies(study, measured=run).studies == lanewise.run_studies([study], measured=[run]).studies


def test_one_name_or_text_may_be_given_in_place_of_a_list(tmp_path: Path):
    parts = tmp_path / "parts.yaml"
    parts.write_text("parts: [{part: own-gpu, kind: gpu, title: Own GPU}]\n")
    assert lanewise.load_catalog(str(parts)).get("own-gpu") == lanewise.load_catalog([parts]).get("own-gpu")
    assert lanewise.accuracy("rtx4090-rome").rows == lanewise.accuracy(["rtx4090-rome"]).rows
    unknown = "l40s service.resnet50.server 10000..100000 QPS"
    one = lanewise.calibrate("composable-server", unknown, "gen4")
    assert one[0].values == lanewise.calibrate(["composable-server"], [unknown], ["gen4"])[0].values
    load = lanewise.predict_load("h200-pair", "15 GB", "2 GB/s", "gpu0", "safetensors")
    assert load.loads == lanewise.predict_load("h200-pair", "15 GB", "2 GB/s", "gpu0", ["safetensors"]).loads
