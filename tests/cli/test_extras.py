"""What an extra brings (OR-tools, matplotlib) is missed by the verbs that need it alone, and before they begin."""

from __future__ import annotations

import subprocess
import sys
from importlib.abc import MetaPathFinder

import pytest

from lanewise.cli import verbs
from lanewise.errors import MissingDependency, import_extra
from lanewise.installed import dependencies
from lanewise.loadtest.datasets import ImageFolder

PACKAGES = {
    "ortools": "lanewise[plan]",
    "matplotlib": "lanewise[report]",
    "onnxruntime": "lanewise[loadtest]",
    "onnx": "lanewise[loadtest]",
    "torch": "lanewise[torch]",
    "PIL": "lanewise[images]",
}
PLACEMENT = ["plan", "dgx-a100-network", "--pin", "nic"]
WITHOUT_EXTRAS = [
    ["system", "list"],
    ["route", "rack-16gpu"],
    ["predict", "rack-16gpu", "--flows", "gpu0->gpu4"],
    ["predict", "composable-server-gen4", "--service", "resnet50", "--peak"],
    ["study", "run", "gpu-server-routes"],
    ["plan", "cirrascale-typical", "cirrascale-1cpu", "--pattern", "scatter"],
]


class Blocker(MetaPathFinder):
    """As if these packages were not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def no_extras(monkeypatch, tmp_path):
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Blocker(), *sys.meta_path])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", WITHOUT_EXTRAS, ids=" ".join)
def test_other_verbs_do_without(no_extras, capsys, arguments):
    assert verbs.run(arguments) == 0
    assert capsys.readouterr().out


def test_a_placement_needs_the_extra_plan(no_extras, capsys):
    assert verbs.run(PLACEMENT) == 2
    cause = "planning needs OR-tools, which is not installed"
    assert capsys.readouterr().err == f"error: {cause}\nhint:  pip install 'lanewise[plan]'\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "run", "gpu-server-routes", "-o", "page.html", "--json", "run.json"],
        ["report", "run.json", "-o", "page.html"],
        ["loadtest", "sweep", "--chart", "chart.svg"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_charts_need_the_extra_report_before_anything_runs(no_extras, capsys, arguments):
    assert verbs.run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "error: charts need matplotlib, which is not installed\nhint:  pip install 'lanewise[report]'\n"
    assert not list(no_extras.iterdir())


def test_a_folder_of_images_needs_the_extra_images(no_extras):
    with pytest.raises(MissingDependency, match="needs pillow, which is not installed") as raised:
        ImageFolder(no_extras)
    assert raised.value.hint == "pip install 'lanewise[images]'"


def test_a_package_that_does_not_load_says_why(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("raise ImportError('libomp.so.5: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependency) as raised:
        import_extra("broken_package", "torch", "the torch engine needs torch")
    assert raised.value.show().splitlines() == [
        "error: the torch engine needs torch, which does not load: libomp.so.5: cannot open shared object file",
        "hint:  pip install 'lanewise[torch]'",
    ]


def test_doctor_names_the_extras(no_extras, capsys):
    assert verbs.run(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for extra in PACKAGES.values():
        assert f"pip install '{extra}'" in out


def test_the_requirements_of_an_extra_include_those_of_extras_it_names():
    def printed(*extras):
        command = [sys.executable, "packaging/requirements.py", *extras]
        root = __file__.rpartition("/tests/")[0]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split()

    assert not any(name in line for line in printed() for name in PACKAGES)
    assert {"ortools>=9.10", "matplotlib>=3.8", "numpy>=1.26"} <= set(printed("plan", "report"))
    assert {"ortools>=9.10", "matplotlib>=3.8", "ruff>=0.6"} <= set(printed("dev"))
    assert not any(line.startswith("lanewise") for line in printed("all"))


def test_doctor_says_that_the_native_core_is_older_than_lanewise(monkeypatch):
    monkeypatch.delattr("lanewise._native.check_gpu_memory")
    (row,) = (piece for piece in dependencies() if piece.piece == "dma-buf")
    assert not row.found
    assert row.detail == "the native core has no check_gpu_memory: built from another version; reinstall Lanewise"
