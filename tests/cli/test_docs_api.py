"""The API reference: every public function says its units and errors, and shows an example that runs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib.util
import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lanewise
from lanewise import api, errors

ROOT = Path(__file__).parents[2]
# A number has its unit in parentheses: `seconds` (s of simulated time).
UNIT = r"`{name}` \((B|s|B/s|1/s|share|count|a whole number)\b[^)]*\)"
# The log of one epoch of 40 s: times in ms, keys, metadata.
EPOCH = [(1000, "run_start", ""), (1000, "epoch_start", '"epoch_num": 1'), (41_000, "epoch_stop", '"epoch_num": 1')]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "docs" / "reference" / "generate_api.py"
    spec = importlib.util.spec_from_file_location("generate_api", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples read, as the head of the page describes them."""
    folder = tmp_path_factory.mktemp("examples")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    copies = re.search(r"cat > copies\.txt <<'EOF'\n(.*?)EOF\n", readme, re.DOTALL)
    assert copies is not None
    (folder / "copies.txt").write_text(copies[1], encoding="utf-8")
    shutil.copy(ROOT / "tests/discovery/data/h200-2gpus.tar.zst", folder / "machine.tar.zst")
    lines = [
        f':::MLLOG {{"namespace": "", "time_ms": {time}, "event_type": "", "key": "{key}", "value": null, '
        f'"metadata": {{{metadata}}}}}\n'
        for time, key, metadata in [*EPOCH, (43_000, "run_stop", "")]
    ]
    (folder / "training.log").write_text("".join(lines), encoding="utf-8")
    lanewise.save_run(lanewise.run_studies(["gpu-server-routes"]), folder / "run.json")
    return folder


def function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(api, name)
    return found


def annotations_of(name: str) -> dict[str, str]:
    return {key: str(entry.annotation) for key, entry in inspect.signature(function(name)).parameters.items()}


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    """`make api` writes it from the docstrings."""
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page()


def test_every_public_function_is_in_a_group(generator: ModuleType) -> None:
    assert sorted(name for names in generator.groups().values() for name in names) == sorted(api.__all__)


def test_every_type_of_a_signature_is_on_the_page(generator: ModuleType) -> None:
    listed = {kind.__name__ for table in (generator.TYPES, generator.OPTIONS) for kind in generator.classes(table)}
    text = " ".join(generator.signature(name, function(name)) for name in api.__all__)
    others = {"Any", "Callable", "Iterable", "Iterator", "Mapping", "None", "Path", "Sequence", "StudyProbe", "True"}
    assert set(re.findall(r"\b[A-Z]\w+", text)) - listed - others - {"False", "Tick"} == set()


def test_a_type_says_what_its_numbers_are(generator: ModuleType) -> None:
    silent = [
        f"{kind.__name__}.{entry.name}"
        for kind in generator.classes(generator.TYPES)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
        for entry in dataclasses.fields(kind)
        if "float" in str(entry.type) and not re.search(rf"\b{entry.name}\b", kind.__doc__ or "")
    ]
    assert silent == []


@pytest.mark.parametrize("name", api.__all__)
def test_a_docstring_has_units_errors_and_an_example(name: str) -> None:
    text = " ".join((inspect.getdoc(function(name)) or "").split())
    for parameter, annotation in annotations_of(name).items():
        if re.search(r"\b(float|int)\b", annotation) and "Mapping" not in annotation:
            assert re.search(UNIT.format(name=parameter), text), f"no unit of {parameter}"
    arguments = " ".join(annotations_of(name).values())
    if re.search(r"\b(Path|float|int)\b", arguments) or name.startswith(("measure_", "loadtest_")):
        raised = re.search(r"\bRaises (.+?\.)(?= |$)", text)
        assert raised is not None, "no errors"
        known = [word for word in re.findall(r"\w+", raised[1]) if word in vars(errors) or word in api.__all__]
        assert known, "no class of lanewise.errors"
    assert ">>> " in text, "no example"


TWO_HOSTS = "composable-server-two-hosts"
SERVER = "composable-server-gen4"


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("load_catalog", (["none.yaml"],), "InputError"),
        ("load_system", ("rack-17gpu",), "UnknownName"),
        ("load_system", (SERVER, {"path": 9}), "Contradiction"),
        ("load_system", ("copies.txt",), "FormatError"),
        ("load_study", ("none.yaml",), "InputError"),
        ("load_workload", ("none",), "UnknownName"),
        ("load_run", ("copies.txt",), "FormatError"),
        ("discover", ("copies.txt",), "FormatError"),
        ("capture", ("machine.zip",), "InputError"),
        ("attach", (TWO_HOSTS, "gpu0", "host1"), "Contradiction"),
        ("detach", (TWO_HOSTS, "gpu4"), "Contradiction"),
        ("route", ("rack-16gpu", "gpu0", "sw0"), "InputError"),
        ("class_matrix", ("rack-16gpu", ["gpu99"]), "UnknownName"),
        ("plan", (TWO_HOSTS,), "InputError"),
        ("predict", ("rack-16gpu", "gpu0"), "FormatError"),
        ("predict", ("rack-16gpu", "gpu0->gpu4 1 GiB"), "InputError"),
        ("predict", (TWO_HOSTS, "host0->gpu4"), "Unreachable"),
        ("finish_times", ("rack-16gpu", "gpu0->gpu4"), "InputError"),
        ("matrix", ("rack-16gpu", None, "speed"), "UnknownName"),
        ("serve", (SERVER, "resnet50", "single"), "UnknownName"),
        ("simulate", (SERVER, "resnet50"), "InputError"),
        ("peak", (SERVER, "resnet50 1000 QPS"), "InputError"),
        ("run_studies", (["none"],), "UnknownName"),
        ("calibrate", (["composable-server"], ["l40s"]), "FormatError"),
        ("new_study", ("1 2",), "InputError"),
        ("read_results", ("training.log",), "FormatError"),
        ("check", (["copies.txt"], None, "run.json"), "InputError"),
        ("save_run", (lanewise.as_run([]), "none/run.json"), "InputError"),
        ("compare_sources", ("run.json", "guessed"), "UnknownName"),
        ("compare_systems", ("run.json", "a", "b"), "UnknownName"),
        ("study_accuracy", ("none.json",), "InputError"),
        ("accuracy", (("none",),), "UnknownName"),
    ],
)
def test_an_error_that_a_docstring_states_is_raised(
    name: str, arguments: tuple[object, ...], error: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(errors.LanewiseError) as caught:
        function(name)(*arguments)
    assert type(caught.value).__name__ == error
    assert error in (inspect.getdoc(function(name)) or "")


def run_examples(text: str, name: str) -> None:
    """Run the examples of a text; fail with what they print where that is not what they show."""
    example = doctest.DocTestParser().get_doctest(text, {"lanewise": lanewise, "Path": Path}, name, None, None)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(example, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("name", api.__all__)
def test_an_example_shows_what_it_prints(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run_examples(inspect.getdoc(function(name)) or "", name)


def test_the_introduction_shows_what_it_prints(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", page, re.DOTALL)
    assert len(blocks) > 3
    run_examples("\n".join(blocks), "python.md")


@pytest.mark.parametrize("name", api.__all__)
def test_an_example_that_is_not_run_says_what_it_needs(name: str) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(function(name)) or "")
    skipped = [entry.source for entry in examples if entry.options.get(doctest.SKIP)]
    assert not skipped or re.search(r"  # \w.*  # doctest", "".join(skipped)), "say what it needs in a comment"
