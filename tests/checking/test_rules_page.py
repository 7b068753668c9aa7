"""docs/reference/check-rules.md and check-causes.md: each constant that they name exists and has the value shown."""

from __future__ import annotations

import ast
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanewise.catalog import builtin
from lanewise.checking import causes
from lanewise.checking.named.abilities import ability
from lanewise.checking.references.parts import host_copy, peer_copy
from lanewise.perf.flow import parse_flows
from lanewise.results.observation import Observation, Source

FOLDER = Path(__file__).parents[2] / "docs/reference"
LINES = [
    line for page in ("check-rules.md", "check-causes.md")
    for line in (FOLDER / page).read_text(encoding="utf-8").splitlines()
]  # fmt: skip
# Module and constant or function, as the page names them: `parts.START`, `causes.nvlink_steps._AGREE`.
NAME = re.compile(r"`((?:[a-z_]+\.)+)(_?[A-Za-z]\w*)`")
PACKAGES = ("lanewise.checking.references", "lanewise.checking", "lanewise.checking.named")
WORDS = {2: "two", 3: "three", 4: "four", 8: "eight"}
UNITS = {1e9: "GB/s", 1e6: "MB/s", 2**20: "MiB", 2**10: "KiB", 1: "s", 1e-3: "ms", 1e-6: "us"}


def named(line: str) -> Iterator[tuple[str, object]]:
    """The names of a line with what they are in the code; they fail to resolve where the code has others."""
    for module, name in NAME.findall(line):
        for package in PACKAGES:
            try:
                found = importlib.import_module(f"{package}.{module.rstrip('.')}")
            except ModuleNotFoundError:
                continue
            yield f"{module}{name}", getattr(found, name)
            break
        else:
            pytest.fail(f"no module {module} of checking: {line}")


def texts(value: float) -> list[str]:
    """How a page may write a number: as a share, a count, times, or with a unit."""
    plain = [f"{100 * value:g} %", f"{value:.3g} times", f"{value:g}", f"{value:,}"]
    scaled = [f"{value / scale:.4g} {unit}" for scale, unit in UNITS.items()]
    return [*plain, *scaled, f"{value / 1e6:g} MB", *([WORDS[int(value)]] if value in WORDS else [])]


def is_shown(value: object, line: str) -> bool:
    """Whether a line has a number; of several all of them; what is no number needs none."""
    if isinstance(value, dict):
        return all(is_shown(each, line) for each in value.values())
    if isinstance(value, tuple):
        return all(is_shown(each, line) for each in value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return True
    return any(re.search(rf"(?<![\d.,]){re.escape(text)}(?![\d.]\d|\d)", line) for text in texts(value))


@pytest.mark.parametrize("line", [line for line in LINES if NAME.search(line)], ids=lambda line: line[:60])
def test_a_rule_has_the_number_of_the_code(line: str):
    wires = "theoretical" in line  # of limits that are rates of wires, and of those that can be reached
    for name, value in named(line):
        of_line = value[wires] if isinstance(value, dict) else value
        assert is_shown(of_line, line), f"{name} is {value}"


def test_a_number_that_is_not_on_the_line_is_noticed():
    assert is_shown(0.75, "| a row | 75 % | `paths._OF_PATH` |")
    assert not is_shown(0.7, "| a row | 75 % | `paths._OF_PATH` |")
    assert not is_shown(64 << 20, "| 256 MiB and more, 164 MiB |")


def table_row(label: str) -> list[str]:
    """The cells of the first row whose first cell begins with that label."""
    return next([cell.strip() for cell in line.split("|")[1:-1]] for line in LINES if line.startswith(f"| {label}"))


def copy(flow: str, metric: str = "goodput", **how: str) -> Observation:
    path = "peer" if flow.count("gpu") > 1 and "host" not in flow else "host to device"
    words = {key.replace("_", " "): value for key, value in how.items()}
    return Observation("copy", flow, metric, 20e9, "GB/s", Source.MEASURED, how=words, path=path)


@pytest.mark.parametrize(
    ("label", "title", "row"),
    [
        ("one way, pinned or unstated memory", "NVIDIA A100-SXM4-80GB", copy("host0->gpu0")),
        ("the same, of a laptop's GPU", "NVIDIA GeForce RTX 4070 Laptop GPU", copy("host0->gpu0")),
        ("both ways, their sum", "NVIDIA A100-SXM4-80GB", copy("host0->gpu0, gpu0->host0", "total")),
        ("one way while the other", "NVIDIA A100-SXM4-80GB", copy("host0->gpu0", flows="host0->gpu0, gpu0->host0")),
        ("written by the CPU", "NVIDIA A100-SXM4-80GB", copy("host0->gpu0", engine="CPU")),
        ("by a kernel", "NVIDIA A100-SXM4-80GB", copy("host0->gpu0", engine="SM")),
        ("P2P on, no NVLinks", "NVIDIA GeForce RTX 4090", copy("gpu0->gpu1", p2p="on")),
    ],
)
def test_the_rules_of_copies_are_those_of_the_code(label: str, title: str, row: Observation):
    gpu, flows = ability(title, builtin()), parse_flows(row.how.get("flows", row.flow))
    assert gpu is not None
    reference = next(iter(peer_copy(gpu, row) if row.path == "peer" else host_copy(gpu, flows, row)))
    _, _, slow, ok, *_ = table_row(label)
    assert f"{100 * reference.slow_below / reference.nominal:.3g} %" == slow
    assert f"{100 * reference.fine_low / reference.nominal:.3g} %" == ok
    assert reference.fine_high is None or math.isfinite(reference.fine_high)


def keys_of_causes(tree: ast.AST) -> Iterator[str]:
    """The names of causes that a module writes: the first words of keys, and those of named conditions."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in ("Cause", "NamedCondition"):
            keys = [each.elts[0] for each in node.args if isinstance(each, ast.Tuple) and each.elts]
        else:
            keys = node.args[1:2] if node.func.id == "_condition" else []
        yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))


def test_each_name_of_a_cause_is_explained() -> None:
    table = [line.split("|")[1] for line in LINES if re.match(r"\| `[a-zA-Z ]+`", line)]
    explained = [name for cell in table for name in re.findall(r"`([^`]+)`", cell)]
    modules = Path(causes.__file__).parent.rglob("*.py")
    written = {key for path in modules for key in keys_of_causes(ast.parse(path.read_text(encoding="utf-8")))}
    assert len(written) > 30
    assert not written - set(explained), "explain it in docs/reference/check-causes.md"
