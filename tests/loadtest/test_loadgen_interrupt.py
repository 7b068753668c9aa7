"""A real SIGINT to a real process while LoadGen runs: KeyboardInterrupt, at once, and the logs stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_binary import BINARY, interrupted

from lanewise.loadtest.detail_log import parse

CODE = """
import subprocess
import sys
from pathlib import Path
from lanewise import _native
from lanewise.loadtest.loadgen import LoadGenRunner
from lanewise.loadtest.load_run import LoadSpec
told = []
def tick(issued, answered, late):
    if issued and not told:
        told.append(1)
        print("running", file=sys.stderr, flush=True)
runner = LoadGenRunner(_native.LawSystem(0.005), Path("logs"), tick=tick)
try:
    runner.run(LoadSpec("SCENARIO", qps=RATE, seconds=1000.0, queries=10, bound=1000.0))
except KeyboardInterrupt:
    runner.tick = None
    found = runner.run(LoadSpec(qps=100.0, seconds=0.5, queries=10, bound=100.0))
    print("interrupted, then", found.queries > 10)
"""


@pytest.mark.parametrize(("scenario", "rate"), [("Server", 50), ("Server", 400), ("Offline", 200), ("SingleStream", 9)])
def test_ctrl_c_ends_the_run_and_keeps_its_logs(loadgen, tmp_path, scenario, rate):
    code = CODE.replace("SCENARIO", scenario).replace("RATE", str(rate))
    done = interrupted([sys.executable, "-c", code], None, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted, then True\n", "running\n")
    (folder,) = (tmp_path / "logs").glob(f"0001-{scenario.lower()}-*")
    log = parse((folder / "mlperf_log_detail.txt").read_text())
    assert any(each.startswith("Lanewise ended the run early: interrupted") for each in log.errors)
    assert not log.judged
    assert not log.cut


def test_ctrl_c_in_a_selftest_is_one_line_and_keeps_the_logs(loadgen, tmp_path, clean_env):
    logs = Path(tmp_path) / "logs"
    command = [BINARY, "loadtest", "selftest", "--start", "100", "--seconds", "600", "--logs", logs]
    done = interrupted(command, lambda: any(logs.glob("*/mlperf_log_detail.txt")), tmp_path, clean_env)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr
    (log,) = logs.glob("*/mlperf_log_detail.txt")
    errors = parse(log.read_text()).errors
    assert any(each.startswith("Lanewise ended the run early: interrupted") for each in errors)



AT_THE_END = """
import random, threading, time
from pathlib import Path
from lanewise import _native
from lanewise.loadtest.detail_log import NAME, parse
from lanewise.loadtest.load_run import LoadSpec
from lanewise.loadtest.loadgen import LoadGenRunner
from lanewise.signal_deferral import SignalDeferral
chance = random.Random(1)
lost = []
for number in range(20):
    deferral, begun, kept, length = SignalDeferral(), threading.Event(), [], chance.uniform(0.25, 0.3)
    def tick(issued, answered, late):
        deferral.act()
        if issued:
            begun.set()
    def interrupt():
        begun.wait()
        time.sleep(chance.uniform(0.24, 0.29))
        signal.raise_signal(signal.SIGINT)
    runner = LoadGenRunner(_native.LawSystem(0.001), Path(f"logs{number}"), tick=tick)
    thread = threading.Thread(target=interrupt)
    try:
        with deferral:
            thread.start()
            kept.append(runner.run(LoadSpec("Server", qps=200, seconds=length, queries=10, bound=1000.0)))
            thread.join()
    except KeyboardInterrupt:
        pass
    thread.join()
    (log,) = Path(f"logs{number}").glob(f"*/{NAME}")
    if parse(log.read_text()).judged and not kept:
        lost.append(number)
print("lost", lost)
"""


def test_a_run_that_has_its_verdict_is_kept_whenever_ctrl_c_comes(loadgen, tmp_path):
    code = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n" + AT_THE_END
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "lost []\n"), done.stdout + done.stderr
